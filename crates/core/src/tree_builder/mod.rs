//! Builds a [`Tree`] from entries in any order: the last entry of a path wins, missing parents are
//! created, hard links are resolved at the end.

mod entries;
mod freeze;
#[cfg(test)]
mod tests;

use crate::{Error, ImagePath, Meta, Name, Node, NodeId, NodeKind, Result, Tree, Xattrs, XattrsId};
use entries::{Entries, EntryId, Spot, Target};
use hashbrown::HashTable;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Node of a tree that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BuildId(u32);

impl BuildId {
    /// The root directory.
    pub const ROOT: BuildId = BuildId(0);

    /// Returns the number as an index into tables with one row for each created node, the root
    /// first.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Collects nodes and names of a [`Tree`].
pub struct TreeBuilder {
    /// Fields that depend on the position in the tree are set at the end.
    nodes: Vec<Node>,
    entries: Entries,
    link_targets: Vec<ImagePath>,
    xattr_sets: Vec<Xattrs>,
    xattr_ids: HashTable<XattrsId>,
    hashing: RandomState,
    implied: Meta,
    /// Directories that still have implied metadata.
    implied_dirs: HashSet<BuildId>,
}

impl TreeBuilder {
    /// Creates a tree with a root directory. It has the metadata `implied`, and so have parents
    /// that no entry describes.
    pub fn new(implied: Meta) -> Self {
        let mut builder = TreeBuilder {
            nodes: Vec::new(),
            entries: Entries::default(),
            link_targets: Vec::new(),
            xattr_sets: vec![Xattrs::new()],
            xattr_ids: HashTable::new(),
            hashing: RandomState::new(),
            implied,
            implied_dirs: HashSet::new(),
        };
        builder.push(NodeKind::Directory, implied, XattrsId::NONE);
        builder
    }

    fn push(&mut self, kind: NodeKind, meta: Meta, xattrs: XattrsId) -> BuildId {
        self.nodes.push(Node { kind, meta, xattrs, links: 0, parent: NodeId::ROOT, first_entry: 0 });
        self.entries.add_node();
        BuildId(self.nodes.len() as u32 - 1)
    }

    fn get(&self, id: BuildId) -> &Node {
        &self.nodes[id.index()]
    }

    // Equal sets share a number.
    fn intern_xattrs(&mut self, xattrs: Xattrs) -> XattrsId {
        if xattrs.is_empty() {
            return XattrsId::NONE;
        }
        let TreeBuilder { xattr_sets: sets, xattr_ids: ids, hashing, .. } = self;
        let hash = hashing.hash_one(&xattrs);
        let set = |id: &XattrsId| &sets[id.0 as usize];
        if let Some(&id) = ids.find(hash, |id| *set(id) == xattrs) {
            return id;
        }
        let id = XattrsId(sets.len() as u32);
        ids.insert_unique(hash, id, |id| hashing.hash_one(set(id)));
        sets.push(xattrs);
        id
    }

    /// Replaces metadata and extended attributes of a node.
    pub fn describe(&mut self, id: BuildId, meta: Meta, xattrs: Xattrs) {
        self.implied_dirs.remove(&id);
        let xattrs = self.intern_xattrs(xattrs);
        let node = &mut self.nodes[id.index()];
        (node.meta, node.xattrs) = (meta, xattrs);
    }

    /// Adds or replaces `name` in the directory `parent`. A directory that replaces a directory
    /// keeps its children.
    pub fn add_child(
        &mut self,
        parent: BuildId,
        name: Name<'_>,
        kind: NodeKind,
        meta: Meta,
        xattrs: Xattrs,
    ) -> BuildId {
        let spot = self.entries.spot(parent, name.as_bytes());
        self.put(&spot, name, kind, meta, xattrs)
    }

