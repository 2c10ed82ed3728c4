//! Words of a line, and their encoding: bare, or quoted with escapes.

use super::fault::Fault;
use packfs_core::{escaped, hex_byte};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Quotes and escapes are resolved.
    pub(super) bytes: Vec<u8>,
    /// Position of the first `=` outside quotes.
    pub(super) equals: Option<usize>,
}

impl Word {
    /// Returns the parts before and after the first `=` outside quotes.
    pub(super) fn key_and_value(&self) -> Result<(&[u8], &[u8]), Fault> {
        let at = self.equals.ok_or_else(|| {
            Fault::new(format!("\"{}\": KEY=VALUE is allowed here", escaped(&self.bytes)))
                .hint("a name or value with spaces belongs between double quotes")
        })?;
        Ok((&self.bytes[..at], &self.bytes[at + 1..]))
    }
}

pub(super) fn words(line: &[u8]) -> Result<Vec<Word>, Fault> {
    let mut found = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let word;
        (word, rest) = first_word(rest)?;
        found.push(word);
        rest = rest.trim_ascii_start();
    }
    Ok(found)
}

/// Returns the text after the word, too.
fn first_word(mut rest: &[u8]) -> Result<(Word, &[u8]), Fault> {
    let mut word = Word { bytes: Vec::new(), equals: None };
    if rest.first() == Some(&b'#') {
        return Err(Fault::new("a word that begins with #: comments have a line of their own")
            .hint("write a name that begins with # between double quotes"));
    }
    loop {
        match rest.first() {
            None | Some(b' ' | b'\t') => return Ok((word, rest)),
            Some(b'"') => rest = quoted(&rest[1..], &mut word.bytes)?,
            Some(_) => rest = bare(rest, &mut word)?,
        }
    }
}

fn bare<'a>(rest: &'a [u8], word: &mut Word) -> Result<&'a [u8], Fault> {
    let end = rest.iter().position(|b| matches!(b, b' ' | b'\t' | b'"')).unwrap_or(rest.len());
    let (part, rest) = rest.split_at(end);
    if part.contains(&b'\\') {
        return Err(Fault::new(format!("\"{}\": a backslash outside quotes", escaped(part)))
            .hint("write the word between double quotes, and the backslash twice"));
    }
    if let Some(byte) = part.iter().find(|b| b.is_ascii_control()) {
        return Err(control(*byte));
    }
    if std::str::from_utf8(part).is_err() {
        return Err(Fault::new(format!("\"{}\": not UTF-8", escaped(part)))
            .hint("write the word between double quotes, and such bytes as \\xNN"));
    }
    if word.equals.is_none() {
        word.equals = part.iter().position(|&b| b == b'=').map(|at| word.bytes.len() + at);
    }
    word.bytes.extend_from_slice(part);
    Ok(rest)
}

/// Decodes up to the closing quote; returns the text after it.
fn quoted<'a>(mut rest: &'a [u8], bytes: &mut Vec<u8>) -> Result<&'a [u8], Fault> {
    loop {
        let plain = rest.iter().position(|b| matches!(b, b'"' | b'\\') || b.is_ascii_control());
        let (part, behind) = rest.split_at(plain.unwrap_or(rest.len()));
        bytes.extend_from_slice(part);
        match behind {
            [] => return Err(Fault::new("a quote is not closed").hint("a line break within quotes is \\n")),
            [b'"', behind @ ..] => return Ok(behind),
            [b'\\', behind @ ..] => {
                let byte;
                (byte, rest) = escape(behind)?;
                bytes.push(byte);
            }
            [byte, ..] => return Err(control(*byte)),
        }
    }
}

