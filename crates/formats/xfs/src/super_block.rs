//! Superblock (`struct xfs_dsb`), and the arithmetic of places that depends on it.

use crate::corruption::Corruption;
use crate::disk::{Checksum, be16, be32, be64, byte, part, uuid};
use crate::features;
use packfs_core::{Error, Image, Result, usize_of};
use packfs_format::TRUNCATED;
use std::ops::Range;

/// First bytes of every allocation group.
pub(crate) const MAGIC: [u8; 4] = *b"XFSB";
/// Bytes of a superblock.
pub(crate) const LEN: usize = 304;
/// Offset of its checksum.
pub(crate) const CHECKSUM_AT: usize = 224;
/// Units of a disk address, in bytes.
pub(crate) const SECTOR: u64 = 512;
/// Bits of the longest directory block.
const DIR_BLOCK_LOG_MAX: u32 = 16;

/// Superblock, checked.
#[derive(Clone, Debug)]
pub(crate) struct SuperBlock {
    /// 4 or 5.
    pub(crate) version: u16,
    pub(crate) version_bits: u16,
    pub(crate) features2: u32,
    pub(crate) ro_compat: u32,
    pub(crate) incompat: u32,
    /// Features that only concern changes in the log.
    pub(crate) log_features: u32,
    /// Bytes of a block.
    pub(crate) block_len: u64,
    pub(crate) sector_len: u64,
    pub(crate) inode_len: usize,
    /// Bytes of a directory block.
    pub(crate) dir_block_len: u64,
    block_log: u32,
    /// Bits of a block within its directory block.
    dir_shift: u32,
    /// Bits of the slot of an inode within its block.
    inode_slot_log: u32,
    /// Bits of a block within its group.
    pub(crate) ag_block_log: u32,
    /// Blocks of the filesystem.
    pub(crate) blocks: u64,
    /// Blocks of the realtime section.
    pub(crate) rt_blocks: u64,
    /// Blocks of a group; the last one may be shorter.
    pub(crate) ag_blocks: u64,
    pub(crate) ag_count: u64,
    pub(crate) root: u64,
    pub(crate) log_start: u64,
    pub(crate) log_blocks: u64,
    /// Blocks that chunks of inodes are aligned to.
    pub(crate) inode_alignment: u64,
    pub(crate) inode_count: u64,
    pub(crate) inodes_free: u64,
    pub(crate) blocks_free: u64,
    pub(crate) label: Vec<u8>,
    pub(crate) uuid: [u8; 16],
    /// The identifier in metadata.
    pub(crate) meta_uuid: [u8; 16],
    /// Blocks of a realtime group, and the bits that its number of a block has; 0 without groups.
    pub(crate) rt_group_blocks: u64,
    pub(crate) rt_group_log: u32,
    /// First block of a realtime section within the filesystem's device; 0 if there is none.
    pub(crate) rt_start: u64,
    /// Checksum of version 5.
    pub(crate) checksum: Option<Checksum>,
}

/// Returns true if an image starts with a superblock whose block size is one.
pub(crate) fn probe(image: &dyn Image) -> Result<bool> {
    let mut bytes = [0; LEN];
    let len = image.read_at(0, &mut bytes)?;
    let block_len = be32(&bytes, 4);
    Ok(len == LEN
        && bytes.starts_with(&MAGIC)
        && block_len.is_power_of_two()
        && block_len.trailing_zeros() == u32::from(byte(&bytes, 120))
        && byte(&bytes, 126) == 0)
}

impl SuperBlock {
    /// Reads and checks the superblock of the first group.
    pub(crate) fn read(image: &dyn Image) -> Result<SuperBlock> {
        let mut bytes = vec![0; 1 << 15];
        let len = image.read_at(0, &mut bytes)?;
        bytes.truncate(len);
        if len < LEN {
            return Err(Corruption::Short { len: image.len(), min: LEN as u64 }.into());
        }
        if !bytes.starts_with(&MAGIC) {
            return Err(Corruption::Magic.into());
        }
        SuperBlock::parse(&bytes)
    }

