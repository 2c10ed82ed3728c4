//! Extended attributes in PAX records: names and values in the encodings of GNU tar and libarchive,
//! and their limits.

use ct_codecs::{Base64NoPadding, Decoder};
use packfs_core::hex_byte;
use percent_encoding::percent_decode;

/// Padding and line ends between base64 digits.
const PADDING: &[u8] = b"=\n";
/// Linux's limit of the name of an extended attribute.
const XATTR_NAME_LEN_MAX: usize = 255;
/// Linux's limit of the value of an extended attribute.
const XATTR_VALUE_LEN_MAX: usize = 1 << 16;

/// `None` if the record is no attribute.
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

/// "%3D" for "=" and "%25" for "%"; `None` if invalid.
pub(super) fn plain_name(text: &[u8]) -> Option<Vec<u8>> {
    checked(unescaped(text))
}

/// "%" and two digits for any byte; `None` if invalid.
pub(super) fn encoded_name(text: &[u8]) -> Option<Vec<u8>> {
    checked(percent_decoded(text)?)
}

fn checked(name: Vec<u8>) -> Option<Vec<u8>> {
    (!name.is_empty() && !name.contains(&0)).then_some(name)
}

fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let escapes = text.split(|&byte| byte == b'%').skip(1);
    let are_whole = escapes.map(|escape| hex_byte(escape.get(..2)?)).all(|byte| byte.is_some());
    are_whole.then(|| percent_decode(text).collect())
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

fn base64_digits(text: &[u8]) -> impl Iterator<Item = &u8> {
    text.iter().filter(|byte| !PADDING.contains(byte))
}

pub(super) fn encoded_value(text: &[u8]) -> Option<Vec<u8>> {
    Base64NoPadding::decode_to_vec(text, Some(PADDING)).ok()
}
