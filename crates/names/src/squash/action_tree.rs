//! The tree that actions of mksquashfs test and change.

use super::expressions::{Expression, Figure, Permissions};
use super::programs;
use crate::common::globs::matches_all;
use crate::common::trees;
use packfs::source::Loaded;
use packfs::{Error, ImagePath, Meta, Name, NodeId, NodeKind, Result, Tree, Xattrs};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most links of a path.
const LINKS_MAX: u32 = 64;

pub struct Item {
    pub path: ImagePath,
    pub node: NodeId,
    /// Set until an action excludes it.
    pub is_there: bool,
    /// Direct entries of a directory.
    pub entries: u64,
    pub lost: bool,
}

#[derive(Debug, Default)]
pub struct Origins {
    /// Former paths by new path; unchanged paths have no entry.
    pub paths: HashMap<ImagePath, ImagePath>,
    pub lost: HashSet<ImagePath>,
}

pub struct Changes {
    is_there: HashMap<ImagePath, bool>,
    metas: Vec<Meta>,
    xattrs: HashMap<NodeId, Xattrs>,
    nodes: HashMap<ImagePath, NodeId>,
}

impl Changes {
    pub fn made(self, loaded: Loaded) -> Result<Loaded> {
        trees::edited(loaded, true, |path, _, edit| {
            let (Some(node), Some(is_there)) = (self.nodes.get(path), self.is_there.get(path)) else {
                return Ok(true);
            };
            edit.meta = self.metas[node.index()];
            if let Some(xattrs) = self.xattrs.get(node) {
                edit.xattrs.clone_from(xattrs);
            }
            Ok(*is_there)
        })
    }
}

pub struct State<'a> {
    pub tree: &'a Tree,
    sources: &'a [PathBuf],
    origins: Origins,
    /// First fault of a program run by a test.
    fault: RefCell<Option<Error>>,
    /// Parents first.
    pub items: Vec<Item>,
    places: HashMap<ImagePath, usize>,
    pub metas: Vec<Meta>,
    /// Nodes without an entry keep their attributes.
    pub xattrs: HashMap<NodeId, Xattrs>,
}

impl<'a> State<'a> {
    pub fn new(tree: &'a Tree, sources: &'a [PathBuf], origins: Origins) -> Self {
        let (mut items, mut places) = (Vec::new(), HashMap::new());
        let mut walk = tree.walk();
        while let Some((path, node)) = walk.next() {
            places.insert(path.clone(), items.len());
            let entries = tree.entries(node).len() as u64;
            let lost = origins.lost.contains(origins.paths.get(path).unwrap_or(path));
            items.push(Item { path: path.clone(), node, is_there: true, entries, lost });
        }
        let mut metas = vec![Meta::default(); tree.nodes().map(|(id, _)| id.index() + 1).max().unwrap_or(0)];
        for (id, node) in tree.nodes() {
            metas[id.index()] = node.meta;
        }
        let (fault, xattrs) = (RefCell::new(None), HashMap::new());
        State { tree, sources, origins, fault, items, places, metas, xattrs }
    }

    pub fn check(&self) -> Result<()> {
        self.fault.borrow_mut().take().map_or(Ok(()), Err)
    }

    pub fn changes(&self) -> Result<Changes> {
        self.check()?;
        Ok(Changes {
            is_there: self.items.iter().map(|item| (item.path.clone(), item.is_there)).collect(),
            nodes: self.items.iter().map(|item| (item.path.clone(), item.node)).collect(),
            metas: self.metas.clone(),
            xattrs: self.xattrs.clone(),
        })
    }

    pub fn lost(&self) -> HashSet<ImagePath> {
        self.items.iter().filter(|item| item.lost).map(|item| item.path.clone()).collect()
    }

