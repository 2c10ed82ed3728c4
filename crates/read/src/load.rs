//! Loads a whole volume as a tree.

use crate::Wanted;
use crate::engine::ReadEngine;
use packfs_core::{
    BuildId, ContentId, Error, ErrorKind, Meter, NodeKind, Progress, Result, Stage, Tree, TreeBuilder, Xattrs,
};
use packfs_format::{
    DirEntry, DirNames, Inode, InodeId, InodeKind, NameOrder, SeenDirs, check_claims, corrupt, entry_name,
    node_kind, read_entries,
};
use std::collections::HashMap;

/// Entries between two updates of the progress.
const ENTRIES_BETWEEN_LOOKS: u64 = 1024;

/// Faults that are reported individually; further ones are counted.
const TOLD_MAX: u64 = 100;

/// A volume's hierarchy in memory.
#[derive(Debug)]
pub struct LoadedVolume {
    /// The hierarchy; contents are named by inode id.
    pub tree: Tree,
    /// The inode of each node.
    pub inodes: Vec<InodeId>,
    /// Damaged or contradictory parts; empty unless loaded by [`ReadEngine::load_what_is_there`].
    pub faults: Faults,
}

/// Faults of an image that did not prevent reading the rest.
#[derive(Debug, Default)]
pub struct Faults {
    first: Option<Error>,
    count: u64,
}

impl Faults {
    /// Counts one fault; the first is kept, and the first hundred are reported. Faults are damage,
    /// data on a missing device, and unsupported structures.
    ///
    /// # Errors
    ///
    /// Returns errors that are no fault of the image.
    pub fn add(&mut self, error: Error, progress: &dyn Progress) -> Result<()> {
        if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Failed | ErrorKind::Unsupported) {
            return Err(error);
        }
        if self.count < TOLD_MAX {
            progress.warn(&error.to_string());
        }
        self.first.get_or_insert(error);
        self.count += 1;
        Ok(())
    }

    /// Returns the number of faults.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Converts the faults to an error that contains the first one and their number.
    ///
    /// # Errors
    ///
    /// That error, unless the number is 0.
    pub fn into_result(self) -> Result<()> {
        match (self.first, self.count) {
            (None, _) => Ok(()),
            (Some(error), 1) => Err(error.hint("everything else could be read")),
            (Some(error), count) => {
                Err(error.hint(format!("{count} faults were found; everything else could be read")))
            }
        }
    }
}

impl LoadedVolume {
    pub(crate) fn files(&self) -> Vec<Wanted> {
        let nodes = self.tree.nodes().zip(&self.inodes);
        nodes
            .filter_map(|((_, node), &id)| match node.kind {
                NodeKind::File { len, .. } => Some(Wanted { id, len }),
                _ => None,
            })
            .collect()
    }
}

impl ReadEngine {
    /// Loads the whole hierarchy.
    ///
    /// Errors: `Corrupt` for a directory that is reached twice, a name that is duplicated or out of
    /// order in a directory, an entry of another type than its inode, and faults found by the
    /// volume; `Limit` for exceeding [`crate::ReadOptions::limits`]; `Cancelled`.
    pub fn load_tree(&self, progress: &dyn Progress) -> Result<LoadedVolume> {
        self.load(true, progress)
    }

    /// Loads the readable part of the hierarchy: damaged parts are omitted, reported through
    /// `progress`, and counted in [`LoadedVolume::faults`].
    ///
    /// Errors: `Corrupt` if the root cannot be read; all other kinds as [`ReadEngine::load_tree`].
    pub fn load_what_is_there(&self, progress: &dyn Progress) -> Result<LoadedVolume> {
        self.load(false, progress)
    }

    fn load(&self, strict: bool, progress: &dyn Progress) -> Result<LoadedVolume> {
        progress.begin(Stage::Scan, self.volume.inode_count_hint(), 0);
        self.announce_hierarchy(progress);
        let root = self.volume.root();
        let inode = self.volume.inode(root)?;
        let mut builder = TreeBuilder::new(inode.meta);
        let mut meter = Meter::new(self.options.limits, self.subject());
        let mut faulty = Faulty { strict, progress, faults: Faults::default() };
        if let Some(fault) = self.volume.whole_fault(!self.options.ignore_checksum)? {
            faulty.meet(fault)?;
        }
        let checked = check_claims(&*self.volume, inode.kind.file_type(), &inode);
        checked.or_else(|doubt| faulty.meet(doubt.at("\"/\"")))?;
        if inode.has_xattrs
            && let Some(xattrs) = faulty.taken(self.volume.xattrs(root).map_err(|error| error.at("\"/\"")))?
        {
            meter.xattrs(&xattrs)?;
            builder.describe(BuildId::ROOT, inode.meta, xattrs);
        }
        let mut seen_dirs = SeenDirs::default();
        seen_dirs.enter(&*self.volume, root)?;
        let mut loader = Loader {
            engine: self,
            builder,
            inodes: vec![root],
            built: HashMap::new(),
            seen_dirs,
            open: vec![Open { dir: root, build: BuildId::ROOT, index: 0, depth: 0 }],
            dirs: DirNames::default(),
            entry_count: 0,
            meter,
            faulty,
        };
        while let Some(open) = loader.open.pop() {
            loader.load_dir(&open)?;
        }
        let (tree, builds) = loader.builder.finish_numbered()?;
        let inodes = builds.iter().map(|build| loader.inodes[build.index()]).collect();
        let loaded = LoadedVolume { tree, inodes, faults: loader.faulty.faults };
        self.check_data(&loaded.files())?;
        Ok(loaded)
    }
}

