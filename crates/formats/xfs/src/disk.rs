//! Figures at an offset of a structure, and checksums.

use packfs_format::crc32c;

/// Returns the big-endian figure at `at`; 0 if it is outside of the bytes, whose length the caller
/// has checked.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    chunk(bytes, at).map_or(0, u16::from_be_bytes)
}

/// The same in 32 bits.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    chunk(bytes, at).map_or(0, u32::from_be_bytes)
}

/// The same in 64 bits.
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    chunk(bytes, at).map_or(0, u64::from_be_bytes)
}

/// The little-endian figure at `at`, as the log holds many.
pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    chunk(bytes, at).map_or(0, u16::from_le_bytes)
}

/// The same in 64 bits.
pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    chunk(bytes, at).map_or(0, u64::from_le_bytes)
}

/// The little-endian figure at `at`, as checksums are stored.
pub(crate) fn le32(bytes: &[u8], at: usize) -> u32 {
    chunk(bytes, at).map_or(0, u32::from_le_bytes)
}

/// The byte at `at`.
pub(crate) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// Returns `len` bytes from `at` on; `None` if there are fewer.
pub(crate) fn part(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

/// Returns the identifier at `at`.
pub(crate) fn uuid(bytes: &[u8], at: usize) -> [u8; 16] {
    chunk(bytes, at).unwrap_or_default()
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Checksum of a structure: the one it stores, and the one that its bytes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) found: u32,
    pub(crate) computed: u32,
}

impl Checksum {
    /// Computes it; the four bytes at `at`, where it is stored, count as zeros.
    pub(crate) fn of(bytes: &[u8], at: usize) -> Checksum {
        let (before, rest) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
        let crc = crc32c(crc32c(!0, before), &[0; 4]);
        let computed = !crc32c(crc, rest.get(4..).unwrap_or_default());
        Checksum { found: le32(bytes, at), computed }
    }

    pub(crate) fn is_right(self) -> bool {
        self.found == self.computed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_outside_of_the_bytes_are_zero() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(
            (be16(&bytes, 0), be32(&bytes, 4), be64(&bytes, 0)),
            (0x102, 0x0506_0708, 0x0102_0304_0506_0708)
        );
        assert_eq!((be16(&bytes, 7), be32(&bytes, 9), be64(&bytes, usize::MAX)), (0, 0, 0));
        assert_eq!((part(&bytes, 6, 2), part(&bytes, 7, 2)), (Some(&[7, 8][..]), None));
    }

    #[test]
    fn checksums_leave_out_their_own_place() {
        let mut bytes = *b"1234\xff\xff\xff\xff56789";
        let sum = Checksum::of(&bytes, 4);
        assert!(!sum.is_right());
        bytes[4..8].copy_from_slice(&sum.computed.to_le_bytes());
        assert!(Checksum::of(&bytes, 4).is_right());
        // The check value of CRC-32C, over "123456789" with four zeros within: computed apart.
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
    }
}
