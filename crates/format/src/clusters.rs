//! Data in clusters: files are cut by output, each cluster filled with as much input as fits
//! (EROFS).

use crate::{DataKind, FilePlace, Placed};
use packfs_codec::CodecSettings;
use packfs_core::{Error, Result};
use std::fmt::Debug;

/// Data in clusters of stored bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clusters;

impl DataKind for Clusters {
    type Plan = ClusterPlan;
    type Storage = ClusterStorage;
    type Form = FileForm;
    type Tail = TailPlace;
    type Placed = ClustersPlaced;
}

/// The plan of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterPlan {
    /// Unit in which the format addresses data, in bytes, a power of two: what is stored starts at
    /// a multiple of it, and is filled up to one with zeros, unless [`ClusterPlan::byte_aligned`].
    pub block_len: u32,
    /// Ways to store files; [`ClusterStorage::recipe`] is an index.
    pub recipes: Vec<Recipe>,
    /// Recipe of the packed stream (shared tails), an index into `recipes`.
    pub packed_recipe: u16,
    /// A file is compressed in segments of so many bytes, on their own, so that one file keeps many
    /// threads busy; a long file may have longer ones, of a multiple of this.
    pub segment_len: u64,
    /// Allows compressed clusters to start and end at any byte.
    pub byte_aligned: bool,
    /// Allows files to share parts of their clusters (partial references), not only whole files.
    pub share_ranges: bool,
    /// Most bytes of a file that one compressed cluster may hold.
    pub decoded_len_max: u32,
    /// Deduplicates shared tails against the packed stream.
    pub share_tails: bool,
    /// Rotates plain blocks that start within a block of the file, so that each byte has the same
    /// offset in its block as in the file's (interlaced). Not with `share_ranges` or
    /// `byte_aligned`.
    pub interlaced: bool,
    /// The format keeps uncompressed tails of flat files up to this length beside their inodes. It
    /// is asked where a file with a recipe of clusters turns out to be flat: a longer tail has a
    /// block of its own, or goes to the packed stream if that was requested and the block would be
    /// wasted.
    pub inline_flat_max: u32,
    /// Storage of files with long holes; `None`: as that of others.
    pub sparse: Option<SparsePlan>,
}

/// Storage of files of which the source knows that they are mostly holes: the engine gives such a
/// file a recipe of chunks ([`Recipe::Chunks`]), of the length by which data and map take least
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparsePlan {
    /// Bytes that a row of a map of chunks takes.
    pub row_len: u64,
    /// Longest chunk, in bytes, a power of two.
    pub chunk_len_max: u64,
    /// Longest file with a recipe of clusters, in bytes: longer ones have an index without end.
    pub clusters_len_max: u64,
}

/// A way to store a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// Uncompressed, in one run.
    Flat {
        /// A file that its source knows to have holes is stored as chunks of so many bytes in their
        /// place ([`FileForm::Chunks`]), a power of two, if [`crate::Plan::holes`]; `None`: holes
        /// are stored as zeros.
        sparse_chunk_len: Option<u64>,
    },
    /// Uncompressed, in chunks of a power of two bytes; equal chunks are stored once, chunks of
    /// zeros not at all.
    Chunks {
        /// Bytes in each chunk but the last.
        chunk_len: u64,
    },
    /// Compressed clusters; parts that do not shrink are stored uncompressed, and so are whole
    /// files that save nothing.
    Clusters(ClusterRecipe),
}

/// Storage in compressed clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRecipe {
    /// The codec.
    pub codec: CodecSettings,
    /// Another codec, for each cluster that it makes hardly larger: one that is quicker to decode.
    pub second: Option<CodecSettings>,
    /// Most stored bytes of one cluster, a multiple of the block; or, with
    /// [`ClusterPlan::byte_aligned`], bytes of input.
    pub cluster_len: u32,
}

impl ClusterRecipe {
    /// Returns its one or two codecs.
    pub fn codecs(&self) -> impl Iterator<Item = &CodecSettings> {
        std::iter::once(&self.codec).chain(&self.second)
    }
}

/// Storage of a file's tail, the part that does not fill a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// A short block of its own.
    Own,
    /// Shares a block, or the packed stream, with other files' tails (a SquashFS fragment).
    Shared,
    /// Shared, and not only the tail but all of the file.
    SharedWhole,
    /// Kept for the format, which stores it beside the file's inode, if it is shorter than a block;
    /// of a file with a recipe of clusters, if it is at least 32 bytes shorter.
    Inline,
}

/// Storage of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterStorage {
    /// Storage of its tail.
    pub tail: Tail,
    /// The way it is stored: an index into [`ClusterPlan::recipes`].
    pub recipe: u16,
    /// The first of the files for data ([`crate::AnyLayout::Clusters`]) that it may lie in; 0 where
    /// there is at most one.
    pub data_file: u16,
}

