//! The log of changes that were synced after the last commit, as items that replace those of a
//! subvolume (`fs/btrfs/tree-log.c` of Linux replays it at the next mount).
//!
//! The log of an inode contains all of its attributes, the changed extents, and its references;
//! that of a directory contains the ranges of its listing in which names were removed.
//!
//! Invariant: work and memory are within one budget for all logs of an image.
//! which it is named; that of a directory the ranges of its listing in which names were removed.
//!
//! Invariant: work and memory are within one budget for all logs of an image.

use crate::corruption::{Corruption, READ_WITHOUT};
use crate::disk::{
    DirItem, DirLogItem, DiskKey, FileExtentItem, InodeExtref, InodeRef, RawInodeItem, kind, tree,
};
use crate::entry::{entries, name_hash};
use crate::extent::{FileExtent, Form};
use crate::fs::{Fs, Root};
use crate::key::Key;
use crate::log_extents::Cuts;
use crate::super_block::RootPlace;
use crate::tree::{Changes, Item, Items, Logs, Tree};
use packfs_core::{Error, FileType, Result};
use packfs_format::{Budget, structure, units::*};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;
use zerocopy::IntoBytes;

const ITEMS_MAX: u64 = 1 << 20;
const BYTES_MAX: u64 = 64 << 20;
const CHANGE_LEN: usize = 96;
/// Bytes before the name in a reference and in an extended one.
const REF_LEN: usize = size_of::<InodeRef>();
const EXTREF_LEN: usize = size_of::<InodeExtref>();

pub(crate) struct Room {
    items: Budget,
    bytes: Budget,
}

impl Room {
    pub(crate) fn take(&mut self, items: usize) -> Result<()> {
        self.items.spend(items as u64, || limit(format_args!("more than {ITEMS_MAX} items")))
    }

    fn take_bytes(&mut self, bytes: usize) -> Result<()> {
        self.bytes.spend(bytes as u64, || limit(format_args!("more than {BYTES_MAX} bytes of changes")))
    }
}

fn limit(what: impl std::fmt::Display) -> Error {
    Error::limit("log of the btrfs image", what)
}

/// Applies the log, or records why not; the filesystem then has the state of the last commit.
pub(crate) fn apply(fs: &mut Fs, is_wanted: bool) {
    let Some(place) = fs.store.super_block().log else { return };
    let read = if is_wanted { read(fs, place).map(Some) } else { Ok(None) };
    let warning = match read {
        Ok(Some((logs, sums, inodes))) => {
            fs.put_logs(logs, sums);
            format!("the image was not unmounted; {inodes} inodes are read from the log of synced changes")
        }
        Ok(None) => "the image was not unmounted; changes synced after the last commit are left out".into(),
        Err(error) => {
            let fault = Corruption::Log { at: place.at };
            fs.fault.get_or_insert_with(|| error.clone().at(fault).hint(READ_WITHOUT));
            format!("the log of changes synced after the last commit is left out: {error}")
        }
    };
    fs.warnings.push(warning);
}

/// Reads the logs; also returns their checksums and the number of their inodes.
fn read(fs: &Fs, place: RootPlace) -> Result<(Logs, Vec<Item>, usize)> {
    let mut logs = Logs::new();
    let mut sums = Vec::new();
    let mut inodes = 0_usize;
    let mut budget = Room { items: Budget::new(ITEMS_MAX), bytes: Budget::new(BYTES_MAX) };
    for item in Tree::new(tree::LOG, place).items_of(&fs.store, tree::LOG, kind::ROOT_ITEM, 0) {
        let item = item?;
        budget.take(1)?;
        // The subvolume was deleted after its log was written.
        let Some(base) = fs.find_root(item.key.offset)?.filter(|root| root.refs > 0) else { continue };
        let log = Tree::new(tree::LOG, Root::read(&item)?.tree.root);
        let mut replay = Replay {
            fs,
            base: base.tree,
            log,
            budget: &mut budget,
            rows: BTreeMap::new(),
            ignored: HashSet::new(),
            relinked: BTreeSet::new(),
        };
        inodes = inodes.plus(replay.inodes(&mut sums)?);
        replay.extents()?;
        replay.listings()?;
        replay.references()?;
        replay.count_links()?;
        logs.insert(item.key.offset, Arc::new(Changes(replay.rows)));
    }
    Ok((logs, sums, inodes))
}

