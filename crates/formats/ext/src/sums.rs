//! Checksums of metadata: CRC-32C from a seed of the filesystem, or CRC-16 of descriptors.

use crate::bytes::put;
use crate::disk::{Ext4GroupDesc, Ext4Inode, Ext4InodeExtra, Ext4SuperBlock, XattrHeader};
use crate::features::{CSUM_SEED, EA_INODE, GDT_CSUM, METADATA_CSUM};
use crate::super_block::SuperBlock;
use packfs_format::{crc32c, structure, units::*};
use std::array;
use std::mem::offset_of;
use std::sync::LazyLock;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

pub(crate) const GROUP_SUM_AT: usize = offset_of!(Ext4GroupDesc, bg_checksum);
pub(crate) const INODE_SUM_AT: usize = offset_of!(Ext4Inode, l_i_checksum_lo);
pub(crate) const INODE_SUM_HIGH_AT: usize =
    size_of::<Ext4Inode>() + offset_of!(Ext4InodeExtra, i_checksum_hi);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    /// Set if all metadata have checksums (`metadata_csum`).
    pub(crate) all: bool,
    /// Set if only descriptors have checksums (`uninit_bg`).
    descriptors: bool,
    pub(crate) seed: u32,
}

/// A stored checksum that differs from the computed one.
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
        let all = features.forbids(METADATA_CSUM);
        let seed = if features.needs(CSUM_SEED) {
            super_block.raw.s_checksum_seed.get()
        } else if all || features.needs(EA_INODE) {
            crc32c(!0, super_block.uuid())
        } else {
            0
        };
        Sums { all, descriptors: features.forbids(GDT_CSUM), seed }
    }

    /// True if descriptors have checksums: parts of groups may then be unwritten.
    pub(crate) fn has_descriptor_sums(self) -> bool {
        self.all || self.descriptors
    }

    pub(crate) fn super_block(self, raw: &Ext4SuperBlock) -> Option<Mismatch<u32>> {
        let wanted = crc32c(!0, raw.as_bytes().within(..offset_of!(Ext4SuperBlock, s_checksum)));
        Mismatch::of(raw.s_checksum.get(), wanted).filter(|_| self.all)
    }

    pub(crate) fn descriptor(self, group: u32, raw: &[u8], uuid: &[u8]) -> Option<Mismatch<u16>> {
        let (before, behind) = raw.split_at_checked(GROUP_SUM_AT)?;
        let behind = behind.within(2..);
        let number = group.to_le_bytes();
        let wanted = if self.all {
            let sum = crc32c(crc32c(crc32c(crc32c(self.seed, &number), before), &[0; 2]), behind);
            low_half(sum)
        } else if self.descriptors {
            crc16(crc16(crc16(crc16(!0, uuid), &number), before), behind)
        } else {
            return None;
        };
        Mismatch::of(structure(raw, GROUP_SUM_AT).map(U16::get)?, wanted)
    }

    /// Checksum seed of an inode and its blocks.
    pub(crate) fn inode_seed(self, number: u32, generation: u32) -> u32 {
        crc32c(crc32c(self.seed, &number.to_le_bytes()), &generation.to_le_bytes())
    }

    /// Returns the checksum of an inode: 32 bits if it has room for them (true), otherwise 16.
    pub(crate) fn inode(self, number: u32, raw: &[u8]) -> (u32, bool) {
        let generation = structure(raw, offset_of!(Ext4Inode, i_generation)).map_or(0, U32::get);
        let seed = self.inode_seed(number, generation);
        let extra_len = structure(raw, size_of::<Ext4Inode>()).map_or(0, U16::get);
        let is_wide = usize::from(extra_len) >= offset_of!(Ext4InodeExtra, i_ctime_extra);
        // The checksum counts as zeros.
        let mut bytes = raw.to_vec();
        put(&mut bytes, INODE_SUM_AT, &[0; 2]);
        if is_wide {
            put(&mut bytes, INODE_SUM_HIGH_AT, &[0; 2]);
        }
        let sum = crc32c(seed, &bytes);
        if is_wide { (sum, true) } else { (sum & 0xffff, false) }
    }

    pub(crate) fn inode_mismatch(self, number: u32, raw: &[u8]) -> Option<Mismatch<u32>> {
        if !self.all {
            return None;
        }
        let (wanted, is_wide) = self.inode(number, raw);
        let half = |at| structure(raw, at).map(|half: U16| u32::from(half.get()));
        let high = if is_wide { half(INODE_SUM_HIGH_AT)? } else { 0 };
        Mismatch::of(half(INODE_SUM_AT)? | high << 16, wanted)
    }

    pub(crate) fn xattr_block(self, number: u64, raw: &[u8]) -> Option<Mismatch<u32>> {
        const SUM_AT: usize = offset_of!(XattrHeader, h_checksum);
        if !self.all {
            return None;
        }
        let sum = crc32c(crc32c(self.seed, &number.to_le_bytes()), raw.within(..SUM_AT));
        let wanted = crc32c(crc32c(sum, &[0; 4]), raw.within(SUM_AT.plus(4)..));
        Mismatch::of(structure(raw, SUM_AT).map(U32::get)?, wanted)
    }

    /// Compares a bitmap with the one or two halves of its checksum.
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
