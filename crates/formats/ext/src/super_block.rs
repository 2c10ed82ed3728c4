//! Superblock, and the addresses of groups and their descriptors.

use crate::bytes::joined;
use crate::corruption::Corruption;
use crate::disk::{Ext4GroupDesc, Ext4SuperBlock};
use crate::features::{
    BIGALLOC, BITS_64, Features, META_BG, METADATA_CSUM, MMP, SPARSE_SUPER, SPARSE_SUPER2,
};
use packfs_core::{Error, Image, Result, range_at, usize_of};
use packfs_format::{read_structure, structure, units::*};
use std::mem::offset_of;
use std::ops::Range;
use zerocopy::little_endian::{U16, U32};

pub(crate) const SUPER_AT: u64 = 1024;
pub(crate) const SUPER_LEN: usize = size_of::<Ext4SuperBlock>();
pub(crate) const MAGIC: [u8; 2] = [0x53, 0xef];
pub(crate) const MAGIC_AT: u64 = SUPER_AT + offset_of!(Ext4SuperBlock, s_magic) as u64;
pub(crate) const ROOT: u32 = 2;
pub(crate) const INODE_LEN_MIN: usize = 128;
pub(crate) const STATE_CLEAN: u16 = 1;
pub(crate) const STATE_ERRORS: u16 = 2;
/// Value of `s_checksum_type`.
const CRC32C: u8 = 1;
/// Maximum of `s_log_block_size`.
const LOG_BLOCK_MAX: u32 = 6;

#[derive(Clone, Debug)]
pub(crate) struct SuperBlock {
    pub(crate) raw: Box<Ext4SuperBlock>,
    pub(crate) features: Features,
    pub(crate) block_len: u64,
    pub(crate) cluster_bits: u32,
    pub(crate) first_block: u64,
    pub(crate) block_count: u64,
    pub(crate) group_blocks: u64,
    pub(crate) group_count: u32,
    pub(crate) inode_count: u32,
    pub(crate) group_inodes: u32,
    pub(crate) inode_len: usize,
    pub(crate) first_inode: u32,
    pub(crate) descriptor_len: usize,
}

pub(crate) fn looks_like_super_block(raw: &Ext4SuperBlock) -> bool {
    raw.s_magic == MAGIC
        && raw.s_log_block_size.get() <= LOG_BLOCK_MAX
        && raw.s_rev_level.get() <= 1
        && raw.s_blocks_count_lo.get() != 0
        && raw.s_blocks_per_group.get() != 0
        && (raw.s_inodes_per_group.get() != 0 || Features::of(raw).needs(crate::features::JOURNAL_DEV))
}

impl Features {
    pub(crate) fn of(raw: &Ext4SuperBlock) -> Features {
        if raw.s_rev_level.get() == 0 {
            return Features::default();
        }
        Features {
            compatible: raw.s_feature_compat.get(),
            incompatible: raw.s_feature_incompat.get(),
            read_only: raw.s_feature_ro_compat.get(),
        }
    }
}

/// Errors: a field of the superblock out of range.
fn figure(what: &'static str, found: u64, allowed: &'static str, is_right: bool) -> Result<()> {
    if is_right { Ok(()) } else { Err(Corruption::Figure { what, found, allowed }.into()) }
}

pub(crate) fn read_raw(image: &dyn Image) -> Result<Box<Ext4SuperBlock>> {
    let min = SUPER_AT.plus(SUPER_LEN as u64);
    if image.len() < min {
        return Err(Corruption::Short { len: image.len(), min }.into());
    }
    let raw: Ext4SuperBlock = read_structure(image, SUPER_AT)?;
    match raw.s_magic {
        MAGIC => Ok(Box::new(raw)),
        found => Err(Corruption::Magic { found: u16::from_le_bytes(found) }.into()),
    }
}

impl SuperBlock {
    pub(crate) fn read(image: &dyn Image) -> Result<SuperBlock> {
        SuperBlock::parse(read_raw(image)?)
    }

