//! Changes of fast commits, applied in memory: inodes to an overlay, the rest beside the image.

use super::fast_commit::Change;
use crate::bytes::{field, le16, le32, put};
use crate::features::HUGE_FILE;
use crate::inode::{BLOCK_FIELD_AT, BLOCK_FIELD_LEN, EXTENTS, INLINE};
use crate::patches::Patches;
use crate::reader::Reader;
use crate::run::Run;
use packfs_core::{FileType, Image, OverlayImage, Result, usize_of};
use packfs_format::{InodeId, NameIndex};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Offset of the fields of an inode behind the places of its blocks.
const GENERATION_AT: usize = 0x64;
/// Header of an extent tree without extents: magic number, none of 4 rows.
const NO_EXTENTS: [u8; 12] = [0x0a, 0xf3, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];

struct Apply<'r> {
    reader: &'r Reader,
    /// Changed inodes, whole.
    inodes: BTreeMap<u32, Vec<u8>>,
    patches: Patches,
    names: NameIndex,
}

/// Applies changes to a filesystem, in order.
pub(super) fn apply(reader: &Reader, changes: Vec<Change>) -> Result<(Arc<dyn Image>, Patches)> {
    let (inodes, patches) = (BTreeMap::new(), Patches::default());
    let mut apply = Apply { reader, inodes, patches, names: NameIndex::new() };
    for change in changes {
        match change {
            Change::Inode { inode, raw } => apply.inode(inode, &raw)?,
            Change::Add { inode, run } => {
                reader.check_blocks(inode, run.block, run.count)?;
                let runs = apply.runs(inode)?;
                cut(runs, run.first, run.count);
                let at = runs.partition_point(|other| other.first < run.first);
                runs.insert(at, run);
            }
            Change::Delete { inode, first, count } => cut(apply.runs(inode)?, first, count),
            Change::Link { dir, inode, name, is_first } => apply.link(dir, inode, &name, is_first)?,
            Change::Unlink { dir, name } => {
                let patch = apply.patches.dirs.entry(dir).or_default();
                patch.added.remove(&*name);
                patch.removed.insert(name.into_vec());
            }
        }
    }
    apply.finish()
}

