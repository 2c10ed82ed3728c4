//! Builds a [`Tree`] from entries in any order: last one wins, missing parents are made, hard links resolved at the end.

use crate::tree::{DirRow, EntryRow};
use crate::{Error, ImagePath, Meta, Name, Node, NodeId, NodeKind, Result, Tree, Xattrs, XattrsId};
use std::collections::{BTreeMap, HashMap};

/// A node while the tree is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BuildId(u32);

impl BuildId {
    /// The root directory.
    pub const ROOT: BuildId = BuildId(0);

    /// As an index into tables with one row for each call that made a node, the root first.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

enum Slot {
    Node(BuildId),
    /// A hard link whose target is looked up when the tree is finished.
    Link(ImagePath),
}

/// A name in a directory.
type Place = (BuildId, Box<[u8]>);

struct BuildNode {
    kind: NodeKind,
    meta: Meta,
    xattrs: XattrsId,
    children: BTreeMap<Box<[u8]>, Slot>,
}

/// Collects nodes and names; see the module.
pub struct TreeBuilder {
    nodes: Vec<BuildNode>,
    xattr_sets: Vec<Xattrs>,
    xattr_ids: HashMap<Xattrs, XattrsId>,
    implied: Meta,
}

impl TreeBuilder {
    /// An empty tree: a root directory with `implied` metadata, which parents that no entry describes get too.
    pub fn new(implied: Meta) -> Self {
        let mut builder = TreeBuilder {
            nodes: Vec::new(),
            xattr_sets: vec![Xattrs::new()],
            xattr_ids: HashMap::from([(Xattrs::new(), XattrsId::NONE)]),
            implied,
        };
        builder.push(NodeKind::Directory, implied, XattrsId::NONE);
        builder
    }

    fn push(&mut self, kind: NodeKind, meta: Meta, xattrs: XattrsId) -> BuildId {
        self.nodes.push(BuildNode { kind, meta, xattrs, children: BTreeMap::new() });
        BuildId(self.nodes.len() as u32 - 1)
    }

    fn get(&self, id: BuildId) -> &BuildNode {
        &self.nodes[id.0 as usize]
    }

    fn get_mut(&mut self, id: BuildId) -> &mut BuildNode {
        &mut self.nodes[id.0 as usize]
    }

    /// Numbers a set of extended attributes; equal sets share a number.
    pub fn intern_xattrs(&mut self, xattrs: Xattrs) -> XattrsId {
        if let Some(&id) = self.xattr_ids.get(&xattrs) {
            return id;
        }
        let id = XattrsId(self.xattr_sets.len() as u32);
        self.xattr_sets.push(xattrs.clone());
        self.xattr_ids.insert(xattrs, id);
        id
    }

    /// Replaces metadata and extended attributes of a node.
    pub fn describe(&mut self, id: BuildId, meta: Meta, xattrs: Xattrs) {
        let xattrs = self.intern_xattrs(xattrs);
        let node = self.get_mut(id);
        (node.meta, node.xattrs) = (meta, xattrs);
    }

    /// Adds or replaces `name` in the directory `parent`. A directory that replaces a directory keeps its children.
    pub fn add_child(
        &mut self,
        parent: BuildId,
        name: Name<'_>,
        kind: NodeKind,
        meta: Meta,
        xattrs: Xattrs,
    ) -> BuildId {
        if let Some(Slot::Node(old)) = self.get(parent).children.get(name.as_bytes())
            && matches!((&self.get(*old).kind, &kind), (NodeKind::Directory, NodeKind::Directory))
        {
            let old = *old;
            self.describe(old, meta, xattrs);
            return old;
        }
        let xattrs = self.intern_xattrs(xattrs);
        let id = self.push(kind, meta, xattrs);
        self.get_mut(parent).children.insert(name.as_bytes().into(), Slot::Node(id));
        id
    }

