//! The checks after the blocks of a stream. Reserved ones are skipped, as in liblzma.

use sha2::{Digest, Sha256};

pub(super) use crate::lzma::coders::ffi::crc32;
use crate::lzma::coders::ffi::crc64;

/// The type of check in a stream's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Check(u8);

impl Check {
    /// `None` if the flags contain anything else.
    pub(super) fn new(flags: u8) -> Option<Check> {
        (flags < 16).then_some(Check(flags))
    }

    pub(super) fn len(self) -> usize {
        match self.0 {
            0 => 0,
            kind => 4 << ((kind - 1) / 3),
        }
    }

    /// True if `stored` is the check of `data`.
    pub(super) fn holds(self, stored: &[u8], data: &[u8]) -> bool {
        match self.0 {
            1 => stored == crc32(data).to_le_bytes(),
            4 => stored == crc64(data).to_le_bytes(),
            10 => stored == Sha256::digest(data).as_slice(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_have_the_length_of_the_format() {
        let lens: Vec<usize> = (0..16).map(|flags| Check::new(flags).unwrap().len()).collect();
        assert_eq!(lens, [0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64]);
        assert_eq!(Check::new(16), None);
    }

    #[test]
    fn known_checks_of_a_known_text_hold() {
        let data = b"123456789";
        let sha256 = [
            0x15, 0xE2, 0xB0, 0xD3, 0xC3, 0x38, 0x91, 0xEB, 0xB0, 0xF1, 0xEF, 0x60, 0x9E, 0xC4, 0x19, 0x42,
            0x0C, 0x20, 0xE3, 0x20, 0xCE, 0x94, 0xC6, 0x5F, 0xBC, 0x8C, 0x33, 0x12, 0x44, 0x8E, 0xB2, 0x25,
        ];
        for (kind, stored) in [
            (1, &0xCBF4_3926_u32.to_le_bytes()[..]),
            (4, &0x995D_C9BB_DF19_39FA_u64.to_le_bytes()[..]),
            (10, &sha256[..]),
        ] {
            let check = Check::new(kind).unwrap();
            assert_eq!(stored.len(), check.len());
            assert!(check.holds(stored, data), "{kind}");
            assert!(!check.holds(stored, &data[1..]), "{kind}");
        }
    }
}
