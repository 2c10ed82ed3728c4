//! Changes of fast commits, applied in memory: inodes to an overlay, all else to [`Patches`].

use super::fast_commit::Change;
use super::run_map::RunMap;
use crate::bytes::put;
use crate::corruption::Corruption;
use crate::disk::{Ext4Inode, ExtentHeader};
use crate::features::HUGE_FILE;
use crate::inode::{BLOCK_FIELD, BLOCK_FIELD_AT, BLOCK_FIELD_LEN, EXTENTS, INLINE};
use crate::map::EXTENT_MAGIC;
use crate::patches::{DirPatch, Patches};
use crate::reader::Reader;
use crate::run::Run;
use crate::sums::{INODE_SUM_AT, INODE_SUM_HIGH_AT};
use packfs_core::{ErrorKind, FileType, Image, OverlayImage, Result, usize_of};
use packfs_format::{structure, units::*};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::offset_of;
use std::ops::ControlFlow;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Offset of i_generation; the fields after it are not block pointers.
const GENERATION_AT: usize = offset_of!(Ext4Inode, i_generation);
/// Capacity of the extent tree's root in an inode.
const ROWS: u16 = 4;
const RUNS_MAX: u64 = 1 << 22;

/// Inodes by name.
type Names = HashMap<Box<[u8]>, u32>;

pub(super) struct Applied {
    pub(super) image: Arc<dyn Image>,
    pub(super) patches: Patches,
    /// Number of changes that were skipped because they refer to something unreadable.
    pub(super) left_out: u64,
}

struct Apply<'r> {
    reader: &'r Reader,
    inodes: BTreeMap<u32, Vec<u8>>,
    maps: BTreeMap<u32, RunMap>,
    dirs: BTreeMap<u32, DirPatch>,
    asked: HashMap<u32, HashSet<Box<[u8]>>>,
    stored: HashMap<u32, Names>,
    /// Remaining budget of directory blocks to list: the blocks of the image.
    blocks_left: u64,
    runs_left: u64,
}

/// Applies changes in order. Like Linux, skips those that refer to something unreadable.
pub(super) fn apply(reader: &Reader, changes: Vec<Change>) -> Result<Applied> {
    let mut asked: HashMap<u32, HashSet<Box<[u8]>>> = HashMap::new();
    for change in &changes {
        if let Change::Link { dir, name, .. } | Change::Unlink { dir, name, .. } = change {
            asked.entry(*dir).or_default().insert(name.clone());
        }
    }
    let mut apply = Apply {
        reader,
        inodes: BTreeMap::new(),
        maps: BTreeMap::new(),
        dirs: BTreeMap::new(),
        asked,
        stored: HashMap::new(),
        blocks_left: reader.image.len().div_ceil(reader.super_block.block_len),
        runs_left: RUNS_MAX,
    };
    let mut left_out = 0_u64;
    for change in changes {
        match apply.change(change) {
            Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => {
                return Err(error);
            }
            outcome => left_out = left_out.plus(u64::from(outcome.is_err())),
        }
    }
    let (image, patches) = apply.finish()?;
    Ok(Applied { image, patches, left_out })
}

