//! Verification of a new image against its source: names, metadata, and contents by the hashes
//! taken when they were read.
//!
//! The format is known only by its capabilities ([`Capabilities`]); losses were reported and
//! accepted before the image was written. The image's hierarchy is read directory by directory and
//! never kept in memory as a whole, because that of the source is.

mod contents;

use contents::ExpectedContents;
use packfs_core::{
    ContentDigest, Error, FileType, ImagePath, Name, Node, NodeId, NodeKind, Progress, Result, Stage, Tree,
    Xattrs, escaped,
};
use packfs_format::{Capabilities, Inode, InodeId, InodeKind, PackFormat, read_entries};
use packfs_read::{ReadEngine, Wanted};
use std::fmt::Debug;
use std::sync::Arc;

/// Expected contents of an image.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    /// The format of the image.
    pub format: &'a dyn PackFormat,
    /// The tree that was packed.
    pub tree: &'a Tree,
    /// Files that were stored empty because they could not be read; sorted.
    pub failed: &'a [NodeId],
    /// Digest of each node's contents.
    pub contents: &'a [ContentDigest],
}

/// Reads all of an image and compares it with its source.
///
/// Errors: `Failed` for the first difference, naming the file; `Corrupt` for undecodable data;
/// `Io`, `Cancelled`.
pub fn written(engine: &Arc<ReadEngine>, expected: &Expected<'_>, progress: &dyn Progress) -> Result<()> {
    let inodes = compare_trees(engine, expected, progress)?;
    let mut wanted = Vec::new();
    let mut nodes = Vec::new();
    for (id, node) in expected.tree.nodes() {
        let len = expected.len(id, node);
        let there = inodes[id.index()];
        if len > 0 && there != UNSEEN && expected.seen(id) != ContentDigest::Nothing {
            wanted.push(Wanted { id: there, len });
            nodes.push(id);
        }
    }
    drop(inodes);
    let bytes = wanted.iter().fold(0_u64, |bytes, file| bytes.saturating_add(file.len));
    progress.begin(Stage::Verify, wanted.len() as u64, bytes);
    contents::compare(engine, &ExpectedContents { expected, nodes: &nodes, wanted: &wanted }, progress)
}

impl Expected<'_> {
    fn len(&self, id: NodeId, node: &Node) -> u64 {
        match node.kind {
            NodeKind::File { len, .. } if self.failed.binary_search(&id).is_err() => len,
            _ => 0,
        }
    }

    fn seen(&self, id: NodeId) -> ContentDigest {
        self.contents.get(id.index()).copied().unwrap_or(ContentDigest::Nothing)
    }
}

const UNSEEN: InodeId = InodeId(u64::MAX);

/// Returns the image's inode of each planned node.
fn compare_trees(
    engine: &ReadEngine,
    expected: &Expected<'_>,
    progress: &dyn Progress,
) -> Result<Vec<InodeId>> {
    let volume = engine.volume();
    progress.begin(Stage::Scan, volume.inode_count_hint(), 0);
    let inodes = vec![UNSEEN; expected.tree.node_count() as usize];
    let capabilities = expected.format.capabilities();
    let mut compare = Comparing { engine, expected, capabilities, inodes };
    if let Some(fault) = volume.whole_fault(true)? {
        return Err(fault);
    }
    let root = volume.root();
    compare.name(&ImagePath::root, NodeId::ROOT, root)?;
    let mut open = vec![(NodeId::ROOT, root)];
    while let Some((dir, there)) = open.pop() {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let at_dir = |error: Error| error.at(format!("{:?}", expected.tree.path(dir)));
        let listing = Listing::read(engine, there).map_err(at_dir)?;
        progress.advance(listing.rows.len() as u64, 0, 0);
        compare.dir(dir, &listing, &mut open)?;
    }
    compare.no_inode_serves_twice()?;
    Ok(compare.inodes)
}

/// Names are concatenated in order.
#[derive(Default)]
struct Listing {
    names: Vec<u8>,
    rows: Vec<(u32, u32, FileType, InodeId)>,
}

impl Listing {
    fn read(engine: &ReadEngine, dir: InodeId) -> Result<Self> {
        let mut listing = Listing::default();
        read_entries(engine.volume(), dir, |entry, order| {
            let (start, len) = (listing.names.len() as u32, entry.name.len() as u32);
            listing.rows.push((start, len, entry.file_type, entry.id));
            listing.names.extend_from_slice(&entry.name);
            order.next(&entry.name);
            Ok(())
        })??;
        let Listing { names, rows } = &mut listing;
        rows.sort_unstable_by_key(|&(start, len, ..)| &names[start as usize..(start + len) as usize]);
        Ok(listing)
    }

    fn entries(&self) -> impl Iterator<Item = (&[u8], FileType, InodeId)> {
        let name = |start, len| &self.names[start as usize..(start + len) as usize];
        self.rows.iter().map(move |&(start, len, file_type, id)| (name(start, len), file_type, id))
    }
}

fn wrong(path: &ImagePath, what: impl std::fmt::Display) -> Error {
    Error::failed(format!("\"{}\" {what}", escaped(path.as_bytes())))
}

fn differs(path: &ImagePath, what: &str, planned: &dyn Debug, there: &dyn Debug) -> Error {
    wrong(path, format!("has another {what}: {there:.200?} instead of {planned:.200?}"))
}

type PathOf<'a> = &'a dyn Fn() -> ImagePath;

struct Comparing<'a> {
    engine: &'a ReadEngine,
    expected: &'a Expected<'a>,
    capabilities: Capabilities,
    inodes: Vec<InodeId>,
}

