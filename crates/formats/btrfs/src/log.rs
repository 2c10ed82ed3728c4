//! The log of changes that were synced after the last commit, as items that replace those of a
//! subvolume (`fs/btrfs/tree-log.c` of Linux replays it at the next mount).
//!
//! The log of an inode holds all of its attributes, the extents that changed, and the references by
//! which it is named; that of a directory the ranges of its listing in which names were removed.

use crate::bytes::Fields;
use crate::corruption::Corruption;
use crate::disk::{RootPlace, kind, tree};
use crate::entry::{ENTRY_LEN, entries, name_hash};
use crate::extent::FileExtent;
use crate::fs::{Fs, Root};
use crate::key::Key;
use crate::tree::{Changes, Item, Logs, Tree};
use packfs_core::{FileType, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Items of a log, at most.
const ITEMS_MAX: usize = 1 << 20;
/// Bytes of a reference before its name, and of one by hash.
const REF_LEN: usize = 10;
const EXTREF_LEN: usize = 18;

/// Applies the log, or says why not: then the last commit is read.
pub(crate) fn apply(fs: &mut Fs, is_wanted: bool) {
    let Some(place) = fs.store.super_block().log else { return };
    let read = if is_wanted { read(fs, place).map(Some) } else { Ok(None) };
    let warning = match read {
        Ok(Some((logs, inodes))) => {
            fs.put_logs(logs);
            format!("the image was not unmounted; {inodes} inodes are read from the log of synced changes")
        }
        Ok(None) => "the image was not unmounted; changes synced after the last commit are left out".into(),
        Err(error) => format!("the log of changes synced after the last commit is left out: {error}"),
    };
    fs.warnings.push(warning);
}

/// Reads the log; returns the number of its inodes, too.
fn read(fs: &Fs, place: RootPlace) -> Result<(Logs, usize)> {
    let (mut logs, mut sums, mut inodes) = (Logs::new(), BTreeMap::new(), 0_usize);
    for item in Tree::new(tree::LOG, place).items_of(&fs.store, tree::LOG, kind::ROOT_ITEM, 0) {
        let item = item?;
        let id = item.key.offset;
        let root = Root::read(&item)?;
        let log = Tree::new(tree::LOG, root.tree.root);
        let mut replay = Replay { fs, base: fs.root(id)?.tree, log, rows: BTreeMap::new() };
        inodes = inodes.saturating_add(replay.inodes(&mut sums)?);
        replay.listings()?;
        replay.references()?;
        logs.insert(id, Arc::new(Changes(replay.rows)));
    }
    logs.insert(tree::CHECKSUMS, Arc::new(Changes(sums)));
    Ok((logs, inodes))
}

struct Replay<'f> {
    fs: &'f Fs,
    base: Tree,
    log: Tree,
    rows: BTreeMap<Key, Option<Item>>,
}

/// A name of an inode in a directory.
struct Link<'i> {
    dir: u64,
    index: u64,
    name: &'i [u8],
}

