//! Display of untrusted bytes: escaped without loss, so that they do not act on a terminal.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Escapes bytes for a terminal: valid UTF-8 without control characters is unchanged, everything
/// else (and the backslash) becomes `\xNN` or `\n`, `\t`, `\\`.
pub fn escaped(bytes: &[u8]) -> Escaped<'_> {
    Escaped(bytes)
}

/// Result of [`escaped`].
pub struct Escaped<'a>(&'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    c => write_char(f, c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Returns true if a terminal could act on the character, or if it could disguise a text: control
/// characters of both sets, DEL, line and paragraph separators, bidirectional overrides, characters
/// without width.
pub fn acts_on_terminals(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn write_char(f: &mut impl Write, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\t' => f.write_str("\\t"),
        c if acts_on_terminals(c) => {
            let mut utf8 = [0; 4];
            c.encode_utf8(&mut utf8).bytes().try_for_each(|byte| write!(f, "\\x{byte:02x}"))
        }
        c => f.write_char(c),
    }
}

/// Escapes whole messages, whose parts should be escaped already, as a last line of defense:
/// affects only characters that act on terminals.
pub fn printable(message: &str) -> Cow<'_, str> {
    if !message.contains(acts_on_terminals) {
        return Cow::Borrowed(message);
    }
    let mut shown = String::with_capacity(message.len() + 16);
    // Writing to a string cannot fail.
    let _ = message.chars().try_for_each(|c| write_char(&mut shown, c));
    Cow::Owned(shown)
}

/// Joins the lines of a message.
pub fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// Returns the last line, which names the cause in messages of libraries.
pub fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default().trim_start().trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The opposite of [`escaped`].
    fn unescaped(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&first, behind)) = rest.split_first() {
            rest = behind;
            if first != b'\\' {
                bytes.push(first);
                continue;
            }
            let (byte, len) = match rest[0] {
                b'x' => (u8::from_str_radix(std::str::from_utf8(&rest[1..3]).unwrap(), 16).unwrap(), 3),
                b'n' => (b'\n', 1),
                b't' => (b'\t', 1),
                other => (other, 1),
            };
            bytes.push(byte);
            rest = &rest[len..];
        }
        bytes
    }

    #[track_caller]
    fn check(bytes: &[u8]) {
        let shown = escaped(bytes).to_string();
        assert!(!shown.contains(acts_on_terminals), "{bytes:?} is shown as {shown:?}");
        assert_eq!(unescaped(&shown), bytes, "{shown}");
        assert_eq!(printable(&shown), shown, "what is escaped is left alone");
    }

    #[test]
    fn nothing_acts_on_a_terminal_and_nothing_is_lost() {
        (0..=255).for_each(|a| check(&[a]));
        (0..=0xffff_u32).for_each(|pair| check(&pair.to_be_bytes()[2..]));
        for c in (0..=0x1_0fff).filter_map(char::from_u32) {
            check(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        check(b"\x1b]0;title\x07\x9b2J\xc2\x9b2J\xff\\x1b");
    }

    #[test]
    fn shows_what_people_can_read_as_it_is() {
        assert_eq!(escaped(b"a\x1b[31m\xff\\\n").to_string(), "a\\x1b[31m\\xff\\\\\\n");
        assert_eq!(escaped("käse".as_bytes()).to_string(), "käse");
        assert_eq!(escaped("a\u{202e}b".as_bytes()).to_string(), "a\\xe2\\x80\\xaeb");
    }

    #[test]
    fn messages_lose_only_what_acts_on_terminals() {
        assert_eq!(printable("C:\\x käse \"a\\x1b\""), "C:\\x käse \"a\\x1b\"");
        assert_eq!(printable("a\x1b[2J\u{9b}\r\n"), "a\\x1b[2J\\xc2\\x9b\\x0d\\n");
    }

    #[test]
    fn texts_of_others_become_one_line() {
        let regex = "regex parse error:\n    (\n    ^\nerror: unclosed group";
        assert_eq!(last_line(regex), "unclosed group");
        assert_eq!(one_line("a: b\n\n  c\n"), "a: b; c");
    }
}
