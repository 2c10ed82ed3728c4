//! Types between a packing format and the pack engine.
//!
//! A format decides which files are cut how ([`Plan`], pure), the engine reads, dedupes, compresses
//! and writes their data in plan order ([`Placed`]), and the format turns that into the metadata
//! around it ([`Section`]s, pure). Data lies in [`crate::Blocks`] or in [`crate::Clusters`], and
//! each has types of its own.

use packfs_core::{Loss, NodeId};
use std::fmt::Debug;
use std::ops::Range;

/// A way to store the data of files, with the types that belong to it.
pub trait DataKind: Copy + Debug + Default + Send + Sync + 'static {
    /// The plan for all files.
    type Plan: Clone + Debug + Send + Sync;
    /// The plan for one file.
    type Storage: Copy + Debug + Send + Sync;
    /// The form in which one file was stored.
    type Form: Copy + Debug + Default + PartialEq;
    /// The place of one file's tail that lies elsewhere.
    type Tail: Copy + Debug + PartialEq;
    /// The answer for all files.
    type Placed: Debug + Default;
}

/// One file whose data is to be placed.
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
    /// Start of file data, in bytes from the start of the image; what lies before is the format's.
    /// 0 where data lies in files of its own.
    pub data_start: u64,
    /// Every regular file with at least one byte, in tree order. The engine may place them in
    /// another order, but those that may only lie in later files for data come later.
    pub files: Vec<FileJob<K>>,
    /// Nodes of any kind in the order of their first use; empty if that is unknown. Formats place
    /// its metadata in that order.
    pub first_used: Vec<NodeId>,
    /// Distance by which small files may be moved away from their neighbours in the tree, in bytes
    /// of such files, while it still costs little to read them in tree order. Readers that keep
    /// only a few decoded blocks decode again what they left.
    pub reorder_len: u64,
    /// True if files with the same contents share their data.
    pub dedupe: bool,
    /// True if blocks of zeros become holes.
    pub holes: bool,
    /// Metadata that the format cannot hold.
    pub losses: Vec<Loss>,
    /// The plan for the data.
    pub data: K::Plan,
}

/// The place of one file's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlace<K: DataKind> {
    /// Offset of its first stored byte in the image, that of its [`crate::Lead`] if there is one.
    pub start: u64,
    /// Index of its first block or cluster among those of all files.
    pub first: u64,
    /// Number of its blocks or clusters, holes included.
    pub count: u32,
    /// Its form.
    pub form: K::Form,
    /// Its tail, if that lies elsewhere.
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
        first..first.saturating_add(self.count as usize)
    }
}

/// The engine's answer to a [`Plan`]: the places of all data.
#[derive(Debug, Default)]
pub struct Placed<K: DataKind> {
    /// One row a node of the tree; rows of nodes without data are empty.
    pub files: Vec<FilePlace<K>>,
    /// End of the data.
    pub data_end: u64,
    /// Files that could not be read, by rising number; they are stored empty.
    pub failed: Vec<NodeId>,
    /// Number of files (nodes) that share the data of an earlier one.
    pub duplicate_files: u64,
    /// Bytes of those files.
    pub duplicate_bytes: u64,
    /// Blocks or clusters.
    pub data: K::Placed,
}

/// A part of the image that the format wrote itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The structure, named as in [`crate::SpaceOwner::owner`].
    pub owner: &'static str,
    /// Its offset from the start of the image.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}
