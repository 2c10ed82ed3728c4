//! Data in clusters: files are cut by output length, each cluster filled with as much input as fits
//! (EROFS).

use crate::{DataKind, FilePlace, Placed, units::*};
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

/// Plan of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterPlan {
    /// Unit in which the format addresses data, in bytes, a power of two: stored data is aligned to
    /// it, and padded with zeros, unless [`ClusterPlan::byte_aligned`].
    pub block_len: u32,
    /// Ways to store files; [`ClusterStorage::recipe`] is an index.
    pub recipes: Vec<Recipe>,
    /// Recipe of the packed stream (shared tails), an index into `recipes`.
    pub packed_recipe: u16,
    /// Length of the segments of a file that are compressed independently, so that one file keeps
    /// several threads busy; long files may have longer ones, of a multiple of this.
    pub segment_len: u64,
    /// Allows compressed clusters to start and end at any byte.
    pub byte_aligned: bool,
    /// Allows files to share parts of their clusters (partial references), not only whole files.
    pub share_ranges: bool,
    /// Maximum decoded length of a compressed cluster.
    pub decoded_len_max: u32,
    /// Deduplicates shared tails against the packed stream.
    pub share_tails: bool,
    /// Rotates plain blocks that start within a block of the file, so that each byte has the same
    /// offset in its block as in the file's (interlaced). Not with `share_ranges` or
    /// `byte_aligned`.
    pub interlaced: bool,
    /// Maximum length of uncompressed inline tails of flat files. Applies to a file with a recipe
    /// of clusters that becomes flat: a longer tail has a separate block, or goes to the packed
    /// stream if that was requested and the block would be wasted.
    pub inline_flat_max: u32,
    /// Storage of files with long holes; `None`: the same as others.
    pub sparse: Option<SparsePlan>,
}

/// Storage of files whose source reports mostly holes: the engine gives such a file a recipe of
/// chunks ([`Recipe::Chunks`]), of the length that minimizes data and map together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparsePlan {
    /// Length of a row of a chunk map, in bytes.
    pub row_len: u64,
    /// Longest chunk, in bytes, a power of two.
    pub chunk_len_max: u64,
    /// Longest file with a recipe of clusters, in bytes: the index of longer ones would be too
    /// large.
    pub clusters_len_max: u64,
}

/// A way to store a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// Uncompressed, in one run.
    Flat {
        /// Length of the chunks, a power of two, in which a file with known holes is stored
        /// ([`FileForm::Chunks`]), if [`crate::Plan::holes`]; `None`: holes are stored as zeros.
        sparse_chunk_len: Option<u64>,
    },
    /// Uncompressed, in chunks of a power of two bytes; equal chunks are stored once, chunks of
    /// zeros are not stored.
    Chunks {
        /// Bytes in each chunk but the last.
        chunk_len: u64,
    },
    /// Compressed clusters; incompressible parts are stored uncompressed, and so are whole files
    /// without a saving.
    Clusters(ClusterRecipe),
}

/// Storage in compressed clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRecipe {
    /// The codec.
    pub codec: CodecSettings,
    /// Another codec that decodes faster, for each cluster that it hardly makes larger.
    pub second: Option<CodecSettings>,
    /// Maximum stored length of one cluster, a multiple of the block; or, with
    /// [`ClusterPlan::byte_aligned`], length of its input.
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
    /// A separate short block.
    Own,
    /// Shares a block, or the packed stream, with other files' tails (a SquashFS fragment).
    Shared,
    /// Shared, and not only the tail but the whole file.
    SharedWhole,
    /// Left to the format, which stores it inline, if it is shorter than a block; of a file with a
    /// recipe of clusters, if it is at least 32 bytes shorter.
    Inline,
}

/// Storage of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterStorage {
    /// Storage of its tail.
    pub tail: Tail,
    /// Recipe: an index into [`ClusterPlan::recipes`].
    pub recipe: u16,
    /// First data file ([`crate::AnyLayout::Clusters`]) that it may use; 0 if there is at most one.
    pub data_file: u16,
}

/// Position of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailPlace {
    /// In the packed stream: the bytes after the last cluster, or the whole file.
    Packed {
        /// First byte within the packed stream.
        offset: u64,
    },
    /// Left to the format, which reads it from [`ClustersPlaced::tails`]: the bytes after the last
    /// cluster.
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

/// Stored bytes of inline tails, kept until the format writes them.
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

/// Form of a file without its tail. Files that share data share its form, whatever was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// Uncompressed, in one run at [`FilePlace::start`]. A tail is inline and not compressed.
    Flat,
    /// In [`ClustersPlaced::clusters`], as chunks of one length.
    Chunks {
        /// Base-2 logarithm of the bytes in each chunk but the last.
        chunk_bits: u8,
    },
    /// In [`ClustersPlaced::clusters`], of any length.
    Clusters {
        /// Index of their recipe in [`ClusterPlan::recipes`].
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
    /// Zeros, which are not stored. Only in [`FileForm::Chunks`], and in [`FileForm::Clusters`]
    /// with [`ClusterPlan::byte_aligned`]; elsewhere long runs of zeros are clusters that share one
    /// stored cluster.
    Hole,
    /// Uncompressed bytes, a run of any length, in contiguous blocks; only the last may be short.
    /// Each of the blocks is a separate cluster if a format's plain clusters are one block.
    Plain,
    /// Uncompressed bytes in one block, rotated so that each has the same offset in it as in the
    /// file's. Only in merged images, whose files were interlaced one by one; see
    /// [`ClusterPlan::interlaced`].
    Rotated,
    /// Compressed according to [`ClusterStorage::recipe`]; the file has all of the decoded bytes.
    /// Clusters with the same offset are one stored cluster.
    Compressed,
    /// Compressed, with more than this file's bytes: it shares the start of another file's cluster.
    CompressedPart,
}

/// A run of a file's bytes in one stored cluster, or in contiguous plain blocks or chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Offset of the first block in the image, including leading zeros; 0 for a hole.
    pub offset: u64,
    /// Bytes of the file; any number for holes. In [`FileForm::Chunks`] a multiple of the chunk
    /// except for the last of a file.
    pub len: u64,
    /// Number of stored bytes, without the zeros that pad the block; those precede compressed bytes
    /// and follow plain ones.
    pub stored_len: u32,
    /// Its form.
    pub form: ClusterForm,
    /// True if it is compressed with the second codec of its file's recipe.
    pub second: bool,
}

/// A data file; data files are addressed as if concatenated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    /// Its start in the concatenation: the end of the previous file, including padding.
    pub start: u64,
    /// End of its data in the concatenation.
    pub end: u64,
    /// Hash of its data.
    pub hash: u128,
}

/// Positions of clusters.
#[derive(Debug)]
pub struct ClustersPlaced {
    /// Clusters of all files, and of the packed stream.
    pub clusters: Vec<Cluster>,
    /// The stream of shared tails and its length in bytes, stored like a file.
    pub packed: Option<(FilePlace<Clusters>, u64)>,
    /// The inline tails.
    pub tails: Box<dyn InlineTails>,
    /// Hash of all data as stored.
    pub hash: u128,
    /// Data files; empty if data is in the image.
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

    /// Returns the bytes of holes in a file.
    pub fn hole_len(&self, place: &FilePlace<Clusters>) -> u64 {
        let holes = self.clusters_of(place).iter().filter(|row| row.form == ClusterForm::Hole);
        holes.fold(0, |sum, row| sum.plus(row.len))
    }
}
