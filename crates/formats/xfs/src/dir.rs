//! Listing and lookup.
//!
//! A cursor is the index of the next entry for a directory in its inode, and the offset of the next
//! entry in the data of any other.

use crate::block::{Block, BlockKind};
use crate::corruption::Corruption;
use crate::dir_block::{DataBlock, RawEntry, ShortForm, file_type};
use crate::inode::{DiskInode, Fork, Form};
use crate::kept::Run;
use crate::volume::XfsVolume;
use packfs_core::{FileType, Name, Result};
use packfs_format::{DirCursor, DirEntry, Directories, InodeId, units::*};
use std::ops::ControlFlow;

/// Directory offset of the hash table; data precedes it (`XFS_DIR2_LEAF_OFFSET`).
pub(crate) const LEAF_OFFSET: u64 = 32 << 30;
/// Number of damaged blocks of a directory after which a listing ends.
const DAMAGED_MAX: u64 = 64;
/// Approximate memory of a cached error.
const DAMAGE_LEN: usize = 256;

pub(crate) type VisitBlock<'a> = dyn FnMut(u64, &[Run]) -> Result<ControlFlow<()>> + 'a;

impl XfsVolume {
    pub(crate) fn dir(&self, id: InodeId) -> Result<DiskInode> {
        let inode = self.disk_inode(id.0)?;
        match inode.file_type {
            FileType::Directory => Ok(inode),
            _ => Err(Corruption::Kind { ino: id.0, wanted: "directory" }.into()),
        }
    }

