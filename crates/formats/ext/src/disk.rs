//! Superblock, and the places of groups and their descriptors.

use crate::bytes::{field, joined, le16, le32, u8_at};
use crate::corruption::Corruption;
use crate::features::{
    BIGALLOC, BITS_64, Features, META_BG, METADATA_CSUM, MMP, SPARSE_SUPER, SPARSE_SUPER2,
};
use packfs_core::{Error, Image, Result, range_at, usize_of};
use std::ops::Range;

/// Offset of the superblock.
pub(crate) const SUPER_AT: u64 = 1024;
/// Bytes of the superblock.
pub(crate) const SUPER_LEN: usize = 1024;
/// The magic number, at [`MAGIC_AT`] of the image.
pub(crate) const MAGIC: [u8; 2] = [0x53, 0xef];
/// Offset of the magic number in the image.
pub(crate) const MAGIC_AT: u64 = SUPER_AT + 0x38;
/// Number of the root directory.
pub(crate) const ROOT: u32 = 2;
/// Bytes of an inode without extra fields.
pub(crate) const INODE_LEN_MIN: usize = 128;
/// State of the superblock: unmounted.
pub(crate) const STATE_CLEAN: u16 = 1;
/// State of the superblock: errors were found.
pub(crate) const STATE_ERRORS: u16 = 2;
/// The checksum CRC-32C, by its number.
const CRC32C: u8 = 1;
/// Largest logarithm of blocks in units of 1 KiB.
const LOG_BLOCK_MAX: u32 = 6;

/// Superblock, checked.
#[derive(Clone, Debug)]
pub(crate) struct SuperBlock {
    pub(crate) raw: Box<[u8]>,
    pub(crate) features: Features,
    /// Bytes of a block.
    pub(crate) block_len: u64,
    /// Logarithm of the blocks in a cluster.
    pub(crate) cluster_bits: u32,
    /// First block of group 0.
    pub(crate) first_block: u64,
    pub(crate) block_count: u64,
    pub(crate) group_blocks: u64,
    pub(crate) group_count: u32,
    pub(crate) inode_count: u32,
    pub(crate) group_inodes: u32,
    pub(crate) inode_len: usize,
    /// First inode that is not reserved.
    pub(crate) first_inode: u32,
    /// Bytes of a group descriptor.
    pub(crate) descriptor_len: usize,
}

/// Returns true if bytes at [`SUPER_AT`] look like a superblock.
pub(crate) fn looks_like_super_block(raw: &[u8]) -> bool {
    field(raw, 0x38, 2) == MAGIC
        && le32(raw, 0x18) <= LOG_BLOCK_MAX
        && le32(raw, 0x4c) <= 1
        && le32(raw, 0x04) != 0
        && le32(raw, 0x20) != 0
        && (le32(raw, 0x28) != 0 || Features::of(raw).needs(crate::features::JOURNAL_DEV))
}

impl Features {
    /// Reads the features; revision 0 has none.
    pub(crate) fn of(raw: &[u8]) -> Features {
        if le32(raw, 0x4c) == 0 {
            return Features::default();
        }
        Features { compatible: le32(raw, 0x5c), incompatible: le32(raw, 0x60), read_only: le32(raw, 0x64) }
    }
}

/// Refuses a figure of the superblock.
fn figure(what: &'static str, found: u64, allowed: &'static str, is_right: bool) -> Result<()> {
    if is_right { Ok(()) } else { Err(Corruption::Figure { what, found, allowed }.into()) }
}

/// Reads the bytes of a superblock, and checks the magic number.
pub(crate) fn read_raw(image: &dyn Image) -> Result<Box<[u8]>> {
    let min = SUPER_AT.saturating_add(SUPER_LEN as u64);
    if image.len() < min {
        return Err(Corruption::Short { len: image.len(), min }.into());
    }
    let mut raw = vec![0; SUPER_LEN].into_boxed_slice();
    image.read_exact_at(SUPER_AT, &mut raw)?;
    let found = le16(&raw, 0x38);
    if found.to_le_bytes() != MAGIC {
        return Err(Corruption::Magic { found }.into());
    }
    Ok(raw)
}

