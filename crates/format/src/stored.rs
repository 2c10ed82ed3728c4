//! Stored data of an opened image, for another image of the format.
//!
//! A merged image contains the blocks and clusters of others at new positions. Nothing is decoded:
//! a format reports the blocks of each file, and later writes its metadata around the same bytes
//! elsewhere.

use crate::{Blocks, Cluster, Clusters, FilePlace, InodeId, StoredBlock};
use packfs_core::Result;
use std::any::Any;

/// Data of an image, by kind.
#[derive(Clone, Copy)]
pub enum AnyStored<'a> {
    /// In blocks.
    Blocks(&'a dyn StoredBlocks),
    /// In clusters.
    Clusters(&'a dyn StoredClusters),
}

/// Files of an image with data in blocks.
///
/// Errors of all methods: `Corrupt` if the image violates its format's rules, `Io` if it cannot be
/// read.
pub trait StoredBlocks: Any + Send + Sync {
    /// Appends the blocks of a file, and returns its position: offsets are those of the data image,
    /// and the index of a shared block is that of [`StoredBlocks::shared`].
    fn file(&self, id: InodeId, blocks: &mut Vec<StoredBlock>) -> Result<FilePlace<Blocks>>;

    /// Returns every shared block: its offset in the data image and its length.
    fn shared(&self) -> Result<Vec<(u64, StoredBlock)>>;
}

/// Files of an image with data in clusters.
///
/// Positions have the offsets of the data image; the id of an inline tail is the offset of its
/// stored bytes there. Recipes are those of the format's merger.
///
/// Errors of all methods: as those of [`StoredBlocks`]; `Unsupported` for a form that new images
/// cannot have.
pub trait StoredClusters: Any + Send + Sync {
    /// Returns the unit of addresses, in bytes.
    fn block_len(&self) -> u32;

    /// Appends the clusters of a file, and returns its position.
    fn file(&self, id: InodeId, clusters: &mut Vec<Cluster>) -> Result<FilePlace<Clusters>>;

    /// Appends the clusters of the packed stream, and returns its position and length; `None` if it
    /// does not exist.
    fn packed(&self, clusters: &mut Vec<Cluster>) -> Result<Option<(FilePlace<Clusters>, u64)>>;

    /// Returns bytes that distinguish the image from others with other data, such as its
    /// superblock.
    fn identity(&self) -> Vec<u8>;
}