struct Replay<'f, 'b> {
    fs: &'f Fs,
    base: Tree,
    log: Tree,
    budget: &'b mut Room,
    rows: BTreeMap<Key, Option<Item>>,
    /// Inodes that were removed before they were synced.
    ignored: HashSet<u64>,
    /// Inodes whose references changed.
    relinked: BTreeSet<u64>,
}

#[derive(Clone, Copy)]
struct Link<'i> {
    dir: u64,
    index: u64,
    name: &'i [u8],
}

impl<'f> Replay<'f, '_> {
    /// Returns an item with the changes so far applied.
    fn current(&self, key: Key) -> Result<Option<Item>> {
        match self.rows.get(&key) {
            Some(item) => Ok(item.clone()),
            None => self.base.get(&self.fs.store, &key),
        }
    }

    fn put(&mut self, key: Key, item: Option<Item>) -> Result<()> {
        let len = item.as_ref().map_or(0, |item| item.bytes().len());
        self.budget.take_bytes(len.plus(CHANGE_LEN))?;
        self.rows.insert(key, item.map(|item| item.detached()));
        Ok(())
    }

    /// Replaces the fields of an inode; bytes after them stay.
    fn put_inode(&mut self, item: &Item, inode: &RawInodeItem) -> Result<()> {
        let rest = item.bytes().within(size_of::<RawInodeItem>()..);
        self.put_made(item.key, [inode.as_bytes(), rest].concat())
    }

    fn put_made(&mut self, key: Key, bytes: Vec<u8>) -> Result<()> {
        self.put(key, Some(Item::made(self.base.id, key, bytes)))
    }

    fn logged(&self) -> Items<'f> {
        self.log.all(&self.fs.store)
    }

    fn stored(&self, object: u64, from: (u8, u64), to: (u8, u64)) -> Items<'f> {
        let start = Key::new(object, from.0, from.1);
        let end = Key::new(object, to.0, to.1);
        self.base.items(&self.fs.store, start, end)
    }

    /// Applies inodes and attributes, collects checksums; returns the number of inodes.
    fn inodes(&mut self, sums: &mut Vec<Item>) -> Result<usize> {
        let mut count = 0_usize;
        for item in self.logged() {
            let item = item?;
            self.budget.take(1)?;
            match item.key.kind {
                kind::INODE_ITEM if item.head::<RawInodeItem>()?.nlink.get() == 0 => {
                    self.ignored.insert(item.key.object);
                }
                kind::INODE_ITEM => {
                    count = count.plus(1);
                    self.inode(item)?;
                }
                kind::EXTENT_CSUM if item.key.object == tree::CHECKSUM_OBJECT => {
                    self.budget.take_bytes(item.bytes().len().plus(CHANGE_LEN))?;
                    sums.push(item.detached());
                }
                kind::XATTR_ITEM if !self.ignored.contains(&item.key.object) => {
                    self.put(item.key, Some(item))?;
                }
                _ => {}
            }
        }
        Ok(count)
    }

    fn inode(&mut self, item: Item) -> Result<()> {
        let object = item.key.object;
        self.relinked.insert(object);
        for old in self.stored(object, (kind::XATTR_ITEM, 0), (kind::XATTR_ITEM, u64::MAX)) {
            self.budget.take(1)?;
            self.put(old?.key, None)?;
        }
        // A log without a generation only says that the inode exists, and perhaps its length.
        let logged: RawInodeItem = item.head()?;
        let before = self.base.get(&self.fs.store, &item.key)?;
        if let Some(before) = before.filter(|_| logged.generation.get() == 0) {
            let len = logged.size;
            if len.get() != 0 && is_file(&before)? {
                let inode = RawInodeItem { size: len, ..before.head()? };
                self.put_inode(&before, &inode)?;
            }
            return Ok(());
        }
        self.put(item.key, Some(item))
    }

    /// Replaces extents that logged ones cover, whole or in part. Extents after the end of a file
    /// are dropped first.
    fn extents(&mut self) -> Result<()> {
        let mut cuts = Cuts::default();
        for item in self.logged() {
            let item = item?;
            let object = item.key.object;
            if cuts.inode != object {
                self.cut(&cuts)?;
                cuts = Cuts::of(object);
            }
            if self.ignored.contains(&object) {
                continue;
            }
            match item.key.kind {
                kind::INODE_ITEM => {
                    let inode = self.current(item.key)?;
                    let inode = inode.map(|inode| inode.head::<RawInodeItem>()).transpose()?;
                    let file = inode.filter(|inode| file_type(inode) == Some(FileType::File));
                    cuts.end = file.map(|inode| self.aligned(inode.size.get()));
                }
                kind::EXTENT_DATA => {
                    let own = FileExtent::read(&item, self.sector_len())?.range();
                    cuts.ranges.push(own.start..self.aligned(own.end));
                    cuts.items.push(item.detached());
                }
                _ => {}
            }
        }
        self.cut(&cuts)
    }

    fn sector_len(&self) -> u64 {
        self.fs.store.super_block().sector_len.into()
    }

    fn aligned(&self, at: u64) -> u64 {
        at.checked_next_multiple_of(self.sector_len()).unwrap_or(u64::MAX)
    }

    /// Removes ranges from the extents of a file and adds logged extents.
    fn cut(&mut self, cuts: &Cuts) -> Result<()> {
        let ranges = cuts.joined();
        let mut done = None;
        for range in &ranges {
            let store = &self.fs.store;
            for old in self.base.items_around(store, cuts.inode, kind::EXTENT_DATA, range.start)? {
                let old = old?;
                self.budget.take(1)?;
                if old.key.offset >= range.end {
                    break;
                }
                // An earlier range already cut this extent.
                if done < Some(old.key) {
                    done = Some(old.key);
                    self.cut_extent(&old, &ranges)?;
                }
            }
        }
        for item in &cuts.items {
            self.put(item.key, Some(item.clone()))?;
        }
        Ok(())
    }

    fn cut_extent(&mut self, old: &Item, ranges: &[Range<u64>]) -> Result<()> {
        let extent = FileExtent::read(old, self.sector_len())?;
        let whole = extent.range();
        let mut kept_from = whole.start;
        let next = ranges.partition_point(|range| range.end <= whole.start);
        let covering = ranges.iter().skip(next).take_while(|range| range.start < whole.end);
        for (number, range) in covering.enumerate() {
            self.budget.take(1)?;
            if number == 0 {
                self.put(old.key, None)?;
            }
            self.keep(old, extent.form, kept_from..range.start)?;
            kept_from = range.end;
        }
        if kept_from > whole.start { self.keep(old, extent.form, kept_from..whole.end) } else { Ok(()) }
    }

    fn keep(&mut self, old: &Item, form: Form, kept: Range<u64>) -> Result<()> {
        if kept.is_empty() || form == Form::Inline {
            return Ok(());
        }
        let raw: FileExtentItem = old.head()?;
        let offset = end_of(raw.offset.get(), left(kept.start, old.key.offset)).into();
        let part = FileExtentItem { offset, num_bytes: packfs_core::len_of(&kept).into(), ..raw };
        self.put_made(Key { offset: kept.start, ..old.key }, part.as_bytes().to_vec())
    }

    /// Within logged ranges of a listing, removes names that the log lacks, and adds those that it
    /// has.
    fn listings(&mut self) -> Result<()> {
        for item in self.logged() {
            let item = item?;
            let dir = item.key.object;
            if item.key.kind != kind::DIR_LOG_INDEX || self.ignored.contains(&dir) {
                continue;
            }
            let end = item.head::<DirLogItem>()?.end.get();
            for old in self.stored(dir, (kind::DIR_INDEX, item.key.offset), (kind::DIR_INDEX, end)) {
                let old = old?;
                self.budget.take(1)?;
                if self.log.get(&self.fs.store, &old.key)?.is_none()
                    && let Some(entry) = entries(&old).next().transpose()?
                {
                    let link = Link { dir, index: old.key.offset, name: entry.name };
                    let is_inode = entry.location.kind == kind::INODE_ITEM;
                    self.remove(&link, is_inode.then_some(entry.location.object))?;
                }
            }
        }
        for item in self.logged() {
            let item = item?;
            if item.key.kind != kind::DIR_INDEX || self.ignored.contains(&item.key.object) {
                continue;
            }
            let Some(entry) = entries(&item).next().transpose()? else { continue };
            if entry.location.kind == kind::INODE_ITEM {
                let link = Link { dir: item.key.object, index: item.key.offset, name: entry.name };
                self.add(&link, entry.location.object)?;
            }
        }
        Ok(())
    }

    /// Applies references: links inodes by the logged names.
    fn references(&mut self) -> Result<()> {
        for item in self.logged() {
            let item = item?;
            let inode = item.key.object;
            // The root of a subvolume refers to itself.
            if !matches!(item.key.kind, kind::INODE_REF | kind::INODE_EXTREF)
                || item.key.offset == inode
                || self.ignored.contains(&inode)
            {
                continue;
            }
            let links = self.links(&item)?;
            if let Some(old) = self.base.get(&self.fs.store, &item.key)? {
                let kept: HashSet<(u64, &[u8])> = links.iter().map(|link| (link.dir, link.name)).collect();
                for link in self.links(&old)? {
                    let is_kept = kept.contains(&(link.dir, link.name));
                    if !is_kept && self.named(link.dir, link.name)? == Some(inode) {
                        self.remove(&link, Some(inode))?;
                    }
                }
            }
            for link in &links {
                self.add(link, inode)?;
            }
            self.put(item.key, Some(item.clone()))?;
        }
        Ok(())
    }

    fn named(&self, dir: u64, name: &[u8]) -> Result<Option<u64>> {
        let Some(item) = self.current(Key::new(dir, kind::DIR_ITEM, name_hash(name)))? else {
            return Ok(None);
        };
        for entry in entries(&item) {
            let entry = entry?;
            if entry.name == name && entry.location.kind == kind::INODE_ITEM {
                return Ok(Some(entry.location.object));
            }
        }
        Ok(None)
    }

    /// Links a name to an existing inode, instead of another one.
    fn add(&mut self, link: &Link<'_>, inode: u64) -> Result<()> {
        let Link { dir, index, name } = *link;
        let Some(item) = self.current(Key::new(inode, kind::INODE_ITEM, 0))? else { return Ok(()) };
        if self.current(Key::new(dir, kind::INODE_ITEM, 0))?.is_none() {
            return Ok(());
        }
        match self.named(dir, name)? {
            Some(other) if other == inode => return Ok(()),
            Some(other) => self.remove_all(dir, name, other)?,
            None => {}
        }
        let file_type = entry_type(item.head::<RawInodeItem>()?.mode.get());
        let entry = entry_of(inode, name, file_type);
        let key = Key::new(dir, kind::DIR_ITEM, name_hash(name));
        let mut bytes = self.current(key)?.map(|item| item.bytes().to_vec()).unwrap_or_default();
        bytes.extend(&entry);
        if bytes.len() > self.fs.store.super_block().node_len as usize {
            return Err(limit("more names of one hash than fit into a tree block"));
        }
        self.put_made(key, bytes)?;
        self.put_made(Key::new(dir, kind::DIR_INDEX, index), entry)?;
        self.refer(link, inode, true)
    }

    fn remove_all(&mut self, dir: u64, name: &[u8], inode: u64) -> Result<()> {
        let item = self.current(Key::new(inode, kind::INODE_REF, dir))?;
        let links = item.as_ref().map(|item| self.links(item)).transpose()?.unwrap_or_default();
        let index = links.iter().find(|link| link.name == name).map_or(0, |link| link.index);
        self.remove(&Link { dir, index, name }, Some(inode))
    }

    /// Removes a name from the listing, the lookup item, and the references of its inode; a
    /// subvolume has no references.
    fn remove(&mut self, link: &Link<'_>, inode: Option<u64>) -> Result<()> {
        self.put(Key::new(link.dir, kind::DIR_INDEX, link.index), None)?;
        let key = Key::new(link.dir, kind::DIR_ITEM, name_hash(link.name));
        if let Some(item) = self.current(key)? {
            let mut bytes = Vec::new();
            for entry in entries(&item) {
                let entry = entry?;
                if entry.name != link.name {
                    bytes.extend(entry.raw);
                }
            }
            let left = (!bytes.is_empty()).then(|| Item::made(self.base.id, key, bytes));
            self.put(key, left)?;
        }
        inode.map_or(Ok(()), |inode| self.refer(link, inode, false))
    }

    fn refer(&mut self, link: &Link<'_>, inode: u64, is_added: bool) -> Result<()> {
        self.relinked.insert(inode);
        let key = Key::new(inode, kind::INODE_REF, link.dir);
        let item = self.current(key)?;
        let mut bytes = Vec::new();
        for own in item.as_ref().map(|item| self.links(item)).transpose()?.unwrap_or_default() {
            if own.name != link.name {
                bytes.extend(reference_of(&own));
            }
        }
        if is_added {
            bytes.extend(reference_of(link));
        }
        if is_added || item.is_some() {
            let left = (!bytes.is_empty()).then(|| Item::made(self.base.id, key, bytes));
            self.put(key, left)?;
        }
        Ok(())
    }

    /// Recounts the references of inodes, as Linux does after replaying a log. Inodes without
    /// references are deleted.
    fn count_links(&mut self) -> Result<()> {
        for inode in std::mem::take(&mut self.relinked) {
            let key = Key::new(inode, kind::INODE_ITEM, 0);
            let Some(item) = self.current(key)? else { continue };
            let (start, end) =
                (Key::new(inode, kind::INODE_REF, 0), Key::new(inode, kind::INODE_EXTREF, u64::MAX));
            let mut refs: BTreeMap<Key, Item> = BTreeMap::new();
            for old in self.base.items(&self.fs.store, start, end) {
                let old = old?;
                self.budget.take(1)?;
                refs.insert(old.key, old);
            }
            for (key, item) in self.rows.range(start..=end) {
                match item {
                    Some(item) => refs.insert(*key, item.clone()),
                    None => refs.remove(key),
                };
            }
            let mut count = 0_u32;
            for item in refs.values() {
                count = count.plus(u32::try_from(self.links(item)?.len()).unwrap_or(u32::MAX));
            }
            let inode: RawInodeItem = item.head()?;
            let is_dir = file_type(&inode) == Some(FileType::Directory);
            let count = if is_dir { count.min(1) } else { count };
            if count == 0 {
                self.put(key, None)?;
            } else if count != inode.nlink.get() {
                self.put_inode(&item, &RawInodeItem { nlink: count.into(), ..inode })?;
            }
        }
        Ok(())
    }

    fn links<'i>(&mut self, item: &'i Item) -> Result<Vec<Link<'i>>> {
        let links = links(item)?;
        self.budget.take(links.len())?;
        Ok(links)
    }
}

