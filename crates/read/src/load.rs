//! A whole volume as a tree.

use crate::Wanted;
use crate::engine::ReadEngine;
use packfs_core::{
    BuildId, ContentId, DirCursor, DirEntry, Error, InodeId, InodeKind, Meta, Meter, Name, NodeKind,
    Progress, Result, Stage, Tree, TreeBuilder, Xattrs, escaped,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// How many entries pass between looks at the progress.
const ENTRIES_BETWEEN_LOOKS: u64 = 1024;

/// A volume's hierarchy in memory.
#[derive(Debug)]
pub struct LoadedVolume {
    /// The hierarchy; contents are named by inode id.
    pub tree: Tree,
    /// The inode of each node.
    pub inodes: Vec<InodeId>,
}

impl LoadedVolume {
    /// Every file, once.
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
    /// Errors: `Corrupt` for a directory that is reached twice, a name that stands twice in a directory, and whatever
    /// the volume finds; `Limit` where one of [`crate::ReadOptions::limits`] is passed; `Cancelled`.
    pub fn load_tree(&self, progress: &dyn Progress) -> Result<LoadedVolume> {
        progress.begin(Stage::Scan, self.volume.inode_count_hint(), 0);
        let root = self.volume.root();
        let inode = self.volume.inode(root)?;
        let mut builder = TreeBuilder::new(inode.meta);
        let mut meter = Meter::new(self.options.limits, self.subject());
        if inode.has_xattrs {
            let xattrs = self.volume.xattrs(root)?;
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
            dirs: vec![(0, Box::default())],
            entry_count: 0,
            meter,
        };
        while let Some(open) = loader.open.pop() {
            loader.load_dir(&open, progress)?;
        }
        let (tree, builds) = loader.builder.finish_numbered()?;
        let inodes = builds.iter().map(|build| loader.inodes[build.index()]).collect();
        let loaded = LoadedVolume { tree, inodes };
        self.check_data(&loaded.files())?;
        Ok(loaded)
    }
}

struct Open {
    dir: InodeId,
    build: BuildId,
    /// Its row in [`Loader::dirs`].
    index: usize,
    depth: u64,
}

struct Loader<'a> {
    engine: &'a ReadEngine,
    builder: TreeBuilder,
    /// The inode of each node that was built.
    inodes: Vec<InodeId>,
    /// Inodes that are no directories, by id: a second name is a hard link.
    built: HashMap<InodeId, BuildId>,
    seen_dirs: HashSet<InodeId>,
    /// Directories yet to be read: a list instead of recursion, whatever the depth.
    open: Vec<Open>,
    /// Row of the parent and name of each directory, to name it in an error; the root first.
    dirs: Vec<(usize, Box<[u8]>)>,
    entry_count: u64,
    meter: Meter,
}

impl Loader<'_> {
    fn load_dir(&mut self, open: &Open, progress: &dyn Progress) -> Result<()> {
        let engine = self.engine;
        let mut outcome = Ok(());
        let read = engine.volume.read_dir(open.dir, DirCursor::default(), &mut |entry, _| {
            outcome = self.take(open, &entry, progress);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        read.map_err(|error| error.at(self.path(open.index, b"")))?;
        outcome
    }

    fn take(&mut self, open: &Open, entry: &DirEntry, progress: &dyn Progress) -> Result<()> {
        self.count(open, entry, progress)?;
        let name = match Name::new(&entry.name) {
            Ok(name) if self.builder.has_child(open.build, &entry.name) => {
                Err(format!("name {name:?} stands twice"))
            }
            Ok(name) => Ok(name),
            Err(fault) => Err(format!("entry \"{}\": {fault}", escaped(&entry.name))),
        };
        let name = name.map_err(|fault| self.corrupt(fault).at(self.path(open.index, b"")))?;
        if let Some(&build) = self.built.get(&entry.id) {
            self.builder.link_child(open.build, name, build);
            return Ok(());
        }
        let (kind, meta, xattrs) =
            self.describe(entry.id).map_err(|error| error.at(self.path(open.index, &entry.name)))?;
        let is_dir = matches!(kind, NodeKind::Directory);
        let build = self.builder.add_child(open.build, name, kind, meta, xattrs);
        self.inodes.push(entry.id);
        if is_dir {
            let index = self.dirs.len();
            self.dirs.push((open.index, entry.name.as_slice().into()));
            self.open.push(Open { dir: entry.id, build, index, depth: open.depth + 1 });
        } else {
            self.built.insert(entry.id, build);
        }
        Ok(())
    }

    /// All that is known of an inode that was not met before.
    fn describe(&mut self, id: InodeId) -> Result<(NodeKind, Meta, Xattrs)> {
        let volume = &self.engine.volume;
        let inode = volume.inode(id)?;
        let kind = match inode.kind {
            InodeKind::Directory if !self.seen_dirs.insert(id) => {
                return Err(self.corrupt("this directory was reached before by another name"));
            }
            InodeKind::Directory => NodeKind::Directory,
            InodeKind::File { len } => {
                self.meter.file(len)?;
                NodeKind::File { len, content: ContentId(id.0) }
            }
            InodeKind::Symlink => {
                let target = volume.read_link(id)?;
                self.meter.target(target.len())?;
                NodeKind::Symlink(target.into())
            }
            InodeKind::BlockDevice(number) => NodeKind::BlockDevice(number),
            InodeKind::CharDevice(number) => NodeKind::CharDevice(number),
            InodeKind::Fifo => NodeKind::Fifo,
            InodeKind::Socket => NodeKind::Socket,
        };
        let xattrs = if inode.has_xattrs { volume.xattrs(id)? } else { Xattrs::new() };
        self.meter.xattrs(&xattrs)?;
        Ok((kind, inode.meta, xattrs))
    }

    fn corrupt(&self, fault: impl std::fmt::Display) -> Error {
        Error::corrupt(self.engine.subject(), fault)
    }

    /// The path of `name` in a directory, or of the directory itself if the name is empty, as messages show it.
    fn path(&self, mut dir: usize, name: &[u8]) -> String {
        let mut names = vec![name];
        while dir != 0 {
            let (parent, name) = &self.dirs[dir];
            names.push(name);
            dir = *parent;
        }
        let path = names.into_iter().rev().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(&b'/');
        format!("\"{}\"", if path.is_empty() { escaped(b"/") } else { escaped(&path) })
    }

    fn count(&mut self, open: &Open, entry: &DirEntry, progress: &dyn Progress) -> Result<()> {
        self.entry_count += 1;
        let counted = self.meter.entry(open.depth, entry.name.len());
        counted
            .and_then(|()| self.meter.hold(entry.name.len()))
            .map_err(|error| error.at(self.path(open.index, &entry.name)))?;
        if self.entry_count.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
            progress.advance(ENTRIES_BETWEEN_LOOKS, 0, 0);
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        Ok(())
    }
}