impl Comparing<'_> {
    /// Adds the directory's directories to `open`.
    fn dir(&mut self, dir: NodeId, listing: &Listing, open: &mut Vec<(NodeId, InodeId)>) -> Result<()> {
        let tree = self.expected.tree;
        let path = |name: &[u8]| {
            let mut path = tree.path(dir);
            if let Ok(name) = Name::new(name) {
                path.push(name);
            }
            path
        };
        let mut there = listing.entries().peekable();
        for planned in tree.entries(dir) {
            if let Some((name, ..)) = there.next_if(|(name, ..)| *name < planned.name) {
                return Err(wrong(&path(name), "was never packed"));
            }
            let Some((name, claim, id)) = there.next_if(|(name, ..)| *name == planned.name) else {
                return Err(wrong(&path(planned.name), "is missing"));
            };
            let truth = tree.node(planned.node).kind.file_type();
            if claim != truth {
                return Err(differs(&path(name), "type in its entry", &truth.word(), &claim.word()));
            }
            self.name(&|| path(name), planned.node, id)?;
            if tree.node(planned.node).is_dir() {
                open.push((planned.node, id));
            }
        }
        match there.next() {
            Some((name, ..)) => Err(wrong(&path(name), "was never packed")),
            None => Ok(()),
        }
    }

    fn name(&mut self, path: PathOf<'_>, planned: NodeId, there: InodeId) -> Result<()> {
        let holds_links = self.capabilities.holds_links();
        let known = std::mem::replace(&mut self.inodes[planned.index()], there);
        if known != UNSEEN && holds_links {
            return if known == there {
                Ok(())
            } else {
                Err(wrong(&path(), "is no link to its other names"))
            };
        }
        let a = self.expected.tree.node(planned);
        let b = self.engine.volume().inode(there).map_err(|error| error.at(format!("{:?}", path())))?;
        if let Some(doubt) = b.doubt {
            return Err(wrong(&path(), doubt));
        }
        if a.kind.file_type() != b.kind.file_type() {
            return Err(differs(&path(), "type", &a.kind.file_type().word(), &b.kind.file_type().word()));
        }
        match (&a.kind, b.kind) {
            (NodeKind::File { .. }, InodeKind::File { len }) => {
                let planned = self.expected.len(planned, a);
                if planned != len {
                    return Err(differs(&path(), "length", &planned, &len));
                }
            }
            (NodeKind::Symlink(planned), _) => {
                let there = self.engine.volume().read_link(there)?;
                if **planned != *there {
                    let (planned, there) = (escaped(planned).to_string(), escaped(&there).to_string());
                    return Err(differs(&path(), "target", &planned, &there));
                }
            }
            (NodeKind::BlockDevice(planned), InodeKind::BlockDevice(there))
            | (NodeKind::CharDevice(planned), InodeKind::CharDevice(there))
                if self.capabilities.held_device(*planned) != there =>
            {
                return Err(differs(&path(), "device number", planned, &there));
            }
            _ => {}
        }
        self.meta(path, a, &b)?;
        let xattrs = if b.has_xattrs { self.engine.volume().xattrs(there)? } else { Xattrs::new() };
        self.xattrs(path, self.expected.tree.xattrs(a.xattrs), &xattrs)?;
        // Trees count names; mounts show the stored link count.
        if holds_links && !a.is_dir() && a.links > 1 && b.links != a.links {
            return Err(differs(&path(), "number of links", &a.links, &b.links));
        }
        Ok(())
    }

    fn meta(&self, path: PathOf<'_>, a: &Node, b: &Inode) -> Result<()> {
        // Permissions of symbolic links have no effect, and not every format stores them.
        if !matches!(a.kind, NodeKind::Symlink(_)) && a.meta.mode != b.meta.mode {
            let octal = |mode: u16| format!("{mode:04o}");
            return Err(differs(&path(), "mode", &octal(a.meta.mode), &octal(b.meta.mode)));
        }
        if self.capabilities.held_owner(a.meta.owner) != b.meta.owner {
            return Err(differs(&path(), "owner", &a.meta.owner, &b.meta.owner));
        }
        match self.capabilities.held_time(a.kind.file_type(), a.meta.mtime) {
            Some(time) if time != b.meta.mtime => {
                Err(differs(&path(), "time", &time.to_string(), &b.meta.mtime.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn xattrs(&self, path: PathOf<'_>, planned: &Xattrs, there: &Xattrs) -> Result<()> {
        let held = || planned.iter().filter(|(name, value)| self.capabilities.holds_xattr(name, value));
        if held().count() != there.len() {
            let counts = (held().count(), there.len());
            return Err(differs(&path(), "number of extended attributes", &counts.0, &counts.1));
        }
        match held().find(|(name, value)| there.get(*name) != Some(value)) {
            Some((name, _)) => {
                Err(wrong(&path(), format!("has another extended attribute \"{}\"", escaped(name))))
            }
            None => Ok(()),
        }
    }

    /// Errors: `Failed` for an inode that represents two files.
    fn no_inode_serves_twice(&self) -> Result<()> {
        let mut inodes: Vec<InodeId> = self.inodes.iter().copied().filter(|&id| id != UNSEEN).collect();
        inodes.sort_unstable();
        let Some(twice) = inodes.windows(2).find(|pair| pair[0] == pair[1]) else { return Ok(()) };
        let second = self.inodes.iter().rposition(|id| *id == twice[0]).unwrap_or(0);
        Err(wrong(&self.expected.tree.path(NodeId(second as u32)), "is a link to another file"))
    }
}
