//! Superblock (`struct xfs_dsb`), and the address arithmetic that depends on it.

use crate::corruption::Corruption;
use crate::disk::{Checksum, Dsb};
use crate::features;
use packfs_core::{Error, Image, Result, range_at, usize_of};
use packfs_format::{TRUNCATED, structure, units::*};
use std::mem::offset_of;
use std::ops::Range;

/// Start of every allocation group.
pub(crate) const MAGIC: [u8; 4] = *b"XFSB";
const LEN: usize = size_of::<Dsb>();
pub(crate) const CHECKSUM_AT: usize = offset_of!(Dsb, sb_crc);
/// Unit of disk addresses, in bytes.
pub(crate) const SECTOR: u64 = 512;
const DIR_BLOCK_LOG_MAX: u32 = 16;

#[derive(Clone, Debug)]
pub(crate) struct SuperBlock {
    /// 4 or 5.
    pub(crate) version: u16,
    pub(crate) version_bits: u16,
    pub(crate) features2: u32,
    pub(crate) ro_compat: u32,
    pub(crate) incompat: u32,
    pub(crate) log_features: u32,
    pub(crate) block_len: u64,
    pub(crate) sector_len: u64,
    pub(crate) inode_len: usize,
    pub(crate) dir_block_len: u64,
    block_log: u32,
    /// Logarithm of the blocks in a directory block.
    dir_shift: u32,
    inode_slot_log: u32,
    /// Bits of a block number within its group.
    pub(crate) ag_block_log: u32,
    pub(crate) blocks: u64,
    pub(crate) rt_blocks: u64,
    /// Blocks of a group; the last one may be shorter.
    pub(crate) ag_blocks: u64,
    pub(crate) ag_count: u64,
    pub(crate) root: u64,
    pub(crate) log_start: u64,
    pub(crate) log_blocks: u64,
    /// Alignment of chunks of inodes, in blocks.
    pub(crate) inode_alignment: u64,
    pub(crate) inode_count: u64,
    pub(crate) inodes_free: u64,
    pub(crate) blocks_free: u64,
    pub(crate) label: Vec<u8>,
    pub(crate) uuid: [u8; 16],
    pub(crate) meta_uuid: [u8; 16],
    /// Blocks of a realtime group, and the bits of a block number within it; 0 without groups.
    pub(crate) rt_group_blocks: u64,
    pub(crate) rt_group_log: u32,
    /// First block of a realtime section within the filesystem's device; 0 if it does not exist.
    pub(crate) rt_start: u64,
    pub(crate) checksum: Option<Checksum>,
}

/// True if an image starts with a superblock with a valid block size.
pub(crate) fn probe(image: &dyn Image) -> Result<bool> {
    let mut bytes = [0; LEN];
    let len = image.read_at(0, &mut bytes)?;
    let Some(raw) = structure::<Dsb>(&bytes, 0).filter(|_| len == LEN) else { return Ok(false) };
    let block_len = raw.sb_blocksize.get();
    Ok(raw.sb_magicnum == MAGIC
        && block_len.is_power_of_two()
        && block_len.trailing_zeros() == u32::from(raw.sb_blocklog)
        && raw.sb_inprogress == 0)
}

impl SuperBlock {
    pub(crate) fn read(image: &dyn Image) -> Result<SuperBlock> {
        let mut bytes = vec![0; 1 << 15];
        let len = image.read_at(0, &mut bytes)?;
        bytes.truncate(len);
        let raw: Dsb = structure(&bytes, 0).ok_or(Corruption::Short { len: image.len(), min: LEN as u64 })?;
        if raw.sb_magicnum != MAGIC {
            return Err(Corruption::Magic.into());
        }
        SuperBlock::parse(&raw, &bytes)
    }