    /// Parses a superblock; `bytes` begin with it and go on to the end of its sector.
    pub(crate) fn parse(bytes: &[u8]) -> Result<SuperBlock> {
        let version_bits = be16(bytes, 100);
        let version = features::version(bytes)?;
        let lens = Lens::parse(bytes)?;
        let incompat = if version == 5 { be32(bytes, 216) } else { 0 };
        let has_groups = incompat & features::METADIR != 0;
        let super_block = SuperBlock {
            version,
            version_bits,
            features2: match version_bits & features::V4_MORE {
                0 => 0,
                _ => be32(bytes, 200) | be32(bytes, 204),
            },
            ro_compat: if version == 5 { be32(bytes, 212) } else { 0 },
            incompat,
            log_features: if version == 5 { be32(bytes, 220) } else { 0 },
            block_len: lens.block,
            block_log: byte(bytes, 120).into(),
            dir_shift: byte(bytes, 192).into(),
            sector_len: lens.sector,
            inode_len: lens.inode,
            dir_block_len: lens.dir_block,
            inode_slot_log: byte(bytes, 123).into(),
            ag_block_log: byte(bytes, 124).into(),
            blocks: be64(bytes, 8),
            rt_blocks: be64(bytes, 16),
            ag_blocks: be32(bytes, 84).into(),
            ag_count: be32(bytes, 88).into(),
            root: be64(bytes, 56),
            log_start: be64(bytes, 48),
            log_blocks: be32(bytes, 96).into(),
            inode_alignment: be32(bytes, 180).into(),
            inode_count: be64(bytes, 128),
            inodes_free: be64(bytes, 136),
            blocks_free: be64(bytes, 144),
            label: label(bytes),
            uuid: uuid(bytes, 32),
            meta_uuid: uuid(bytes, if incompat & features::META_UUID != 0 { 248 } else { 32 }),
            rt_group_blocks: match has_groups {
                true => u64::from(be32(bytes, 276)).saturating_mul(be32(bytes, 80).into()),
                false => 0,
            },
            rt_group_log: if has_groups { byte(bytes, 280).into() } else { 0 },
            rt_start: if incompat & features::ZONED != 0 { be64(bytes, 288) } else { 0 },
            checksum: (version == 5)
                .then(|| part(bytes, 0, usize_of(lens.sector)))
                .flatten()
                .map(|sector| Checksum::of(sector, CHECKSUM_AT)),
        };
        super_block.check()?;
        Ok(super_block)
    }

    fn check(&self) -> Result<()> {
        let figure = |what, found, min, max| Corruption::Figure { what, found, min, max };
        let (group, count) = (self.ag_blocks, self.ag_count);
        // The shortest group that the kernel mounts has 64 blocks.
        if group < 64 || self.ag_block_log > 31 || group > 1 << self.ag_block_log {
            let max = 1_u64.checked_shl(self.ag_block_log).unwrap_or(0);
            return Err(figure("blocks of a group", group, 64, max).into());
        }
        let (Some(most), 1..) = (group.checked_mul(count), count) else {
            return Err(figure("groups", count, 1, u64::MAX.checked_div(group).unwrap_or(0)).into());
        };
        let least = most.saturating_sub(group).saturating_add(1);
        if !(least..=most).contains(&self.blocks) || most.checked_mul(self.block_len).is_none() {
            return Err(figure("blocks", self.blocks, least, most).into());
        }
        if self.rt_group_log > 32 {
            return Err(figure("bits of a realtime group", self.rt_group_log.into(), 0, 32).into());
        }
        if self.inode_at(self.root).is_none() {
            return Err(Corruption::InodePlace { ino: self.root }.into());
        }
        Ok(())
    }

    pub(crate) fn is_v5(&self) -> bool {
        self.version == 5
    }

    /// Returns true if all of these bits of incompatible features are set.
    pub(crate) fn has(&self, incompat: u32) -> bool {
        self.incompat & incompat == incompat
    }

    /// Returns true if directory entries hold a type.
    pub(crate) fn has_ftype(&self) -> bool {
        self.has(features::FTYPE) || (!self.is_v5() && self.features2 & features::V4_FTYPE != 0)
    }

    /// Returns the blocks of a group.
    pub(crate) fn ag_len(&self, group: u64) -> u64 {
        self.blocks.saturating_sub(group.saturating_mul(self.ag_blocks)).min(self.ag_blocks)
    }

    /// Returns the offset of a block of a group; the caller has checked both.
    pub(crate) fn ag_block_at(&self, group: u64, block: u64) -> u64 {
        group.saturating_mul(self.ag_blocks).saturating_add(block).saturating_mul(self.block_len)
    }

    /// Returns group and block of a filesystem block.
    pub(crate) fn split(&self, block: u64) -> (u64, u64) {
        (block >> self.ag_block_log, block & low_bits(self.ag_block_log))
    }

