//! Cuts a sorted tree into lists, one for each shard.
//!
//! A shard is a range of the entries in tree order. Its list also has the directories above them,
//! and further names of files whose first name it has. Memory holds one row for each shard, and
//! the files whose names are still to come.

use crate::cuts::{Cut, SHARDS_MAX, Shards};
use crate::links::Links;
use crate::plan::PlannedShard;
use crate::{entry, list};
use packfs_core::to_hex;
use packfs_core::{Error, FileType, ImagePath, Result, ResultExt};
use packfs_source::{ListedEntry, Prober, Surveyed};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Cost of an entry, as bytes of data: metadata operations take as long.
const ENTRY_WEIGHT: u64 = 20_000;

/// Lists that are open at once.
const OPEN_MAX: usize = 64;

/// Returns the weight of an entry. That of the root is 0, because lists may leave it out.
pub(crate) fn weight(found: &Surveyed) -> u64 {
    if found.entry.path.is_root() {
        return 0;
    }
    found.entry.len.saturating_add(ENTRY_WEIGHT)
}

/// Lists that are being written.
pub(crate) struct Cutter<'a> {
    folder: &'a Path,
    shards: Shards,
    /// Weight of everything.
    total: u64,
    /// Weight before the next entry: of everything, and of the current shard.
    before: u64,
    in_shard: u64,
    current: usize,
    lists: Vec<List>,
    open: HashMap<usize, BufWriter<File>>,
    /// Directories above the next entry, the root first.
    above: Vec<ListedEntry>,
    prober: Prober,
    pub links: Links,
}

/// List of a shard.
struct List {
    hash: Sha256,
    /// Directories above its last entry, which it has.
    above: Vec<ImagePath>,
    row: PlannedShard,
}

impl<'a> Cutter<'a> {
    /// Errors: `Usage` for too many shards.
    pub(crate) fn new(folder: &'a Path, shards: Shards, total: u64, prober: Prober) -> Result<Self> {
        let count = match &shards {
            Shards::Count(count) => (*count).max(1) as usize,
            Shards::Size(_) => 1,
            Shards::Like(cuts) => cuts.len().max(1),
        };
        let mut cutter = Cutter {
            folder,
            shards,
            total: total.max(1),
            before: 0,
            in_shard: 0,
            current: 0,
            lists: Vec::new(),
            open: HashMap::new(),
            above: Vec::new(),
            prober,
            links: Links::default(),
        };
        (0..count).try_for_each(|_| cutter.begin_list())?;
        Ok(cutter)
    }

    fn begin_list(&mut self) -> Result<()> {
        if self.lists.len() >= SHARDS_MAX {
            let error = Error::usage(format!("more than {SHARDS_MAX} shards, at most {SHARDS_MAX} allowed"));
            return Err(error.hint("use larger shards, such as --shards 32G"));
        }
        self.lists.push(List { hash: Sha256::new(), above: Vec::new(), row: PlannedShard::default() });
        Ok(())
    }

    /// Adds the next entry. Directories above it that are not listed are looked up.
    pub(crate) fn add(&mut self, found: &Surveyed) -> Result<()> {
        let Some(_) = found.entry.path.file_name() else { return self.place(found) };
        let mut parent = found.entry.path.clone();
        parent.pop();
        while self.above.last().is_some_and(|dir| !parent.starts_with(&dir.path)) {
            self.above.pop();
        }
        let known = self.above.last().map(|dir| dir.path.names().count());
        let mut at = ImagePath::root();
        if known.is_none() {
            self.add_missing(&at, &found.entry.path)?;
        }
        for (depth, name) in parent.names().enumerate() {
            at.push(name);
            if depth >= known.unwrap_or(0) {
                self.add_missing(&at, &found.entry.path)?;
            }
        }
        self.place(found)
    }

    /// Adds a directory that is not listed.
    fn add_missing(&mut self, dir: &ImagePath, of: &ImagePath) -> Result<()> {
        let found = self.prober.probe(dir)?;
        let found = found.filter(|found| found.entry.file_type == FileType::Directory).ok_or_else(|| {
            Error::failed(format!("cannot list {of:?}: {dir:?} is not a directory of the source"))
        })?;
        self.place(&found)
    }

    /// Places an entry whose directories are known.
    fn place(&mut self, found: &Surveyed) -> Result<()> {
        let by_place = self.by_place(found)?;
        let is_dir = found.entry.file_type == FileType::Directory;
        let (shard, is_first) = if is_dir { (by_place, true) } else { self.links.shard_of(found, by_place) };
        let weight = if is_first { weight(found) } else { ENTRY_WEIGHT };
        self.before = self.before.saturating_add(weight);
        self.in_shard = self.in_shard.saturating_add(weight);
        self.write(shard, &found.entry, is_first)?;
        if is_dir {
            self.above.push(found.entry.clone());
        }
        Ok(())
    }