    /// `bytes` is the whole sector.
    fn parse(raw: &Dsb, bytes: &[u8]) -> Result<SuperBlock> {
        let version_bits = raw.sb_versionnum.get();
        let version = features::version(raw)?;
        let lens = Lens::parse(raw)?;
        let of_v5 = |figure: zerocopy::big_endian::U32| if version == 5 { figure.get() } else { 0 };
        let incompat = of_v5(raw.sb_features_incompat);
        let has_groups = incompat & features::METADIR != 0;
        let super_block = SuperBlock {
            version,
            version_bits,
            features2: match version_bits & features::V4_MORE {
                0 => 0,
                _ => raw.sb_features2.get() | raw.sb_bad_features2.get(),
            },
            ro_compat: of_v5(raw.sb_features_ro_compat),
            incompat,
            log_features: of_v5(raw.sb_features_log_incompat),
            block_len: lens.block,
            block_log: raw.sb_blocklog.into(),
            dir_shift: raw.sb_dirblklog.into(),
            sector_len: lens.sector,
            inode_len: lens.inode,
            dir_block_len: lens.dir_block,
            inode_slot_log: raw.sb_inopblog.into(),
            ag_block_log: raw.sb_agblklog.into(),
            blocks: raw.sb_dblocks.get(),
            rt_blocks: raw.sb_rblocks.get(),
            ag_blocks: raw.sb_agblocks.get().into(),
            ag_count: raw.sb_agcount.get().into(),
            root: raw.sb_rootino.get(),
            log_start: raw.sb_logstart.get(),
            log_blocks: raw.sb_logblocks.get().into(),
            inode_alignment: raw.sb_inoalignmt.get().into(),
            inode_count: raw.sb_icount.get(),
            inodes_free: raw.sb_ifree.get(),
            blocks_free: raw.sb_fdblocks.get(),
            label: label(&raw.sb_fname),
            uuid: raw.sb_uuid,
            meta_uuid: if incompat & features::META_UUID != 0 { raw.sb_meta_uuid } else { raw.sb_uuid },
            rt_group_blocks: if has_groups {
                u64::from(raw.sb_rgextents.get()).times(raw.sb_rextsize.get().into())
            } else {
                0
            },
            rt_group_log: if has_groups { raw.sb_rgblklog.into() } else { 0 },
            rt_start: if incompat & features::ZONED != 0 { raw.sb_rtstart.get() } else { 0 },
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
            let max = 1 << self.ag_block_log.min(31);
            return Err(figure("blocks of a group", group, 64, max).into());
        }
        let (Some(most), 1..) = (group.checked_mul(count), count) else {
            return Err(figure("groups", count, 1, u64::MAX.quotient(group)).into());
        };
        let least = most.minus(group).plus(1);
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

    /// True if all of these incompatible features are set.
    pub(crate) fn has(&self, incompat: u32) -> bool {
        self.incompat & incompat == incompat
    }

    /// True if directory entries store a type.
    pub(crate) fn has_ftype(&self) -> bool {
        self.has(features::FTYPE) || (!self.is_v5() && self.features2 & features::V4_FTYPE != 0)
    }

    pub(crate) fn ag_len(&self, group: u64) -> u64 {
        self.blocks.minus(group.times(self.ag_blocks)).min(self.ag_blocks)
    }

    /// Offset of a block of a group.
    pub(crate) fn ag_block_at(&self, group: u64, block: u64) -> u64 {
        nth_at(0, nth_at(block, group, self.ag_blocks), self.block_len)
    }

    /// Returns group and block in it.
    pub(crate) fn split(&self, block: u64) -> (u64, u64) {
        (block >> self.ag_block_log, block & low_bits(self.ag_block_log))
    }

    /// Returns the offset of `count` blocks; `None` if they are not in one group.
    pub(crate) fn blocks_at(&self, block: u64, count: u64) -> Option<u64> {
        let (group, start) = self.split(block);
        let end = start.checked_add(count)?;
        (group < self.ag_count && end <= self.ag_len(group)).then(|| self.ag_block_at(group, start))
    }

    /// Returns the block of an inode and its slot; `None` if it is outside of the filesystem.
    pub(crate) fn inode_at(&self, ino: u64) -> Option<(u64, u64)> {
        let block = ino >> self.inode_slot_log;
        self.blocks_at(block, 1)?;
        Some((block, ino & low_bits(self.inode_slot_log)))
    }

    pub(crate) fn inode_of(&self, group: u64, number: u64) -> u64 {
        group << (self.ag_block_log.plus(self.inode_slot_log)) | number
    }

    pub(crate) fn block_of(&self, byte: u64) -> u64 {
        byte >> self.block_log
    }

    /// Returns the directory block that contains a block of a directory, and the number of blocks
    /// before it there.
    pub(crate) fn dir_block_of(&self, block: u64) -> (u64, u64) {
        (block >> self.dir_shift, block & low_bits(self.dir_shift))
    }

    pub(crate) fn blocks_per_dir_block(&self) -> u64 {
        1 << self.dir_shift
    }

    pub(crate) fn len(&self) -> u64 {
        self.blocks.times(self.block_len)
    }

    pub(crate) fn internal_log(&self) -> Option<Range<u64>> {
        if self.log_start == 0 {
            return None;
        }
        let at = self.blocks_at(self.log_start, self.log_blocks)?;
        Some(range_at(at, self.log_blocks.times(self.block_len)))
    }
}

pub(crate) fn low_bits(count: u32) -> u64 {
    1_u64.checked_shl(count).map_or(u64::MAX, |bit| bit.minus(1))
}

fn label(label: &[u8]) -> Vec<u8> {
    until_nul(label).to_vec()
}

struct Lens {
    block: u64,
    sector: u64,
    inode: usize,
    dir_block: u64,
}

impl Lens {
    fn parse(raw: &Dsb) -> Result<Lens> {
        let v5 = raw.sb_versionnum.get() & 15 == 5;
        let block = power("block size", raw.sb_blocksize.get().into(), raw.sb_blocklog, 9..=16)?;
        let sector = power("sector size", raw.sb_sectsize.get().into(), raw.sb_sectlog, 9..=15)?;
        let least = if v5 { 9 } else { 8 };
        let inode = power("inode size", raw.sb_inodesize.get().into(), raw.sb_inodelog, least..=11)?;
        let (slots, slot_log) = (u64::from(raw.sb_inopblock.get()), raw.sb_inopblog);
        if inode > block
            || slots.checked_mul(inode) != Some(block)
            || 1_u64.checked_shl(slot_log.into()) != Some(slots)
        {
            return Err(Corruption::Figure {
                what: "inodes of a block",
                found: slots,
                min: 1,
                max: block.quotient(inode),
            }
            .into());
        }
        let block_log = u32::from(raw.sb_blocklog);
        let shift = u32::from(raw.sb_dirblklog);
        let dir_log = block_log.plus(shift);
        if dir_log > DIR_BLOCK_LOG_MAX {
            let max = DIR_BLOCK_LOG_MAX.minus(block_log).into();
            return Err(Corruption::Figure {
                what: "bits of blocks in a directory block",
                found: shift.into(),
                min: 0,
                max,
            }
            .into());
        }
        if raw.sb_inprogress != 0 {
            return Err(Error::from(Corruption::InProgress).hint(TRUNCATED));
        }
        Ok(Lens { block, sector, inode: usize_of(inode), dir_block: 1 << dir_log })
    }
}

/// Checks a length that is stored along with its logarithm.
fn power(what: &'static str, found: u64, log: u8, allowed: std::ops::RangeInclusive<u32>) -> Result<u64> {
    let log = u32::from(log);
    if allowed.contains(&log) && found == 1 << log {
        return Ok(found);
    }
    let (min, max) = (1 << allowed.start(), 1 << allowed.end());
    Err(Corruption::Figure { what, found, min, max }.into())
}