    fn parse(raw: Box<Ext4SuperBlock>) -> Result<SuperBlock> {
        let revision = raw.s_rev_level.get();
        figure("revision", u64::from(revision), "0 and 1", revision <= 1)?;
        let features = Features::of(&raw);
        features.check()?;
        let sums = raw.s_checksum_type;
        if features.forbids(METADATA_CSUM) && sums != CRC32C {
            return Err(Error::unsupported("ext4 image", format_args!("checksums of type {sums}")));
        }
        let log = raw.s_log_block_size.get();
        figure("logarithm of the block size", u64::from(log), "0 to 6", log <= LOG_BLOCK_MAX)?;
        let block_len = 1024_u64.wrapping_shl(log);
        let cluster_bits = cluster_bits(&raw, features, log)?;
        let (inode_len, first_inode) = inode_figures(&raw, revision, block_len)?;
        let mut found = SuperBlock {
            features,
            block_len,
            cluster_bits,
            first_block: u64::from(raw.s_first_data_block.get()),
            block_count: u64::from(raw.s_blocks_count_lo.get()),
            group_blocks: u64::from(raw.s_blocks_per_group.get()),
            group_count: 0,
            inode_count: raw.s_inodes_count.get(),
            group_inodes: raw.s_inodes_per_group.get(),
            inode_len,
            first_inode,
            descriptor_len: 32,
            raw,
        };
        found.sizes()?;
        Ok(found)
    }

    fn sizes(&mut self) -> Result<()> {
        let raw = &*self.raw;
        let bits = self.block_len.times(8);
        if self.features.needs(BITS_64) {
            self.block_count = joined(raw.s_blocks_count_lo, raw.s_blocks_count_hi);
            let len = u64::from(raw.s_desc_size.get());
            let is_right = (64..=1024.min(self.block_len)).contains(&len) && len.is_power_of_two();
            figure("descriptor size", len, "powers of 2 from 64 to 1024", is_right)?;
            self.descriptor_len = usize_of(len);
        }
        figure("first data block", self.first_block, "0 and 1", self.first_block <= 1)?;
        let clusters = if self.features.forbids(BIGALLOC) {
            u64::from(raw.s_clusters_per_group.get())
        } else {
            self.group_blocks
        };
        figure("clusters per group", clusters, "1 to 8 a byte of a block", clusters <= bits)?;
        let wanted = clusters << self.cluster_bits;
        let is_right = self.group_blocks == wanted && wanted != 0;
        figure("blocks per group", self.group_blocks, "those of the clusters", is_right)?;
        let inodes = u64::from(self.group_inodes);
        figure("inodes per group", inodes, "1 to 8 a byte of a block", (1..=bits).contains(&inodes))?;
        let count = u64::from(self.inode_count);
        figure("number of inodes", count, "at least 11", count >= u64::from(self.first_inode).min(11))?;
        let min = self.first_block.plus(2);
        if self.block_count < min {
            return Err(Corruption::Blocks { found: self.block_count, min }.into());
        }
        let max = (u64::MAX >> 1).quotient(self.block_len);
        figure("number of blocks", self.block_count, "those of 2^63 bytes", self.block_count <= max)?;
        let blocks = self.block_count.minus(self.first_block);
        let groups = blocks.div_ceil(self.group_blocks.max(1));
        figure("number of groups", groups, "32 bits", (1..=u64::from(u32::MAX)).contains(&groups))?;
        self.group_count = packfs_core::u32_of(groups);
        // Linux refuses any other number, too; tables would overlap if there were more than blocks.
        let is_right = count == groups.times(inodes);
        figure("number of inodes", count, "those of all groups", is_right)?;
        let found = groups.times(self.table_blocks().plus(2));
        if found > self.block_count {
            return Err(Corruption::Tables { found, max: self.block_count }.into());
        }
        let first_meta = u64::from(raw.s_first_meta_bg.get());
        let is_right = !self.features.needs(META_BG) || first_meta <= self.descriptor_blocks();
        figure("first meta block group", first_meta, "those of the descriptors", is_right)
    }

    pub(crate) fn blocks(&self) -> Range<u64> {
        self.first_block..self.block_count
    }

    pub(crate) fn offset(&self, block: u64) -> u64 {
        nth_at(0, block, self.block_len)
    }

