//! Changes of metadata blocks, applied with recomputed checksums.

use super::format::{CANCEL, Changed, Format, INODES};
use super::state::Replay;
use super::transaction::Item;
use crate::corruption::Corruption;
use crate::disk::*;
use crate::super_block::SECTOR;
use packfs_core::{Result, usize_of};
use packfs_format::{structure, units::*};
use std::mem::offset_of;
use zerocopy::big_endian::{U32, U64};

const QUOTAS: u16 = 4 | 8 | 16;
/// Lower bits are flags; the kind of the block follows.
const KIND_SHIFT: u32 = 11;
/// Kinds of blocks (`enum xfs_blft`).
const TREE: u16 = 4;
const FREE_HEADER: u16 = 5;
const LIST_HEADER: u16 = 6;
const INODE_HEADER: u16 = 7;
const LINK: u16 = 9;
const DIR_BLOCK: u16 = 10;
const DIR_DATA: u16 = 11;
const DIR_FREE: u16 = 12;
const DIR_LEAF: u16 = 13;
const DIR_LEAF_OF_NODE: u16 = 14;
const NODE: u16 = 15;
const ATTR_LEAF: u16 = 16;
const ATTR_VALUE: u16 = 17;
const SUPER: u16 = 18;
const REALTIME_MAP: u16 = 19;
const REALTIME_SUMMARY: u16 = 20;
const LEN_MAX: u64 = 64 << 10;
const NEXT_AT: usize = offset_of!(Dinode, di_next_unlinked);

impl Replay<'_> {
    /// Applies the change of a block, unless it is freed later, or newer on disk.
    pub(super) fn buffer(&mut self, item: &Item, lsn: u64) -> Result<()> {
        let format = Format::parse(item)?;
        let key = (format.first, format.sectors);
        if format.flags & CANCEL != 0 && self.cancelled.put(key) || self.cancelled.has(key) {
            return Ok(());
        }
        let head = usize_of(SECTOR);
        let is_long = format.len() > LEN_MAX || format.len() == 0;
        let Some(start) = self.target.read(format.at(), head)?.filter(|_| !is_long) else {
            return Err(Corruption::log_item(
                "block",
                format.first,
                "longer than 64 KiB, or after the end of the image",
            )
            .into());
        };
        if self.lsn_of(&start).is_some_and(|found| found >= lsn) || format.flags & QUOTAS != 0 {
            return Ok(());
        }
        if end_of(format.at(), format.len()) > self.target_len() {
            return Err(Corruption::log_item("block", format.first, "after the end of the image").into());
        }
        let parts = format.parts(item)?;
        if format.flags & INODES != 0 {
            return self.next_pointers(&format, &parts);
        }
        for (at, bytes) in parts {
            self.target.write(format.at().plus(at as u64), bytes)?;
        }
        if self.target.super_block.is_v5() {
            let kind = format.flags >> KIND_SHIFT;
            self.changed.insert(format.first, Changed { sectors: format.sectors, kind, lsn });
        }
        Ok(())
    }

    /// Applies the next pointers of inodes; all other fields are logged with the inodes.
    fn next_pointers(&mut self, format: &Format, parts: &[(usize, &[u8])]) -> Result<()> {
        let inode_len = self.target.super_block.inode_len;
        for (at, bytes) in parts {
            let first = left(*at, NEXT_AT).div_ceil(inode_len.max(1));
            let mut start = first.times(inode_len);
            while let Some(next) = start.plus(NEXT_AT).checked_sub(*at).and_then(|skip| part(bytes, skip, 4))
            {
                let place = format.at().plus(start as u64);
                if let Some(mut inode) = self.target.read(place, inode_len)?.filter(|_| next != [0; 4]) {
                    put(&mut inode, NEXT_AT, next);
                    self.write_inode(place, inode)?;
                }
                start = start.plus(inode_len);
            }
        }
        Ok(())
    }

    /// Returns the LSN of the last change of a block; `None` if it has none.
    fn lsn_of(&self, block: &[u8]) -> Option<u64> {
        let super_block = self.target.super_block;
        let stamp = Stamp::of(block).filter(|_| super_block.is_v5())?;
        let uuid_at = match structure::<U32>(block, 0)?.get() {
            // Written at once, so the LSN has no meaning; the bitmaps have none that is compared.
            XFS_ATTR3_RMT_MAGIC | XFS_RTBITMAP_MAGIC | XFS_RTSUMMARY_MAGIC => return None,
            XFS_SB_MAGIC if super_block.meta_uuid != super_block.uuid => offset_of!(Dsb, sb_meta_uuid),
            _ => stamp.uuid,
        };
        let lsn = structure::<U64>(block, stamp.lsn)?.get();
        let is_ours = structure::<[u8; 16]>(block, uuid_at)? == super_block.meta_uuid;
        (is_ours && lsn != 0 && lsn != u64::MAX).then_some(lsn)
    }

    /// Stores LSNs and checksums in the changed blocks.
    pub(super) fn finish_blocks(&mut self) -> Result<()> {
        for (first, changed) in std::mem::take(&mut self.changed) {
            let at = first.times(SECTOR);
            let len = u64::from(changed.sectors).times(SECTOR);
            let super_block = self.target.super_block;
            // A directory block may consist of several runs, each with a change.
            let is_dir = (DIR_BLOCK..=DIR_LEAF_OF_NODE).contains(&changed.kind);
            if len < super_block.dir_block_len && (is_dir || changed.kind == NODE) {
                self.notes.add_part(super_block, at, len);
                if is_dir {
                    continue;
                }
            }
            let Some(mut bytes) = self.target.read(at, usize_of(len))? else { continue };
            let block_len = usize_of(super_block.block_len);
            let piece_len = if changed.kind == ATTR_VALUE { block_len } else { bytes.len() };
            for (index, piece) in bytes.chunks_mut(piece_len).enumerate() {
                let Some(Stamp { lsn: lsn_at, crc: sum_at, .. }) = stamp_of(changed.kind, piece) else {
                    break;
                };
                if changed.kind != ATTR_VALUE {
                    put(piece, lsn_at, &changed.lsn.to_be_bytes());
                }
                let sum = Checksum::of(piece, sum_at).computed;
                put(piece, sum_at, &sum.to_le_bytes());
                let skip = index.times(piece_len) as u64;
                self.target.write(at.plus(skip), piece)?;
            }
        }
        Ok(())
    }
}

