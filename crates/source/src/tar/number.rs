//! Numbers in header fields: octal digits, or base 256 where GNU tar and star found octal too short.

/// The number in a header field; blank fields are 0. `None` if it is no number or does not fit.
///
/// Octal: leading spaces, digits, and then nothing or a space or NUL, after which nothing is looked at. Base 256: the top
/// bit of the first byte is set, the rest is a big-endian number in two's complement.
pub(super) fn field(bytes: &[u8]) -> Option<i64> {
    match bytes.first() {
        Some(&first) if first & 0x80 != 0 => base_256(bytes),
        _ => octal(bytes),
    }
}

fn octal(bytes: &[u8]) -> Option<i64> {
    let start = bytes.iter().position(|&b| b != b' ').unwrap_or(bytes.len());
    let digits = &bytes[start..];
    let count = digits.iter().take_while(|b| matches!(b, b'0'..=b'7')).count();
    let (digits, rest) = digits.split_at(count);
    if count == 0 && rest.iter().any(|&b| b != 0 && b != b' ') {
        return None;
    }
    if !matches!(rest.first(), None | Some(b' ' | 0)) {
        return None;
    }
    digits.iter().try_fold(0i64, |sum, &digit| sum.checked_mul(8)?.checked_add(i64::from(digit - b'0')))
}

fn base_256(bytes: &[u8]) -> Option<i64> {
    let (&first, rest) = bytes.split_first()?;
    // Bit 6 is the sign; bit 7 only says that this is base 256.
    let start = i128::from(((first << 1) as i8) >> 1);
    let number = rest.iter().try_fold(start, |sum, &byte| sum.checked_mul(256)?.checked_add(byte.into()))?;
    i64::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_octal_however_it_is_padded() {
        for (text, number) in [
            (&b"0000644\0"[..], 0o644),
            (b"000644 \0", 0o644),
            (b"   644 \0", 0o644),
            (b"77777777", 0o77_777_777),
            (b"777777777777", 0o777_777_777_777),
            (b"\0\0\0\0\0\0\0\0", 0),
            (b"        ", 0),
            (b"12\0junk", 0o12),
            (b"", 0),
        ] {
            assert_eq!(field(text), Some(number), "{text:?}");
        }
    }

    #[test]
    fn reads_base_256_of_either_sign() {
        for (bytes, number) in [
            (&[0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe][..], 0xffff_fffe),
            (&[0xff; 12], -1),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe], -2),
            (&[0x80, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0], 3 << 32),
            (&[0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], i64::MAX),
            (&[0xff, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], i64::MIN),
        ] {
            assert_eq!(field(bytes), Some(number), "{bytes:?}");
        }
    }

    #[test]
    fn refuses_what_is_no_number_or_too_large() {
        for bytes in [
            &b"0000648\0"[..],
            b"-000001\0",
            b"\x00000644\0",
            b"644x    ",
            b"0x1234\0\0",
            &[0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0],
            &[0xbf; 12],
            &[0xc0; 12],
        ] {
            assert_eq!(field(bytes), None, "{bytes:?}");
        }
    }
}
