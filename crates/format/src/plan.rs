//! Types between a packing format and the pack engine.
//!
//! A format decides how files are cut ([`Plan`], pure), the engine reads, deduplicates, compresses,
//! and writes their data in plan order ([`Placed`]), and the format turns that into the metadata
//! around it ([`Section`]s, pure). Data is in [`crate::Blocks`] or in [`crate::Clusters`], each
//! with separate types.

use crate::units::*;
use packfs_core::{Loss, NodeId};
use std::fmt::Debug;
use std::ops::Range;

/// A way to store the data of files, with its types.
pub trait DataKind: Copy + Debug + Default + Send + Sync + 'static {
    /// Plan for all files.
    type Plan: Clone + Debug + Send + Sync;
    /// Plan for one file.
    type Storage: Copy + Debug + Send + Sync;
    /// Form of a stored file.
    type Form: Copy + Debug + Default + PartialEq;
    /// Position of a tail that is stored elsewhere.
    type Tail: Copy + Debug + PartialEq;
    /// Result for all files.
    type Placed: Debug + Default;
}

/// A file whose data is to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileJob<K: DataKind> {
    /// The file.
    pub node: NodeId,
    /// Its storage.
    pub storage: K::Storage,
}

/// A format's plan for one image.
#[derive(Clone, Debug)]
pub struct Plan<K: DataKind> {
    /// Start of file data, in bytes from the start of the image, after the format's own structures.
    /// 0 if data is in separate files.
    pub data_start: u64,
    /// Every regular file with at least one byte, in tree order. The engine may place them in
    /// another order, but files restricted to later data files come later.
    pub files: Vec<FileJob<K>>,
    /// Nodes of any kind in the order of their first use; empty if unknown. Formats place metadata
    /// in that order.
    pub first_used: Vec<NodeId>,
    /// Distance by which small files may be moved away from their neighbors in the tree, in bytes
    /// of such files, while reading them in tree order remains cheap. Readers that cache only a few
    /// decoded blocks decode evicted ones again.
    pub reorder_len: u64,
    /// True if files with equal contents share their data.
    pub dedupe: bool,
    /// True if blocks of zeros become holes.
    pub holes: bool,
    /// Metadata that the format cannot represent.
    pub losses: Vec<Loss>,
    /// Plan for the data.
    pub data: K::Plan,
}

/// Position of a file's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlace<K: DataKind> {
    /// Offset of its first stored byte in the image, that of its [`crate::Lead`] if there is one.
    pub start: u64,
    /// Index of its first block or cluster among those of all files.
    pub first: u64,
    /// Number of its blocks or clusters, including holes.
    pub count: u32,
    /// Its form.
    pub form: K::Form,
    /// Its tail, if that is stored elsewhere.
    pub tail: Option<K::Tail>,
}

impl<K: DataKind> Default for FilePlace<K> {
    fn default() -> Self {
        FilePlace { start: 0, first: 0, count: 0, form: K::Form::default(), tail: None }
    }
}

impl<K: DataKind> FilePlace<K> {
    /// Returns the indexes of its blocks or clusters.
    pub(crate) fn rows(&self) -> Range<usize> {
        let first = self.first as usize;
        first..first.plus(self.count as usize)
    }
}

/// The engine's answer to a [`Plan`]: positions of all data.
#[derive(Debug, Default)]
pub struct Placed<K: DataKind> {
    /// One row per node of the tree; rows of nodes without data are empty.
    pub files: Vec<FilePlace<K>>,
    /// End of the data.
    pub data_end: u64,
    /// Unreadable files, by rising number; they are stored empty.
    pub failed: Vec<NodeId>,
    /// Number of files (nodes) that share the data of an earlier one.
    pub duplicate_files: u64,
    /// Bytes of those files.
    pub duplicate_bytes: u64,
    /// Blocks or clusters.
    pub data: K::Placed,
    /// Threads for the metadata; 0 means one per processor.
    pub jobs: usize,
}

/// A part of the image written by the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The structure, named as in [`crate::SpaceOwner::owner`].
    pub owner: &'static str,
    /// Its offset from the start of the image.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}