    fn put(&mut self, spot: &Spot, name: Name<'_>, kind: NodeKind, meta: Meta, xattrs: Xattrs) -> BuildId {
        if matches!(kind, NodeKind::Directory)
            && let Some(Target::Node(old)) = spot.entry.map(|entry| self.entries.target(entry))
            && self.get(old).is_dir()
        {
            self.describe(old, meta, xattrs);
            return old;
        }
        let xattrs = self.intern_xattrs(xattrs);
        let id = self.push(kind, meta, xattrs);
        self.entries.put(spot, name.as_bytes(), Target::Node(id));
        id
    }

    /// Adds or replaces `name` in the directory `parent` as a hard link to an existing node.
    pub fn link_child(&mut self, parent: BuildId, name: Name<'_>, target: BuildId) {
        let spot = self.entries.spot(parent, name.as_bytes());
        self.entries.put(&spot, name.as_bytes(), Target::Node(target));
    }

    /// Adds or replaces the node at `path`; missing parents become directories.
    ///
    /// Errors: `Failed` if a parent is not a directory, if the root would be replaced by another
    /// type, or if a directory with entries would be.
    pub fn add(&mut self, path: &ImagePath, kind: NodeKind, meta: Meta, xattrs: Xattrs) -> Result<BuildId> {
        let Some(name) = path.file_name() else {
            if !matches!(kind, NodeKind::Directory) {
                return Err(Error::failed(format!(
                    "the root must be a directory, not a {}",
                    kind.file_type().word()
                )));
            }
            self.describe(BuildId::ROOT, meta, xattrs);
            return Ok(BuildId::ROOT);
        };
        let parent = self.parent_of(path)?;
        let spot = self.entries.spot(parent, name.as_bytes());
        if !matches!(kind, NodeKind::Directory) {
            self.check_replaceable(&spot, path, kind.file_type().word())?;
        }
        Ok(self.put(&spot, name, kind, meta, xattrs))
    }

    fn check_replaceable(&self, spot: &Spot, path: &ImagePath, by: &str) -> Result<()> {
        match spot.entry.map(|entry| self.entries.target(entry)) {
            Some(Target::Node(old)) if !self.entries.is_empty(old) => Err(Error::failed(format!(
                "{path:?} is a directory with entries, which a {by} would replace"
            ))),
            _ => Ok(()),
        }
    }

    /// Adds or replaces `path` as a hard link to `target`, which may be added later. An existing
    /// target is linked at once, so its later replacement has no effect.
    pub fn link(&mut self, path: &ImagePath, target: ImagePath) -> Result<()> {
        let name = path.file_name().ok_or_else(|| Error::failed("the root cannot be a hard link"))?;
        let parent = self.parent_of(path)?;
        let spot = self.entries.spot(parent, name.as_bytes());
        self.check_replaceable(&spot, path, "hard link")?;
        let target = match self.find(&target) {
            Some(id) if !self.get(id).is_dir() => Target::Node(id),
            _ => {
                self.link_targets.push(target);
                Target::Link(self.link_targets.len() as u32 - 1)
            }
        };
        self.entries.put(&spot, name.as_bytes(), target);
        Ok(())
    }

    fn parent_of(&mut self, path: &ImagePath) -> Result<BuildId> {
        let mut parent_path = path.clone();
        parent_path.pop();
        let mut at = BuildId::ROOT;
        for name in parent_path.names() {
            at = match self.entries.get(at, name.as_bytes()) {
                Some(Target::Node(id)) if self.get(id).is_dir() => id,
                Some(Target::Node(id)) => {
                    let word = self.get(id).kind.file_type().word();
                    return Err(Error::failed(format!("{path:?} lies below a {word}, not a directory")));
                }
                Some(Target::Link(_)) => {
                    return Err(Error::failed(format!("{path:?} lies below a hard link, not a directory")));
                }
                None => {
                    let dir = self.add_child(at, name, NodeKind::Directory, self.implied, Xattrs::new());
                    self.implied_dirs.insert(dir);
                    dir
                }
            };
        }
        Ok(at)
    }

    /// Finds the node at `path`; hard links not yet resolved are not followed.
    pub fn find(&self, path: &ImagePath) -> Option<BuildId> {
        path.names().try_fold(BuildId::ROOT, |at, name| self.child(at, name.as_bytes()))
    }

