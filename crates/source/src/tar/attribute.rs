//! Extended attributes in PAX records: names and values in the encodings of GNU tar and libarchive,
//! and their limits.

/// Linux's limit of the name of an extended attribute.
const XATTR_NAME_LEN_MAX: usize = 255;
/// Linux's limit of the value of an extended attribute.
const XATTR_VALUE_LEN_MAX: usize = 1 << 16;

/// Returns the reason if an attribute exceeds Linux's limits; `None` if not, or if the record is no
/// attribute.
pub(super) fn too_long(key: &[u8], value: &[u8]) -> Option<String> {
    let (name, value_len) = match key.strip_prefix(b"SCHILY.xattr.") {
        Some(name) => (unescaped(name), value.len()),
        None => {
            let name = percent_decoded(key.strip_prefix(b"LIBARCHIVE.xattr.")?)?;
            (name, base64_digits(value).count() * 3 / 4)
        }
    };
    if name.len() > XATTR_NAME_LEN_MAX {
        return Some(format!("name of {} bytes: at most {XATTR_NAME_LEN_MAX} allowed", name.len()));
    }
    (value_len > XATTR_VALUE_LEN_MAX)
        .then(|| format!("value of {value_len} bytes: at most {XATTR_VALUE_LEN_MAX} allowed"))
}

/// Decodes a name of GNU tar, "%3D" for "=" and "%25" for "%"; `None` if it is invalid.
pub(super) fn plain_name(text: &[u8]) -> Option<Vec<u8>> {
    checked(unescaped(text))
}

/// Decodes a name of libarchive, "%" and two digits for any byte; `None` if it is invalid.
pub(super) fn encoded_name(text: &[u8]) -> Option<Vec<u8>> {
    checked(percent_decoded(text)?)
}

fn checked(name: Vec<u8>) -> Option<Vec<u8>> {
    (!name.is_empty() && !name.contains(&0)).then_some(name)
}

fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            decoded.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, behind)) = rest.split_first() {
        let (byte, behind) = match rest {
            [b'%', b'3', b'D' | b'd', behind @ ..] => (b'=', behind),
            [b'%', b'2', b'5', behind @ ..] => (b'%', behind),
            _ => (byte, behind),
        };
        plain.push(byte);
        rest = behind;
    }
    plain
}

/// Returns the base64 digits, without padding and line ends.
fn base64_digits(text: &[u8]) -> impl Iterator<Item = &u8> {
    text.iter().filter(|&&byte| byte != b'=' && byte != b'\n')
}

/// Decodes a value of libarchive in base64; `None` if it is invalid.
pub(super) fn encoded_value(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in base64_digits(text) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count) as u8);
        }
    }
    Some(decoded)
}
