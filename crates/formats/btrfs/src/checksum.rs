//! The four checksums of btrfs.

use blake2::Blake2b;
use blake2::digest::Digest;
use blake2::digest::consts::U32;
use packfs_format::crc32c;

/// Length of the checksum field of every structure (`BTRFS_CSUM_SIZE`).
pub(crate) const SUM_ROOM: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    Crc32c,
    XxHash64,
    Sha256,
    Blake2b,
}

impl Checksum {
    pub(crate) fn of(number: u16) -> Option<Checksum> {
        [Checksum::Crc32c, Checksum::XxHash64, Checksum::Sha256, Checksum::Blake2b]
            .get(usize::from(number))
            .copied()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Checksum::Crc32c => "crc32c",
            Checksum::XxHash64 => "xxhash64",
            Checksum::Sha256 => "sha256",
            Checksum::Blake2b => "blake2b",
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Checksum::Crc32c => 4,
            Checksum::XxHash64 => 8,
            Checksum::Sha256 | Checksum::Blake2b => 32,
        }
    }

    /// Returns the checksum of `bytes`, padded with zeros.
    pub(crate) fn sum(self, bytes: &[u8]) -> [u8; SUM_ROOM] {
        let mut sum = [0; SUM_ROOM];
        match self {
            Checksum::Crc32c => put(&mut sum, &(!crc32c(!0, bytes)).to_le_bytes()),
            Checksum::XxHash64 => put(&mut sum, &xxhash_rust::xxh64::xxh64(bytes, 0).to_le_bytes()),
            Checksum::Sha256 => put(&mut sum, &sha2::Sha256::digest(bytes)),
            Checksum::Blake2b => put(&mut sum, &Blake2b::<U32>::digest(bytes)),
        }
        sum
    }

    /// True if `stored` begins with the checksum of `bytes`; its padding is ignored.
    pub(crate) fn agrees(self, stored: &[u8], bytes: &[u8]) -> bool {
        let sum = self.sum(bytes);
        stored.get(..self.len()) == sum.get(..self.len())
    }
}

fn put(sum: &mut [u8; SUM_ROOM], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_other_programs() {
        let hex = |kind: Checksum| -> String {
            kind.sum(b"abc")[..kind.len()].iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(hex(Checksum::Crc32c), "b73f4b36");
        assert_eq!(hex(Checksum::XxHash64), "990977adf52cbc44");
        assert!(hex(Checksum::Sha256).starts_with("ba7816bf8f01cfea414140de5dae2223"));
        assert!(hex(Checksum::Blake2b).starts_with("bddd813c634239723171ef3fee98579b"));
    }
}