impl SuperBlock {
    /// Reads and checks it.
    pub(crate) fn read(image: &dyn Image) -> Result<SuperBlock> {
        SuperBlock::parse(read_raw(image)?)
    }

    fn parse(raw: Box<[u8]>) -> Result<SuperBlock> {
        let revision = le32(&raw, 0x4c);
        figure("revision", u64::from(revision), "0 and 1", revision <= 1)?;
        let features = Features::of(&raw);
        features.check()?;
        let sums = u8_at(&raw, 0x175);
        if features.forbids(METADATA_CSUM) && sums != CRC32C {
            return Err(Error::unsupported("ext4 image", format_args!("checksums of type {sums}")));
        }
        let log = le32(&raw, 0x18);
        figure("logarithm of the block size", u64::from(log), "0 to 6", log <= LOG_BLOCK_MAX)?;
        let block_len = 1024_u64.wrapping_shl(log);
        let cluster_bits = cluster_bits(&raw, features, log)?;
        let (inode_len, first_inode) = inode_figures(&raw, revision, block_len)?;
        let mut found = SuperBlock {
            features,
            block_len,
            cluster_bits,
            first_block: u64::from(le32(&raw, 0x14)),
            block_count: u64::from(le32(&raw, 0x04)),
            group_blocks: u64::from(le32(&raw, 0x20)),
            group_count: 0,
            inode_count: le32(&raw, 0x00),
            group_inodes: le32(&raw, 0x28),
            inode_len,
            first_inode,
            descriptor_len: 32,
            raw,
        };
        found.sizes()?;
        Ok(found)
    }

    /// Checks counts of blocks, groups and inodes.
    fn sizes(&mut self) -> Result<()> {
        let raw = &*self.raw;
        let bits = self.block_len.saturating_mul(8);
        if self.features.needs(BITS_64) {
            self.block_count = joined(le32(raw, 0x04), le32(raw, 0x150));
            let len = u64::from(le16(raw, 0xfe));
            let is_right = (64..=1024.min(self.block_len)).contains(&len) && len.is_power_of_two();
            figure("descriptor size", len, "powers of 2 from 64 to 1024", is_right)?;
            self.descriptor_len = usize_of(len);
        }
        figure("first data block", self.first_block, "0 and 1", self.first_block <= 1)?;
        let clusters = match self.features.forbids(BIGALLOC) {
            true => u64::from(le32(raw, 0x24)),
            false => self.group_blocks,
        };
        figure("clusters per group", clusters, "1 to 8 a byte of a block", clusters <= bits)?;
        let wanted = clusters.checked_shl(self.cluster_bits).unwrap_or(0);
        let is_right = self.group_blocks == wanted && wanted != 0;
        figure("blocks per group", self.group_blocks, "those of the clusters", is_right)?;
        let inodes = u64::from(self.group_inodes);
        figure("inodes per group", inodes, "1 to 8 a byte of a block", (1..=bits).contains(&inodes))?;
        let count = u64::from(self.inode_count);
        figure("number of inodes", count, "at least 11", count >= u64::from(self.first_inode).min(11))?;
        let min = self.first_block.saturating_add(2);
        if self.block_count < min {
            return Err(Corruption::Blocks { found: self.block_count, min }.into());
        }
        let max = (u64::MAX >> 1).checked_div(self.block_len).unwrap_or(0);
        figure("number of blocks", self.block_count, "those of 2^63 bytes", self.block_count <= max)?;
        let blocks = self.block_count.saturating_sub(self.first_block);
        let groups = blocks.div_ceil(self.group_blocks.max(1));
        self.group_count = u32::try_from(groups).unwrap_or(0);
        figure("number of groups", groups, "32 bits", self.group_count != 0)?;
        // Linux refuses another number, too; more tables than blocks would lie over each other.
        let is_right = count == groups.saturating_mul(inodes);
        figure("number of inodes", count, "those of all groups", is_right)?;
        let found = groups.saturating_mul(self.table_blocks().saturating_add(2));
        if found > self.block_count {
            return Err(Corruption::Tables { found, max: self.block_count }.into());
        }
        let first_meta = u64::from(le32(raw, 0x104));
        let is_right = !self.features.needs(META_BG) || first_meta <= self.descriptor_blocks();
        figure("first meta block group", first_meta, "those of the descriptors", is_right)
    }