    pub(crate) fn each_dir_block(
        &self,
        inode: &DiskInode,
        range: std::ops::Range<u64>,
        visit: &mut VisitBlock<'_>,
    ) -> Result<()> {
        let dir_len = self.super_block.dir_block_len;
        let per_block = self.super_block.blocks_per_dir_block();
        // Runs of the current directory block, and the number of blocks in them.
        let (mut runs, mut filled): (Vec<Run>, u64) = (Vec::new(), 0);
        // Directories do not share blocks.
        let left_max = self.image.len().quotient(self.super_block.block_len);
        let mut room = inode.blocks.min(left_max);
        let (from, _) = self.super_block.dir_block_of(self.super_block.block_of(range.start));
        self.each_mapping(inode, Fork::Data, from.times(per_block), &mut |mapping| {
            let (mut offset, mut start) = (mapping.offset, mapping.start);
            let first = from.times(per_block);
            let skipped = left(first, offset);
            (offset, start) = (offset.plus(skipped), start.plus(skipped));
            while offset < mapping.end() {
                let (index, within) = self.super_block.dir_block_of(offset);
                let at = nth_at(0, index, dir_len);
                if at >= range.end {
                    return Ok(ControlFlow::Break(()));
                }
                let count = per_block.minus(within).min(mapping.end().minus(offset));
                if within != filled {
                    return Err(Corruption::DirHole { ino: inode.ino, offset: at }.into());
                }
                runs.push((start, count));
                filled = filled.plus(count);
                (offset, start) = (offset.plus(count), start.plus(count));
                let max = inode.blocks.min(left_max);
                room = room.checked_sub(count).ok_or(Corruption::DirMapped { ino: inode.ino, max })?;
                if filled == per_block {
                    filled = 0;
                    if visit(at, &std::mem::take(&mut runs))?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if filled > 0 {
            Err(Corruption::DirHole { ino: inode.ino, offset: inode.size }.into())
        } else {
            Ok(())
        }
    }

    /// Calls `visit` for the entries of a directory from a cursor on, including stored `.` and
    /// `..`. Damaged blocks are skipped; the first error is returned at the end.
    pub(crate) fn each_raw_entry(
        &self,
        inode: &DiskInode,
        from: u64,
        visit: &mut dyn FnMut(RawEntry<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        if inode.form == Form::Local {
            return ShortForm::new(inode, &self.super_block).each(from, visit);
        }
        let (mut fault, mut damaged) = (None, 0_u64);
        let range = from..inode.size.min(LEAF_OFFSET);
        let walked = self.each_dir_block(inode, range, &mut |offset, runs| {
            let mut flow = ControlFlow::Continue(());
            let listed = self.block(BlockKind::Dir, runs, inode.ino).and_then(|block| {
                self.data_block(&block, offset)?.each(from, &mut |entry| {
                    flow = visit(entry);
                    flow
                })
            });
            if let Err(error) = listed {
                fault.get_or_insert(error);
                damaged = damaged.plus(1);
                if damaged > DAMAGED_MAX {
                    return Err(Corruption::DirBlocks { ino: inode.ino, max: DAMAGED_MAX }.into());
                }
            }
            Ok(flow)
        });
        fault.map_or(walked, Err)
    }

    pub(crate) fn data_block<'a>(&self, block: &'a Block, offset: u64) -> Result<DataBlock<'a>> {
        DataBlock::new(block, offset, &self.super_block)
    }

    /// Checks an entry; `None` for `.` and `..`.
    fn entry(&self, dir: &DiskInode, raw: &RawEntry<'_>) -> Result<Option<DirEntry>> {
        if is_dot(raw.name) {
            return Ok(None);
        }
        let (ino, at) = (dir.ino, raw.at);
        if let Err(fault) = Name::new(raw.name) {
            return Err(Corruption::DirName { ino, at, fault }.into());
        }
        if self.super_block.inode_at(raw.ino).is_none() {
            return Err(Corruption::DirTarget { ino, at, target: raw.ino }.into());
        }
        // The inode decides; if it is damaged, its own error follows.
        let file_type = file_type(raw.file_type)
            .or_else(|| self.disk_inode(raw.ino).ok().map(|inode| inode.file_type))
            .unwrap_or(FileType::File);
        Ok(Some(DirEntry { name: raw.name.to_vec(), id: InodeId(raw.ino), file_type }))
    }

    fn target(&self, found: Option<InodeId>) -> Result<Option<InodeId>> {
        match found {
            Some(id) if self.super_block.inode_at(id.0).is_none() => {
                Err(Corruption::InodePlace { ino: id.0 }.into())
            }
            found => Ok(found),
        }
    }
}

impl Directories for XfsVolume {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        let inode = self.dir(dir)?;
        if is_dot(name) {
            return Ok(None);
        }
        if inode.size <= self.super_block.dir_block_len {
            let mut found = None;
            let walked = self.each_raw_entry(&inode, 0, &mut |raw| {
                if raw.name != name {
                    return ControlFlow::Continue(());
                }
                found = Some(InodeId(raw.ino));
                ControlFlow::Break(())
            });
            return if found.is_some() { self.target(found) } else { walked.map(|()| None) };
        }
        let list = |put: &mut dyn FnMut(&[u8], InodeId)| {
            self.each_raw_entry(&inode, 0, &mut |raw| {
                if !is_dot(raw.name) {
                    put(raw.name, InodeId(raw.ino));
                }
                ControlFlow::Continue(())
            })
        };
        // Entries in intact blocks are found; a missing name is an error.
        let known = self.names.find(dir, name, |put| {
            let error = list(put).err();
            self.damage.get_or(dir.0, || Ok((error, DAMAGE_LEN))).map(drop)
        })?;
        if known.is_some() {
            return self.target(known);
        }
        let damage = self.damage.get_or(dir.0, || Ok((list(&mut |_, _| {}).err(), DAMAGE_LEN)))?;
        damage.as_ref().as_ref().map_or(Ok(None), |error| Err(error.clone()))
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let inode = self.dir(dir)?;
        let mut fault = None;
        let walked = self.each_raw_entry(&inode, from.0, &mut |raw| match self.entry(&inode, &raw) {
            Ok(Some(entry)) => visit(entry, DirCursor(raw.next)),
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => {
                fault.get_or_insert(error);
                ControlFlow::Continue(())
            }
        });
        fault.map_or(walked, Err)
    }
}

pub(crate) fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}