impl Apply<'_> {
    fn change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Inode { inode, raw } => self.inode(inode, &raw)?,
            Change::Add { inode, run } => {
                self.reader.check_blocks(inode, run.block, run.count)?;
                self.runs(inode)?.put(run);
            }
            Change::Delete { inode, first, count } => self.runs(inode)?.cut(first, count),
            Change::Link { dir, inode, name, is_first } => self.link(dir, inode, name, is_first)?,
            Change::Unlink { dir, inode, name } => self.unlink(dir, inode, name)?,
        }
        Ok(())
    }

    fn raw(&mut self, inode: u32) -> Result<&mut Vec<u8>> {
        let raw = match self.inodes.remove(&inode) {
            Some(raw) => raw,
            None => self.reader.stored_inode(u64::from(inode))?.bytes().to_vec(),
        };
        Ok(self.inodes.entry(inode).or_insert(raw))
    }

    /// Applies an inode. Block pointers come from ranges, and remain if the inode is still the same
    /// file.
    fn inode(&mut self, inode: u32, new: &[u8]) -> Result<()> {
        let raw = self.raw(inode)?;
        let (old, fields) = (fields_of(raw)?, fields_of(new)?);
        let is_other = old.i_generation != fields.i_generation;
        put(raw, 0, new.within(..BLOCK_FIELD_AT));
        put(raw, GENERATION_AT, new.within(GENERATION_AT..));
        if is_other {
            put(raw, BLOCK_FIELD_AT, &[0; BLOCK_FIELD_LEN]);
        }
        let flags = fields.i_flags.get();
        let file_type = FileType::from_mode_bits(fields.i_mode.get().into());
        let is_file = matches!(file_type, Some(FileType::File | FileType::Directory));
        if flags & EXTENTS != 0 {
            let (eh_magic, eh_max) = (EXTENT_MAGIC.into(), ROWS.into());
            let none = ExtentHeader { eh_magic, eh_max, ..ExtentHeader::default() };
            if !raw.within(BLOCK_FIELD).starts_with(eh_magic.as_bytes()) {
                put(raw, BLOCK_FIELD_AT, none.as_bytes());
            }
        } else if flags & INLINE != 0 || !is_file {
            // Device numbers and short link targets are in the same field; Linux loses them.
            put(raw, BLOCK_FIELD_AT, new.within(BLOCK_FIELD));
        }
        if is_other {
            self.dirs.remove(&inode);
            self.stored.remove(&inode);
            self.maps.remove(&inode);
            if flags & EXTENTS != 0 {
                self.maps.insert(inode, RunMap::default());
            }
        }
        Ok(())
    }

    fn runs(&mut self, inode: u32) -> Result<&mut RunMap> {
        let runs = match self.maps.remove(&inode) {
            Some(runs) => runs,
            None => self.stored_runs(inode)?,
        };
        Ok(self.maps.entry(inode).or_insert(runs))
    }

    /// Returns the stored runs; empty for a new inode.
    fn stored_runs(&mut self, inode: u32) -> Result<RunMap> {
        let (mut runs, left) = (RunMap::default(), &mut self.runs_left);
        if let Ok(raw) = self.reader.used_inode(u64::from(inode))
            && raw.has(EXTENTS)
        {
            let mut is_over = false;
            self.reader.runs(&raw, 0..u64::from(u32::MAX), &mut |run| {
                runs.put(run);
                is_over = *left == 0;
                *left = left.saturating_sub(1);
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if is_over {
                return Err(Corruption::Journal { fault: "fast commits of too many extents" }.into());
            }
        }
        Ok(runs)
    }

    fn link(&mut self, dir: u32, inode: u32, name: Box<[u8]>, is_first: bool) -> Result<()> {
        if is_first {
            let raw = self.raw(inode)?;
            let mode = fields_of(raw)?.i_mode.get();
            if FileType::from_mode_bits(mode.into()) == Some(FileType::Directory) {
                self.dirs.entry(inode).or_default().is_new = true;
            }
        }
        let stored = self.stored_name(dir, &name)?;
        let patch = self.dirs.entry(dir).or_default();
        // The directory may already contain the name.
        if stored.is_none() || patch.removed.contains(&*name) {
            patch.added.entry(name.into_vec()).or_insert(inode);
        }
        Ok(())
    }

    /// Removes a name if it leads to the inode: the directory on disk may have a newer one.
    fn unlink(&mut self, dir: u32, inode: u32, name: Box<[u8]>) -> Result<()> {
        let stored = self.stored_name(dir, &name)?;
        let patch = self.dirs.entry(dir).or_default();
        if patch.added.get(&*name) == Some(&inode) {
            patch.added.remove(&*name);
        } else if stored == Some(inode) {
            patch.removed.insert(name.into_vec());
        }
        Ok(())
    }

    /// Returns the inode that a name leads to on disk.
    fn stored_name(&mut self, dir: u32, name: &[u8]) -> Result<Option<u32>> {
        if self.dirs.get(&dir).is_some_and(|patch| patch.is_new) {
            return Ok(None);
        }
        if !self.stored.contains_key(&dir) {
            let names = self.list(dir)?;
            self.stored.insert(dir, names);
        }
        Ok(self.stored.get(&dir).and_then(|names| names.get(name)).copied())
    }

    /// Looks up the names of a directory that the log mentions.
    fn list(&mut self, dir: u32) -> Result<Names> {
        let raw = self.reader.dir(u64::from(dir))?;
        let blocks = raw.len(&self.reader.super_block).quotient(self.reader.super_block.block_len);
        let left = self.blocks_left.checked_sub(blocks);
        self.blocks_left =
            left.ok_or(Corruption::Journal { fault: "fast commits in too large directories" })?;
        let (mut found, asked) = (Names::new(), self.asked.get(&dir));
        let listed = self.reader.raw_entries(&raw, 0, &mut |entry| {
            if entry.inode != 0 && asked.is_some_and(|names| names.contains(entry.name)) {
                found.entry(entry.name.into()).or_insert(entry.inode);
            }
            ControlFlow::Continue(())
        });
        match listed {
            Err(error) if error.kind() != ErrorKind::Corrupt => Err(error),
            // Listing the directory reports its damage.
            _ => Ok(found),
        }
    }

    /// Writes the inodes to an overlay, with recomputed checksums.
    fn finish(mut self) -> Result<(Arc<dyn Image>, Patches)> {
        let reader = self.reader;
        let block_len = reader.super_block.block_len;
        let maps: BTreeMap<u32, Vec<Run>> = std::mem::take(&mut self.maps)
            .into_iter()
            .map(|(inode, runs)| (inode, runs.into_runs()))
            .collect();
        for (inode, runs) in &maps {
            let [a, b, c, d, high, ..] = sectors(runs, block_len).to_le_bytes();
            let raw = self.raw(*inode)?;
            put(raw, offset_of!(Ext4Inode, i_blocks_lo), &[a, b, c, d]);
            if reader.super_block.features.forbids(HUGE_FILE) {
                put(raw, offset_of!(Ext4Inode, l_i_blocks_high), &[high, 0]);
            }
        }
        let mut blocks: BTreeMap<u64, Box<[u8]>> = BTreeMap::new();
        for (inode, mut raw) in self.inodes {
            if reader.sums.all {
                let (sum, is_wide) = reader.sums.inode(inode, &raw);
                let [a, b, c, d] = sum.to_le_bytes();
                put(&mut raw, INODE_SUM_AT, &[a, b]);
                if is_wide {
                    put(&mut raw, INODE_SUM_HIGH_AT, &[c, d]);
                }
            }
            let offset = reader.stored_inode(u64::from(inode))?.offset;
            let number = offset.quotient(block_len);
            let mut bytes = match blocks.remove(&number) {
                Some(bytes) => bytes,
                None => reader.block(number)?,
            };
            put(&mut bytes, usize_of(offset.remainder(block_len)), &raw);
            blocks.insert(number, bytes);
        }
        let mut overlay = OverlayImage::new(Arc::clone(&reader.image), block_len);
        for (number, bytes) in blocks {
            overlay.set_block(number, bytes);
        }
        Ok((Arc::new(overlay), Patches { maps, dirs: self.dirs }))
    }
}

fn fields_of(raw: &[u8]) -> Result<Ext4Inode> {
    Ok(structure(raw, 0).ok_or(Corruption::Journal { fault: "an inode that is too short" })?)
}

/// Block count of a file in units of 512 bytes.
fn sectors(runs: &[Run], block_len: u64) -> u64 {
    let blocks = runs.iter().fold(0, |sum: u64, run| sum.plus(run.count));
    // Larger extent trees need blocks, too.
    let rows = block_len.minus(12) / 12;
    let nodes = match runs.len() as u64 {
        ..=4 => 0,
        count => count.div_ceil(rows.max(1)),
    };
    blocks.plus(nodes).times(block_len / 512)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::super_block::SuperBlock;
    use packfs_core::MemoryImage;

    /// With checksums and extents.
    const EXT4: &[u8] = include_bytes!("../../../../../testdata/legacy/ext4.ext4");

    fn reader() -> Reader {
        let image = MemoryImage::new("ext4", EXT4.to_vec());
        let super_block = SuperBlock::read(&image).unwrap();
        Reader::new(Arc::new(image), super_block)
    }

    /// Returns the number of a name in the root directory.
    fn number(reader: &Reader, name: &str) -> u32 {
        let mut found = 0;
        let visit = &mut |entry: crate::dir::RawEntry<'_>| {
            found = if entry.name == name.as_bytes() { entry.inode } else { found };
            ControlFlow::Continue(())
        };
        reader.raw_entries(&reader.dir(2).unwrap(), 0, visit).unwrap();
        found
    }

    /// Applies changes; returns a reader of the result, and the number of changes left out.
    fn applied(changes: Vec<Change>) -> (Reader, u64) {
        let reader = reader();
        let Applied { image, patches, left_out } = apply(&reader, changes).unwrap();
        let mut after = Reader::new(image, reader.super_block);
        after.patches = patches;
        (after, left_out)
    }

    fn changed(inode: u32, change: impl FnOnce(&mut [u8])) -> Change {
        let mut raw = reader().stored_inode(u64::from(inode)).unwrap().bytes().to_vec();
        change(&mut raw);
        Change::Inode { inode, raw: raw.into() }
    }

    fn names(reader: &Reader) -> Vec<(Vec<u8>, u64)> {
        let mut found = Vec::new();
        let visit = &mut |entry: packfs_format::DirEntry, _| {
            found.push((entry.name, entry.id.0));
            ControlFlow::Continue(())
        };
        reader.each_entry(&reader.dir(2).unwrap(), packfs_format::DirCursor(0), visit).unwrap();
        found
    }

    fn runs(reader: &Reader, inode: u32) -> Vec<Run> {
        let mut found = Vec::new();
        let raw = reader.used_inode(u64::from(inode)).unwrap();
        let visit = &mut |run| {
            found.push(run);
            ControlFlow::Continue(())
        };
        reader.runs(&raw, 0..u64::MAX, visit).unwrap();
        found
    }

    #[test]
    fn a_file_has_no_blocks_of_another_whose_inode_it_took() {
        let inode = number(&reader(), "pieces");
        assert!(!runs(&reader(), inode).is_empty());
        let (same, _) = applied(vec![changed(inode, |raw| put(raw, 4, &[1, 0, 0, 0]))]);
        assert_eq!(runs(&same, inode), runs(&reader(), inode));
        let (other, _) = applied(vec![changed(inode, |raw| put(raw, GENERATION_AT, &[9, 9, 9, 9]))]);
        assert_eq!(runs(&other, inode), []);
        assert_eq!(other.used_inode(u64::from(inode)).unwrap().sectors(&other.super_block), 0);
    }

    #[test]
    fn devices_and_short_targets_are_those_of_the_commit() {
        let inode = number(&reader(), "pieces");
        let (after, _) = applied(vec![changed(inode, |raw| {
            put(raw, 0, &[0, 0x60]);
            put(raw, 0x20, &[0; 4]);
            put(raw, BLOCK_FIELD_AT, &[0; BLOCK_FIELD_LEN]);
            put(raw, BLOCK_FIELD_AT + 4, &[7, 8]);
        })]);
        let device = after.used_inode(u64::from(inode)).unwrap().device();
        assert_eq!((device.major, device.minor), (8, 7));
    }

    #[test]
    fn a_name_is_removed_if_it_leads_to_the_inode() {
        let (before, hello) = (names(&reader()), number(&reader(), "hello"));
        let unlink = |inode| Change::Unlink { dir: 2, inode, name: b"hello"[..].into() };
        let link = |inode| Change::Link { dir: 2, inode, name: b"hello"[..].into(), is_first: false };
        assert_eq!(names(&applied(vec![unlink(hello + 1)]).0), before);
        let without: Vec<_> = before.iter().filter(|row| row.0 != b"hello").cloned().collect();
        assert_eq!(names(&applied(vec![unlink(hello)]).0), without);
        // Renamed over: the old name is gone, and another inode has it.
        let data = number(&reader(), "data");
        let renamed = names(&applied(vec![unlink(hello), link(data), unlink(hello)]).0);
        assert_eq!(renamed.last().unwrap(), &(b"hello".to_vec(), u64::from(data)));
        assert_eq!(names(&applied(vec![link(data)]).0), before);
    }

    #[test]
    fn changes_of_what_cannot_be_read_are_left_out() {
        let name: Box<[u8]> = b"new"[..].into();
        let (after, left_out) = applied(vec![
            Change::Link { dir: 11_111, inode: 12, name: name.clone(), is_first: false },
            Change::Inode { inode: 0, raw: vec![0; 128].into() },
            Change::Add { inode: 12, run: Run { first: 0, count: 0, block: 50, is_written: true } },
            Change::Add { inode: 12, run: Run { first: 0, count: 9, block: 1 << 40, is_written: true } },
            Change::Unlink { dir: 12_345, inode: 12, name: name.clone() },
            Change::Link { dir: 2, inode: number(&reader(), "data"), name, is_first: false },
        ]);
        assert_eq!(left_out, 5);
        assert_eq!(names(&after).len(), names(&reader()).len() + 1);
    }
}
