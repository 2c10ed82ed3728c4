//! Inodes of all generations as stored, unified.

use crate::cursor::Position;
use crate::place::Place;
use packfs_core::{DeviceNumber, Error, FileType};
use packfs_format::InodeKind;

/// A directory's own figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawDir {
    /// Metadata block of its listing, relative to the directory table.
    pub(crate) start_block: u32,
    /// Start of the listing within that block, decoded.
    pub(crate) offset: u16,
    /// Length as stored: [`crate::Shape::dir_size_extra`] and the length of its listing.
    pub(crate) file_size: u32,
    /// Inode number of its parent, from 3.0 on.
    pub(crate) parent_inode: u32,
    /// Entries of its index, which follow the inode.
    pub(crate) i_count: u16,
}

/// A file's own figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFile {
    /// Start of its first block.
    pub(crate) start_block: u64,
    /// Length in bytes.
    pub(crate) file_size: u64,
    /// Bytes in holes, as 4.0 says it; 0 elsewhere.
    pub(crate) sparse: u64,
    /// The fragment that its tail is in, or `SQUASHFS_INVALID_FRAG`.
    pub(crate) fragment: u32,
    /// Start of its tail within the fragment.
    pub(crate) offset: u32,
}

/// Fields of an inode by type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RawKind {
    /// A directory.
    Dir(RawDir),
    /// A regular file.
    File(RawFile),
    /// A symbolic link: length of the target, which follows the inode.
    Symlink(u32),
    /// A device of either type.
    Device(DeviceNumber),
    /// A fifo or a socket.
    Ipc,
}

/// An inode of any type and generation, as stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawInode {
    /// Permissions, and in some images type bits.
    pub(crate) mode: u16,
    /// Index of its user.
    pub(crate) uid: u16,
    /// Index of its group.
    pub(crate) gid: u16,
    /// Before 3.0 only of files and directories.
    pub(crate) mtime: Option<u32>,
    /// From 3.0 on; 0 elsewhere.
    pub(crate) number: u32,
    /// From 3.0 on; 1 elsewhere.
    pub(crate) nlink: u32,
    /// Index into the table of attribute sets, or `u32::MAX`; always that before 4.0.
    pub(crate) xattr: u32,
    /// Its type.
    pub(crate) file_type: FileType,
    /// Fields of its type.
    pub(crate) kind: RawKind,
    /// Its place, for messages.
    pub(crate) place: Place,
    /// Position after its fixed part: size words, index or target.
    pub(crate) tail: Position,
}

impl RawInode {
    /// Its type and what goes with it, as the rest of packfs says it.
    pub(crate) fn inode_kind(&self) -> InodeKind {
        match (self.kind, self.file_type) {
            (RawKind::Dir(_), _) => InodeKind::Directory,
            (RawKind::File(file), _) => InodeKind::File { len: file.file_size },
            (RawKind::Symlink(_), _) => InodeKind::Symlink,
            (RawKind::Device(number), FileType::BlockDevice) => InodeKind::BlockDevice(number),
            (RawKind::Device(number), _) => InodeKind::CharDevice(number),
            (RawKind::Ipc, FileType::Socket) => InodeKind::Socket,
            (RawKind::Ipc, _) => InodeKind::Fifo,
        }
    }

    /// A request that does not fit its type.
    pub(crate) fn not_a(&self, wanted: &str) -> Error {
        let word = self.file_type.word();
        match self.number {
            0 => Error::failed(format!("the {} is a {word}, not a {wanted}", self.place)),
            number => Error::failed(format!("inode {number} is a {word}, not a {wanted}")),
        }
    }
}
