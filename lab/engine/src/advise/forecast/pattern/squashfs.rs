//! Metadata of SquashFS 4.0 as packfs writes it and Linux reads it (`fs/squashfs/{namei,inode,id,fragment}.c`).
//!
//! An inode names the block it lies in. Lists of directories follow one another, subdirectories before their parents, so where each of
//! them begins is known from the lengths of all. With each inode Linux looks up its owners, and the shared block of its tail.

use super::listing::{BLOCK_LEN, Listing, inode_block};
use super::shared::{Finding, Shared};
use super::{Place, Touch};
use packfs::{DirCursor, FactValue, FileType, InodeId, Result, Volume};
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

/// An inode without the lengths of its blocks, about, and such a length.
const INODE_LEN: u64 = 32;
const BLOCK_WORD_LEN: u64 = 4;
/// Rows of the table of shared blocks in a metadata block, and what the table's own list has for each of those.
const FRAGMENTS_A_BLOCK: u64 = 512;
const POINTER_LEN: u64 = 8;

/// The tables of an image.
pub(super) struct Metadata {
    inodes: Table,
    /// Where blocks of inodes begin in their table, in order.
    inode_blocks: Vec<u64>,
    lists: Table,
    /// Where the list of each directory begins, decoded.
    list_starts: HashMap<InodeId, u64>,
    /// How many blocks the lists are.
    list_blocks: u64,
    ids: Table,
    fragments: Table,
    /// How many blocks the table of shared blocks has.
    fragment_blocks: u64,
    shared: Shared,
    /// What a block decodes to at most.
    block_len: u64,
}

/// Where a table lies, in bytes of the image.
#[derive(Clone, Copy, Default)]
struct Table {
    start: u64,
    len: u64,
}

/// Where the names of a directory stand.
#[derive(Default)]
pub(super) struct Names {
    /// What is read first, whatever the name.
    index: Vec<Place>,
    /// The first and the last block that are read for a name.
    found: HashMap<Vec<u8>, (u64, u64)>,
}

impl Metadata {
    /// Finds the tables, and walks all directories.
    ///
    /// Errors: those of reading the image.
    pub(super) fn of(volume: &dyn Volume) -> Result<Metadata> {
        let space = volume.space()?;
        let table = |owner: &str| {
            let owned = space.iter().filter(|row| row.owner == owner);
            let start = owned.clone().map(|row| row.offset).min().unwrap_or(0);
            let end = owned.map(|row| row.offset + row.len).max().unwrap_or(0);
            Table { start, len: end - start }
        };
        let facts = volume.facts()?;
        let fact = |key: &str| match facts.get(key) {
            Some(FactValue::Count(count) | FactValue::Bytes(count)) => *count,
            _ => 0,
        };
        let fragment_blocks = fact("fragments").div_ceil(FRAGMENTS_A_BLOCK);
        let mut fragment_table = table("fragment table");
        fragment_table.len = fragment_table.len.saturating_sub(fragment_blocks * POINTER_LEN);
        let mut ids = table("id table");
        ids.len = ids.len.saturating_sub(POINTER_LEN);
        let block_len = fact("block_len").max(1);
        let walked = Walked::of(volume, Finding::new(block_len, &space))?;
        Ok(Metadata {
            inodes: table("inode table"),
            inode_blocks: walked.inode_blocks.into_iter().collect(),
            lists: table("directory table"),
            list_starts: walked.list_starts,
            list_blocks: walked.lists_end.div_ceil(BLOCK_LEN),
            ids,
            fragments: fragment_table,
            fragment_blocks,
            shared: walked.shared.finish(),
            block_len,
        })
    }

    /// Where the names of a directory stand.
    ///
    /// Errors: those of reading the image.
    pub(super) fn names(&self, volume: &dyn Volume, dir: InodeId) -> Result<Names> {
        let mut listing = Listing::at(self.list_starts.get(&dir).copied().unwrap_or(0));
        let mut names = Names::default();
        for (id, name) in Entries::of(volume, dir)?.all {
            let blocks = listing.add(id, &name);
            names.found.insert(name, blocks);
        }
        if listing.indexed {
            // It stands behind the inode.
            names.index = self.inode_places(dir, INODE_LEN);
        }
        Ok(names)
    }

    /// What is read to find a name.
    pub(super) fn name(&self, names: &Names, name: &[u8]) -> Vec<Place> {
        let Some((first, last)) = names.found.get(name) else { return Vec::new() };
        let lists = (*first..=*last).map(|number| self.lists.block(number, self.list_blocks));
        names.index.iter().copied().chain(lists).collect()
    }

    /// What is read for an inode and with it.
    pub(super) fn inode(&self, id: InodeId, touches: &[Touch]) -> Vec<Place> {
        let own = touches.iter().filter(|touch| !touch.shared).count() as u64;
        let mut places = self.inode_places(id, INODE_LEN + own * BLOCK_WORD_LEN);
        places.insert(1.min(places.len()), self.ids.block(0, 1));
        let tail = touches.iter().find(|touch| touch.shared);
        if let Some((row, ..)) = tail.and_then(|tail| self.shared.find(tail.offset))
            && self.fragment_blocks > 0
        {
            let number = (row as u64 / FRAGMENTS_A_BLOCK).min(self.fragment_blocks - 1);
            places.push(self.fragments.block(number, self.fragment_blocks));
        }
        places
    }

