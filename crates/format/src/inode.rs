//! Inodes and directory entries, common to all formats.

use packfs_core::overlay::Candidate;
use packfs_core::{DeviceNumber, FileType, Meta};

/// Identifies an inode of the [`crate::Volume`] that returned it; two entries with the same id are
/// hard links to one inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InodeId(pub u64);

/// Position within a directory listing; 0 is the start, other values belong to the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirCursor(pub u64);

/// The type-specific part of an [`Inode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InodeKind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Length in bytes, holes included.
        len: u64,
    },
    /// A symbolic link; its target comes from [`crate::Volume::read_link`].
    Symlink,
    /// A block device.
    BlockDevice(DeviceNumber),
    /// A character device.
    CharDevice(DeviceNumber),
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
}

impl From<InodeKind> for Candidate {
    fn from(kind: InodeKind) -> Self {
        match kind {
            InodeKind::Directory => Candidate::Directory,
            InodeKind::CharDevice(number) => Candidate::of_device(number),
            InodeKind::File { len } => Candidate::of_file(len),
            _ => Candidate::Other,
        }
    }
}

impl InodeKind {
    /// The type without its details.
    pub fn file_type(self) -> FileType {
        match self {
            InodeKind::Directory => FileType::Directory,
            InodeKind::File { .. } => FileType::File,
            InodeKind::Symlink => FileType::Symlink,
            InodeKind::BlockDevice(_) => FileType::BlockDevice,
            InodeKind::CharDevice(_) => FileType::CharDevice,
            InodeKind::Fifo => FileType::Fifo,
            InodeKind::Socket => FileType::Socket,
        }
    }

    /// Returns the length of a file in units of 512 bytes, holes included; 0 for other types.
    pub fn sectors_filled(self) -> u64 {
        match self {
            InodeKind::File { len } => len.div_ceil(512),
            _ => 0,
        }
    }
}

/// An inode as the image describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Type and its details.
    pub kind: InodeKind,
    /// Permissions, owner, time.
    pub meta: Meta,
    /// Link count as stored.
    pub links: u32,
    /// Inode number as stored; not an identity, hostile images repeat them.
    pub number: u64,
    /// A contradiction in the image about it, which does not prevent reading it.
    pub doubt: Option<&'static str>,
    /// True if [`crate::Volume::xattrs`] would return anything.
    pub has_xattrs: bool,
    /// Blocks of 512 bytes as `stat` reports them, counted as Linux's driver of the format does;
    /// [`InodeKind::sectors_filled`] where Linux has no driver or derives them from the length.
    pub sectors: u64,
}

/// One entry of a directory. The name has passed [`packfs_core::Name::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, checked.
    pub name: Vec<u8>,
    /// The inode it names.
    pub id: InodeId,
    /// The type recorded in the entry; that of the inode prevails.
    pub file_type: FileType,
}