impl Replay<'_> {
    /// Returns an item with the changes so far.
    fn current(&self, key: Key) -> Result<Option<Item>> {
        match self.rows.get(&key) {
            Some(item) => Ok(item.clone()),
            None => self.base.get(&self.fs.store, &key),
        }
    }

    fn logged(&self) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for item in self.log.all(&self.fs.store) {
            items.push(item?);
            if items.len() > ITEMS_MAX {
                let message = format_args!("more than {ITEMS_MAX} items");
                return Err(packfs_core::Error::limit("log of the btrfs image", message));
            }
        }
        Ok(items)
    }

    /// Takes inodes, attributes, extents, and checksums; returns the number of inodes.
    fn inodes(&mut self, sums: &mut BTreeMap<Key, Option<Item>>) -> Result<usize> {
        let mut count = 0_usize;
        for item in self.logged()? {
            match item.key.kind {
                kind::INODE_ITEM => {
                    count = count.saturating_add(1);
                    self.inode(item)?;
                }
                kind::XATTR_ITEM => {
                    self.rows.insert(item.key, Some(item));
                }
                kind::EXTENT_DATA => self.extent(item)?,
                kind::EXTENT_CSUM if item.key.object == tree::CHECKSUM_OBJECT => {
                    sums.insert(item.key, Some(item));
                }
                _ => {}
            }
        }
        Ok(count)
    }

    fn inode(&mut self, item: Item) -> Result<()> {
        let object = item.key.object;
        let old: Vec<Key> = self
            .base
            .items_of(&self.fs.store, object, kind::XATTR_ITEM, 0)
            .map(|item| item.map(|item| item.key))
            .collect::<Result<_>>()?;
        self.rows.extend(old.into_iter().map(|key| (key, None)));
        // Without a generation the log only tells that the inode exists, and perhaps its length.
        let logged = Fields(item.bytes());
        let before = self.base.get(&self.fs.store, &item.key)?;
        if let Some(before) = before.filter(|_| logged.u64(0) == 0) {
            let len = logged.u64(0x10);
            if len != 0 && Fields(before.bytes()).u32(0x34) & 0o170_000 == FileType::File.mode_bits() {
                let mut bytes = before.bytes().to_vec();
                put(&mut bytes, 0x10, &len.to_le_bytes());
                self.rows.insert(item.key, Some(Item::made(self.base.id, item.key, bytes)));
            }
            return Ok(());
        }
        self.rows.insert(item.key, Some(item));
        Ok(())
    }

    /// Puts an extent in the place of those that it covers, whole or in part.
    fn extent(&mut self, item: Item) -> Result<()> {
        let sector_len = u64::from(self.fs.store.super_block().sector_len);
        let own = FileExtent::read(&item, sector_len)?.range();
        let own = own.start..own.end.checked_next_multiple_of(sector_len).unwrap_or(u64::MAX);
        let object = item.key.object;
        let last = self.base.last_to(&self.fs.store, &Key::new(object, kind::EXTENT_DATA, own.start))?;
        let last = last.filter(|last| (last.key.object, last.key.kind) == (object, kind::EXTENT_DATA));
        let from = last.map_or(own.start, |last| last.key.offset);
        let (start, end) = (
            Key::new(object, kind::EXTENT_DATA, from),
            Key::new(object, kind::EXTENT_DATA, own.end.saturating_sub(1)),
        );
        let covered: Vec<Item> = self.base.items(&self.fs.store, start, end).collect::<Result<_>>()?;
        for old in covered {
            self.cut(&old, &own, sector_len)?;
        }
        self.rows.insert(item.key, Some(item));
        Ok(())
    }

    /// Keeps what an extent has outside of a range.
    fn cut(&mut self, old: &Item, range: &Range<u64>, sector_len: u64) -> Result<()> {
        let extent = FileExtent::read(old, sector_len)?;
        let whole = extent.range();
        if whole.end <= range.start {
            return Ok(());
        }
        // Parts that earlier extents of the log left of it are cut once more.
        let parts: Vec<(Key, Range<u64>)> = self
            .rows
            .range(old.key..=Key::new(old.key.object, kind::EXTENT_DATA, whole.end.saturating_sub(1)))
            .filter_map(|(key, item)| {
                let item = item.as_ref().filter(|item| item.tree == self.base.id)?;
                let len = Fields(item.bytes()).u64(0x2d);
                Some((*key, packfs_core::range_at(key.offset, len)))
            })
            .collect();
        let untouched = !self.rows.contains_key(&old.key);
        let parts = if untouched { vec![(old.key, whole.clone())] } else { parts };
        for (key, part) in parts {
            if part.end <= range.start || part.start >= range.end {
                continue;
            }
            self.rows.insert(key, None);
            for kept in [part.start..part.end.min(range.start), part.start.max(range.end)..part.end] {
                if !kept.is_empty() && extent.form != crate::extent::Form::Inline {
                    self.keep(old, &kept);
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, old: &Item, kept: &Range<u64>) {
        let mut bytes = old.bytes().to_vec();
        let start = Fields(&bytes).u64(0x25).saturating_add(kept.start.saturating_sub(old.key.offset));
        put(&mut bytes, 0x25, &start.to_le_bytes());
        put(&mut bytes, 0x2d, &packfs_core::len_of(kept).to_le_bytes());
        let key = Key { offset: kept.start, ..old.key };
        self.rows.insert(key, Some(Item::made(self.base.id, key, bytes)));
    }

    /// Removes names that a logged range of a listing lacks, and adds those that it has.
    fn listings(&mut self) -> Result<()> {
        let items = self.logged()?;
        for item in items.iter().filter(|item| item.key.kind == kind::DIR_LOG_INDEX) {
            let (dir, start) = (item.key.object, item.key.offset);
            let end = Fields(item.bytes_of(8)?).u64(0);
            let range = (Key::new(dir, kind::DIR_INDEX, start), Key::new(dir, kind::DIR_INDEX, end));
            let old: Vec<Item> = self.base.items(&self.fs.store, range.0, range.1).collect::<Result<_>>()?;
            for old in old {
                if self.log.get(&self.fs.store, &old.key)?.is_none()
                    && let Some(entry) = entries(&old).next().transpose()?
                {
                    self.remove(&Link { dir, index: old.key.offset, name: entry.name })?;
                }
            }
        }
        for item in items.iter().filter(|item| item.key.kind == kind::DIR_INDEX) {
            let Some(entry) = entries(item).next().transpose()? else { continue };
            if entry.location.kind == kind::INODE_ITEM {
                let link = Link { dir: item.key.object, index: item.key.offset, name: entry.name };
                self.add(&link, entry.location.object)?;
            }
        }
        Ok(())
    }

    /// Names inodes as their references say.
    fn references(&mut self) -> Result<()> {
        for item in self.logged()? {
            if !matches!(item.key.kind, kind::INODE_REF | kind::INODE_EXTREF) {
                continue;
            }
            let inode = item.key.object;
            // The root of a subvolume refers to itself.
            if item.key.offset == inode {
                continue;
            }
            let links = links(&item)?;
            if let Some(old) = self.base.get(&self.fs.store, &item.key)? {
                for link in self::links(&old)? {
                    let is_kept = links.iter().any(|new| (new.dir, new.name) == (link.dir, link.name));
                    if !is_kept && self.named(link.dir, link.name)? == Some(inode) {
                        self.remove(&link)?;
                    }
                }
            }
            for link in links {
                self.add(&link, inode)?;
            }
            self.rows.insert(item.key, Some(item));
        }
        Ok(())
    }

    /// Returns the inode that a name leads to.
    fn named(&self, dir: u64, name: &[u8]) -> Result<Option<u64>> {
        let Some(item) = self.current(Key::new(dir, kind::DIR_ITEM, name_hash(name)))? else {
            return Ok(None);
        };
        for entry in entries(&item) {
            let entry = entry?;
            if entry.name == name {
                return Ok(Some(entry.location.object));
            }
        }
        Ok(None)
    }

    /// Adds a name of an inode that exists, in place of another one.
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
        let file_type = entry_type(Fields(item.bytes()).u32(0x34));
        let entry = entry_of(inode, name, file_type);
        let key = Key::new(dir, kind::DIR_INDEX, index);
        self.rows.insert(key, Some(Item::made(self.base.id, key, entry.clone())));
        let key = Key::new(dir, kind::DIR_ITEM, name_hash(name));
        let mut bytes = self.current(key)?.map(|item| item.bytes().to_vec()).unwrap_or_default();
        bytes.extend(entry);
        self.rows.insert(key, Some(Item::made(self.base.id, key, bytes)));
        Ok(())
    }

    /// Removes a name of an inode whose index its references tell.
    fn remove_all(&mut self, dir: u64, name: &[u8], inode: u64) -> Result<()> {
        let item = self.current(Key::new(inode, kind::INODE_REF, dir))?;
        let links = item.as_ref().map(links).transpose()?.unwrap_or_default();
        let index = links.iter().find(|link| link.name == name).map_or(0, |link| link.index);
        self.remove(&Link { dir, index, name })
    }

    /// Removes a name from the listing and from what lookups find.
    fn remove(&mut self, link: &Link<'_>) -> Result<()> {
        self.rows.insert(Key::new(link.dir, kind::DIR_INDEX, link.index), None);
        let key = Key::new(link.dir, kind::DIR_ITEM, name_hash(link.name));
        let Some(item) = self.current(key)? else { return Ok(()) };
        let mut bytes = Vec::new();
        for entry in entries(&item) {
            let entry = entry?;
            if entry.name != link.name {
                bytes.extend(entry_of(entry.location.object, entry.name, entry.file_type));
            }
        }
        let left = (!bytes.is_empty()).then(|| Item::made(self.base.id, key, bytes));
        self.rows.insert(key, left);
        Ok(())
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes.iter_mut().skip(at).zip(value).for_each(|(to, from)| *to = *from);
}

/// Returns the names in a reference.
fn links(item: &Item) -> Result<Vec<Link<'_>>> {
    let mut links = Vec::new();
    let mut rest = item.bytes();
    while !rest.is_empty() {
        let fields = Fields(rest);
        let (dir, index, start, len) = match item.key.kind {
            kind::INODE_REF => (item.key.offset, fields.u64(0), REF_LEN, fields.u16(8)),
            _ => (fields.u64(0), fields.u64(8), EXTREF_LEN, fields.u16(16)),
        };
        let end = start.saturating_add(len.into());
        let name = rest.get(start..end);
        let name = name.ok_or(Corruption::Size { place: item.place(), found: rest.len(), min: end })?;
        links.push(Link { dir, index, name });
        rest = rest.get(end..).unwrap_or_default();
    }
    Ok(links)
}

/// Returns the number of a file type in entries.
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

/// Returns an entry of a directory.
fn entry_of(inode: u64, name: &[u8], file_type: u8) -> Vec<u8> {
    let mut entry = vec![0; ENTRY_LEN];
    put(&mut entry, 0, &inode.to_le_bytes());
    put(&mut entry, 8, &[kind::INODE_ITEM]);
    put(&mut entry, 0x1b, &u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
    put(&mut entry, 0x1d, &[file_type]);
    entry.extend_from_slice(name);
    entry
}
