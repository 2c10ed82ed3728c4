//! Names without Rock Ridge: conversion of ISO 9660 and Joliet names to those that Linux shows.

use packfs_format::units::*;

/// Returns a plain name as Linux shows it by default (`isofs_name_translate` in `fs/isofs/dir.c`):
/// lower case, without version 1, and without the dot before it.
pub(crate) fn plain(stored: &[u8]) -> Vec<u8> {
    let name = stored.strip_suffix(b".;1").or_else(|| stored.strip_suffix(b";1")).unwrap_or(stored);
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let shown = |&byte: &u8| match byte {
        b';' | b'/' => b'.',
        _ => byte.to_ascii_lowercase(),
    };
    name.within(..end).iter().map(shown).collect()
}

/// Returns a Joliet name as Linux shows it (`get_joliet_filename` in `fs/isofs/joliet.c`): without
/// version 1, and without trailing dots. Invalid characters become U+FFFD.
pub(crate) fn joliet(stored: &[u8]) -> Vec<u8> {
    let units = stored.chunks_exact(2).map(|pair| match *pair {
        [high, low] => u16::from_be_bytes([high, low]),
        _ => 0,
    });
    let name: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let name = name.strip_suffix(";1").unwrap_or(&name);
    let trimmed = name.trim_end_matches('.');
    // A name of dots only keeps one, and is refused like any other such name.
    (if trimmed.is_empty() { name.get(..1).unwrap_or("") } else { trimmed }).as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_lose_their_first_version_and_a_dot_before_it() {
        for (stored, shown) in [
            ("README.;1", "readme"),
            ("README.TXT;1", "readme.txt"),
            ("A.B;2", "a.b.2"),
            ("DIR", "dir"),
            ("X.", "x."),
            ("A/B;1", "a.b"),
            ("A;1;1", "a.1"),
        ] {
            assert_eq!(plain(stored.as_bytes()), shown.as_bytes(), "{stored}");
        }
    }

    #[test]
    fn joliet_names_are_utf_16() {
        let stored = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        for (name, shown) in [
            ("Read Me.txt;1", "Read Me.txt"),
            ("caf\u{e9}", "caf\u{e9}"),
            ("emoji-\u{1f600}", "emoji-\u{1f600}"),
            ("trailing.dot.", "trailing.dot"),
            ("...", "."),
        ] {
            assert_eq!(joliet(&stored(name)), shown.as_bytes(), "{name}");
        }
        assert_eq!(joliet(&[0xd8, 0, 0, b'a', 7]), "\u{fffd}a".as_bytes());
        assert_eq!(joliet(&[]), b"");
    }
}
