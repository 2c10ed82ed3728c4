//! One header block of 512 bytes: v7, ustar and GNU tar alike.

/// Length of a header, and alignment of data.
pub(super) const BLOCK_LEN: usize = 512;

pub(super) type Block = [u8; BLOCK_LEN];

/// Its checksum is valid.
pub(super) struct Header<'a>(&'a Block);

impl<'a> Header<'a> {
    /// Verifies the checksum, which some old programs computed from signed bytes.
    pub(super) fn new(block: &'a Block) -> Option<Self> {
        let stored = number(&block[148..156])?;
        let masked = |(at, &byte): (usize, &u8)| if (148..156).contains(&at) { b' ' } else { byte };
        let unsigned: i64 = block.iter().enumerate().map(|pair| i64::from(masked(pair))).sum();
        let signed: i64 = block.iter().enumerate().map(|pair| i64::from(masked(pair) as i8)).sum();
        (stored == unsigned || stored == signed).then_some(Header(block))
    }

    pub(super) fn typeflag(&self) -> u8 {
        self.0[156]
    }

    fn is_posix(&self) -> bool {
        &self.0[257..263] == b"ustar\0"
    }

    /// Includes ustar's prefix.
    pub(super) fn path(&self) -> Vec<u8> {
        let name = text(&self.0[0..100]);
        match text(&self.0[345..500]) {
            prefix if self.is_posix() && !prefix.is_empty() => [prefix, b"/", name].concat(),
            _ => name.to_vec(),
        }
    }

    pub(super) fn link(&self) -> &'a [u8] {
        text(&self.0[157..257])
    }

    pub(super) fn owner_names(&self) -> [&'a [u8]; 2] {
        [text(&self.0[265..297]), text(&self.0[297..329])]
    }

    /// `None` if invalid.
    pub(super) fn number(&self, field: Field) -> Option<i64> {
        number(&self.0[field.range()])
    }

    /// The first four entries of an old GNU sparse map, true if more blocks follow, and the real
    /// length.
    pub(super) fn sparse(&self) -> (&'a [u8], bool, Option<i64>) {
        (&self.0[386..482], self.0[482] != 0, number(&self.0[483..495]))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    Mode,
    Uid,
    Gid,
    Size,
    Mtime,
    Major,
    Minor,
}

impl Field {
    fn range(self) -> std::ops::Range<usize> {
        match self {
            Field::Mode => 100..108,
            Field::Uid => 108..116,
            Field::Gid => 116..124,
            Field::Size => 124..136,
            Field::Mtime => 136..148,
            Field::Major => 329..337,
            Field::Minor => 337..345,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Field::Mode => "mode",
            Field::Uid => "user id",
            Field::Gid => "group id",
            Field::Size => "size",
            Field::Mtime => "time",
            Field::Major => "major device number",
            Field::Minor => "minor device number",
        }
    }
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|&b| b == 0).next().unwrap_or_default()
}

/// Octal digits among spaces and NULs, or base 256 if the first bit is set. An empty field is 0.
pub(super) fn number(field: &[u8]) -> Option<i64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // The first bit marks the base; the next one is the sign.
        let start = if first & 0x40 != 0 { -1 } else { 0 };
        let start = start << 6 | i64::from(first & 0x3f);
        return rest.iter().try_fold(start, |sum, &byte| sum.checked_mul(256)?.checked_add(i64::from(byte)));
    }
    let digits = field.trim_ascii_start();
    let end = digits.iter().position(|&b| b == 0 || b == b' ').unwrap_or(digits.len());
    digits[..end].iter().try_fold(0_i64, |sum, &byte| match byte {
        b'0'..=b'7' => sum.checked_mul(8)?.checked_add(i64::from(byte - b'0')),
        _ => None,
    })
}

/// An empty entry ends the map. `None` for an invalid number.
pub(super) fn old_entries(bytes: &[u8], numbers: &mut Vec<u64>) -> Option<()> {
    for entry in bytes.chunks_exact(24) {
        if entry[0] == 0 {
            break;
        }
        numbers.push(u64::try_from(number(&entry[..12])?).ok()?);
        numbers.push(u64::try_from(number(&entry[12..])?).ok()?);
    }
    Some(())
}

/// Returns true if these bytes start like a tar archive.
pub fn looks_like_tar(beginning: &[u8]) -> bool {
    let block = beginning.first_chunk::<BLOCK_LEN>();
    block.is_some_and(|block| block[0] != 0 && Header::new(block).is_some())
}

/// Returns true if these bytes, a whole file, are an archive without members: blocks of zeros.
pub fn is_empty_tar(whole: &[u8]) -> bool {
    whole.len() >= BLOCK_LEN && whole.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_octal_and_base_256_numbers() {
        for (field, expected) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"77777777", Some(0o77_777_777)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"12x", None),
            (b"-1", None),
        ] {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }
}