    pub(crate) fn block_size(&self) -> usize {
        usize_of(self.block_len)
    }

    pub(crate) fn uuid(&self) -> &[u8] {
        &self.raw.s_uuid
    }

    pub(crate) fn descriptors_per_block(&self) -> u64 {
        self.block_len.checked_div(self.descriptor_len as u64).unwrap_or(1).max(1)
    }

    pub(crate) fn descriptor_blocks(&self) -> u64 {
        u64::from(self.group_count).div_ceil(self.descriptors_per_block())
    }

    pub(crate) fn group_range(&self, group: u32) -> Range<u64> {
        let start = u64::from(group).times(self.group_blocks).plus(self.first_block);
        let range = range_at(start, self.group_blocks);
        range.start.min(self.block_count)..range.end.min(self.block_count)
    }

    /// Number of descriptor blocks that are not in meta groups.
    pub(crate) fn plain_descriptor_blocks(&self) -> u64 {
        if self.features.needs(META_BG) {
            u64::from(self.raw.s_first_meta_bg.get()).min(self.descriptor_blocks())
        } else {
            self.descriptor_blocks()
        }
    }

    pub(crate) fn descriptor_place(&self, group: u32) -> (u64, usize) {
        let per_block = self.descriptors_per_block();
        let index = u64::from(group).quotient(per_block);
        let slot = u64::from(group).remainder(per_block);
        let at = usize_of(slot).times(self.descriptor_len);
        if index < self.plain_descriptor_blocks() {
            return (self.super_block_number().plus(1).plus(index), at);
        }
        let first = u32::try_from(index.times(per_block)).unwrap_or(u32::MAX);
        (self.meta_descriptors(first), at)
    }

    /// Returns the descriptor block in a group that starts a meta group, or has a copy of it.
    pub(crate) fn meta_descriptors(&self, group: u32) -> u64 {
        let start = self.group_range(group).start;
        // With 1 KiB blocks and a first group at block 0, the superblock is in block 1.
        let is_shifted = self.block_len == SUPER_AT && group == 0 && self.first_block == 0;
        let behind = u64::from(self.has_super_block(group)).plus(u64::from(is_shifted));
        start.plus(behind)
    }

    pub(crate) fn table_blocks(&self) -> u64 {
        u64::from(self.group_inodes).times(self.inode_len as u64).div_ceil(self.block_len.max(1))
    }

    pub(crate) fn free_blocks(&self) -> u64 {
        let high = if self.features.needs(BITS_64) { self.raw.s_free_blocks_count_hi } else { U32::ZERO };
        joined(self.raw.s_free_blocks_count_lo, high)
    }

    pub(crate) fn mmp_block(&self) -> Option<u64> {
        let block = self.raw.s_mmp_block.get();
        (self.features.needs(MMP) && self.blocks().contains(&block)).then_some(block)
    }

    pub(crate) fn super_block_number(&self) -> u64 {
        SUPER_AT.quotient(self.block_len)
    }

    /// True if a group starts with the superblock or a copy of it.
    pub(crate) fn has_super_block(&self, group: u32) -> bool {
        if group == 0 {
            return true;
        }
        if self.features.has(SPARSE_SUPER2) {
            return self.raw.s_backup_bgs.iter().any(|copy| copy.get() == group);
        }
        if group == 1 || !self.features.forbids(SPARSE_SUPER) {
            return true;
        }
        [3, 5, 7].iter().any(|base| is_power(group, *base))
    }

    pub(crate) fn inode_place(&self, number: u32) -> (u32, u32) {
        let index = number.minus(1);
        let group = index.quotient(self.group_inodes);
        (group, index.remainder(self.group_inodes))
    }
}

fn cluster_bits(raw: &Ext4SuperBlock, features: Features, log_block: u32) -> Result<u32> {
    if !features.forbids(BIGALLOC) {
        return Ok(0);
    }
    let log = raw.s_log_cluster_size.get();
    let is_right = (log_block..=19).contains(&log);
    figure("logarithm of the cluster size", u64::from(log), "that of the block size to 19", is_right)?;
    Ok(log.minus(log_block))
}

