//! Checksums of metadata: CRC-32C from a seed of the filesystem, or CRC-16 of descriptors.

use crate::bytes::{field, le16, le32};
use crate::disk::SuperBlock;
use crate::features::{CSUM_SEED, EA_INODE, GDT_CSUM, METADATA_CSUM};
use packfs_format::crc32c;
use std::array;
use std::sync::LazyLock;

/// Offset of the checksum of the superblock.
const SUPER_SUM_AT: usize = 0x3fc;
/// Offset of the checksum of a descriptor.
pub(crate) const GROUP_SUM_AT: usize = 0x1e;

/// Sums of a filesystem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    /// Set if all metadata have checksums (`metadata_csum`).
    pub(crate) all: bool,
    /// Set if only descriptors have them (`uninit_bg`).
    descriptors: bool,
    pub(crate) seed: u32,
}

/// A stored checksum and the one of the bytes, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch<T> {
    pub(crate) found: T,
    pub(crate) wanted: T,
}

impl<T: Eq> Mismatch<T> {
    pub(crate) fn of(found: T, wanted: T) -> Option<Self> {
        (found != wanted).then_some(Mismatch { found, wanted })
    }
}

impl Sums {
    pub(crate) fn new(super_block: &SuperBlock) -> Self {
        let features = super_block.features;
        let raw = &*super_block.raw;
        let all = features.forbids(METADATA_CSUM);
        let seed = match features.needs(CSUM_SEED) {
            true => le32(raw, 0x270),
            false if all || features.needs(EA_INODE) => crc32c(!0, super_block.uuid()),
            false => 0,
        };
        Sums { all, descriptors: features.forbids(GDT_CSUM), seed }
    }

    /// Returns true if descriptors have sums: then parts of groups may not be written.
    pub(crate) fn has_descriptor_sums(self) -> bool {
        self.all || self.descriptors
    }

    /// Compares the sum of the superblock.
    pub(crate) fn super_block(self, raw: &[u8]) -> Option<Mismatch<u32>> {
        let wanted = crc32c(!0, field(raw, 0, SUPER_SUM_AT));
        Mismatch::of(le32(raw, SUPER_SUM_AT), wanted).filter(|_| self.all)
    }

    /// Compares the sum of a descriptor.
    pub(crate) fn descriptor(self, group: u32, raw: &[u8], uuid: &[u8]) -> Option<Mismatch<u16>> {
        let (before, behind) = raw.split_at_checked(GROUP_SUM_AT)?;
        let behind = behind.get(2..).unwrap_or_default();
        let number = group.to_le_bytes();
        let wanted = if self.all {
            let sum = crc32c(crc32c(crc32c(crc32c(self.seed, &number), before), &[0; 2]), behind);
            low_half(sum)
        } else if self.descriptors {
            crc16(crc16(crc16(crc16(!0, uuid), &number), before), behind)
        } else {
            return None;
        };
        Mismatch::of(le16(raw, GROUP_SUM_AT), wanted)
    }

    /// Returns the seed of an inode and its blocks.
    pub(crate) fn inode_seed(self, number: u32, generation: u32) -> u32 {
        crc32c(crc32c(self.seed, &number.to_le_bytes()), &generation.to_le_bytes())
    }

    /// Returns the checksum of an inode, of 32 bits if it has room for them, otherwise of 16.
    pub(crate) fn inode(self, number: u32, raw: &[u8]) -> (u32, bool) {
        let seed = self.inode_seed(number, le32(raw, 0x64));
        let mut sum = crc32c(crc32c(seed, field(raw, 0, 0x7c)), &[0; 2]);
        sum = crc32c(sum, field(raw, 0x7e, 2));
        let Some((_, extra)) = raw.split_at_checked(0x80).filter(|(_, extra)| !extra.is_empty()) else {
            return (sum & 0xffff, false);
        };
        sum = crc32c(sum, field(extra, 0, 2));
        let is_wide = le16(extra, 0) >= 4;
        sum = crc32c(sum, if is_wide { &[0; 2] } else { field(extra, 2, 2) });
        sum = crc32c(sum, extra.get(4..).unwrap_or_default());
        if is_wide { (sum, true) } else { (sum & 0xffff, false) }
    }

    /// Compares the sum of an inode.
    pub(crate) fn inode_mismatch(self, number: u32, raw: &[u8]) -> Option<Mismatch<u32>> {
        if !self.all {
            return None;
        }
        let (wanted, is_wide) = self.inode(number, raw);
        let low = u32::from(le16(raw, 0x7c));
        let found = if is_wide { low | u32::from(le16(raw, 0x82)) << 16 } else { low };
        Mismatch::of(found, wanted)
    }

    /// Compares the sum of a block of extended attributes.
    pub(crate) fn xattr_block(self, number: u64, raw: &[u8]) -> Option<Mismatch<u32>> {
        if !self.all {
            return None;
        }
        let sum = crc32c(crc32c(self.seed, &number.to_le_bytes()), field(raw, 0, 0x10));
        let wanted = crc32c(crc32c(sum, &[0; 4]), raw.get(0x14..).unwrap_or_default());
        Mismatch::of(le32(raw, 0x10), wanted)
    }

    /// Compares the sum of a bitmap, of which a descriptor stores one or both halves.
    pub(crate) fn bitmap(self, bytes: &[u8], low: u16, high: Option<u16>) -> Option<Mismatch<u32>> {
        if !self.all {
            return None;
        }
        let sum = crc32c(self.seed, bytes);
        match high {
            Some(high) => Mismatch::of(u32::from(low) | u32::from(high) << 16, sum),
            None => Mismatch::of(u32::from(low), sum & 0xffff),
        }
    }
}

fn low_half(sum: u32) -> u16 {
    let [low, high, ..] = sum.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// Sums of single bytes.
static CRC16_TABLE: LazyLock<[u16; 256]> = LazyLock::new(|| {
    array::from_fn(|byte| {
        let [byte, ..] = byte.to_le_bytes();
        (0..8).fold(u16::from(byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xa001 } else { sum >> 1 })
    })
});

/// CRC-16 as Linux's `crc16()`: the polynomial 0x8005, reflected.
fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    let table = &*CRC16_TABLE;
    bytes.iter().fold(seed, |sum, byte| {
        let [low, high] = sum.to_le_bytes();
        let row = table.get(usize::from(low ^ byte)).copied().unwrap_or(0);
        u16::from(high) ^ row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_value_of_the_catalogue() {
        // CRC-16/MODBUS.
        assert_eq!(crc16(!0, b"123456789"), 0x4b37);
    }
}