    /// Returns the shard of the next entry by its place in the tree.
    fn by_place(&mut self, found: &Surveyed) -> Result<usize> {
        match &self.shards {
            Shards::Count(_) => {
                let count = self.lists.len();
                let rank = u128::from(self.before) * count as u128 / u128::from(self.total);
                self.current = usize::try_from(rank).unwrap_or(usize::MAX).min(count - 1).max(self.current);
            }
            Shards::Size(size) => {
                if self.in_shard > 0 && self.in_shard.saturating_add(weight(found)) > *size {
                    self.begin_list()?;
                    self.current += 1;
                    self.in_shard = 0;
                }
            }
            Shards::Like(cuts) => {
                let key = entry::key(&found.entry.path);
                let is_reached = |cut: &Cut| cut.0.as_ref().is_some_and(|cut| *cut <= key);
                let last = (0..)
                    .zip(cuts)
                    .skip(self.current + 1)
                    .take_while(|(_, cut)| cut.0.is_none() || is_reached(cut));
                self.current =
                    last.filter(|(_, cut)| is_reached(cut)).last().map_or(self.current, |(at, _)| at);
            }
        }
        Ok(self.current)
    }

    /// Writes an entry into a list, after directories above it that the list has not.
    fn write(&mut self, shard: usize, entry: &ListedEntry, is_first: bool) -> Result<()> {
        let Some(list) = self.lists.get_mut(shard) else {
            return Err(Error::failed("internal: no such shard"));
        };
        let mut records = Vec::new();
        let is_above = |dir: &ListedEntry, at: Option<&ImagePath>| at == Some(&dir.path);
        let common =
            (0..).zip(&self.above).take_while(|(depth, dir)| is_above(dir, list.above.get(*depth))).count();
        list.above.truncate(common);
        for dir in self.above.iter().skip(common) {
            records.extend(list::record(dir, true));
            list.above.push(dir.path.clone());
            list.row.shared_directories += 1;
        }
        records.extend(list::record(entry, false));
        if list.row.entries == 0 {
            list.row.first = entry.path.to_string();
        }
        list.row.entries += 1;
        if entry.file_type == FileType::Directory {
            list.above.push(entry.path.clone());
        }
        if entry.file_type == FileType::File && is_first {
            list.row.files += 1;
            list.row.file_bytes = list.row.file_bytes.saturating_add(entry.len);
        }
        list.hash.update(&records);
        self.append(shard, &records)
    }

    fn append(&mut self, shard: usize, records: &[u8]) -> Result<()> {
        let path = self.list_path(shard);
        let cannot = || format!("cannot write {path:?}");
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&shard) {
            self.close_all()?;
        }
        let out = match self.open.entry(shard) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let file = File::options().append(true).create(true).open(&path).or_io(cannot)?;
                place.insert(BufWriter::new(file))
            }
        };
        out.write_all(records).or_io(cannot)
    }

    fn close_all(&mut self) -> Result<()> {
        let folder = self.folder;
        let mut open = self.open.drain();
        open.try_for_each(|(_, mut out)| out.flush().or_io(|| format!("cannot write lists to {folder:?}")))
    }

    fn list_path(&self, shard: usize) -> PathBuf {
        self.folder.join(list::name(shard))
    }

    /// Completes the lists; those of empty shards have the root only.
    pub(crate) fn finish(mut self) -> Result<(Vec<PlannedShard>, Links)> {
        let root = self.above.first().cloned();
        let root = root.ok_or_else(|| Error::failed("internal: no root in the list"))?;
        for shard in 0..self.lists.len() {
            let Some(list) = self.lists.get_mut(shard) else { continue };
            if list.above.is_empty() {
                let record = list::record(&root, true);
                list.hash.update(&record);
                list.row.shared_directories += 1;
                self.append(shard, &record)?;
            }
        }
        self.close_all()?;
        for shard in 0..self.lists.len() {
            let path = self.list_path(shard);
            let cannot = || format!("cannot write {path:?}");
            File::open(&path).or_io(cannot)?.sync_all().or_io(cannot)?;
        }
        let rows = self
            .lists
            .into_iter()
            .map(|list| PlannedShard { list_sha256: to_hex(&list.hash.finalize()), ..list.row });
        Ok((rows.collect(), self.links))
    }
}