fn inode_figures(raw: &Ext4SuperBlock, revision: u32, block_len: u64) -> Result<(usize, u32)> {
    if revision == 0 {
        return Ok((INODE_LEN_MIN, 11));
    }
    let len = usize::from(raw.s_inode_size.get());
    let is_right = len.is_power_of_two() && len >= INODE_LEN_MIN && len as u64 <= block_len;
    figure("inode size", len as u64, "powers of 2 from 128 to the block size", is_right)?;
    let first = raw.s_first_ino.get();
    figure("first inode", u64::from(first), "at least 11", first >= 11)?;
    Ok((len, first))
}

fn is_power(mut number: u32, base: u32) -> bool {
    while number.checked_rem(base) == Some(0) {
        number = number.quotient(base);
    }
    number == 1
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) block_bitmap: u64,
    pub(crate) inode_bitmap: u64,
    pub(crate) inode_table: u64,
    pub(crate) flags: u16,
    pub(crate) free_blocks: u32,
    pub(crate) free_inodes: u32,
    /// Number of unused inodes at the end of the table.
    pub(crate) unused_inodes: u32,
    /// Low and high half of the block bitmap's checksum.
    pub(crate) block_bitmap_sum: (u16, Option<u16>),
    /// Low and high half of the inode bitmap's checksum.
    pub(crate) inode_bitmap_sum: (u16, Option<u16>),
}

impl Group {
    /// Inode table and bitmap are not initialized (`EXT4_BG_INODE_UNINIT`).
    pub(crate) const INODES_UNUSED: u16 = 1;
    /// Block bitmap is not initialized (`EXT4_BG_BLOCK_UNINIT`).
    pub(crate) const BLOCKS_UNUSED: u16 = 2;

    /// `None` if the bytes are too short.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Group> {
        let is_long = bytes.len() >= size_of::<Ext4GroupDesc>();
        let raw: Ext4GroupDesc = if is_long {
            structure(bytes, 0)?
        } else {
            // The high halves of a short descriptor are zeros.
            let mut long = bytes.get(..offset_of!(Ext4GroupDesc, bg_block_bitmap_hi))?.to_vec();
            long.resize(size_of::<Ext4GroupDesc>(), 0);
            structure(&long, 0)?
        };
        let count = |low: U16, high: U16| u32::from(low.get()) | u32::from(high.get()) << 16;
        let sum = |low: U16, high: U16| (low.get(), is_long.then_some(high.get()));
        Some(Group {
            block_bitmap: joined(raw.bg_block_bitmap_lo, raw.bg_block_bitmap_hi),
            inode_bitmap: joined(raw.bg_inode_bitmap_lo, raw.bg_inode_bitmap_hi),
            inode_table: joined(raw.bg_inode_table_lo, raw.bg_inode_table_hi),
            flags: raw.bg_flags.get(),
            free_blocks: count(raw.bg_free_blocks_count_lo, raw.bg_free_blocks_count_hi),
            free_inodes: count(raw.bg_free_inodes_count_lo, raw.bg_free_inodes_count_hi),
            unused_inodes: count(raw.bg_itable_unused_lo, raw.bg_itable_unused_hi),
            block_bitmap_sum: sum(raw.bg_block_bitmap_csum_lo, raw.bg_block_bitmap_csum_hi),
            inode_bitmap_sum: sum(raw.bg_inode_bitmap_csum_lo, raw.bg_inode_bitmap_csum_hi),
        })
    }
}

/// Returns the type in a directory entry; `None` if it is not stored.
pub(crate) fn entry_type(number: u8) -> Option<packfs_core::FileType> {
    use packfs_core::FileType;
    Some(match number {
        1 => FileType::File,
        2 => FileType::Directory,
        3 => FileType::CharDevice,
        4 => FileType::BlockDevice,
        5 => FileType::Fifo,
        6 => FileType::Socket,
        7 => FileType::Symlink,
        _ => return None,
    })
}

pub(crate) fn uuid_text(uuid: &[u8]) -> String {
    let hex: Vec<String> = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: Range<usize>| hex.within(range).concat();
    [part(0..4), part(4..6), part(6..8), part(8..10), part(10..16)].join("-")
}
