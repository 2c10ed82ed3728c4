//! Headers of members in the four dialects.

const OLD_LEN: usize = 26;
/// Longest name that is read.
pub(super) const NAME_LEN_MAX: u64 = 64 << 10;

/// Dialect of a member; those of one archive may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Hexadecimal digits ("newc"), and with sums of the data ("crc").
    New { has_sum: bool },
    /// Octal digits, as POSIX has it ("odc").
    Octal,
    /// Numbers of 16 bits in the byte order of the writer ("bin").
    Old { is_big_endian: bool },
}

impl Dialect {
    pub(super) fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [b'0', b'7', b'0', b'7', b'0', b'1', ..] => Some(Dialect::New { has_sum: false }),
            [b'0', b'7', b'0', b'7', b'0', b'2', ..] => Some(Dialect::New { has_sum: true }),
            [b'0', b'7', b'0', b'7', b'0', b'7', ..] => Some(Dialect::Octal),
            [0xc7, 0x71, ..] => Some(Dialect::Old { is_big_endian: false }),
            [0x71, 0xc7, ..] => Some(Dialect::Old { is_big_endian: true }),
            _ => None,
        }
    }

    pub(super) fn header_len(self) -> usize {
        match self {
            Dialect::New { .. } => 110,
            Dialect::Octal => 76,
            Dialect::Old { .. } => OLD_LEN,
        }
    }

    pub(super) fn align(self) -> u64 {
        match self {
            Dialect::New { .. } => 4,
            Dialect::Octal => 1,
            Dialect::Old { .. } => 2,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub dialect: Dialect,
    /// Device and inode, which names of one file share.
    pub inode: (u64, u64),
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub links: u32,
    pub mtime: u32,
    pub len: u64,
    pub device: (u64, u64),
    pub name_len: u64,
    pub sum: Option<u32>,
}

impl Header {
    /// `None` for anything but digits.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let dialect = Dialect::of(bytes)?;
        let bytes = bytes.get(..dialect.header_len())?;
        match dialect {
            Dialect::New { has_sum } => {
                let mut fields = [0; 13];
                for (field, digits) in fields.iter_mut().zip(bytes[6..].chunks_exact(8)) {
                    *field = number(digits, 16)? as u32;
                }
                let [ino, mode, uid, gid, links, mtime, len, rest @ ..] = fields;
                let [dev_major, dev_minor, major, minor, name_len, sum] = rest.map(u64::from);
                let inode = (dev_major << 32 | dev_minor, ino.into());
                let device = (major, minor);
                let sum = has_sum.then_some(sum as u32);
                let (len, name_len) = (len.into(), name_len);
                Some(Header { dialect, inode, mode, uid, gid, links, mtime, len, device, name_len, sum })
            }
            Dialect::Octal => {
                let (short, mut rest) = bytes[6..].split_at(42);
                let mut next = |len| {
                    let (digits, behind) = rest.split_at_checked(len)?;
                    rest = behind;
                    number(digits, 8)
                };
                let (mtime, name_len, len) = (next(11)?, next(6)?, next(11)?);
                let mut fields = [0; 7];
                for (field, digits) in fields.iter_mut().zip(short.chunks_exact(6)) {
                    *field = number(digits, 8)?;
                }
                Some(Header::short(dialect, fields, u32::try_from(mtime).ok()?, name_len, len))
            }
            Dialect::Old { is_big_endian } => {
                let mut words = [0_u64; OLD_LEN / 2];
                for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                    let read = if is_big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
                    *word = read(*bytes).into();
                }
                let [_, dev, ino, mode, uid, gid, links, device, time, time_low, name_len, len, len_low] =
                    words;
                let fields = [dev, ino, mode, uid, gid, links, device];
                let mtime = (time << 16 | time_low) as u32;
                Some(Header::short(dialect, fields, mtime, name_len, len << 16 | len_low))
            }
        }
    }

    /// Applies to dialects whose device numbers have 8 bits for each part.
    fn short(dialect: Dialect, fields: [u64; 7], mtime: u32, name_len: u64, len: u64) -> Self {
        let [dev, ino, mode, uid, gid, links, device] = fields;
        let [mode, uid, gid, links] = [mode, uid, gid, links].map(|field| field as u32);
        let (inode, device) = ((dev, ino), (device >> 8, device & 0xff));
        Header { dialect, inode, mode, uid, gid, links, mtime, len, device, name_len, sum: None }
    }
}

/// `None` for anything but digits.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    digits.iter().try_fold(0_u64, |sum, &byte| {
        sum.checked_mul(radix.into())?.checked_add(char::from(byte).to_digit(radix)?.into())
    })
}

pub(crate) fn looks_like_cpio(beginning: &[u8]) -> bool {
    let Some(header) = Header::parse(beginning) else { return false };
    let is_short = matches!(header.dialect, Dialect::Old { .. });
    let name_end = header.dialect.header_len() as u64 + header.name_len;
    // Two bytes are a weak sign: the type and the end of the name have to match, too.
    let fits = || {
        let last = usize::try_from(name_end).ok().and_then(|end| beginning.get(end - 1));
        matches!(header.mode >> 12, 1 | 2 | 4 | 6 | 8 | 10 | 12) && last.is_none_or(|byte| *byte == 0)
    };
    (1..=NAME_LEN_MAX).contains(&header.name_len) && (!is_short || fits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_headers_of_every_dialect() {
        let fields = ["7", "81a4", "3", "4", "2", "5f5e100", "9", "0", "1", "8", "11", "5", "1c8"];
        let new: String = fields.iter().map(|field| format!("{field:0>8}")).collect();
        let new = Header::parse(format!("070702{new}").as_bytes()).unwrap();
        assert_eq!((new.inode, new.device, new.sum), ((1, 7), (8, 0x11), Some(0x1c8)));
        let octal = "0707070000010000071006440000030000040000020040210057536040000000500000000011";
        let octal = Header::parse(octal.as_bytes()).unwrap();
        let words: [u16; 13] = [0o70707, 1, 7, 0o100_644, 3, 4, 2, 0x811, 0x5f5, 0xe100, 5, 0, 9];
        let old = [u16::to_le_bytes, u16::to_be_bytes].map(|bytes| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| bytes(*word)).collect();
            Header::parse(&bytes).unwrap()
        });
        for header in [octal, old[0], old[1]] {
            assert_eq!((header.inode, header.device, header.sum), ((1, 7), (8, 0x11), None));
        }
        for header in [new, octal, old[0], old[1]] {
            let (mtime, len) = (100_000_000, 9);
            assert_eq!((header.mode, header.links, header.name_len), (0o100_644, 2, 5), "{header:?}");
            assert_eq!((header.uid, header.gid, header.mtime, header.len), (3, 4, mtime, len), "{header:?}");
        }
        assert!(Header::parse(&[b"070701".as_slice(), &[b'+'; 104]].concat()).is_none());
    }
}
