//! The opened image as a [`Volume`].

use crate::corruption::Corruption;
use crate::fs::{Fs, Root};
use crate::logical::LogicalImage;
use crate::numbers::{EMPTY, EMPTY_NUMBER, INODE_BITS, Numbers};
use crate::tree::Tree;
use packfs_core::{Error, FileType, Image, Result, Xattrs};
use packfs_format::{
    Extent, Facts, FormatInfo, Health, Inode, InodeId, Opening, Storage, StoredExtent, Volume,
};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Bits of the subvolume number in displayed inode numbers.
const NUMBER_TREE_BITS: u32 = 22;
/// Flag of displayed inode numbers that contain the index of a subvolume because its number is too
/// large.
const FAR: u64 = 1 << 63;
const INODE_METADATA: u64 = 400;

pub(crate) struct BtrfsVolume {
    pub(crate) fs: Arc<Fs>,
    pub(crate) image: Arc<dyn Image>,
    pub(crate) opened: u64,
    pub(crate) root: Root,
    pub(crate) numbers: RwLock<Numbers>,
}

/// An inode: its tree, the index of the tree in ids, and the inode number.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) tree: Tree,
    pub(crate) index: u32,
    pub(crate) inode: u64,
}

pub(crate) enum Place {
    Node(Node),
    /// Parent of an empty directory that replaces a subvolume of another tree.
    Empty(InodeId),
}

impl BtrfsVolume {
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

    pub(crate) fn id_of(&self, index: u32, tree: u64, inode: u64) -> Result<InodeId> {
        if inode >> INODE_BITS != 0 {
            return Err(Corruption::Number { tree, inode }.into());
        }
        Ok(InodeId(u64::from(index) << INODE_BITS | inode))
    }

    /// Returns the inode number to display: in the opened subvolume that of Linux. In other
    /// subvolumes, which Linux distinguishes by device, the number of the subvolume precedes it so
    /// that numbers are unique in a volume.
    pub(crate) fn number_of(&self, node: &Node) -> u64 {
        let (index, id) = (u64::from(node.index), node.tree.id);
        match (index, id >> NUMBER_TREE_BITS) {
            (0, _) => node.inode,
            (_, 0) => id << INODE_BITS | node.inode,
            _ => FAR | index << INODE_BITS | node.inode,
        }
    }

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

    /// Errors: an id of a directory without an inode.
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

    /// Verifies each sector that is read.
    fn data_image(&self) -> Option<Arc<dyn Image>> {
        Some(Arc::new(LogicalImage::new(Arc::clone(&self.fs), self.image.name())))
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

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }

    fn storage(&self) -> Option<&dyn Storage> {
        Some(self)
    }
}

impl Health for BtrfsVolume {
    /// Linux refuses such an image.
    fn fault(&self) -> Option<Error> {
        self.fs.fault.clone()
    }

    fn warnings(&self) -> Vec<String> {
        self.fs.warnings.clone()
    }

    fn remarks(&self) -> Vec<String> {
        let devices = &self.fs.store.devices;
        let counted = |count: &AtomicU64, what: &str| match count.load(Ordering::Relaxed) {
            0 => None,
            count => Some(format!("{what}: {count}")),
        };
        let healed = "damaged sectors and tree blocks that were read from other copies";
        let blanked = "targets of symbolic links that the dump of metadata does not hold, read as empty";
        [counted(&devices.healed, healed), counted(&devices.blanked, blanked)].into_iter().flatten().collect()
    }
}

impl Storage for BtrfsVolume {
    fn stored_extents(
        &self,
        id: InodeId,
        _len: u64,
        visit: &mut dyn FnMut(StoredExtent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_stored(&self.node(id, "regular file")?, visit)
    }

    fn verifies(&self, stored: Range<u64>) -> Result<bool> {
        self.fs.verifies(stored)
    }
}
