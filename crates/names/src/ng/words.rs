//! Words and lines of the files that gensquashfs reads.

use packfs::{Error, ImagePath, Result};

/// The rest of the line after the group is one word, including blanks.
pub struct Line<'t> {
    pub kind: &'t [u8],
    pub path: ImagePath,
    /// Octal digits; `None` for `*` of a glob.
    pub mode: Option<u16>,
    /// `None` for `*` of a glob.
    pub uid: Option<u32>,
    /// `None` for `*` of a glob.
    pub gid: Option<u32>,
    pub extra: &'t [u8],
}

/// Includes the vertical tab, as in C.
pub fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

pub fn trimmed(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_blank(byte)).count();
    &text[blanks..]
}

pub fn word(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|&byte| is_blank(byte)).unwrap_or(text.len()))
}

impl<'t> Line<'t> {
    pub fn parse(text: &'t [u8]) -> Result<Self> {
        let wrong = || Error::usage("TYPE PATH MODE UID GID [EXTRA] is expected");
        let (kind, rest) = word(text);
        let is_glob = kind == b"glob";
        let (path, mut rest) = name(trimmed(rest)).ok_or_else(wrong)?;
        let mut number = |radix| -> Result<Option<u32>> {
            let (digits, behind) = word(trimmed(rest));
            rest = behind;
            if is_glob && digits == b"*" {
                return Ok(None);
            }
            let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
            digits.and_then(|digits| u32::from_str_radix(digits, radix).ok()).map(Some).ok_or_else(wrong)
        };
        let (mode, uid, gid) = (number(8)?, number(10)?, number(10)?);
        let small = |mode| u16::try_from(mode).ok().filter(|mode| *mode <= 0o7777);
        let mode = mode.map(|mode| small(mode).ok_or_else(|| Error::usage("mode: above 07777")));
        let line = Line {
            kind,
            path: ImagePath::parse(&path)?,
            mode: mode.transpose()?,
            uid,
            gid,
            extra: trimmed(rest),
        };
        line.checked()
    }

    fn checked(self) -> Result<Self> {
        let shown = packfs::escaped(self.kind);
        match self.kind {
            b"dir" | b"slink" | b"link" | b"nod" | b"pipe" | b"sock" | b"file" | b"glob" => {}
            _ => return Err(Error::usage(format!("unknown entry type \"{shown}\""))),
        }
        if self.path.is_root() && !matches!(self.kind, b"dir" | b"glob") {
            return Err(Error::usage(format!("cannot use / as argument for {shown}")));
        }
        if self.extra.is_empty() && matches!(self.kind, b"slink" | b"link" | b"nod") {
            return Err(Error::usage(format!("missing argument for {shown}")));
        }
        Ok(self)
    }
}

/// Quoted or not, up to a blank.
fn name(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(rest) = text.strip_prefix(b"\"") else {
        let (name, rest) = word(text);
        return (!rest.is_empty()).then(|| (name.to_vec(), rest));
    };
    quoted(rest).filter(|(_, behind)| behind.first().is_some_and(|&byte| is_blank(byte)))
}

/// A backslash escapes a quote or a backslash.
pub fn quoted(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    loop {
        let (byte, behind) = match rest {
            [b'\\', byte @ (b'"' | b'\\'), behind @ ..] => (*byte, behind),
            [b'"', behind @ ..] => return Some((name, behind)),
            [byte, behind @ ..] => (*byte, behind),
            [] => return None,
        };
        name.push(byte);
        rest = behind;
    }
}

/// Quotes as rdsquashfs does, only spaces, and no backslash; names that would be misread are
/// written as gensquashfs reads them.
pub fn shown(name: &[u8]) -> Vec<u8> {
    if !name.iter().any(|&byte| is_blank(byte) || byte == b'"') {
        return name.to_vec();
    }
    let mut word = vec![b'"'];
    for (at, &byte) in name.iter().enumerate() {
        let is_read_as_escape = matches!(name.get(at + 1), None | Some(b'\\' | b'"'));
        if byte == b'"' || byte == b'\\' && is_read_as_escape {
            word.push(b'\\');
        }
        word.push(byte);
    }
    word.push(b'"');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Option<Vec<u8>> {
        name(text).map(|(name, _)| name)
    }

    #[test]
    fn names_that_are_written_are_read_back() {
        let names: [&[u8]; 12] = [
            b"plain",
            b"a b",
            b"a\tb",
            b"\x0b",
            b"\"",
            b"a\\b",
            b"a \\b",
            b"a \\\\b",
            b"a b\\",
            b"\\\" x",
            "ä ö".as_bytes(),
            b"\xff\r",
        ];
        for name in names {
            let written = [&shown(name)[..], b" "].concat();
            assert_eq!(read(&written).as_deref(), Some(name), "{}", packfs::escaped(&written));
        }
        assert_eq!(shown(b"a \\b \"c\""), br#""a \b \"c\"""#);
        assert_eq!(shown(b"a\\b"), br"a\b");
    }

    #[test]
    fn lines_are_read_as_gensquashfs_reads_them() {
        let line = Line::parse(b"slink /a//b 04755 1 2  to  \"there\" ").unwrap();
        assert_eq!((line.mode, line.uid, line.gid), (Some(0o4755), Some(1), Some(2)));
        assert_eq!((line.path.as_bytes(), line.extra), (&b"a/b"[..], &b"to  \"there\" "[..]));
        for wrong in [
            "file / 0644 0 0",
            "file a 08 0 0",
            "dir a 010000 0 0",
            "dir a * 0 0",
            "dir a 0755 0",
            "slink a 0777 0 0",
            "dir \"a 0755 0 0",
            "none a 0755 0 0",
            "dir a/../b 0755 0 0",
        ] {
            assert!(Line::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