    /// Returns the numbers of blocks that the filesystem has.
    pub(crate) fn blocks(&self) -> Range<u64> {
        self.first_block..self.block_count
    }

    /// Returns the offset of a block.
    pub(crate) fn offset(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_len)
    }

    /// Returns the bytes of a block as this machine counts them.
    pub(crate) fn block_size(&self) -> usize {
        usize_of(self.block_len)
    }

    pub(crate) fn uuid(&self) -> &[u8] {
        field(&self.raw, 0x68, 16)
    }

    /// Returns descriptors in a block.
    pub(crate) fn descriptors_per_block(&self) -> u64 {
        self.block_len.checked_div(self.descriptor_len as u64).unwrap_or(1).max(1)
    }

    /// Returns the blocks that all descriptors take.
    pub(crate) fn descriptor_blocks(&self) -> u64 {
        u64::from(self.group_count).div_ceil(self.descriptors_per_block())
    }

    /// Returns the blocks of a group.
    pub(crate) fn group_range(&self, group: u32) -> Range<u64> {
        let start = u64::from(group).saturating_mul(self.group_blocks).saturating_add(self.first_block);
        let range = range_at(start, self.group_blocks);
        range.start.min(self.block_count)..range.end.min(self.block_count)
    }

    /// Returns the number of descriptor blocks that are not spread over meta groups.
    pub(crate) fn plain_descriptor_blocks(&self) -> u64 {
        match self.features.needs(META_BG) {
            true => u64::from(le32(&self.raw, 0x104)).min(self.descriptor_blocks()),
            false => self.descriptor_blocks(),
        }
    }

    /// Returns the block that holds a descriptor, and its offset there.
    pub(crate) fn descriptor_place(&self, group: u32) -> (u64, usize) {
        let per_block = self.descriptors_per_block();
        let index = u64::from(group).checked_div(per_block).unwrap_or(0);
        let slot = u64::from(group).checked_rem(per_block).unwrap_or(0);
        let at = usize_of(slot).saturating_mul(self.descriptor_len);
        if index < self.plain_descriptor_blocks() {
            return (self.super_block_number().saturating_add(1).saturating_add(index), at);
        }
        let first = u32::try_from(index.saturating_mul(per_block)).unwrap_or(u32::MAX);
        (self.meta_descriptors(first), at)
    }

    /// Returns the block of descriptors in a group that begins a meta group, or has a copy of it.
    pub(crate) fn meta_descriptors(&self, group: u32) -> u64 {
        let start = self.group_range(group).start;
        // Blocks of 1 KiB whose first group starts at block 0 have their superblock in block 1.
        let is_shifted = self.block_len == SUPER_AT && group == 0 && self.first_block == 0;
        let behind = u64::from(self.has_super_block(group)).saturating_add(u64::from(is_shifted));
        start.saturating_add(behind)
    }

    /// Returns the blocks of an inode table.
    pub(crate) fn table_blocks(&self) -> u64 {
        u64::from(self.group_inodes).saturating_mul(self.inode_len as u64).div_ceil(self.block_len.max(1))
    }

    /// Returns the number of free blocks as stored.
    pub(crate) fn free_blocks(&self) -> u64 {
        joined(le32(&self.raw, 0x0c), if self.features.needs(BITS_64) { le32(&self.raw, 0x158) } else { 0 })
    }

    /// Returns the block of multiple mount protection, if there is one.
    pub(crate) fn mmp_block(&self) -> Option<u64> {
        let block = crate::bytes::le64(&self.raw, 0x168);
        (self.features.needs(MMP) && self.blocks().contains(&block)).then_some(block)
    }

    /// Returns the block that holds the superblock.
    pub(crate) fn super_block_number(&self) -> u64 {
        SUPER_AT.checked_div(self.block_len).unwrap_or(0)
    }

    /// Returns true if a group begins with a copy of the superblock, or the superblock itself.
    pub(crate) fn has_super_block(&self, group: u32) -> bool {
        if group == 0 {
            return true;
        }
        if self.features.has(SPARSE_SUPER2) {
            return [0x24c, 0x250].iter().any(|at| le32(&self.raw, *at) == group);
        }
        if group == 1 || !self.features.forbids(SPARSE_SUPER) {
            return true;
        }
        [3, 5, 7].iter().any(|base| is_power(group, *base))
    }

    /// Returns the group and the slot of an inode.
    pub(crate) fn inode_place(&self, number: u32) -> (u32, u32) {
        let index = number.saturating_sub(1);
        let group = index.checked_div(self.group_inodes).unwrap_or(0);
        (group, index.checked_rem(self.group_inodes).unwrap_or(0))
    }

    /// Returns a name of at most so many bytes.
    pub(crate) fn text(&self, at: usize, len: usize) -> &[u8] {
        let bytes = field(&self.raw, at, len);
        bytes.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

fn cluster_bits(raw: &[u8], features: Features, log_block: u32) -> Result<u32> {
    if !features.forbids(BIGALLOC) {
        return Ok(0);
    }
    let log = le32(raw, 0x1c);
    let is_right = (log_block..=19).contains(&log);
    figure("logarithm of the cluster size", u64::from(log), "that of the block size to 19", is_right)?;
    Ok(log.saturating_sub(log_block))
}

fn inode_figures(raw: &[u8], revision: u32, block_len: u64) -> Result<(usize, u32)> {
    if revision == 0 {
        return Ok((INODE_LEN_MIN, 11));
    }
    let len = usize::from(le16(raw, 0x58));
    let is_right = len.is_power_of_two() && len >= INODE_LEN_MIN && len as u64 <= block_len;
    figure("inode size", len as u64, "powers of 2 from 128 to the block size", is_right)?;
    let first = le32(raw, 0x54);
    figure("first inode", u64::from(first), "at least 11", first >= 11)?;
    Ok((len, first))
}

fn is_power(mut number: u32, base: u32) -> bool {
    while number.checked_rem(base) == Some(0) {
        number = number.checked_div(base).unwrap_or(0);
    }
    number == 1
}

/// Descriptor of a group, verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) block_bitmap: u64,
    pub(crate) inode_bitmap: u64,
    pub(crate) inode_table: u64,
    pub(crate) flags: u16,
    pub(crate) free_blocks: u32,
    pub(crate) free_inodes: u32,
    /// Inodes at the end of the table that were never used.
    pub(crate) unused_inodes: u32,
    /// Low and high half of the sum of the block bitmap.
    pub(crate) block_bitmap_sum: (u16, Option<u16>),
    /// Low and high half of the sum of the inode bitmap.
    pub(crate) inode_bitmap_sum: (u16, Option<u16>),
}