impl Apply<'_> {
    /// Returns the bytes of an inode with the changes so far.
    fn raw(&mut self, inode: u32) -> Result<&mut Vec<u8>> {
        let raw = match self.inodes.remove(&inode) {
            Some(raw) => raw,
            None => self.reader.stored_inode(u64::from(inode))?.bytes().to_vec(),
        };
        Ok(self.inodes.entry(inode).or_insert(raw))
    }

    /// Takes an inode, but where its blocks are: that is told by ranges.
    fn inode(&mut self, inode: u32, new: &[u8]) -> Result<()> {
        let raw = self.raw(inode)?;
        put(raw, 0, field(new, 0, BLOCK_FIELD_AT));
        let behind = new.get(GENERATION_AT..).unwrap_or_default();
        put(raw, GENERATION_AT, behind);
        let flags = le32(new, 0x20);
        if flags & EXTENTS != 0 && field(raw, BLOCK_FIELD_AT, 2) != field(&NO_EXTENTS, 0, 2) {
            put(raw, BLOCK_FIELD_AT, &NO_EXTENTS);
        } else if flags & INLINE != 0 {
            put(raw, BLOCK_FIELD_AT, field(new, BLOCK_FIELD_AT, BLOCK_FIELD_LEN));
        }
        Ok(())
    }

    /// Returns the places of an inode's blocks with the changes so far.
    fn runs(&mut self, inode: u32) -> Result<&mut Vec<Run>> {
        let runs = match self.patches.maps.remove(&inode) {
            Some(runs) => runs,
            None => self.stored_runs(inode)?,
        };
        Ok(self.patches.maps.entry(inode).or_insert(runs))
    }

    /// Returns them as stored; none of an inode that is new.
    fn stored_runs(&self, inode: u32) -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        if let Ok(raw) = self.reader.used_inode(u64::from(inode))
            && raw.has(EXTENTS)
        {
            self.reader.runs(&raw, 0..u64::from(u32::MAX), &mut |run| {
                runs.push(run);
                ControlFlow::Continue(())
            })?;
        }
        Ok(runs)
    }

    fn link(&mut self, dir: u32, inode: u32, name: &[u8], is_first: bool) -> Result<()> {
        if is_first {
            let raw = self.raw(inode)?;
            if FileType::from_mode_bits(u32::from(le16(raw, 0))) == Some(FileType::Directory) {
                self.patches.dirs.entry(inode).or_default().is_new = true;
            }
        }
        let patch = self.patches.dirs.entry(dir).or_default();
        if !patch.is_new && !patch.removed.contains(name) {
            let raw = self.reader.dir(u64::from(dir))?;
            let found = self.names.find(InodeId(u64::from(dir)), name, |add| {
                self.reader.raw_entries(&raw, 0, &mut |entry| {
                    if entry.inode != 0 {
                        add(entry.name, InodeId(u64::from(entry.inode)));
                    }
                    ControlFlow::Continue(())
                })
            })?;
            // The log had the name already.
            if found.is_some() {
                return Ok(());
            }
        }
        patch.added.insert(name.to_vec(), inode);
        Ok(())
    }

    /// Puts the inodes into an overlay, with their sums.
    fn finish(mut self) -> Result<(Arc<dyn Image>, Patches)> {
        let reader = self.reader;
        let block_len = reader.super_block.block_len;
        let mut blocks: BTreeMap<u64, Box<[u8]>> = BTreeMap::new();
        for inode in self.patches.maps.keys().copied().collect::<Vec<_>>() {
            let sectors = self.sectors(inode);
            let raw = self.raw(inode)?;
            let [a, b, c, d, high, ..] = sectors.to_le_bytes();
            put(raw, 0x1c, &[a, b, c, d]);
            if reader.super_block.features.forbids(HUGE_FILE) {
                put(raw, 0x74, &[high, 0]);
            }
        }
        for (inode, mut raw) in self.inodes {
            if reader.sums.all {
                let (sum, is_wide) = reader.sums.inode(inode, &raw);
                let [a, b, c, d] = sum.to_le_bytes();
                put(&mut raw, 0x7c, &[a, b]);
                if is_wide {
                    put(&mut raw, 0x82, &[c, d]);
                }
            }
            let offset = reader.stored_inode(u64::from(inode))?.offset;
            let number = offset.checked_div(block_len).unwrap_or(0);
            let mut bytes = match blocks.remove(&number) {
                Some(bytes) => bytes,
                None => reader.block(number)?,
            };
            put(&mut bytes, usize_of(offset.checked_rem(block_len).unwrap_or(0)), &raw);
            blocks.insert(number, bytes);
        }
        let mut overlay = OverlayImage::new(Arc::clone(&reader.image), block_len);
        for (number, bytes) in blocks {
            overlay.set_block(number, bytes);
        }
        Ok((Arc::new(overlay), self.patches))
    }

    /// Returns the units of 512 bytes that a file's blocks take.
    fn sectors(&self, inode: u32) -> u64 {
        let runs = self.patches.runs(inode).unwrap_or_default();
        let blocks = runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.count));
        // Trees of more extents than an inode holds need blocks.
        let rows = self.reader.super_block.block_len.saturating_sub(12) / 12;
        let nodes = match runs.len() as u64 {
            ..=4 => 0,
            count => count.div_ceil(rows.max(1)),
        };
        blocks.saturating_add(nodes).saturating_mul(self.reader.super_block.block_len / 512)
    }
}

/// Takes a range of blocks out of runs.
fn cut(runs: &mut Vec<Run>, first: u64, count: u64) {
    let end = first.saturating_add(count);
    let mut kept = Vec::with_capacity(runs.len());
    for run in runs.drain(..) {
        let run_end = run.first.saturating_add(run.count);
        if run.first < first {
            kept.push(Run { count: run.count.min(first.saturating_sub(run.first)), ..run });
        }
        if run_end > end {
            let skip = end.saturating_sub(run.first);
            kept.push(Run {
                first: run.first.saturating_add(skip),
                count: run.count.saturating_sub(skip),
                block: run.block.saturating_add(skip),
                is_written: run.is_written,
            });
        }
    }
    *runs = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_out_of_runs() {
        let run = |first, count, block| Run { first, count, block, is_written: true };
        let mut runs = vec![run(0, 10, 100), run(20, 10, 200), run(30, 5, 300)];
        cut(&mut runs, 5, 20);
        assert_eq!(runs, [run(0, 5, 100), run(25, 5, 205), run(30, 5, 300)]);
        cut(&mut runs, 1, 2);
        assert_eq!(runs, [run(0, 1, 100), run(3, 2, 103), run(25, 5, 205), run(30, 5, 300)]);
        cut(&mut runs, 0, 100);
        assert!(runs.is_empty());
    }
}