/// Returns the stamp of a block whose magic fits the kind in the log.
fn stamp_of(kind: u16, block: &[u8]) -> Option<Stamp> {
    let is_hash_tree = || {
        let magic = structure(block, 0).map(|info: DaBlkinfo| info.magic.get());
        magic.is_some_and(|magic| DA3_MAGICS.contains(&magic))
    };
    let is_of_kind = match (kind, structure::<U32>(block, 0)?.get()) {
        (
            TREE,
            XFS_ABTB_CRC_MAGIC | XFS_ABTC_CRC_MAGIC | XFS_IBT_CRC_MAGIC | XFS_FIBT_CRC_MAGIC
            | XFS_RMAP_CRC_MAGIC | XFS_REFC_CRC_MAGIC | XFS_BMAP_CRC_MAGIC | XFS_RTRMAP_CRC_MAGIC
            | XFS_RTREFC_CRC_MAGIC,
        )
        | (FREE_HEADER, XFS_AGF_MAGIC)
        | (LIST_HEADER, XFS_AGFL_MAGIC)
        | (INODE_HEADER, XFS_AGI_MAGIC)
        | (LINK, XFS_SYMLINK_MAGIC)
        | (ATTR_VALUE, XFS_ATTR3_RMT_MAGIC)
        | (DIR_BLOCK, XFS_DIR3_BLOCK_MAGIC)
        | (DIR_DATA, XFS_DIR3_DATA_MAGIC)
        | (DIR_FREE, XFS_DIR3_FREE_MAGIC)
        | (REALTIME_MAP | REALTIME_SUMMARY, XFS_RTBITMAP_MAGIC | XFS_RTSUMMARY_MAGIC)
        | (SUPER, XFS_SB_MAGIC) => true,
        (DIR_LEAF | DIR_LEAF_OF_NODE | NODE | ATTR_LEAF, _) => is_hash_tree(),
        _ => false,
    };
    Stamp::of(block).filter(|_| is_of_kind)
}
