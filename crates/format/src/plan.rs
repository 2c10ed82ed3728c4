//! What a packing format asks of the pack engine, and what the engine answers.
//!
//! A format decides which files are cut how ([`Plan`], pure), the engine reads, dedupes, compresses and writes their data
//! in plan order ([`Placed`]), and the format turns that into the metadata around it ([`Section`]s, pure).

use packfs_codec::CodecSettings;
use packfs_core::{Loss, NodeId, Result};
use std::ops::Range;

/// How a file's bytes are cut into jobs for a compressor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Blocks of so many bytes of input (SquashFS, cramfs, zisofs, cloop).
    FixedInput {
        /// Bytes of input in each block but the last.
        block_len: u32,
    },
    /// Clusters of stored bytes, each filled with as much input as fits (EROFS).
    FixedOutput(ClusterCut),
}

/// How files are cut into clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterCut {
    /// Unit in which the format addresses data, in bytes, a power of two: what is stored starts at a multiple of it, and is
    /// filled up to one with zeros, unless [`ClusterCut::byte_aligned`].
    pub block_len: u32,
    /// How files may be stored; [`FileJob::recipe`] is an index.
    pub recipes: Vec<Recipe>,
    /// How the stream of shared tails is stored, an index into `recipes`.
    pub packed_recipe: u16,
    /// A file is compressed in segments of so many bytes, on their own, so that one file keeps many threads busy; a long
    /// file may have longer ones, of a multiple of this.
    pub segment_len: u64,
    /// Whether compressed clusters may start and end at any byte.
    pub byte_aligned: bool,
    /// Whether files may share parts of their clusters (partial references), beyond whole files.
    pub share_ranges: bool,
    /// Most bytes of a file that one compressed cluster may hold.
    pub decoded_len_max: u32,
    /// Whether shared tails are looked for in what is in the packed stream already.
    pub share_tails: bool,
    /// Whether plain blocks that start amid a block of the file are rotated, so that each byte stands in its block where it
    /// stands in that of the file (interlaced). Not with `share_ranges` or `byte_aligned`.
    pub interlaced: bool,
    /// The format keeps uncompressed tails of flat files up to this length beside their inodes. It is asked where a file with
    /// a recipe of clusters turns out to be flat: a longer tail has a block of its own, or goes to the packed stream if that
    /// was asked for and the block would be wasted.
    pub inline_flat_max: u32,
    /// Storage of files with long holes; `None`: as that of others.
    pub sparse: Option<SparseCut>,
}

/// Storage of files of which the source knows that they are mostly holes: the engine gives such a file a recipe of chunks
/// ([`Recipe::Chunks`]), of the length by which data and map take least together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseCut {
    /// Bytes that a row of a map of chunks takes.
    pub row_len: u64,
    /// Longest chunk, in bytes, a power of two.
    pub chunk_len_max: u64,
    /// Longest file with a recipe of clusters, in bytes: longer ones have an index without end.
    pub clusters_len_max: u64,
}

/// How a file is stored in a format that knows several ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// As it is, in one run.
    Flat {
        /// A file that its source knows to have holes is stored as chunks of so many bytes in their place
        /// ([`FileForm::Chunks`]), a power of two, if [`Plan::holes`]; `None`: holes are stored as zeros.
        sparse_chunk_len: Option<u64>,
    },
    /// As it is, in chunks of so many bytes, a power of two; equal chunks are stored once, zeros not at all.
    Chunks {
        /// Bytes in each chunk but the last.
        chunk_len: u64,
    },
    /// Compressed clusters; parts that do not shrink are stored as they are, and so are whole files that save nothing.
    Clusters {
        /// How.
        codec: CodecSettings,
        /// Another codec, for each cluster that it makes hardly larger: one that is quicker to decode.
        second: Option<CodecSettings>,
        /// Most stored bytes of one cluster, a multiple of the block; or, with [`ClusterCut::byte_aligned`], bytes of input.
        cluster_len: u32,
    },
}

/// What becomes of the last part of a file, the one that does not fill a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// A short block of its own.
    Own,
    /// Shares a block, or the packed stream, with other files' tails (a SquashFS fragment).
    Shared,
    /// Shared, and not only the tail but all of the file.
    SharedWhole,
    /// Kept for the format, which stores it beside the file's inode, if it is shorter than a block; of a file with a recipe of
    /// clusters, if it is at least 32 bytes shorter.
    Inline,
}

/// What files may share that are not the same as a whole. Each allows what those before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockSharing {
    /// Nothing.
    Files,
    /// All blocks of a file may be a run of another's.
    Runs,
    /// The tail of such a file may lie in a shared block, whatever [`FileJob::tail`] says, and a tail that goes to a shared
    /// block may be a part of another file's own block instead.
    RunsAndTails,
}

/// Room in front of the blocks of each file that has any, which the format fills itself once it is known how long they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Bytes for each file.
    pub fixed_len: u32,
    /// Bytes for each of its blocks, in addition.
    pub per_block_len: u32,
}

impl Lead {
    /// How long it is before so many blocks, in bytes.
    pub fn len(self, block_count: u64) -> u64 {
        u64::from(self.fixed_len) + u64::from(self.per_block_len) * block_count
    }