/// The place of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailPlace {
    /// In the packed stream: the bytes from the last cluster's end on, or all bytes of the file.
    Packed {
        /// First byte within the packed stream.
        offset: u64,
    },
    /// Kept for the format, which reads it from [`ClustersPlaced::tails`]: the bytes from the last
    /// cluster's end on.
    Inline(InlineTail),
}

/// A tail that the format stores itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineTail {
    /// Identifies it to [`InlineTails::read`].
    pub id: u64,
    /// Number of stored bytes.
    pub stored_len: u32,
    /// True if those bytes are compressed.
    pub compressed: bool,
}

/// The stored bytes of inline tails, kept until the format has a place for them.
pub trait InlineTails: Debug + Send {
    /// Appends the [`InlineTail::stored_len`] bytes of a tail to `out`. Errors: `Io`.
    fn read(&self, tail: InlineTail, out: &mut Vec<u8>) -> Result<()>;
}

/// An image without inline tails.
#[derive(Debug)]
struct NoTails;

impl InlineTails for NoTails {
    fn read(&self, _: InlineTail, _: &mut Vec<u8>) -> Result<()> {
        Err(Error::failed("no tail was kept for the format"))
    }
}

/// Form in which the bytes of a file from its start on are stored, but for its tail. Files that
/// share their data share its form, whatever was planned for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// Uncompressed, in one run from [`FilePlace::start`] on. A tail is inline and not compressed.
    Flat,
    /// In [`ClustersPlaced::clusters`], as chunks of one length.
    Chunks {
        /// Base-2 logarithm of the bytes in each chunk but the last.
        chunk_bits: u8,
    },
    /// In [`ClustersPlaced::clusters`], each holding what it holds.
    Clusters {
        /// Index into [`ClusterPlan::recipes`] of the recipe that they were made by.
        recipe: u16,
    },
}

impl Default for FileForm {
    fn default() -> Self {
        FileForm::Clusters { recipe: 0 }
    }
}

/// The form of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterForm {
    /// Nothing is stored: zeros. Only in [`FileForm::Chunks`], and in [`FileForm::Clusters`] with
    /// [`ClusterPlan::byte_aligned`]; elsewhere long runs of zeros are clusters that share one
    /// stored cluster.
    Hole,
    /// Bytes as they are, a run of any length, block after block without gap; only the last may be
    /// short. Each of the blocks is a cluster of its own where a format's plain clusters are one
    /// block.
    Plain,
    /// Bytes as they are, in one block, rotated so that each has the same offset in it as in the
    /// file's. Only in merged images, whose files were interlaced one by one; see
    /// [`ClusterPlan::interlaced`].
    Rotated,
    /// Compressed, as [`ClusterStorage::recipe`] says; the file's bytes are all that it decodes to.
    /// Clusters with the same offset are one stored cluster.
    Compressed,
    /// Compressed, and more than this file's bytes: it shares the beginning of another file's
    /// cluster.
    CompressedPart,
}

/// A run of a file's bytes in one stored cluster, or in a run of plain blocks or chunks stored one
/// after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Offset of the first block in the image, leading zeros included; 0 for a hole.
    pub offset: u64,
    /// Bytes of the file; of holes there may be any number. In [`FileForm::Chunks`] a multiple of
    /// the chunk but for the last of a file.
    pub len: u64,
    /// Number of stored bytes, without the zeros that fill up the block; those precede compressed
    /// bytes and follow plain ones.
    pub stored_len: u32,
    /// Its form.
    pub form: ClusterForm,
    /// True if it is compressed with the second codec of its file's recipe.
    pub second: bool,
}

/// A file of data, one of those that follow each other in the row of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    /// Its start in the row: the end of the file before, padding included.
    pub start: u64,
    /// End of its data in the row.
    pub end: u64,
    /// Hash of its data.
    pub hash: u128,
}

/// Places of clusters.
#[derive(Debug)]
pub struct ClustersPlaced {
    /// Clusters of all files, and of the packed stream.
    pub clusters: Vec<Cluster>,
    /// The stream of shared tails and its length in bytes, stored like a file.
    pub packed: Option<(FilePlace<Clusters>, u64)>,
    /// The inline tails.
    pub tails: Box<dyn InlineTails>,
    /// Hash of all data, as it is stored.
    pub hash: u128,
    /// The files of data, where it does not lie in the image.
    pub files: Vec<PlacedFile>,
}

impl Default for ClustersPlaced {
    fn default() -> Self {
        ClustersPlaced {
            clusters: Vec::new(),
            packed: None,
            tails: Box::new(NoTails),
            hash: 0,
            files: Vec::new(),
        }
    }
}

impl Placed<Clusters> {
    /// Returns the clusters of a file.
    pub fn clusters_of(&self, place: &FilePlace<Clusters>) -> &[Cluster] {
        &self.data.clusters[place.rows()]
    }

    /// Returns how many bytes of a file are holes.
    pub fn hole_len(&self, place: &FilePlace<Clusters>) -> u64 {
        let holes = self.clusters_of(place).iter().filter(|row| row.form == ClusterForm::Hole);
        holes.fold(0, |sum, row| sum.saturating_add(row.len))
    }
}
