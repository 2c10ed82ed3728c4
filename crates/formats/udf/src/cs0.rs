//! Names in OSTA compressed Unicode, converted to those that Linux shows (`fs/udf/unicode.c`).

use crate::crc::crc;
use packfs_format::units::*;

/// `UDF_NAME_LEN`.
const NAME_LEN_MAX: usize = 254;
/// Length of a mark and the CRC after it.
const CRC_LEN: usize = 5;
/// Longest extension that is kept after the CRC, in characters.
const EXTENSION_MAX: usize = 4;

/// Decodes a stored text; `None` instead of invalid characters.
fn characters(stored: &[u8]) -> Result<Vec<Option<char>>, &'static str> {
    match stored.split_first() {
        None => Ok(Vec::new()),
        Some((8, bytes)) => Ok(bytes.iter().map(|byte| Some(char::from(*byte))).collect()),
        Some((16, bytes)) => {
            let (pairs, []) = bytes.as_chunks() else { return Err("half a character") };
            let units = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
            Ok(char::decode_utf16(units).map(Result::ok).collect())
        }
        Some(_) => Err("unknown compression, 8 and 16 allowed"),
    }
}

/// Converts a name as Linux does: characters that names cannot contain become `_`, and a changed
/// name gets the CRC of the stored one before its extension.
pub(crate) fn name(stored: &[u8]) -> Result<Vec<u8>, &'static str> {
    let characters = characters(stored)?;
    if characters.is_empty() {
        return Err("empty");
    }
    let (base, extension) = characters.split_at(extension_at(&characters));
    let (mut shown, is_base_whole) = shown(base);
    let (extension, is_extension_whole) = self::shown(extension);
    let mut is_whole = is_base_whole && is_extension_whole;
    is_whole &= shown.len().plus(extension.len()) <= NAME_LEN_MAX;
    is_whole &= !(extension.is_empty() && matches!(shown.as_str(), "." | ".."));
    if !is_whole {
        let room = NAME_LEN_MAX.minus(CRC_LEN).minus(extension.len());
        while shown.len() > room {
            shown.pop();
        }
        shown.push_str(&format!("#{:04X}", crc(stored.within(1..))));
    }
    shown.push_str(&extension);
    Ok(shown.into_bytes())
}

/// Index of the dot before a short, nonempty extension; the end without one.
fn extension_at(characters: &[Option<char>]) -> usize {
    let tail = characters.iter().rev().take(EXTENSION_MAX.plus(1));
    match tail.into_iter().position(|character| *character == Some('.')) {
        Some(len) if len > 0 => characters.len().minus(len).minus(1),
        _ => characters.len(),
    }
}

/// Replaces each series of invalid characters by one mark; true if there were none.
fn shown(characters: &[Option<char>]) -> (String, bool) {
    let mut text = String::new();
    let mut is_marked = false;
    let mut is_whole = true;
    for character in characters {
        match character {
            Some(character) if !matches!(character, '\0' | '/') => {
                text.push(*character);
                is_marked = false;
            }
            _ => {
                if !is_marked {
                    text.push('_');
                }
                (is_marked, is_whole) = (true, false);
            }
        }
    }
    (text, is_whole)
}

/// Decodes a `dstring`: a field whose last byte is the length of the text.
pub(crate) fn dstring(field: &[u8]) -> String {
    let Some((len, bytes)) = field.split_last() else { return String::new() };
    let stored = bytes.within(..usize::from(*len).min(bytes.len()));
    let characters = characters(stored).unwrap_or_default();
    let text: String =
        characters.into_iter().map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    packfs_core::printable(text.trim_end_matches('\0')).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        [16].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
    }

    fn shown(stored: &[u8]) -> String {
        String::from_utf8(name(stored).unwrap()).unwrap()
    }

    #[test]
    fn names_of_both_widths_are_unicode() {
        assert_eq!(shown(b"\x08caf\xe9"), "caf\u{e9}");
        assert_eq!(shown(&utf16("日本語 \u{1f600}.txt")), "日本語 \u{1f600}.txt");
        assert_eq!(shown(b"\x08..."), "...");
    }

    #[test]
    fn names_that_cannot_be_shown_get_their_crc_before_the_extension() {
        let crc = |bytes: &[u8]| format!("#{:04X}", crc(bytes));
        assert_eq!(shown(b"\x08a/\0b.txt"), format!("a_b{}.txt", crc(b"a/\0b.txt")));
        assert_eq!(shown(b"\x08."), format!(".{}", crc(b".")));
        assert_eq!(shown(b"\x08.."), format!("..{}", crc(b"..")));
        let lone = [16, 0xd8, 0, 0, b'x'];
        assert_eq!(shown(&lone), format!("_x{}", crc(&lone[1..])));
        let long: Vec<u8> = [8].into_iter().chain([0xe9; 200]).chain(*b".x").collect();
        let expected = format!("{}{}.x", "\u{e9}".repeat(123), crc(&long[1..]));
        assert_eq!(shown(&long), expected);
        assert!(expected.len() <= NAME_LEN_MAX);
    }

    #[test]
    fn refuses_what_is_no_name() {
        assert_eq!(name(b""), Err("empty"));
        assert_eq!(name(b"\x08"), Err("empty"));
        assert_eq!(name(b"\x09x"), Err("unknown compression, 8 and 16 allowed"));
        assert_eq!(name(b"\x10x"), Err("half a character"));
    }

    #[test]
    fn fields_end_with_their_length() {
        assert_eq!(dstring(b"\x08Linux\0\0\x06"), "Linux");
        assert_eq!(dstring(b"\0\0\0\0"), "");
        assert_eq!(dstring(b"\x08ab\xff"), "ab");
    }
}
