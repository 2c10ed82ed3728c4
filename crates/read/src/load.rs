//! Loads a whole volume as a tree.

use crate::Wanted;
use crate::engine::ReadEngine;
use packfs_core::{
    BuildId, ContentId, Error, ErrorKind, Meter, Name, NodeKind, Progress, Result, Stage, Tree, TreeBuilder,
    Xattrs, escaped,
};
use packfs_format::{DirCursor, DirEntry, DirNames, Inode, InodeId, InodeKind, NameOrder, node_kind};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Entries between two updates of the progress.
const ENTRIES_BETWEEN_LOOKS: u64 = 1024;

/// Faults that are reported one by one; further ones are counted.
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
    /// data on a missing device, and structures that are not supported.
    ///
    /// # Errors
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

    /// Converts the faults to an error: the first one and their number.
    ///
    /// # Errors
    /// That error, unless there is none.
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
    /// Returns every file, once.
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

    /// Loads the readable part of the hierarchy: damaged parts are left out, reported through
    /// `progress` and counted in [`LoadedVolume::faults`].
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
        let subject = self.subject();
        let doubt = inode.doubt.map(|doubt| Error::corrupt(subject, doubt).at("\"/\""));
        doubt.map_or(Ok(()), |doubt| faulty.meet(doubt))?;
        if inode.has_xattrs
            && let Some(xattrs) = faulty.taken(self.volume.xattrs(root).map_err(|error| error.at("\"/\"")))?
        {
            meter.xattrs(&xattrs)?;
            builder.describe(BuildId::ROOT, inode.meta, xattrs);
        }
        let mut loader = Loader {
            engine: self,
            builder,
            inodes: vec![root],
            built: HashMap::new(),
            seen_dirs: HashSet::from([root]),
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

/// Treatment of faults.
struct Faulty<'a> {
    /// True to stop at the first fault.
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
    /// Its number in [`Loader::dirs`].
    index: usize,
    depth: u64,
}

struct Loader<'a> {
    engine: &'a ReadEngine,
    builder: TreeBuilder,
    /// The inode of each node that was built.
    inodes: Vec<InodeId>,
    /// Inodes other than directories, by id: a second name is a hard link.
    built: HashMap<InodeId, BuildId>,
    seen_dirs: HashSet<InodeId>,
    /// Directories to be read: a list instead of recursion, because depth is unlimited.
    open: Vec<Open>,
    dirs: DirNames,
    entry_count: u64,
    meter: Meter,
    faulty: Faulty<'a>,
}

impl Loader<'_> {
    fn load_dir(&mut self, open: &Open) -> Result<()> {
        let engine = self.engine;
        let mut outcome = Ok(());
        let mut order = NameOrder::of(&*engine.volume);
        let read = engine.volume.read_dir(open.dir, DirCursor::default(), &mut |entry, _| {
            outcome = self.take(open, &entry, &mut order);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome?;
        let kept = read.and_then(|()| order.finish());
        match kept {
            Ok(()) => Ok(()),
            Err(error) => self.faulty.meet(error.at(self.path(open.index, b""))),
        }
    }

    fn take(&mut self, open: &Open, entry: &DirEntry, order: &mut NameOrder) -> Result<()> {
        self.count(open, entry)?;
        let name = match Name::new(&entry.name) {
            Ok(name) if self.builder.has_child(open.build, &entry.name) => {
                Err(format!("name {name:?} stands twice"))
            }
            Ok(name) => Ok(name),
            Err(fault) => Err(format!("entry \"{}\": {fault}", escaped(&entry.name))),
        };
        let name = match name {
            Ok(name) => name,
            Err(fault) => return self.faulty.meet(self.corrupt(fault).at(self.path(open.index, b""))),
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

    /// Reports a value of an inode that is contradictory but harmless.
    fn doubt(&mut self, open: &Open, entry: &DirEntry, inode: &Inode) -> Result<()> {
        let (claim, truth) = (entry.file_type, inode.kind.file_type());
        let fault = match inode.doubt {
            _ if claim != truth => {
                format!("its entry says {}, its inode {}", claim.word(), truth.word())
            }
            Some(doubt) => doubt.to_owned(),
            None => return Ok(()),
        };
        self.faulty.meet(self.corrupt(fault).at(self.path(open.index, &entry.name)))
    }

    /// Returns the extended attributes of an inode; none if they cannot be read.
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

    /// Returns the attributes of an inode that was not met before.
    fn describe(&mut self, id: InodeId) -> Result<(Inode, NodeKind)> {
        let volume = &self.engine.volume;
        let inode = volume.inode(id)?;
        if inode.kind == InodeKind::Directory && !self.seen_dirs.insert(id) {
            return Err(self.corrupt("this directory was reached before by another name"));
        }
        let kind = node_kind(&**volume, (id, inode.kind), ContentId(id.0), &mut self.meter)?;
        Ok((inode, kind))
    }

    fn corrupt(&self, fault: impl std::fmt::Display) -> Error {
        Error::corrupt(self.engine.subject(), fault)
    }

    /// Returns the path of `name` in a directory for messages.
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
