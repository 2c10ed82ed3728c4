//! What all generations of Squashfs have in common, from 1.0 to 4.0.
//!
//! Owns metadata blocks and what reads across them, and everything of an image that is the same but for the widths of its
//! fields: lookup tables, inodes, listings, size words, the walks over all of them, and what is checked on the way. A format
//! brings along [`Records`]: how its records are taken apart. For writing, the streams and tables of metadata blocks, and inodes
//! with their listings, upon traits that say how a format puts them together. Decodes and encodes metadata, never file data;
//! starts no thread and touches no directory of the host.
#![forbid(unsafe_code)]

mod block_index;
mod blocks;
pub mod check;
mod cursor;
pub mod data;
pub mod dir;
mod doubts;
mod endian;
mod fault;
pub mod inode;
mod layout;
pub mod pack;
mod place;
mod records;
mod space;
mod stored;
mod table;
mod types;
pub mod walk;

pub use block_index::BlockIndex;
pub use blocks::Metadata;
pub use cursor::{Cursor, Position};
pub use doubts::{number_doubt, tables_fault};
pub use endian::Endian;
pub use fault::MetadataFault;
pub use inode::{RawDir, RawFile, RawInode, RawKind};
pub use layout::{PADDING_UNIT, inodes_and_directories, padded_len};
pub use place::{InodeRef, Place};
pub use records::{
    EntryHead, FragmentRow, IndexHead, Layout, Records, RunHeader, SQUASHFS_COMPRESSED_BIT_BLOCK,
    SQUASHFS_INVALID_FRAG, Shape, StoredData, size_word,
};
pub use space::SpaceClaims;
pub use stored::{HeaderForm, Region, SQUASHFS_COMPRESSED_BIT, SQUASHFS_METADATA_SIZE, first_compressed};
pub use table::{Table, TableKind};
pub use types::{
    SQUASHFS_BLKDEV_TYPE, SQUASHFS_CHRDEV_TYPE, SQUASHFS_DIR_TYPE, SQUASHFS_FIFO_TYPE, SQUASHFS_REG_TYPE,
    SQUASHFS_SOCKET_TYPE, SQUASHFS_SYMLINK_TYPE, number_of_type, type_of_number,
};