impl Group {
    /// No inode of the group was ever used, and its bitmap is not written.
    pub(crate) const INODES_UNUSED: u16 = 1;
    /// The bitmap of blocks is not written.
    pub(crate) const BLOCKS_UNUSED: u16 = 2;

    pub(crate) fn parse(raw: &[u8]) -> Group {
        let is_long = raw.len() >= 64;
        let high32 = |at: usize| if is_long { le32(raw, at) } else { 0 };
        let high16 = |at: usize| if is_long { u32::from(le16(raw, at)) } else { 0 };
        let half = |at: usize| is_long.then(|| le16(raw, at));
        Group {
            block_bitmap: joined(le32(raw, 0x00), high32(0x20)),
            inode_bitmap: joined(le32(raw, 0x04), high32(0x24)),
            inode_table: joined(le32(raw, 0x08), high32(0x28)),
            flags: le16(raw, 0x12),
            free_blocks: u32::from(le16(raw, 0x0c)) | high16(0x2c) << 16,
            free_inodes: u32::from(le16(raw, 0x0e)) | high16(0x2e) << 16,
            unused_inodes: u32::from(le16(raw, 0x1c)) | high16(0x32) << 16,
            block_bitmap_sum: (le16(raw, 0x18), half(0x38)),
            inode_bitmap_sum: (le16(raw, 0x1a), half(0x3a)),
        }
    }
}

/// Returns the type that an entry of a directory claims; `None` if it claims none.
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

/// Returns a UUID in its usual form.
pub(crate) fn uuid_text(uuid: &[u8]) -> String {
    let hex = |at, len| field(uuid, at, len).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    [hex(0, 4), hex(4, 2), hex(6, 2), hex(8, 2), hex(10, 6)].join("-")
}