    /// Adds or replaces `name` in the directory `parent`, naming a node that is already there: a hard link.
    pub fn link_child(&mut self, parent: BuildId, name: Name<'_>, target: BuildId) {
        self.get_mut(parent).children.insert(name.as_bytes().into(), Slot::Node(target));
    }

    /// Adds or replaces the node at `path`; parents that are missing become directories.
    ///
    /// Errors: `Failed` if a parent is something other than a directory, if the root would stop being one, or if all that
    /// a directory holds would be lost.
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
        if !matches!(kind, NodeKind::Directory) {
            self.check_replaceable(parent, path, name, kind.file_type().word())?;
        }
        Ok(self.add_child(parent, name, kind, meta, xattrs))
    }

    fn check_replaceable(&self, parent: BuildId, path: &ImagePath, name: Name<'_>, by: &str) -> Result<()> {
        match self.get(parent).children.get(name.as_bytes()) {
            Some(Slot::Node(old)) if !self.get(*old).children.is_empty() => Err(Error::failed(format!(
                "{path:?} is a directory with entries, which a {by} would replace"
            ))),
            _ => Ok(()),
        }
    }

    /// Adds or replaces `path` as a hard link to `target`, which may come later. What is there already is linked as it is
    /// now, whatever takes its name later.
    pub fn link(&mut self, path: &ImagePath, target: ImagePath) -> Result<()> {
        let name = path.file_name().ok_or_else(|| Error::failed("the root cannot be a hard link"))?;
        let parent = self.parent_of(path)?;
        self.check_replaceable(parent, path, name, "hard link")?;
        let slot = match self.find(&target) {
            Some(id) if !matches!(self.get(id).kind, NodeKind::Directory) => Slot::Node(id),
            _ => Slot::Link(target),
        };
        self.get_mut(parent).children.insert(name.as_bytes().into(), slot);
        Ok(())
    }

    fn parent_of(&mut self, path: &ImagePath) -> Result<BuildId> {
        let mut parent_path = path.clone();
        parent_path.pop();
        let mut at = BuildId::ROOT;
        for name in parent_path.names() {
            at = match self.get(at).children.get(name.as_bytes()) {
                Some(Slot::Node(id)) if matches!(self.get(*id).kind, NodeKind::Directory) => *id,
                Some(Slot::Node(id)) => {
                    let word = self.get(*id).kind.file_type().word();
                    return Err(Error::failed(format!("{path:?} lies below a {word}, not a directory")));
                }
                Some(Slot::Link(_)) => {
                    return Err(Error::failed(format!("{path:?} lies below a hard link, not a directory")));
                }
                None => self.add_child(at, name, NodeKind::Directory, self.implied, Xattrs::new()),
            };
        }
        Ok(at)
    }

    /// Finds the node at `path`; hard links not yet resolved are not followed.
    pub fn find(&self, path: &ImagePath) -> Option<BuildId> {
        path.names().try_fold(BuildId::ROOT, |at, name| match self.get(at).children.get(name.as_bytes()) {
            Some(Slot::Node(id)) => Some(*id),
            _ => None,
        })
    }

    /// Whether a directory has an entry of this name.
    pub fn has_child(&self, parent: BuildId, name: &[u8]) -> bool {
        self.get(parent).children.contains_key(name)
    }

