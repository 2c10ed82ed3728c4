//! Squashfs of all versions: raw structures on disk, and their conversion to the types of packfs.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns everything that is specific to Squashfs images. `v4` is SquashFS 4.0, `legacy` is 1.0 to
//! 3.1: each opens, checks, and lays out images of its versions. The other modules are common to
//! all: metadata blocks and cursors across them, lookup tables, inodes, listings, size words,
//! walks, and their checks. Each version implements `Records`, which decodes its records, and
//! traits that encode them. Decodes and encodes metadata, never file data; starts no thread and
//! opens no host file.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod block_index;
mod blocks;
mod check;
mod cursor;
mod data;
mod dir;
mod doubts;
mod endian;
mod facts;
mod fault;
mod inode;
mod layout;
mod legacy;
#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "what it indexes and counts is its own"
)]
mod pack;
mod place;
mod raw;
mod records;
mod space;
mod stored;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod v4;
mod volume;
mod walk;

pub use legacy::SquashfsLegacy;
pub use v4::Squashfs;

/// Returns a time of making as superblocks hold it; times that they cannot hold become the nearest.
fn mkfs_time(seconds: i64) -> u32 {
    u32::try_from(seconds.max(0)).unwrap_or(u32::MAX)
}

pub(crate) use block_index::BlockIndex;
pub(crate) use blocks::Metadata;
pub(crate) use cursor::{Cursor, Position};
pub(crate) use doubts::{number_doubt, tables_fault};
pub(crate) use endian::Endian;
pub(crate) use fault::MetadataFault;
pub(crate) use layout::{PADDING_UNIT, inodes_and_directories, padded_len};
pub(crate) use place::{InodeRef, Place};
pub(crate) use raw::{RawDir, RawFile, RawInode, RawKind};
pub(crate) use records::{
    EntryHead, FragmentRow, IndexHead, Layout, Records, RunHeader, SQUASHFS_COMPRESSED_BIT_BLOCK,
    SQUASHFS_INVALID_FRAG, Shape, StoredData, size_word,
};
pub(crate) use space::SpaceClaims;
pub(crate) use stored::{
    HeaderForm, Region, SQUASHFS_COMPRESSED_BIT, SQUASHFS_METADATA_SIZE, first_compressed,
};
pub(crate) use table::{Table, TableKind};
pub(crate) use types::{
    SQUASHFS_BLKDEV_TYPE, SQUASHFS_CHRDEV_TYPE, SQUASHFS_DIR_TYPE, SQUASHFS_FIFO_TYPE, SQUASHFS_REG_TYPE,
    SQUASHFS_SOCKET_TYPE, SQUASHFS_SYMLINK_TYPE, number_of_type, type_of_number,
};