    /// The blocks in which so many bytes of inode lie.
    fn inode_places(&self, id: InodeId, len: u64) -> Vec<Place> {
        let first = self.inode_blocks.partition_point(|&block| block < inode_block(id));
        let more = ((id.0 & 0xffff) + len - 1) / BLOCK_LEN;
        let last = (first + more as usize).min(self.inode_blocks.len().saturating_sub(1));
        let block = |number: usize| {
            let start = self.inode_blocks.get(number).copied().unwrap_or(0);
            let end = self.inode_blocks.get(number + 1).copied().unwrap_or(self.inodes.len);
            let len = end.saturating_sub(start).min(BLOCK_LEN + 2) as u32;
            Place { offset: self.inodes.start + start, len }
        };
        (first..=last).map(block).collect()
    }

    /// The blocks of which bytes are that a file has stored as they are.
    pub(super) fn stored(&self, offset: u64, from: u64, len: u64) -> Vec<Touch> {
        if let Some((_, start, stored)) = self.shared.find(offset) {
            let stored = stored as u32;
            return vec![Touch {
                offset: start,
                stored,
                decoded: stored,
                from,
                len,
                ..touch_of_stored(true)
            }];
        }
        let mut touches = Vec::new();
        let mut at = from;
        while at < from + len {
            let next = ((at / self.block_len + 1) * self.block_len).min(from + len);
            let stored = (next - at) as u32;
            let offset = offset + (at - from);
            let own = Touch { offset, stored, decoded: stored, from: at, ..touch_of_stored(false) };
            touches.push(Touch { len: next - at, ..own });
            at = next;
        }
        touches
    }
}

fn touch_of_stored(shared: bool) -> Touch {
    Touch { offset: 0, stored: 0, decoded: 0, from: 0, len: 0, shared, encoded: false, packed_at: None }
}

impl Table {
    /// One of so many blocks, as if they were of one length.
    fn block(&self, number: u64, of: u64) -> Place {
        let of = of.max(1);
        let at = |number: u64| (u128::from(self.len) * u128::from(number) / u128::from(of)) as u64;
        let len = at(number + 1) - at(number);
        Place { offset: self.start + at(number), len: len.min(BLOCK_LEN + 2) as u32 }
    }
}

/// What walking all directories tells.
struct Walked {
    inode_blocks: BTreeSet<u64>,
    list_starts: HashMap<InodeId, u64>,
    /// Where the last list ends, decoded.
    lists_end: u64,
    shared: Finding,
}

impl Walked {
    /// Lays the lists of all directories one behind the other, and looks at all files.
    fn of(volume: &dyn Volume, shared: Finding) -> Result<Walked> {
        let root = volume.root();
        let inode_blocks = BTreeSet::from([inode_block(root)]);
        let mut walked = Walked { inode_blocks, list_starts: HashMap::new(), lists_end: 0, shared };
        // Directories whose subdirectories are being walked.
        let mut open = vec![(root, Entries::of(volume, root)?)];
        while let Some((id, entries)) = open.last_mut() {
            if let Some(subdir) = entries.subdirs.pop() {
                open.push((subdir, Entries::of(volume, subdir)?));
                continue;
            }
            walked.list(volume, *id, entries)?;
            open.pop();
        }
        Ok(walked)
    }

    fn list(&mut self, volume: &dyn Volume, dir: InodeId, entries: &Entries) -> Result<()> {
        let mut listing = Listing::at(self.lists_end);
        for (child, name) in &entries.all {
            self.inode_blocks.insert(inode_block(*child));
            listing.add(*child, name);
        }
        self.list_starts.insert(dir, self.lists_end);
        self.lists_end = listing.end();
        entries.files.iter().try_for_each(|&file| self.shared.file(volume, file))
    }
}

/// The entries of a directory.
struct Entries {
    all: Vec<(InodeId, Vec<u8>)>,
    /// Directories among them, the first at the end.
    subdirs: Vec<InodeId>,
    files: Vec<InodeId>,
}

impl Entries {
    fn of(volume: &dyn Volume, dir: InodeId) -> Result<Entries> {
        let mut entries = Entries { all: Vec::new(), subdirs: Vec::new(), files: Vec::new() };
        volume.read_dir(dir, DirCursor::default(), &mut |entry, _| {
            match entry.file_type {
                FileType::Directory => entries.subdirs.push(entry.id),
                FileType::File => entries.files.push(entry.id),
                _ => {}
            }
            entries.all.push((entry.id, entry.name));
            ControlFlow::Continue(())
        })?;
        entries.subdirs.reverse();
        Ok(entries)
    }
}