    /// How many nodes were made so far, those that were replaced counted.
    pub fn node_count(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// The type and details of a node.
    pub fn kind(&self, id: BuildId) -> &NodeKind {
        &self.get(id).kind
    }

    /// Freezes the tree: resolves hard links, numbers nodes depth first in byte order, counts links.
    ///
    /// Errors: `Failed` for a hard link whose target is missing, a directory, or part of a circle of links.
    pub fn finish(self) -> Result<Tree> {
        self.finish_numbered().map(|(tree, _)| tree)
    }

    /// The same; also says for each node of the tree which one it was while building.
    pub fn finish_numbered(mut self) -> Result<(Tree, Vec<BuildId>)> {
        self.resolve_links()?;
        Ok(self.freeze())
    }

    fn resolve_links(&mut self) -> Result<()> {
        let is_link = |slot: &Slot| matches!(slot, Slot::Link(_));
        let slots = self.nodes.iter().flat_map(|node| node.children.values());
        let links_count = slots.filter(|slot| is_link(slot)).count();
        for index in 0..self.nodes.len() {
            let children = self.nodes[index].children.iter();
            let links: Vec<Box<[u8]>> =
                children.filter(|(_, slot)| is_link(slot)).map(|(name, _)| name.clone()).collect();
            for name in links {
                self.resolve_link((BuildId(index as u32), name), links_count)?;
            }
        }
        Ok(())
    }

    /// Follows a hard link to its node, through links to links, and resolves each of them: none is followed twice.
    fn resolve_link(&mut self, link: Place, links_count: usize) -> Result<()> {
        let mut chain = Vec::new();
        let mut at = link;
        let found = loop {
            let (dir, name) = &at;
            let target = match self.get(*dir).children.get(name) {
                Some(Slot::Link(target)) => target,
                Some(Slot::Node(id)) => break *id,
                None => return Err(Error::failed("internal: a hard link was followed to nothing")),
            };
            let wrong = |fault: &str| {
                Error::failed(format!("hard link \"{}\" to {target:?}: {fault}", crate::escaped(name)))
            };
            // A chain of more links than there are comes back to one of them.
            if chain.len() == links_count {
                return Err(wrong("links in a circle"));
            }
            let next = self.place_of(target).ok_or_else(|| wrong("there is no such file"))?;
            if let Some(Slot::Node(id)) = self.get(next.0).children.get(&next.1)
                && matches!(self.get(*id).kind, NodeKind::Directory)
            {
                return Err(wrong("is a directory"));
            }
            chain.push(std::mem::replace(&mut at, next));
        };
        for (dir, name) in chain {
            self.get_mut(dir).children.insert(name, Slot::Node(found));
        }
        Ok(())
    }

    /// Where an entry stands; `None` if there is none.
    fn place_of(&self, path: &ImagePath) -> Option<Place> {
        let name = path.file_name()?.as_bytes();
        let mut parent = path.clone();
        parent.pop();
        let dir = self.find(&parent)?;
        self.has_child(dir, name).then(|| (dir, name.into()))
    }

    fn freeze(mut self) -> (Tree, Vec<BuildId>) {
        const UNNUMBERED: u32 = u32::MAX;
        let mut numbers = vec![UNNUMBERED; self.nodes.len()];
        let mut builds = vec![BuildId::ROOT];
        let mut tree = Tree {
            nodes: Vec::with_capacity(self.nodes.len()),
            entries: Vec::new(),
            names: Vec::new(),
            dirs: Vec::new(),
            xattr_sets: std::mem::take(&mut self.xattr_sets),
        };
        numbers[0] = 0;
        let root = &mut self.nodes[0];
        tree.nodes.push(frozen(root, NodeId::ROOT, 0));
        let root_rows = tree.open_dir(NodeId::ROOT, &mut root.children);
        // Directories whose entries are being numbered, from the root down: node, next entry, build ids of its entries.
        let mut open = vec![(NodeId::ROOT, root_rows)];
        while let Some((dir, rows)) = open.last_mut() {
            let dir = *dir;
            let Some((entry, child)) = rows.next() else {
                open.pop();
                continue;
            };
            let build = &mut self.nodes[child.0 as usize];
            let is_dir = matches!(build.kind, NodeKind::Directory);
            let number = numbers[child.0 as usize];
            if number != UNNUMBERED {
                tree.entries[entry as usize].node = NodeId(number);
                tree.nodes[number as usize].links += 1;
                continue;
            }
            let id = NodeId(tree.nodes.len() as u32);
            numbers[child.0 as usize] = id.0;
            builds.push(child);
            tree.entries[entry as usize].node = id;
            tree.nodes.push(frozen(build, dir, entry));
            if is_dir {
                tree.nodes[dir.index()].links += 1;
                let rows = tree.open_dir(id, &mut build.children);
                open.push((id, rows));
            }
        }
        (tree, builds)
    }
}

type Rows = std::iter::Zip<std::ops::RangeFrom<u32>, std::vec::IntoIter<BuildId>>;

impl Tree {
    /// Gives a directory its rows in the table of entries; their nodes are filled in as they are numbered.
    fn open_dir(&mut self, dir: NodeId, children: &mut BTreeMap<Box<[u8]>, Slot>) -> Rows {
        let entries_start = self.entries.len() as u32;
        let mut builds = Vec::with_capacity(children.len());
        for (name, slot) in std::mem::take(children) {
            let Slot::Node(build) = slot else { unreachable!("links are resolved before freezing") };
            self.entries.push(EntryRow {
                name_start: self.names.len() as u64,
                node: NodeId::ROOT,
                name_len: name.len() as u8,
            });
            self.names.extend_from_slice(&name);
            builds.push(build);
        }
        self.dirs.push(DirRow { node: dir, entries_start, entries_end: self.entries.len() as u32 });
        (entries_start..).zip(builds)
    }
}

fn frozen(build: &mut BuildNode, parent: NodeId, first_entry: u32) -> Node {
    let kind = std::mem::replace(&mut build.kind, NodeKind::Fifo);
    let links = if matches!(kind, NodeKind::Directory) { 2 } else { 1 };
    Node { kind, meta: build.meta, xattrs: build.xattrs, links, parent, first_entry }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContentId;

    fn path(text: &str) -> ImagePath {
        ImagePath::parse(text.as_bytes()).unwrap()
    }

    fn file(len: u64) -> NodeKind {
        NodeKind::File { len, content: ContentId(0) }
    }

    fn add(builder: &mut TreeBuilder, at: &str, kind: NodeKind) {
        builder.add(&path(at), kind, Meta::default(), Xattrs::new()).unwrap();
    }

    fn listing(tree: &Tree) -> Vec<(String, u32)> {
        let mut walk = tree.walk();
        let mut rows = Vec::new();
        while let Some((path, id)) = walk.next() {
            assert!(tree.find(path) == Some(id), "{path:?} is found again");
            rows.push((path.to_string(), id.0));
        }
        rows
    }

    #[test]
    fn numbers_nodes_depth_first_whatever_the_order_of_entries() {
        let mut a = TreeBuilder::new(Meta::default());
        for at in ["b/y", "a", "b/x", "c"] {
            add(&mut a, at, file(1));
        }
        let mut b = TreeBuilder::new(Meta::default());
        for at in ["c", "b/x", "b/y", "a"] {
            add(&mut b, at, file(1));
        }
        let (a, b) = (a.finish().unwrap(), b.finish().unwrap());
        assert_eq!(listing(&a), listing(&b));
        let names: Vec<_> = listing(&a).into_iter().map(|row| row.0).collect();
        assert_eq!(names, ["/", "a", "b", "b/x", "b/y", "c"]);
        assert_eq!(a.node(NodeId::ROOT).links, 3);
        assert_eq!(a.path(NodeId(3)), path("b/x"));
    }

    #[test]
    fn hard_links_share_one_node_even_when_the_target_comes_later() {
        let mut builder = TreeBuilder::new(Meta::default());
        builder.link(&path("a"), path("z")).unwrap();
        builder.link(&path("m"), path("a")).unwrap();
        add(&mut builder, "z", file(3));
        let tree = builder.finish().unwrap();
        let a = tree.find(&path("a")).unwrap();
        assert_eq!(Some(a), tree.find(&path("z")));
        assert_eq!(Some(a), tree.find(&path("m")));
        assert_eq!(tree.node(a).links, 3);
        assert_eq!((tree.node_count(), tree.entry_count()), (2, 3));
    }

    #[test]
    fn refuses_hard_links_that_lead_nowhere_or_in_circles() {
        for (links, fault) in [
            (&[("a", "b")][..], "no such file"),
            (&[("a", "b"), ("b", "a")], "circle"),
            (&[("a", "a")], "circle"),
            (&[("a", "d")], "is a directory"),
        ] {
            let mut builder = TreeBuilder::new(Meta::default());
            add(&mut builder, "d", NodeKind::Directory);
            for (from, to) in links {
                builder.link(&path(from), path(to)).unwrap();
            }
            let error = builder.finish().unwrap_err().to_string();
            assert!(error.contains(fault), "{error}");
        }
    }

    #[test]
    fn hard_links_may_lead_over_any_number_of_others() {
        const COUNT: u32 = 100_000;
        // In both orders of names, so that chains are followed from their beginning and from their end.
        for name in [|index| format!("{index:06}"), |index| format!("{:06}", COUNT - index)] {
            let mut builder = TreeBuilder::new(Meta::default());
            for index in 0..COUNT {
                builder.link(&path(&name(index)), path(&name(index + 1))).unwrap();
            }
            add(&mut builder, &name(COUNT), file(1));
            let tree = builder.finish().unwrap();
            assert_eq!((tree.node_count(), tree.entry_count()), (2, COUNT as usize + 1));
        }
    }

    #[test]
    fn a_circle_at_the_end_of_a_chain_is_found() {
        let mut builder = TreeBuilder::new(Meta::default());
        for index in 0..1000 {
            let next = if index == 999 { 900 } else { index + 1 };
            builder.link(&path(&index.to_string()), path(&next.to_string())).unwrap();
        }
        assert!(builder.finish().unwrap_err().to_string().contains("circle"));
    }

    #[test]
    fn the_last_entry_of_a_name_wins_and_a_directory_keeps_its_children() {
        let mut builder = TreeBuilder::new(Meta::default());
        add(&mut builder, "d/x", file(1));
        add(&mut builder, "d", NodeKind::Directory);
        add(&mut builder, "d/x", file(2));
        let tree = builder.finish().unwrap();
        let x = tree.find(&path("d/x")).unwrap();
        assert_eq!(tree.node(x).kind, file(2));
        assert_eq!(tree.node_count(), 3);
    }

    #[test]
    fn a_hard_link_keeps_what_it_was_made_to() {
        let mut builder = TreeBuilder::new(Meta::default());
        add(&mut builder, "a", file(1));
        builder.link(&path("b"), path("a")).unwrap();
        // As an archive has it that names the same file twice.
        builder.link(&path("b"), path("b")).unwrap();
        add(&mut builder, "a", file(2));
        let tree = builder.finish().unwrap();
        let kind = |at: &str| tree.node(tree.find(&path(at)).unwrap()).kind.clone();
        assert_eq!((kind("a"), kind("b")), (file(2), file(1)));
        assert_eq!(tree.node_count(), 3);
    }

    #[test]
    fn nothing_replaces_a_directory_with_entries_in_it() {
        let mut builder = TreeBuilder::new(Meta::default());
        add(&mut builder, "full/x", file(1));
        add(&mut builder, "empty", NodeKind::Directory);
        let replaced = builder.add(&path("full"), file(2), Meta::default(), Xattrs::new());
        assert!(replaced.unwrap_err().to_string().contains("with entries"));
        assert!(builder.link(&path("full"), path("full/x")).is_err());
        add(&mut builder, "empty", file(2));
        assert!(builder.finish().is_ok());
    }

    #[test]
    fn refuses_entries_below_something_that_is_no_directory() {
        let mut builder = TreeBuilder::new(Meta::default());
        add(&mut builder, "link", NodeKind::Symlink(b"/etc".as_slice().into()));
        let error = builder.add(&path("link/passwd"), file(1), Meta::default(), Xattrs::new()).unwrap_err();
        assert!(error.to_string().contains("below a symlink"), "{error}");
    }
}