fn escape(behind: &[u8]) -> Result<(u8, &[u8]), Fault> {
    let unescaped = match behind {
        [b'n', rest @ ..] => Some((b'\n', rest)),
        [b't', rest @ ..] => Some((b'\t', rest)),
        [byte @ (b'\\' | b'"'), rest @ ..] => Some((*byte, rest)),
        [b'x', high, low, rest @ ..] => hex_byte(&[*high, *low]).map(|byte| (byte, rest)),
        _ => None,
    };
    unescaped.ok_or_else(|| {
        let len = if behind.first() == Some(&b'x') { 3 } else { 1 };
        let found = escaped(&behind[..len.min(behind.len())]).to_string();
        Fault::new(format!(
            "escape \\{found}: \\n, \\t, \\\\, \\\" and \\xNN with two hexadecimal digits are allowed"
        ))
    })
}

fn control(byte: u8) -> Fault {
    Fault::new(format!("control character {byte:#04x}"))
        .hint("write the word between double quotes, and such characters as \\xNN, \\n or \\t")
}

/// Bare if unambiguous, else quoted.
pub(super) fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    let is_bare = |b: &u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'.' | b'_' | b'/' | b'+' | b'-' | b':' | b'@' | b',' | b'%' | b'~')
    };
    if !bytes.is_empty() && bytes.iter().all(is_bare) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.extend_from_slice(b"\\\""),
                ' '..='~' if c != '\\' => out.push(c as u8),
                // As in messages, so that text can be copied from there.
                c => {
                    let mut utf8 = [0; 4];
                    let text = escaped(c.encode_utf8(&mut utf8).as_bytes()).to_string();
                    out.extend_from_slice(text.as_bytes());
                }
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &[u8]) -> Vec<Vec<u8>> {
        words(line).unwrap().into_iter().map(|word| word.bytes).collect()
    }

    fn fault(line: &[u8]) -> String {
        words(line).unwrap_err().to_string()
    }

    #[test]
    fn splits_at_spaces_outside_of_quotes() {
        assert_eq!(split(b"  file\ta/b  x=1 "), [&b"file"[..], b"a/b", b"x=1"]);
        assert_eq!(split(br#"file "a b" x="c d"e"#), [&b"file"[..], b"a b", b"x=c de"]);
        assert_eq!(split(br#""\x00\xfF\n\t\\\"" """#), [&b"\0\xff\n\t\\\""[..], b""]);
        assert_eq!(split("käse".as_bytes()), ["käse".as_bytes()]);
        assert!(split(b"").is_empty() && split(b" \t").is_empty());
    }

    #[test]
    fn only_an_equals_sign_outside_of_quotes_ends_a_key() {
        let word = &words(br#"xattr."user.a=b"=c=d"#).unwrap()[0];
        assert_eq!(word.key_and_value().unwrap(), (&b"xattr.user.a=b"[..], &b"c=d"[..]));
        assert!(words(br#""a=b""#).unwrap()[0].key_and_value().is_err());
    }

    #[test]
    fn refuses_ambiguous_words() {
        for (line, word) in [
            (&b"a\\b"[..], "backslash"),
            (b"\"a", "not closed"),
            (b"\"a\\", "escape"),
            (br#""\q""#, "escape \\q"),
            (br#""\x4""#, "escape \\x4"),
            (br#""\xg0""#, "escape \\xg0"),
            (b"\xff", "UTF-8"),
            (b"a\0b", "0x00"),
            (b"\"a\x1b\"", "0x1b"),
            (b"file a #b", "comments"),
        ] {
            assert!(fault(line).contains(word), "{line:?}: {}", fault(line));
        }
    }

    #[test]
    fn every_byte_and_every_name_is_read_as_it_was_written() {
        let all: Vec<u8> = (0..=255).collect();
        let names: [&[u8]; 12] = [
            b"",
            b"usr/bin/sh",
            b"a b",
            b"#x",
            b"a=b",
            b"\"",
            b"\\x41",
            b"\\",
            "käse \u{202e}".as_bytes(),
            b"\xc3",
            &all,
            b"dev-disk-by\\x2dlabel.swap",
        ];
        for name in names {
            let mut line = Vec::new();
            append(&mut line, name);
            assert_eq!(split(&line), [name], "{}", String::from_utf8_lossy(&line));
            assert!(!line.iter().any(u8::is_ascii_control));
        }
    }
}
