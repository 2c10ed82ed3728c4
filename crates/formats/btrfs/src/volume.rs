//! The opened image as a [`Volume`].

use crate::corruption::Corruption;
use crate::fs::{Fs, Root};
use crate::logical::LogicalImage;
use crate::numbers::{EMPTY, EMPTY_NUMBER, INODE_BITS, Numbers};
use crate::tree::Tree;
use packfs_core::{Error, FileType, Image, Result, Xattrs};
use packfs_format::{
    DirCursor, DirEntry, Extent, Facts, Finding, FormatInfo, Inode, InodeId, Opening, SpaceOwner,
    StoredExtent, Volume,
};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

/// Bits of the number of a subvolume in shown numbers of inodes.
const NUMBER_TREE_BITS: u32 = 22;
/// Set in shown numbers with the index of a subvolume in place of its number, which is too large.
const FAR: u64 = 1 << 63;
/// Bytes of metadata that an inode takes, about.
const INODE_METADATA: u64 = 400;

/// An opened btrfs image: one subvolume, and those below it.
pub(crate) struct BtrfsVolume {
    pub(crate) fs: Arc<Fs>,
    pub(crate) image: Arc<dyn Image>,
    /// Number of the opened subvolume.
    pub(crate) opened: u64,
    pub(crate) root: Root,
    pub(crate) numbers: RwLock<Numbers>,
}

/// An inode: its tree, the number of that in ids, and its own number.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) tree: Tree,
    pub(crate) index: u32,
    pub(crate) inode: u64,
}

/// Meaning of an id.
pub(crate) enum Place {
    Node(Node),
    /// An empty directory that stands for a subvolume elsewhere, in this directory.
    Empty(InodeId),
}

impl BtrfsVolume {
    /// Opens an image.
    pub(crate) fn open(image: Arc<dyn Image>, opening: &Opening) -> Result<Self> {
        let mut fs = Fs::open(Arc::clone(&image), opening)?;
        crate::log::apply(&mut fs, !opening.no_journal);
        let fs = Arc::new(fs);
        let opened = match &opening.subvolume {
            Some(wanted) => fs.wanted_subvolume(wanted)?,
            None => fs.default_subvolume()?,
        };
        let root = fs.root(opened)?;
        let volume = BtrfsVolume { fs, image, opened, root, numbers: RwLock::default() };
        volume.index_of(volume.root.tree.clone())?;
        volume.id_of(0, opened, volume.root.dir)?;
        if let Place::Node(node) = volume.place(volume.root())? {
            volume.inode_item(&node)?.wanted(FileType::Directory)?;
        }
        Ok(volume)
    }

    /// Returns the id of an inode.
    pub(crate) fn id_of(&self, index: u32, tree: u64, inode: u64) -> Result<InodeId> {
        if inode >> INODE_BITS != 0 {
            return Err(Corruption::Number { tree, inode }.into());
        }
        Ok(InodeId(u64::from(index) << INODE_BITS | inode))
    }

    /// Returns the number that is shown for an inode: its own in the opened subvolume, as Linux has
    /// it. Numbers in other subvolumes, which Linux tells apart by device, begin with that of the
    /// subvolume, so that they are unique in a volume.
    pub(crate) fn number_of(&self, node: &Node) -> u64 {
        let (index, id) = (u64::from(node.index), node.tree.id);
        match (index, id >> NUMBER_TREE_BITS) {
            (0, _) => node.inode,
            (_, 0) => id << INODE_BITS | node.inode,
            _ => FAR | index << INODE_BITS | node.inode,
        }
    }

    /// Returns the inode that an id means.
    pub(crate) fn place(&self, id: InodeId) -> Result<Place> {
        let numbers = self.numbers.read().unwrap_or_else(PoisonError::into_inner);
        let found = if id.0 & EMPTY == 0 {
            let index = id.0 >> INODE_BITS;
            let tree = usize::try_from(index).ok().and_then(|index| numbers.trees.get(index));
            let inode = id.0 & (1_u64 << INODE_BITS).wrapping_sub(1);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            tree.map(|tree| Place::Node(Node { tree: tree.clone(), index, inode }))
        } else {
            let row = usize::try_from(id.0 & !EMPTY).ok();
            row.and_then(|row| numbers.empty.get(row)).map(|dir| Place::Empty(*dir))
        };
        found.ok_or_else(|| Corruption::NoTree { id: id.0 }.into())
    }

    /// Returns the inode of an id that is no stand-in.
    fn node(&self, id: InodeId, wanted: &'static str) -> Result<Node> {
        match self.place(id)? {
            Place::Node(node) => Ok(node),
            Place::Empty(_) => {
                let inode = EMPTY_NUMBER;
                Err(Corruption::Wanted { tree: self.opened, inode, wanted }.into())
            }
        }
    }
}

impl Volume for BtrfsVolume {
    fn format(&self) -> &'static FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        self.id_of(0, self.opened, self.root.dir).unwrap_or(InodeId(0))
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        match self.place(id)? {
            Place::Node(node) => self.describe(&node),
            Place::Empty(parent) => self.describe_empty(parent, id.0),
        }
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        self.find_entry(dir, name)
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_entry(dir, from, visit)
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.target_of(&self.node(id, "symbolic link")?)
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        match self.place(id)? {
            Place::Node(node) => self.attributes(&node),
            Place::Empty(_) => Ok(Xattrs::new()),
        }
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.file_extents(&self.node(id, "regular file")?, range, visit)
    }

    fn stored_extents(
        &self,
        id: InodeId,
        _len: u64,
        visit: &mut dyn FnMut(StoredExtent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_stored(&self.node(id, "regular file")?, visit)
    }

    /// Logical addresses, each sector of which is verified when it is read.
    fn data_image(&self) -> Option<Arc<dyn Image>> {
        Some(Arc::new(LogicalImage::new(Arc::clone(&self.fs), self.image.name())))
    }

    fn verifies(&self, stored: Range<u64>) -> Result<bool> {
        self.fs.verifies(stored)
    }

    /// Linux refuses such an image.
    fn fault(&self) -> Option<Error> {
        self.fs.fault.clone()
    }

    fn warnings(&self) -> Vec<String> {
        self.fs.warnings.clone()
    }

    fn remarks(&self) -> Vec<String> {
        let healed = self.fs.store.devices.healed.load(Ordering::Relaxed);
        let text = format!("damaged sectors and tree blocks that were read from other copies: {healed}");
        (healed > 0).then_some(text).into_iter().collect()
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.opened_device_len().min(self.image.len()))
    }

    fn inode_count_hint(&self) -> u64 {
        self.root.bytes_used / INODE_METADATA
    }

    fn made_at(&self) -> Option<i64> {
        self.fs.root(crate::disk::tree::TOP).ok().map(|root| root.made_at)
    }

    fn facts(&self) -> Result<Facts> {
        self.all_facts()
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        self.owners()
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.check_all(found)
    }
}
