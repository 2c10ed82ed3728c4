//! Inodes of all generations, unified: found by reference, checked, told.
//!
//! An inode's identity is its position in the inode table: before 3.0 it carries no number at all, and hostile images repeat
//! numbers.

use crate::cursor::{Cursor, Position};
use crate::fault::MetadataFault;
use crate::place::{InodeRef, Place};
use crate::records::{Records, SQUASHFS_INVALID_FRAG};
use crate::stored::Region;
use packfs_core::{DeviceNumber, Error, FileType, Result};
use packfs_format::{InodeId, InodeKind};

/// A directory's own figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawDir {
    /// Metadata block of its listing, relative to the directory table.
    pub(crate) start_block: u32,
    /// Start of the listing within that block, decoded.
    pub(crate) offset: u16,
    /// As stored: [`crate::Shape::dir_size_extra`] and the length of its listing.
    pub(crate) file_size: u32,
    /// Inode number of its parent, from 3.0 on.
    pub(crate) parent_inode: u32,
    /// Entries of its index, which follow the inode.
    pub(crate) i_count: u16,
}

/// A file's own figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFile {
    /// Where its first block starts.
    pub(crate) start_block: u64,
    /// Length in bytes.
    pub(crate) file_size: u64,
    /// Bytes in holes, as 4.0 says it; 0 elsewhere.
    pub(crate) sparse: u64,
    /// The fragment that its tail is in, or [`SQUASHFS_INVALID_FRAG`].
    pub(crate) fragment: u32,
    /// Start of its tail within the fragment.
    pub(crate) offset: u32,
}

/// What types have of their own.
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
    /// What its type has of its own.
    pub(crate) kind: RawKind,
    /// Where it is, for messages.
    pub(crate) place: Place,
    /// What follows its fixed part: size words, index, target.
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

/// Reads an inode.
pub(crate) fn raw_inode<R: Records>(records: &R, id: InodeId) -> Result<RawInode> {
    let InodeRef { block, offset } = InodeRef::from_raw(id.0);
    let layout = records.layout();
    let mut cursor = records.metadata().cursor(layout.inodes, "inode", block, u32::from(offset))?;
    let inode = records.parse_inode(&mut cursor)?;
    if let RawKind::File(file) = &inode.kind {
        check_file(records, &inode, file)?;
    }
    Ok(inode)
}

fn check_file<R: Records>(records: &R, inode: &RawInode, file: &RawFile) -> Result<()> {
    let place = inode.place;
    if i64::try_from(file.file_size).is_err() {
        return Err(MetadataFault::FileLength { place, found: file.file_size }.into());
    }
    let words = word_count(records, file);
    let left = Region { start: inode.tail.at, ..records.layout().inodes };
    let max = left.decoded_len_max() / records.shape().size_word_len;
    if words > max {
        return Err(MetadataFault::FileWords { place, words, max }.into());
    }
    let count = records.layout().fragment_count();
    if file.fragment != SQUASHFS_INVALID_FRAG && file.fragment >= count {
        return Err(MetadataFault::FragmentIndex { place, found: file.fragment, count }.into());
    }
    Ok(())
}

/// How many size words a file has: its whole blocks, and a short last one unless that is in a fragment.
pub(crate) fn word_count<R: Records>(records: &R, file: &RawFile) -> u64 {
    let block_len = u64::from(records.layout().block_len);
    if file.fragment == SQUASHFS_INVALID_FRAG {
        file.file_size.div_ceil(block_len)
    } else {
        file.file_size / block_len
    }
}

/// The target of a link; see [`packfs_format::Volume::read_link`].
pub(crate) fn link_target<R: Records>(records: &R, id: InodeId) -> Result<Vec<u8>> {
    let raw = raw_inode(records, id)?;
    let RawKind::Symlink(len) = raw.kind else { return Err(raw.not_a("symbolic link")) };
    let target = Cursor::resume(records.metadata(), records.layout().inodes, "link target", raw.tail)?
        .read_vec(len)?;
    if target.contains(&0) {
        return Err(MetadataFault::LinkNul { place: raw.place }.into());
    }
    Ok(target)
}