    /// Returns the offset of `count` blocks from `block` on; `None` if they are not in one group.
    pub(crate) fn blocks_at(&self, block: u64, count: u64) -> Option<u64> {
        let (group, start) = self.split(block);
        let end = start.checked_add(count)?;
        (group < self.ag_count && end <= self.ag_len(group)).then(|| self.ag_block_at(group, start))
    }

    /// Returns the block of an inode and its slot in it; `None` if it is outside of the filesystem.
    pub(crate) fn inode_at(&self, ino: u64) -> Option<(u64, u64)> {
        let block = ino >> self.inode_slot_log;
        self.blocks_at(block, 1)?;
        Some((block, ino & low_bits(self.inode_slot_log)))
    }

    /// Returns the number of an inode of a group.
    pub(crate) fn inode_of(&self, group: u64, number: u64) -> u64 {
        group << (self.ag_block_log.saturating_add(self.inode_slot_log)) | number
    }

    /// Returns the number of the block that a byte of a file is in.
    pub(crate) fn block_of(&self, byte: u64) -> u64 {
        byte >> self.block_log
    }

    /// Returns the number of the directory block that a block of a directory is in, and the number
    /// of blocks before it there.
    pub(crate) fn dir_block_of(&self, block: u64) -> (u64, u64) {
        (block >> self.dir_shift, block & low_bits(self.dir_shift))
    }

    /// Returns the blocks of a directory block.
    pub(crate) fn blocks_per_dir_block(&self) -> u64 {
        1 << self.dir_shift
    }

    /// Returns the bytes of the filesystem.
    pub(crate) fn len(&self) -> u64 {
        self.blocks.saturating_mul(self.block_len)
    }

    /// Returns the bytes of an internal log.
    pub(crate) fn internal_log(&self) -> Option<Range<u64>> {
        if self.log_start == 0 {
            return None;
        }
        let at = self.blocks_at(self.log_start, self.log_blocks)?;
        Some(at..at.saturating_add(self.log_blocks.saturating_mul(self.block_len)))
    }
}

/// Returns a number whose lowest bits are set.
pub(crate) fn low_bits(count: u32) -> u64 {
    1_u64.checked_shl(count).map_or(u64::MAX, |bit| bit.saturating_sub(1))
}

fn label(bytes: &[u8]) -> Vec<u8> {
    let label = part(bytes, 108, 12).unwrap_or_default();
    label.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

/// Lengths of units, in bytes.
struct Lens {
    block: u64,
    sector: u64,
    inode: usize,
    dir_block: u64,
}

impl Lens {
    fn parse(bytes: &[u8]) -> Result<Lens> {
        let v5 = be16(bytes, 100) & 15 == 5;
        let block = power("block size", be32(bytes, 4).into(), byte(bytes, 120), 9..=16)?;
        let sector = power("sector size", be16(bytes, 102).into(), byte(bytes, 121), 9..=15)?;
        let inode =
            power("inode size", be16(bytes, 104).into(), byte(bytes, 122), if v5 { 9 } else { 8 }..=11)?;
        let (slots, slot_log) = (u64::from(be16(bytes, 106)), byte(bytes, 123));
        if inode > block
            || slots.checked_mul(inode) != Some(block)
            || 1_u64.checked_shl(slot_log.into()) != Some(slots)
        {
            return Err(Corruption::Figure {
                what: "inodes of a block",
                found: slots,
                min: 1,
                max: block.checked_div(inode).unwrap_or(0),
            }
            .into());
        }
        let (block_log, shift) = (u32::from(byte(bytes, 120)), u32::from(byte(bytes, 192)));
        let dir_log = block_log.saturating_add(shift);
        if dir_log > DIR_BLOCK_LOG_MAX {
            let max = DIR_BLOCK_LOG_MAX.saturating_sub(block_log).into();
            return Err(Corruption::Figure {
                what: "bits of blocks in a directory block",
                found: shift.into(),
                min: 0,
                max,
            }
            .into());
        }
        if byte(bytes, 126) != 0 {
            return Err(Error::from(Corruption::InProgress).hint(TRUNCATED));
        }
        Ok(Lens { block, sector, inode: usize_of(inode), dir_block: 1 << dir_log })
    }
}

/// Checks a length that is stored with its logarithm.
fn power(what: &'static str, found: u64, log: u8, allowed: std::ops::RangeInclusive<u32>) -> Result<u64> {
    let log = u32::from(log);
    if allowed.contains(&log) && found == 1 << log {
        return Ok(found);
    }
    let (min, max) = (1 << allowed.start(), 1 << allowed.end());
    Err(Corruption::Figure { what, found, min, max }.into())
}