fn file_type(inode: &RawInodeItem) -> Option<FileType> {
    FileType::from_mode_bits(inode.mode.get())
}

fn is_file(item: &Item) -> Result<bool> {
    Ok(file_type(&item.head()?) == Some(FileType::File))
}

fn links(item: &Item) -> Result<Vec<Link<'_>>> {
    let mut links = Vec::new();
    let mut rest = item.bytes();
    while !rest.is_empty() {
        let is_ref = item.key.kind == kind::INODE_REF;
        let start = if is_ref { REF_LEN } else { EXTREF_LEN };
        let head = if is_ref {
            structure(rest, 0).map(|raw: InodeRef| (item.key.offset, raw.index, raw.name_len))
        } else {
            structure(rest, 0).map(|raw: InodeExtref| (raw.parent_objectid.get(), raw.index, raw.name_len))
        };
        let short = Corruption::Size { place: item.place(), found: rest.len(), min: start };
        let (dir, index, len) = head.ok_or(short)?;
        let (index, end) = (index.get(), start.plus(len.get().into()));
        let name = rest.get(start..end);
        let name = name.ok_or(Corruption::Size { place: item.place(), found: rest.len(), min: end })?;
        links.push(Link { dir, index, name });
        rest = rest.within(end..);
    }
    Ok(links)
}

fn reference_of(link: &Link<'_>) -> Vec<u8> {
    let name_len = u16::try_from(link.name.len()).unwrap_or(u16::MAX).into();
    [InodeRef { index: link.index.into(), name_len }.as_bytes(), link.name].concat()
}

/// Returns the file type as entries store it (`BTRFS_FT_*`).
fn entry_type(mode: u32) -> u8 {
    match FileType::from_mode_bits(mode) {
        Some(FileType::File) => 1,
        Some(FileType::Directory) => 2,
        Some(FileType::CharDevice) => 3,
        Some(FileType::BlockDevice) => 4,
        Some(FileType::Fifo) => 5,
        Some(FileType::Socket) => 6,
        Some(FileType::Symlink) => 7,
        None => 0,
    }
}

fn entry_of(inode: u64, name: &[u8], file_type: u8) -> Vec<u8> {
    let name_len = u16::try_from(name.len()).unwrap_or(u16::MAX).into();
    let location = DiskKey { objectid: inode.into(), kind: kind::INODE_ITEM, offset: 0.into() };
    let entry = DirItem { location, name_len, kind: file_type, ..DirItem::default() };
    [entry.as_bytes(), name].concat()
}