    /// Whether there is none before so many blocks.
    pub fn is_empty(self, block_count: u64) -> bool {
        self.len(block_count) == 0
    }
}

/// What becomes of blocks that a codec does not make smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Incompressible {
    /// Each is stored as it is: an image tells such blocks from others.
    #[default]
    StoreBlock,
    /// Each is encoded like any other, and larger than it was: an image holds encoded blocks only.
    Encode,
    /// A file of which a sample does not shrink is stored as it is, in one run ([`FileForm::Flat`]) without a [`Lead`]; each
    /// block of any other file is encoded.
    StoreFile,
}

/// One file whose data is to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileJob {
    /// The file.
    pub node: NodeId,
    /// What becomes of its tail.
    pub tail: Tail,
    /// How it is stored: an index into [`ClusterCut::recipes`]; with [`Cut::FixedInput`] 0, or [`FileJob::FLAT`] where there is
    /// [`Incompressible::StoreFile`].
    pub recipe: u16,
    /// The first of the files for data ([`crate::PackFormat::data_files`]) that it may lie in; 0 where there is at most one.
    pub data_file: u16,
}

impl FileJob {
    /// The recipe of a file that is stored as it is whatever a codec would save ([`FileForm::Flat`]), such as one that firmware
    /// loads.
    pub const FLAT: u16 = 1;
}

/// What the pack engine is to do for one image.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where file data starts, in bytes from the start of the image; what lies before is the format's.
    pub data_start: u64,
    /// How files are cut.
    pub cut: Cut,
    /// How blocks of files are compressed, with [`Cut::FixedInput`]; `None` stores them.
    pub block_codec: Option<CodecSettings>,
    /// How shared blocks are compressed, with [`Cut::FixedInput`]; `None` stores them.
    pub shared_codec: Option<CodecSettings>,
    /// What becomes of blocks that do not shrink, with [`Cut::FixedInput`].
    pub incompressible: Incompressible,
    /// Each file starts at a multiple of so many bytes of the image, with [`Cut::FixedInput`]; what is left free is zero.
    pub file_align: u32,
    /// What stands in front of each file's blocks, with [`Cut::FixedInput`].
    pub lead: Option<Lead>,
    /// Every regular file with at least one byte, as the tree goes. The engine may place them in another order, but those that may
    /// only lie in later files for data come later.
    pub files: Vec<FileJob>,
    /// What is used first, in that order, any kind of node; empty if nobody knows. Formats place its metadata in that order.
    pub first_used: Vec<NodeId>,
    /// How many of the first of `files` are among these. They share no block with those that follow.
    pub first_used_files: u32,
    /// At which of `files` a stretch of the tree starts that shares no block with what is before it; the engine's, in order.
    pub stretch_starts: Vec<u32>,
    /// How far small files may be moved away from their neighbours in the tree, in bytes of such files, while it still
    /// costs little to read them as the tree goes. Readers that keep only a few decoded blocks decode again what they left.
    pub reorder_len: u64,
    /// Whether files with the same contents share their data.
    pub dedupe: bool,
    /// What files share beyond that, with [`Cut::FixedInput`].
    pub sharing: BlockSharing,
    /// Whether blocks of zeros become holes.
    pub holes: bool,
    /// What the format cannot hold.
    pub losses: Vec<Loss>,
}

/// How long a block is on disk, and whether it is compressed; a hole is 0 long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBlock {
    /// Bytes on disk, 0 for a hole.
    pub stored_len: u32,
    /// Whether those bytes are compressed.
    pub compressed: bool,
}

/// Where a tail lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailPlace {
    /// In a block that several files share.
    Shared {
        /// Index into [`Placed::shared`], or behind its end into [`Placed::lent`].
        index: u32,
        /// First byte within the decoded shared block.
        offset: u32,
    },
    /// In the packed stream: the bytes from the last cluster's end on, or all bytes of the file.
    Packed {
        /// First byte within the packed stream.
        offset: u64,
    },
    /// Kept for the format, which asks [`InlineTails`] for it: the bytes from the last cluster's end on.
    Inline(InlineTail),
}

/// A tail that the format stores itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineTail {
    /// Which one, for [`InlineTails::read`].
    pub id: u64,
    /// How many bytes are to be stored.
    pub stored_len: u32,
    /// Whether those bytes are compressed.
    pub compressed: bool,
}

/// The stored bytes of inline tails, kept until the format has a place for them.
pub trait InlineTails {
    /// Appends the [`InlineTail::stored_len`] bytes of a tail to `out`. Errors: `Io`.
    fn read(&self, tail: InlineTail, out: &mut Vec<u8>) -> Result<()>;
}

/// How the bytes of a file from its start on are stored, but for its tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileForm {
    /// In [`Placed::blocks`], one behind the other ([`Cut::FixedInput`]).
    #[default]
    Blocks,
    /// As they are, in one run from [`FilePlace::start`] on ([`Cut::FixedOutput`], and [`Incompressible::StoreFile`]).
    Flat,
    /// In [`Placed::clusters`], as chunks of one length ([`Cut::FixedOutput`]).
    Chunks,
    /// In [`Placed::clusters`], each holding what it holds ([`Cut::FixedOutput`]).
    Clusters,
}

