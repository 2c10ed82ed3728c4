//! Changes of blocks of metadata: applied, and their checksums put right.

use super::format::{CANCEL, Changed, Format, INODES, put};
use super::state::Replay;
use super::transaction::Item;
use crate::corruption::Corruption;
use crate::disk::{Checksum, be16, be32, be64, part, uuid};
use crate::super_block::SECTOR;
use packfs_core::{Result, usize_of};

/// Flags of blocks with quotas.
const QUOTAS: u16 = 4 | 8 | 16;
/// Bits of the flags before the kind of the block.
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
/// Most bytes of a block.
const LEN_MAX: u64 = 64 << 10;
/// Offset of the next pointer in an inode.
const NEXT_AT: usize = 96;

impl Replay<'_> {
    /// Applies the change of a block, unless it was freed later, or is newer on disk.
    pub(super) fn buffer(&mut self, item: &Item, lsn: u64) -> Result<()> {
        let format = Format::parse(item)?;
        let key = (format.first, format.sectors);
        if format.flags & CANCEL != 0 && self.cancelled.put(key) || self.cancelled.has(key) {
            return Ok(());
        }
        let head = usize_of(SECTOR);
        let is_long = format.len() > LEN_MAX || format.len() == 0;
        let Some(start) = self.target.read(format.at(), head)?.filter(|_| !is_long) else {
            let fault = "longer than 64 KiB, or behind the end of the image";
            return Err(Corruption::LogItem { what: "block", number: format.first, fault }.into());
        };
        if self.lsn_of(&start).is_some_and(|found| found >= lsn) || format.flags & QUOTAS != 0 {
            return Ok(());
        }
        if format.at().saturating_add(format.len()) > self.target_len() {
            let fault = "behind the end of the image";
            return Err(Corruption::LogItem { what: "block", number: format.first, fault }.into());
        }
        let parts = format.parts(item)?;
        if format.flags & INODES != 0 {
            return self.next_pointers(&format, &parts);
        }
        for (at, bytes) in parts {
            self.target.write(format.at().saturating_add(at as u64), bytes)?;
        }
        if self.target.super_block.is_v5() {
            let kind = format.flags >> KIND_SHIFT;
            self.changed.insert(format.first, Changed { sectors: format.sectors, kind, lsn });
        }
        Ok(())
    }

    /// Applies the next pointers of inodes; all else in them is logged with the inodes.
    fn next_pointers(&mut self, format: &Format<'_>, parts: &[(usize, &[u8])]) -> Result<()> {
        let inode_len = self.target.super_block.inode_len;
        for (at, bytes) in parts {
            let first = at.saturating_sub(NEXT_AT).div_ceil(inode_len.max(1));
            let mut start = first.saturating_mul(inode_len);
            while let Some(next) =
                start.saturating_add(NEXT_AT).checked_sub(*at).and_then(|skip| part(bytes, skip, 4))
            {
                let place = format.at().saturating_add(start as u64);
                if let Some(mut inode) = self.target.read(place, inode_len)?.filter(|_| next != [0; 4]) {
                    put(&mut inode, NEXT_AT, next);
                    self.write_inode(place, inode)?;
                }
                start = start.saturating_add(inode_len);
            }
        }
        Ok(())
    }

    /// Returns the number of the record that a block was last changed in; `None` if it holds none.
    fn lsn_of(&self, block: &[u8]) -> Option<u64> {
        let super_block = self.target.super_block;
        let (lsn_at, uuid_at) = match be32(block, 0) {
            _ if !super_block.is_v5() => return None,
            // Short and long pointers of trees.
            0x4142_3342 | 0x4142_3343 | 0x4941_4233 | 0x4649_4233 | 0x524d_4233 | 0x5233_4643 => (24, 32),
            0x424d_4133 | 0x4d41_5052 | 0x5243_4e54 => (32, 40),
            0x5841_4746 => (208, 64),
            0x5841_464c => (24, 8),
            0x5841_4749 => (320, 296),
            0x5853_4c4d => (48, 16),
            0x5844_4233 | 0x5844_4433 | 0x5844_4633 => (16, 24),
            0x5846_5342 if super_block.meta_uuid != super_block.uuid => (240, 248),
            0x5846_5342 => (240, 32),
            _ => match be16(block, 8) {
                0x3df1 | 0x3dff | 0x3ebe | 0x3bee => (24, 32),
                _ => return None,
            },
        };
        let lsn = be64(block, lsn_at);
        let is_ours = uuid(block, uuid_at) == super_block.meta_uuid;
        (is_ours && lsn != 0 && lsn != u64::MAX).then_some(lsn)
    }

    /// Puts numbers of records and checksums into the changed blocks.
    pub(super) fn finish_blocks(&mut self) -> Result<()> {
        for (first, changed) in std::mem::take(&mut self.changed) {
            let (at, len) = (first.saturating_mul(SECTOR), u64::from(changed.sectors).saturating_mul(SECTOR));
            let super_block = self.target.super_block;
            // Parts of a directory block lie apart, each with a change of its own.
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
                let Some((lsn_at, sum_at)) = sum_places(changed.kind, piece) else { break };
                if changed.kind != ATTR_VALUE {
                    put(piece, lsn_at, &changed.lsn.to_be_bytes());
                }
                let sum = Checksum::of(piece, sum_at).computed;
                put(piece, sum_at, &sum.to_le_bytes());
                let skip = index.saturating_mul(piece_len) as u64;
                self.target.write(at.saturating_add(skip), piece)?;
            }
        }
        Ok(())
    }
}

/// Returns the offsets of number and checksum in a block of a kind.
fn sum_places(kind: u16, block: &[u8]) -> Option<(usize, usize)> {
    let (magic, hash_magic) = (be32(block, 0), be16(block, 8));
    Some(match kind {
        TREE => match magic {
            0x4142_3342 | 0x4142_3343 | 0x4941_4233 | 0x4649_4233 | 0x524d_4233 | 0x5233_4643 => (24, 52),
            0x424d_4133 | 0x4d41_5052 | 0x5243_4e54 => (32, 64),
            _ => return None,
        },
        FREE_HEADER if magic == 0x5841_4746 => (208, 216),
        LIST_HEADER if magic == 0x5841_464c => (24, 32),
        INODE_HEADER if magic == 0x5841_4749 => (320, 312),
        LINK if magic == 0x5853_4c4d => (48, 12),
        ATTR_VALUE if magic == 0x5841_524d => (48, 12),
        DIR_BLOCK if magic == 0x5844_4233 => (16, 4),
        DIR_DATA if magic == 0x5844_4433 => (16, 4),
        DIR_FREE if magic == 0x5844_4633 => (16, 4),
        DIR_LEAF | DIR_LEAF_OF_NODE | NODE | ATTR_LEAF
            if matches!(hash_magic, 0x3df1 | 0x3dff | 0x3ebe | 0x3bee) =>
        {
            (24, 12)
        }
        REALTIME_MAP | REALTIME_SUMMARY if matches!(magic, 0x424d_505a | 0x5355_4d59) => (24, 4),
        SUPER if magic == 0x5846_5342 => (240, crate::super_block::CHECKSUM_AT),
        _ => return None,
    })
}