    pub fn remove(&mut self, at: usize) {
        let path = self.items[at].path.clone();
        let below = self.items[at..].iter_mut().take_while(|item| item.path.starts_with(&path));
        below.for_each(|item| item.is_there = false);
        let mut parent = path;
        parent.pop();
        if let Some(&above) = self.places.get(&parent) {
            self.items[above].entries = self.items[above].entries.saturating_sub(1);
            self.items[above].lost = true;
        }
    }

    fn host_path(&self, at: usize) -> Option<PathBuf> {
        let path = &self.items[at].path;
        let path = self.origins.paths.get(path).unwrap_or(path);
        if let [only] = self.sources
            && only.is_dir()
        {
            return Some(only.join(OsStr::from_bytes(path.as_bytes())));
        }
        let mut names = path.names();
        let first = OsStr::from_bytes(names.next()?.as_bytes());
        let source = self.sources.iter().find(|source| source.file_name() == Some(first))?;
        Some(names.fold(source.clone(), |host, name| host.join(OsStr::from_bytes(name.as_bytes()))))
    }

    /// A fault counts as false, and is reported at the end.
    fn run(&self, at: usize, run: impl FnOnce(&Path) -> Result<bool>) -> bool {
        let Some(host) = self.host_path(at) else { return false };
        run(&host).unwrap_or_else(|error| {
            self.fault.borrow_mut().get_or_insert(error);
            false
        })
    }

    /// True for a directory with files on this machine.
    pub fn had_entries(&self, at: usize) -> bool {
        let read = self.host_path(at).and_then(|path| std::fs::read_dir(path).ok());
        read.is_some_and(|mut entries| entries.next().is_some())
    }

    pub fn holds(&self, test: &Expression, at: usize) -> bool {
        self.holds_of(test, at, None)
    }

    /// `stat` replaces the item's metadata by those of a file of this machine.
    fn holds_of(&self, test: &Expression, at: usize, stat: Option<&Metadata>) -> bool {
        let item = &self.items[at];
        let kind = &self.tree.node(item.node).kind;
        match test {
            Expression::And(left, right) => self.holds_of(left, at, stat) && self.holds_of(right, at, stat),
            Expression::Or(left, right) => self.holds_of(left, at, stat) || self.holds_of(right, at, stat),
            Expression::Not(inner) => !self.holds_of(inner, at, stat),
            Expression::True => true,
            Expression::False => false,
            Expression::Name(glob) => {
                let name = item.path.names().last().map_or(&b""[..], Name::as_bytes);
                matches_all(glob.as_bytes(), name)
            }
            Expression::Path(glob) => components(glob).count() == depth(item) && starts(glob, item),
            Expression::PathStart(glob) => starts(glob, item),
            Expression::Number(figure, range) => {
                let found = match stat {
                    Some(stat) => programs::figure(*figure, stat, depth(item)),
                    None => self.figure(*figure, at),
                };
                found.is_some_and(|number| range.has(number))
            }
            Expression::Type(file_type) => stat.map_or(kind.file_type(), programs::file_type) == *file_type,
            Expression::Permissions(wanted) => {
                let own = self.metas[item.node.index()].mode;
                let mode = stat.map_or(own, |stat| (stat.mode() & 0o7777) as u16);
                match *wanted {
                    Permissions::Exactly(bits) => mode == bits,
                    Permissions::All(bits) => mode & bits == bits,
                    Permissions::Any(bits) => bits == 0 || mode & bits != 0,
                }
            }
            Expression::Exists => !matches!(kind, NodeKind::Symlink(_)) || self.target(at).is_some(),
            Expression::Absolute => matches!(kind, NodeKind::Symlink(target) if target.starts_with(b"/")),
            Expression::AtTarget(inner) => self.target(at).is_some_and(|at| self.holds(inner, at)),
            Expression::AtPath(path, inner) => self.at_path(path, at).is_some_and(|at| self.holds(inner, at)),
            Expression::AtHost(inner) => {
                let found = self.host_path(at).and_then(|host| host.metadata().ok());
                found.is_some_and(|found| self.holds_of(inner, at, Some(&found)))
            }
            Expression::File(regex) => self.run(at, |host| programs::file(host, regex)),
            Expression::Program(command) => {
                self.run(at, |host| programs::succeeds(command, &item.path, host))
            }
        }
    }