/// What a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterForm {
    /// Nothing is stored: zeros. Only in [`FileForm::Chunks`], and in [`FileForm::Clusters`] with
    /// [`ClusterCut::byte_aligned`]; elsewhere long runs of zeros are clusters that share one stored cluster.
    Hole,
    /// Bytes as they are, a run of any length, block behind block without gap; only the last may be short. Each of the blocks is
    /// a cluster of its own where a format's plain clusters are one block.
    Plain,
    /// Compressed, as [`FileJob::recipe`] says; the file's bytes are all that it decodes to. Clusters with the same offset
    /// are one stored cluster.
    Compressed,
    /// Compressed, and more than this file's bytes: it shares the beginning of another file's cluster.
    CompressedPart,
}

/// A run of a file's bytes in one stored cluster, or in a run of plain blocks or chunks stored one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Where the first block starts in the image, zeros in front included; 0 for a hole.
    pub offset: u64,
    /// Bytes of the file; of holes there may be any number. In [`FileForm::Chunks`] a multiple of the chunk but for the
    /// last of a file.
    pub len: u64,
    /// How many bytes are stored, without the zeros that fill up the block; those stand in front of compressed bytes and
    /// behind plain ones.
    pub stored_len: u32,
    /// What it is.
    pub form: ClusterForm,
    /// Whether it is compressed with the second codec of its file's recipe.
    pub second: bool,
}

/// Where one file's data lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePlace {
    /// Offset of its first stored byte in the image, that of its [`Lead`] if there is one.
    pub start: u64,
    /// Index of its first block or cluster in [`Placed::blocks`] or [`Placed::clusters`].
    pub blocks_start: u64,
    /// How many of them, holes included.
    pub blocks_count: u32,
    /// Where they are, and what they are.
    pub form: FileForm,
    /// Its tail, if that lies elsewhere.
    pub tail: Option<TailPlace>,
    /// How many of its bytes are holes.
    pub hole_len: u64,
}

/// A file of data, one of those that follow each other in the row of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    /// Where it starts in the row: where the one before it ends, padding included.
    pub start: u64,
    /// Where its data ends there.
    pub end: u64,
    /// Hash of its data.
    pub hash: u128,
}

/// What the pack engine did: where everything lies.
#[derive(Debug, Default)]
pub struct Placed {
    /// One row a node of the tree; rows of nodes without data are empty.
    pub files: Vec<FilePlace>,
    /// Blocks of all files.
    pub blocks: Vec<StoredBlock>,
    /// Clusters of all files, and of the packed stream.
    pub clusters: Vec<Cluster>,
    /// Shared blocks: offset in the image and length.
    pub shared: Vec<(u64, StoredBlock)>,
    /// Blocks of files that hold the tails of others, too: offset in the image and length.
    pub lent: Vec<(u64, StoredBlock)>,
    /// The stream of shared tails and its length in bytes, stored like a file.
    pub packed: Option<(FilePlace, u64)>,
    /// Hash of all data, as it is stored.
    pub data_hash: u128,
    /// Where data lie in files of their own, each of them.
    pub data_files: Vec<PlacedFile>,
    /// Where data ends.
    pub data_end: u64,
    /// Files that could not be read, by rising number; they are stored empty.
    pub failed: Vec<NodeId>,
    /// Files (nodes) that share the data of an earlier one.
    pub duplicate_files: u64,
    /// Bytes of those files.
    pub duplicate_bytes: u64,
    /// Files of which all blocks are a run of another's.
    pub run_files: u64,
    /// Bytes in those blocks.
    pub run_bytes: u64,
    /// Tails that are in [`Placed::lent`], each once.
    pub lent_tails: u64,
    /// Their length, in bytes.
    pub lent_bytes: u64,
}

impl Placed {
    /// The leads that were left free, in no order.
    pub fn leads<'a>(&'a self, lead: Option<Lead>) -> impl Iterator<Item = Range<u64>> + 'a {
        let has_lead = |place: &&FilePlace| place.form == FileForm::Blocks && place.blocks_count > 0;
        let range = move |place: &FilePlace| {
            lead.map(|lead| place.start..place.start + lead.len(place.blocks_count.into()))
        };
        self.files.iter().filter(has_lead).filter_map(range)
    }

    /// The blocks of a file.
    pub fn blocks_of(&self, place: &FilePlace) -> &[StoredBlock] {
        let start = place.blocks_start as usize;
        &self.blocks[start..start + place.blocks_count as usize]
    }

    /// The clusters of a file.
    pub fn clusters_of(&self, place: &FilePlace) -> &[Cluster] {
        let start = place.blocks_start as usize;
        &self.clusters[start..start + place.blocks_count as usize]
    }
}

/// A part of the image that the format wrote itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is, as [`crate::SpaceOwner::owner`] names it.
    pub owner: &'static str,
    /// Where it belongs, in bytes from the start of the image.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}
