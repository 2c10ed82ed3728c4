//! A volume made by hand over bytes made by hand: stranger than any builder of images would write
//! it.

use packfs_core::{Error, Image, Meta, Result, Xattrs};
use packfs_format::{
    Check, DirCursor, DirEntry, Directories, Extent, ExtentFrom, Facts, Finding, FormatInfo, Inode, InodeId,
    InodeKind, Space, SpaceOwner, Volume,
};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An image in memory that counts what is read of it.
#[derive(Default)]
pub struct MadeUpImage {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Number of bytes read so far.
    pub read_len: AtomicU64,
    /// Makes the next read fail.
    pub fails_once: AtomicBool,
}

impl MadeUpImage {
    /// An image of these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        MadeUpImage { bytes, ..MadeUpImage::default() }
    }
}

impl Image for MadeUpImage {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if self.fails_once.swap(false, Ordering::Relaxed) {
            return Err(Error::io("cannot read", std::io::Error::other("bad sector")));
        }
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        self.read_len.fetch_add(len as u64, Ordering::Relaxed);
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn name(&self) -> String {
        "made-up image".into()
    }
}

/// One inode of a [`MadeUpVolume`], with whatever its kind has.
#[derive(Clone, Debug)]
pub struct MadeUpNode {
    /// The inode as the volume returns it.
    pub inode: Inode,
    /// Entries of a directory, in this order.
    pub entries: Vec<DirEntry>,
    /// Target of a symbolic link.
    pub target: Vec<u8>,
    /// Told of if there are any.
    pub xattrs: Xattrs,
    /// Extents of a file.
    pub extents: Vec<Extent>,
}

impl MadeUpNode {
    /// An inode with one link and nothing else.
    pub fn new(id: InodeId, kind: InodeKind, meta: Meta) -> Self {
        let inode = Inode {
            kind,
            meta,
            links: 1,
            number: id.0,
            doubt: None,
            has_xattrs: false,
            sectors: kind.sectors_filled(),
        };
        let (entries, target, xattrs, extents) = Default::default();
        MadeUpNode { inode, entries, target, xattrs, extents }
    }

    /// A directory of these entries.
    pub fn dir(id: InodeId, entries: Vec<DirEntry>) -> Self {
        MadeUpNode { entries, ..MadeUpNode::new(id, InodeKind::Directory, Meta::default()) }
    }

    /// A file of these extents.
    pub fn file(id: InodeId, extents: Vec<Extent>) -> Self {
        let len = extents.iter().map(|extent| extent.len).sum();
        MadeUpNode { extents, ..MadeUpNode::new(id, InodeKind::File { len }, Meta::default()) }
    }
}

/// A volume that says what it is told to say. The root is inode 0.
#[derive(Clone, Debug, Default)]
pub struct MadeUpVolume {
    /// Every inode there is.
    pub nodes: BTreeMap<InodeId, MadeUpNode>,
}

impl MadeUpVolume {
    fn node(&self, id: InodeId) -> Result<&MadeUpNode> {
        self.nodes.get(&id).ok_or_else(|| Error::corrupt("made-up image", format!("no inode {}", id.0)))
    }
}

impl FromIterator<(InodeId, MadeUpNode)> for MadeUpVolume {
    fn from_iter<T: IntoIterator<Item = (InodeId, MadeUpNode)>>(nodes: T) -> Self {
        MadeUpVolume { nodes: nodes.into_iter().collect() }
    }
}

static INFO: FormatInfo = FormatInfo { name: "made-up", ..FormatInfo::EMPTY };

impl Volume for MadeUpVolume {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn root(&self) -> InodeId {
        InodeId(0)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let node = self.node(id)?;
        Ok(Inode { has_xattrs: !node.xattrs.is_empty(), ..node.inode })
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        Ok(self.node(id)?.target.clone())
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        Ok(self.node(id)?.xattrs.clone())
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        for extent in &self.node(id)?.extents {
            let (start, end) = (extent.offset.max(range.start), (extent.offset + extent.len).min(range.end));
            if start >= end {
                continue;
            }
            let skipped = start - extent.offset;
            let from = match extent.from {
                ExtentFrom::Hole => ExtentFrom::Hole,
                ExtentFrom::Stored(at) => ExtentFrom::Stored(at + skipped),
                ExtentFrom::Block { block, start } => {
                    ExtentFrom::Block { block, start: start + skipped as u32 }
                }
            };
            if visit(Extent { offset: start, len: end - start, from }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn image_len(&self) -> Option<u64> {
        None
    }

    fn inode_count_hint(&self) -> u64 {
        self.nodes.len() as u64
    }

    fn facts(&self) -> Result<Facts> {
        Ok(Facts::default())
    }
}

impl Directories for MadeUpVolume {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        Ok(self.node(dir)?.entries.iter().find(|entry| entry.name == name).map(|entry| entry.id))
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        for (index, entry) in self.node(dir)?.entries.iter().enumerate().skip(from.0 as usize) {
            if visit(entry.clone(), DirCursor(index as u64 + 1)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Check for MadeUpVolume {
    fn check(&self, _: &mut dyn FnMut(Finding)) -> Result<()> {
        Ok(())
    }
}

impl Space for MadeUpVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        Ok(Vec::new())
    }
}