    fn figure(&self, figure: Figure, at: usize) -> Option<u64> {
        let item = &self.items[at];
        let node = self.tree.node(item.node);
        let host = || self.host_path(at).and_then(|path| path.symlink_metadata().ok());
        let size = || match &node.kind {
            NodeKind::File { len, .. } => *len,
            NodeKind::Symlink(target) => target.len() as u64,
            NodeKind::Directory => host().map_or(0, |found| found.size()),
            _ => 0,
        };
        let blocks = || host().map_or_else(|| size().div_ceil(512), |found| found.blocks());
        let is_file = matches!(node.kind, NodeKind::File { .. });
        let owner = self.metas[item.node.index()].owner;
        match figure {
            Figure::FileSize | Figure::FileBlocks | Figure::TailSize if !is_file => None,
            Figure::DirSize | Figure::DirBlocks | Figure::Entries if !node.is_dir() => None,
            Figure::FileSize | Figure::DirSize | Figure::Size => Some(size()),
            // For the usual block size; others are rare with this test.
            Figure::TailSize => Some(size() % (128 << 10)),
            Figure::FileBlocks | Figure::DirBlocks | Figure::Blocks => Some(blocks()),
            Figure::Inode => Some(host().map_or(item.node.index() as u64 + 1, |found| found.ino())),
            Figure::Links => Some(host().map_or(u64::from(node.links), |found| found.nlink())),
            Figure::Uid => Some(owner.uid.into()),
            Figure::Gid => Some(owner.gid.into()),
            Figure::Depth => Some(depth(item) as u64),
            Figure::Entries => Some(item.entries),
        }
    }

    /// Stays within the image.
    fn target(&self, at: usize) -> Option<usize> {
        let NodeKind::Symlink(target) = &self.tree.node(self.items[at].node).kind else { return None };
        let mut from = self.items[at].path.clone();
        from.pop();
        self.follow(&from, target, &mut 0)
    }

    fn at_path(&self, path: &str, at: usize) -> Option<usize> {
        let mut from = self.items[at].path.clone();
        if let Some(rest) = path.strip_prefix('/') {
            return self.follow(&ImagePath::root(), rest.trim_start_matches('/').as_bytes(), &mut 0);
        }
        if path == ".." || path.starts_with("../") {
            from.pop();
            return self.follow(&from, path[2..].trim_start_matches('/').as_bytes(), &mut 0);
        }
        let is_dir = self.tree.node(self.items[at].node).is_dir();
        if is_dir { self.follow(&from, path.as_bytes(), &mut 0) } else { None }
    }

    fn follow(&self, from: &ImagePath, path: &[u8], links: &mut u32) -> Option<usize> {
        *links += 1;
        if path.starts_with(b"/") || *links > LINKS_MAX {
            return None;
        }
        let mut at = from.clone();
        for part in path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
            if part == b".." {
                if at.is_root() {
                    return None;
                }
                at.pop();
                continue;
            }
            let above = at.clone();
            at.push(Name::new(part).ok()?);
            let found = *self.places.get(&at).filter(|found| self.items[**found].is_there)?;
            if let NodeKind::Symlink(target) = &self.tree.node(self.items[found].node).kind {
                at = self.items[self.follow(&above, target, links)?].path.clone();
            }
        }
        self.places.get(&at).copied().filter(|found| self.items[*found].is_there)
    }
}

fn components(glob: &str) -> impl Iterator<Item = &str> {
    glob.split('/').filter(|part| !part.is_empty())
}

fn depth(item: &Item) -> usize {
    item.path.names().count()
}

fn starts(glob: &str, item: &Item) -> bool {
    let mut names = item.path.names();
    components(glob)
        .all(|part| names.next().is_some_and(|name| matches_all(part.as_bytes(), name.as_bytes())))
}
