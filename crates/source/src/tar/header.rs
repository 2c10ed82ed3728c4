//! One header block of a tar archive, as it stands there: fields, checksum, and which dialect wrote it.
//!
//! Knows where fields are and nothing of what they mean together; what they hold is not to be trusted.
//! Source: POSIX.1-2017, `pax`, "ustar Interchange Format"; GNU tar manual, "Basic Tar Format"; star(5).

use super::fault::Fault;
use super::number;
use std::ops::Range;

/// Everything in a tar archive is a multiple of this.
pub(super) const BLOCK_LEN: usize = 512;

const CHECKSUM: Range<usize> = 148..156;

/// Who wrote a header, as far as it matters for where fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Before POSIX: no magic, no prefix, no device numbers.
    Old,
    /// POSIX: `prefix` holds what comes before the name.
    Ustar,
    /// star: as POSIX, with times in the last bytes of the prefix.
    Star,
    /// GNU tar's own: no prefix, sparse map in its place.
    Gnu,
}

/// A header block.
pub(super) struct Header(pub(super) [u8; BLOCK_LEN]);

impl Header {
    /// Whether all bytes are zero: one of the two blocks that end an archive.
    pub(super) fn is_zero(&self) -> bool {
        self.0 == [0; BLOCK_LEN]
    }

    /// Whether the checksum is right, as the sum of unsigned bytes or, as some old tars had it, of signed ones.
    pub(super) fn checksum_holds(&self) -> bool {
        let Some(stored) = number::field(&self.0[CHECKSUM]).filter(|&sum| sum > 0) else { return false };
        let (mut unsigned, mut signed) = (0i64, 0i64);
        for &byte in &self.0 {
            unsigned += i64::from(byte);
            signed += i64::from(byte as i8);
        }
        for &byte in &self.0[CHECKSUM] {
            unsigned += i64::from(b' ') - i64::from(byte);
            signed += i64::from(b' ') - i64::from(byte as i8);
        }
        stored == unsigned || stored == signed
    }

    /// Who wrote it.
    pub(super) fn dialect(&self) -> Dialect {
        match &self.0[257..265] {
            b"ustar  \0" => Dialect::Gnu,
            magic if magic.starts_with(b"ustar\0") && &self.0[508..] == b"tar\0" => Dialect::Star,
            magic if magic.starts_with(b"ustar") => Dialect::Ustar,
            _ => Dialect::Old,
        }
    }

    /// The letter that says what the member is.
    pub(super) fn letter(&self) -> u8 {
        self.0[156]
    }

    /// The path: prefix and name.
    pub(super) fn path(&self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        let prefix = match self.dialect() {
            Dialect::Ustar => text(&self.0[345..500]),
            Dialect::Star => text(&self.0[345..476]),
            Dialect::Old | Dialect::Gnu => &[],
        };
        if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
    }

    /// The target of a link.
    pub(super) fn target(&self) -> &[u8] {
        text(&self.0[157..257])
    }

    /// Permissions; some tars have the type in the bits above them.
    pub(super) fn mode(&self) -> Result<i64, Fault> {
        self.number("mode", 100..108)
    }

    /// User.
    pub(super) fn uid(&self) -> Result<i64, Fault> {
        self.number("uid", 108..116)
    }

    /// Group.
    pub(super) fn gid(&self) -> Result<i64, Fault> {
        self.number("gid", 116..124)
    }

    /// Length of what follows in the archive, in bytes.
    pub(super) fn size(&self) -> Result<u64, Fault> {
        let size = self.number("size", 124..136)?;
        u64::try_from(size).map_err(|_| Fault::corrupt(format!("size {size}: must not be negative")))
    }

    /// Time of last change, seconds since 1970.
    pub(super) fn mtime(&self) -> Result<i64, Fault> {
        self.number("mtime", 136..148)
    }

    /// Device numbers: major and minor.
    pub(super) fn device(&self) -> Result<(i64, i64), Fault> {
        match self.dialect() {
            Dialect::Old => Ok((0, 0)),
            _ => Ok((self.number("devmajor", 329..337)?, self.number("devminor", 337..345)?)),
        }
    }

    /// Of an old GNU sparse file: its entries of the map, whether a block with more follows, and its whole length.
    pub(super) fn sparse(&self) -> Result<(&[u8], bool, u64), Fault> {
        let len = self.number("realsize", 483..495)?;
        let len = u64::try_from(len).map_err(|_| Fault::corrupt(format!("realsize {len}: must not be negative")))?;
        Ok((&self.0[386..482], self.0[482] != 0, len))
    }

    fn number(&self, name: &str, range: Range<usize>) -> Result<i64, Fault> {
        let bytes = &self.0[range];
        number::field(bytes).ok_or_else(|| {
            let found = packfs_core::escaped(bytes);
            Fault::corrupt(format!("{name} \"{found}\": octal digits or base 256 up to 63 bits are allowed"))
        })
    }
}

/// Whether a file begins with a tar header whose checksum holds: v7, ustar, PAX, GNU or star.
pub fn looks_like_tar(first_bytes: &[u8]) -> bool {
    first_bytes.first_chunk::<BLOCK_LEN>().is_some_and(|block| Header(*block).checksum_holds())
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    &field[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summed(mut block: [u8; BLOCK_LEN], signed: bool) -> [u8; BLOCK_LEN] {
        block[CHECKSUM].fill(b' ');
        let sum: i64 = block.iter().map(|&b| if signed { i64::from(b as i8) } else { i64::from(b) }).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block
    }

    fn block(name: &[u8], prefix: &[u8], magic: &[u8; 8]) -> [u8; BLOCK_LEN] {
        let mut block = [0; BLOCK_LEN];
        block[..name.len()].copy_from_slice(name);
        block[345..345 + prefix.len()].copy_from_slice(prefix);
        block[257..265].copy_from_slice(magic);
        summed(block, false)
    }

    #[test]
    fn takes_the_sum_of_unsigned_and_of_signed_bytes() {
        let mut named = [0; BLOCK_LEN];
        named[..4].copy_from_slice("näh".as_bytes());
        for signed in [false, true] {
            let block = summed(named, signed);
            assert!(looks_like_tar(&block));
            for at in [0, 1, 300, 511] {
                let mut wrong = block;
                wrong[at] ^= 1;
                assert!(!looks_like_tar(&wrong), "byte {at}");
            }
        }
    }

    #[test]
    fn zeros_text_and_short_files_do_not_look_like_tar() {
        for bytes in [&[0; BLOCK_LEN][..], &[b'x'; BLOCK_LEN], &[b' '; BLOCK_LEN], b"", &[0xff; 4096]] {
            assert!(!looks_like_tar(bytes));
        }
        assert!(Header([0; BLOCK_LEN]).is_zero());
    }

    #[test]
    fn only_posix_and_star_have_a_prefix() {
        let path = |magic| Header(block(b"name", b"pre/fix", magic)).path();
        assert_eq!(path(b"ustar\x0000"), b"pre/fix/name");
        assert_eq!(path(b"ustar  \0"), b"name");
        assert_eq!(path(b"\0\0\0\0\0\0\0\0"), b"name");
        let mut star = block(b"name", &[b'p'; 155], b"ustar\x0000");
        star[508..].copy_from_slice(b"tar\0");
        assert_eq!(Header(star).path().len(), 131 + 5);
    }

    #[test]
    fn a_name_may_fill_its_field() {
        assert_eq!(Header(block(&[b'n'; 100], b"", b"ustar\x0000")).path(), [b'n'; 100]);
    }
}