struct Faulty<'a> {
    strict: bool,
    progress: &'a dyn Progress,
    faults: Faults,
}

impl Faulty<'_> {
    fn meet(&mut self, error: Error) -> Result<()> {
        if self.strict { Err(error) } else { self.faults.add(error, self.progress) }
    }

    fn taken<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.meet(error).map(|()| None),
        }
    }
}

struct Open {
    dir: InodeId,
    build: BuildId,
    index: usize,
    depth: u64,
}

struct Loader<'a> {
    engine: &'a ReadEngine,
    builder: TreeBuilder,
    inodes: Vec<InodeId>,
    /// Nodes by inode id, without directories: a second name is a hard link.
    built: HashMap<InodeId, BuildId>,
    seen_dirs: SeenDirs,
    /// A list instead of recursion, because depth is unlimited.
    open: Vec<Open>,
    dirs: DirNames,
    entry_count: u64,
    meter: Meter,
    faulty: Faulty<'a>,
}

impl Loader<'_> {
    fn load_dir(&mut self, open: &Open) -> Result<()> {
        let engine = self.engine;
        let read = read_entries(&*engine.volume, open.dir, |entry, order| self.take(open, &entry, order))?;
        read.or_else(|error| self.faulty.meet(error.at(self.path(open.index, b""))))
    }

    fn take(&mut self, open: &Open, entry: &DirEntry, order: &mut NameOrder) -> Result<()> {
        self.count(open, entry)?;
        let name = match entry_name(&*self.engine.volume, &entry.name) {
            Ok(name) if self.builder.has_child(open.build, &entry.name) => {
                Err(self.corrupt(format!("name {name:?} stands twice")))
            }
            checked => checked,
        };
        let name = match name {
            Ok(name) => name,
            Err(fault) => return self.faulty.meet(fault.at(self.path(open.index, b""))),
        };
        order.next(&entry.name);
        if let Some(&build) = self.built.get(&entry.id) {
            self.builder.link_child(open.build, name, build);
            return Ok(());
        }
        let (inode, kind) = match self.describe(entry.id) {
            Ok(described) => described,
            Err(error) => return self.faulty.meet(error.at(self.path(open.index, &entry.name))),
        };
        let xattrs = self.xattrs(open, entry, &inode)?;
        self.doubt(open, entry, &inode)?;
        let is_dir = matches!(kind, NodeKind::Directory);
        let build = self.builder.add_child(open.build, name, kind, inode.meta, xattrs);
        self.inodes.push(entry.id);
        if is_dir {
            let index = self.dirs.add(open.index, &entry.name);
            self.open.push(Open { dir: entry.id, build, index, depth: open.depth + 1 });
        } else {
            self.built.insert(entry.id, build);
        }
        Ok(())
    }

    /// Reports values that are contradictory but harmless.
    fn doubt(&mut self, open: &Open, entry: &DirEntry, inode: &Inode) -> Result<()> {
        let checked = check_claims(&*self.engine.volume, entry.file_type, inode);
        checked.or_else(|error| self.faulty.meet(error.at(self.path(open.index, &entry.name))))
    }

    /// Empty if the attributes cannot be read.
    fn xattrs(&mut self, open: &Open, entry: &DirEntry, inode: &Inode) -> Result<Xattrs> {
        if !inode.has_xattrs {
            return Ok(Xattrs::new());
        }
        let read = self.engine.volume.xattrs(entry.id);
        let read = read.map_err(|error| error.at(self.path(open.index, &entry.name)));
        let xattrs = self.faulty.taken(read)?.unwrap_or_default();
        let metered = self.meter.xattrs(&xattrs);
        metered.map_err(|error| error.at(self.path(open.index, &entry.name)))?;
        Ok(xattrs)
    }

    fn describe(&mut self, id: InodeId) -> Result<(Inode, NodeKind)> {
        let volume = &self.engine.volume;
        let inode = volume.inode(id)?;
        if inode.kind == InodeKind::Directory {
            self.seen_dirs.enter(&**volume, id)?;
        }
        let kind = node_kind(&**volume, (id, inode.kind), ContentId(id.0), &mut self.meter)?;
        Ok((inode, kind))
    }

    fn corrupt(&self, fault: impl std::fmt::Display) -> Error {
        corrupt(&*self.engine.volume, fault)
    }

    fn path(&self, dir: usize, name: &[u8]) -> String {
        self.dirs.path(dir, name)
    }

    fn count(&mut self, open: &Open, entry: &DirEntry) -> Result<()> {
        self.entry_count += 1;
        let counted = self.meter.entry(open.depth, entry.name.len());
        counted
            .and_then(|()| self.meter.hold(entry.name.len()))
            .map_err(|error| error.at(self.path(open.index, &entry.name)))?;
        if self.entry_count.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
            self.faulty.progress.advance(ENTRIES_BETWEEN_LOOKS, 0, 0);
            if self.faulty.progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        Ok(())
    }
}
