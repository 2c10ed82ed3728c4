//! A whole file hierarchy in memory, for packing, archiving, listing and comparing.
//!
//! Compact (about 100 bytes an entry), immutable once built by [`crate::TreeBuilder`], and always
//! in one order: nodes are numbered depth first with names in byte order, so the same hierarchy
//! gives the same tree whatever the order of its source.

use crate::{ContentId, DeviceNumber, FileType, ImagePath, Meta, Name, Xattrs};

/// Number of a node of a [`Tree`]: 0 is the root, parents precede their children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The root directory.
    pub const ROOT: NodeId = NodeId(0);

    /// Returns the number as an index into tables with one row a node.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of a set of extended attributes of a [`Tree`]; equal sets have equal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct XattrsId(pub u32);

impl XattrsId {
    /// The empty set.
    pub const NONE: XattrsId = XattrsId(0);
}

/// Type and type-specific part of a [`Node`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A directory; [`Tree::entries`] lists it.
    Directory,
    /// A regular file.
    File {
        /// Length in bytes, holes included.
        len: u64,
        /// Source of its bytes.
        content: ContentId,
    },
    /// A symbolic link with its target, raw bytes.
    Symlink(Box<[u8]>),
    /// A block device.
    BlockDevice(DeviceNumber),
    /// A character device.
    CharDevice(DeviceNumber),
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
}

impl NodeKind {
    /// Returns the type.
    pub fn file_type(&self) -> FileType {
        match self {
            NodeKind::Directory => FileType::Directory,
            NodeKind::File { .. } => FileType::File,
            NodeKind::Symlink(_) => FileType::Symlink,
            NodeKind::BlockDevice(_) => FileType::BlockDevice,
            NodeKind::CharDevice(_) => FileType::CharDevice,
            NodeKind::Fifo => FileType::Fifo,
            NodeKind::Socket => FileType::Socket,
        }
    }
}

/// File of any type. Several entries may refer to it (hard links), but never to a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Type and its details.
    pub kind: NodeKind,
    /// Permissions, owner, time.
    pub meta: Meta,
    /// Extended attributes.
    pub xattrs: XattrsId,
    /// Link count as Linux reports it: number of entries that refer to the node; for a directory 2
    /// plus its subdirectories.
    pub links: u32,
    /// Directory of `first_entry`; the root's is the root.
    pub(crate) parent: NodeId,
    pub(crate) first_entry: u32,
}

impl Node {
    /// Returns true for a directory.
    pub fn is_dir(&self) -> bool {
        matches!(self.kind, NodeKind::Directory)
    }

    /// Returns the directory of the node's first entry; the root's parent is the root.
    pub fn parent(&self) -> NodeId {
        self.parent
    }
}

/// Entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// Valid name.
    pub name: &'a [u8],
    /// Node that the name refers to.
    pub node: NodeId,
}

/// Range of a name within all names of a tree: start (48 bits) and length in 8 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamePlace {
    start_low: u32,
    start_high: u16,
    len: u8,
}

impl NamePlace {
    pub(crate) fn add(names: &mut Vec<u8>, name: &[u8]) -> Self {
        let start = names.len() as u64;
        names.extend_from_slice(name);
        NamePlace { start_low: start as u32, start_high: (start >> 32) as u16, len: name.len() as u8 }
    }

    pub(crate) fn of(self, names: &[u8]) -> &[u8] {
        let start = u64::from(self.start_high) << 32 | u64::from(self.start_low);
        &names[start as usize..][..usize::from(self.len)]
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRow {
    pub name: NamePlace,
    pub node: NodeId,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DirRow {
    pub node: NodeId,
    pub entries_start: u32,
    pub entries_end: u32,
}

/// Immutable file hierarchy.
#[derive(Debug)]
pub struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) entries: Vec<EntryRow>,
    pub(crate) names: Vec<u8>,
    /// Ascending by node number.
    pub(crate) dirs: Vec<DirRow>,
    /// Set 0 is empty.
    pub(crate) xattr_sets: Vec<Xattrs>,
}

impl Tree {
    /// Returns a node. Panics if the number is not of this tree.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Returns the number of nodes; they are numbered `0..node_count`.
    pub fn node_count(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns the number of names; hard links count each, the root has none.
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// Iterates over all nodes in order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(index as u32), node))
    }