    /// Finds the node of a name in a directory; hard links not yet resolved are not followed.
    pub fn child(&self, parent: BuildId, name: &[u8]) -> Option<BuildId> {
        match self.entries.get(parent, name) {
            Some(Target::Node(id)) => Some(id),
            _ => None,
        }
    }

    /// Returns true if a directory has an entry of this name.
    pub fn has_child(&self, parent: BuildId, name: &[u8]) -> bool {
        self.entries.find(parent, name).is_some()
    }

    /// Returns the number of nodes created so far, replaced ones included.
    pub fn node_count(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// Returns the number of directories below the root that no entry describes so far.
    pub fn implied_count(&self) -> u64 {
        self.implied_dirs.len() as u64
    }

    /// Returns true for a directory below the root that no entry describes so far.
    pub fn is_implied(&self, id: BuildId) -> bool {
        self.implied_dirs.contains(&id)
    }

    /// Returns the type and details of a node.
    pub fn kind(&self, id: BuildId) -> &NodeKind {
        &self.get(id).kind
    }

    /// Returns metadata and extended attributes of a node.
    pub fn description(&self, id: BuildId) -> (Meta, Xattrs) {
        let node = self.get(id);
        (node.meta, self.xattr_sets[node.xattrs.0 as usize].clone())
    }

    /// Completes the tree: resolves hard links, numbers nodes depth first in byte order, counts
    /// links.
    ///
    /// Errors: `Failed` for a hard link whose target is missing, a directory, or part of a cycle of
    /// links.
    pub fn finish(self) -> Result<Tree> {
        self.finish_numbered().map(|(tree, _)| tree)
    }

    /// Completes the tree like [`TreeBuilder::finish`]; also returns the build id of each node.
    pub fn finish_numbered(mut self) -> Result<(Tree, Vec<BuildId>)> {
        self.resolve_links()?;
        let TreeBuilder { nodes, entries, xattr_sets, .. } = self;
        Ok(freeze::freeze(nodes, entries, xattr_sets))
    }

    /// Resolves the hard links so far, so that later replacements of their targets have no effect
    /// on them.
    ///
    /// Errors: `Failed` for a link whose target is missing, a directory, or part of a cycle of
    /// links.
    pub fn resolve_links(&mut self) -> Result<()> {
        if self.link_targets.is_empty() {
            return Ok(());
        }
        let is_link = |entry: &EntryId| matches!(self.entries.target(*entry), Target::Link(_));
        let links: Vec<EntryId> = self.entries.all().filter(is_link).collect();
        for &link in &links {
            self.resolve_link(link, links.len())?;
        }
        Ok(())
    }

    /// Also resolves the links on the way, so that none is followed twice.
    fn resolve_link(&mut self, link: EntryId, links_count: usize) -> Result<()> {
        let mut chain = Vec::new();
        let mut at = link;
        let found = loop {
            let target = match self.entries.target(at) {
                Target::Link(number) => &self.link_targets[number as usize],
                Target::Node(id) => break id,
            };
            let wrong = |fault: &str| {
                let name = crate::escaped(self.entries.name(at));
                Error::failed(format!("hard link \"{name}\" to {target:?}: {fault}"))
            };
            // A chain longer than the number of links is a cycle.
            if chain.len() == links_count {
                return Err(wrong("links in a circle"));
            }
            let next = self.entry_at(target).ok_or_else(|| wrong("there is no such file"))?;
            if let Target::Node(id) = self.entries.target(next)
                && self.get(id).is_dir()
            {
                return Err(wrong("is a directory"));
            }
            chain.push(at);
            at = next;
        };
        for entry in chain {
            self.entries.retarget(entry, Target::Node(found));
        }
        Ok(())
    }

    fn entry_at(&self, path: &ImagePath) -> Option<EntryId> {
        let name = path.file_name()?.as_bytes();
        let mut parent = path.clone();
        parent.pop();
        self.entries.find(self.find(&parent)?, name)
    }
}
