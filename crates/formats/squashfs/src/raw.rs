//! Inodes of all versions as stored, unified.

use crate::cursor::Position;
use crate::place::Place;
use packfs_core::{DeviceNumber, Error, FileType};
use packfs_format::InodeKind;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawDir {
    /// Metadata block of its listing, relative to the directory table.
    pub(crate) start_block: u32,
    /// Start of the listing within that block, decoded.
    pub(crate) offset: u16,
    /// Stored length: that of its listing plus [`crate::Shape::dir_size_extra`].
    pub(crate) file_size: u32,
    /// Inode number of its parent, since 3.0.
    pub(crate) parent_inode: u32,
    /// Number of index entries, which follow the inode.
    pub(crate) i_count: u16,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFile {
    pub(crate) start_block: u64,
    pub(crate) file_size: u64,
    /// Bytes in holes as stored by 4.0; 0 in other versions.
    pub(crate) sparse: u64,
    /// Fragment of its tail, or `SQUASHFS_INVALID_FRAG`.
    pub(crate) fragment: u32,
    /// Offset of its tail within the fragment.
    pub(crate) offset: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum RawKind {
    Dir(RawDir),
    File(RawFile),
    /// Length of the target, which follows the inode.
    Symlink(u32),
    Device(DeviceNumber),
    Ipc,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawInode {
    /// Permissions, and in some images type bits.
    pub(crate) mode: u16,
    pub(crate) uid: u16,
    pub(crate) gid: u16,
    /// Before 3.0 only of files and directories.
    pub(crate) mtime: Option<u32>,
    /// Since 3.0; 0 before.
    pub(crate) number: u32,
    /// Since 3.0; 1 before.
    pub(crate) nlink: u32,
    /// Index into the table of attribute sets, or `u32::MAX`; always that before 4.0.
    pub(crate) xattr: u32,
    pub(crate) file_type: FileType,
    pub(crate) kind: RawKind,
    pub(crate) place: Place,
    /// Position after its fixed part: size words, index, or target.
    pub(crate) tail: Position,
}

impl RawInode {
    /// Converts type and fields to the type of the frame.
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

    /// Returns the error of a request for another type.
    pub(crate) fn not_a(&self, wanted: &str) -> Error {
        let word = self.file_type.word();
        match self.number {
            0 => Error::failed(format!("the {} is a {word}, not a {wanted}", self.place)),
            number => Error::failed(format!("inode {number} is a {word}, not a {wanted}")),
        }
    }
}