    /// Iterates over the entries of a directory in byte order of their names; empty for other
    /// nodes.
    pub fn entries(&self, dir: NodeId) -> impl ExactSizeIterator<Item = Entry<'_>> + DoubleEndedIterator {
        let rows = match self.dirs.binary_search_by_key(&dir, |row| row.node) {
            Ok(found) => {
                let row = self.dirs[found];
                &self.entries[row.entries_start as usize..row.entries_end as usize]
            }
            Err(_) => &[],
        };
        rows.iter().map(|row| Entry { name: self.name(row), node: row.node })
    }

    fn name(&self, row: &EntryRow) -> &[u8] {
        row.name.of(&self.names)
    }

    /// Finds a name in a directory.
    pub fn lookup(&self, dir: NodeId, name: &[u8]) -> Option<NodeId> {
        let row = self.dirs[self.dirs.binary_search_by_key(&dir, |row| row.node).ok()?];
        let rows = &self.entries[row.entries_start as usize..row.entries_end as usize];
        rows.binary_search_by(|row| self.name(row).cmp(name)).ok().map(|index| rows[index].node)
    }

    /// Finds a path, without following symbolic links.
    pub fn find(&self, path: &ImagePath) -> Option<NodeId> {
        path.names().try_fold(NodeId::ROOT, |dir, name| self.lookup(dir, name.as_bytes()))
    }

    /// Returns the path of a node's first entry.
    pub fn path(&self, id: NodeId) -> ImagePath {
        let mut names = Vec::new();
        let mut at = id;
        while at != NodeId::ROOT {
            let node = self.node(at);
            names.push(self.name(&self.entries[node.first_entry as usize]));
            at = node.parent;
        }
        let mut path = ImagePath::root();
        for name in names.into_iter().rev() {
            path.push(Name::new(name).expect("the builder only takes checked names"));
        }
        path
    }

    /// Returns the name of a node's first entry; empty for the root.
    pub fn first_name(&self, id: NodeId) -> &[u8] {
        if id == NodeId::ROOT { &[] } else { self.name(&self.entries[self.node(id).first_entry as usize]) }
    }

    /// Returns a set of extended attributes.
    pub fn xattrs(&self, id: XattrsId) -> &Xattrs {
        &self.xattr_sets[id.0 as usize]
    }

    /// Returns all distinct sets, the empty one first.
    pub fn xattr_sets(&self) -> &[Xattrs] {
        &self.xattr_sets
    }

    /// Iterates over all names from the root down, parents before children, names in byte order;
    /// each hard link separately. The root comes first, with an empty path.
    pub fn walk(&self) -> Walk<'_> {
        Walk { tree: self, path: ImagePath::root(), open: Vec::new(), next: Some(NodeId::ROOT) }
    }

    /// Returns the total length of all files, each node once.
    pub fn bytes_total(&self) -> u64 {
        let lens =
            self.nodes.iter().map(|node| if let NodeKind::File { len, .. } = node.kind { len } else { 0 });
        // The lengths of two sparse files may overflow.
        lens.fold(0, u64::saturating_add)
    }

    /// Returns the number of regular files.
    pub fn file_count(&self) -> u64 {
        self.nodes.iter().filter(|node| matches!(node.kind, NodeKind::File { .. })).count() as u64
    }
}

/// Iterator of [`Tree::walk`].
pub struct Walk<'a> {
    tree: &'a Tree,
    path: ImagePath,
    /// Remaining entries of each directory from the root down.
    open: Vec<(u32, u32)>,
    next: Option<NodeId>,
}

impl Walk<'_> {
    /// Returns path and node of the next entry. Not an `Iterator`, because the path is borrowed.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<(&ImagePath, NodeId)> {
        if let Some(root) = self.next.take() {
            self.enter(root);
            return Some((&self.path, root));
        }
        loop {
            let (start, end) = self.open.last_mut()?;
            if start == end {
                self.open.pop();
                self.path.pop();
                continue;
            }
            let row = self.tree.entries[*start as usize];
            *start += 1;
            self.path.push(Name::new(self.tree.name(&row)).expect("the builder only takes checked names"));
            if self.tree.node(row.node).is_dir() {
                self.enter(row.node);
                return Some((&self.path, row.node));
            }
            // The next call pops the path, as at the end of an empty directory.
            self.open.push((0, 0));
            return Some((&self.path, row.node));
        }
    }

    fn enter(&mut self, dir: NodeId) {
        let found = self.tree.dirs.binary_search_by_key(&dir, |row| row.node);
        let row = self.tree.dirs[found.expect("every directory has a row")];
        self.open.push((row.entries_start, row.entries_end));
    }
}
