//! What a packing format asks of the pack engine, and what the engine answers.
//!
//! A format decides which files are cut how ([`Plan`], pure), the engine reads, dedupes, compresses and writes their data
//! in plan order ([`Placed`]), and the format turns that into the metadata around it ([`Section`]s, pure).

use crate::codec::CodecSettings;
use crate::{ImagePath, NodeId};

/// How a file's bytes are cut into jobs for a compressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Blocks of so many bytes of input (SquashFS, cramfs, zisofs, cloop).
    FixedInput {
        /// Bytes of input in each block but the last.
        block_len: u32,
    },
}

/// What becomes of the last part of a file, the one that does not fill a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// A short block of its own.
    Own,
    /// Shares a block with other files' tails (a SquashFS fragment).
    Shared,
}

/// One file whose data is to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileJob {
    /// The file.
    pub node: NodeId,
    /// What becomes of its tail.
    pub tail: Tail,
}

/// Something of the source that the format cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What would be lost, and what would be stored instead.
    pub what: String,
    /// How many nodes it concerns.
    pub count: u64,
    /// One of them.
    pub example: ImagePath,
    /// Whether packing must stop unless the user accepts the loss; else it is only mentioned.
    pub refused: bool,
}

/// What the pack engine is to do for one image.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where file data starts, in bytes from the start of the image; what lies before is the format's.
    pub data_start: u64,
    /// How files are cut.
    pub cut: Cut,
    /// How blocks of files are compressed; `None` stores them.
    pub block_codec: Option<CodecSettings>,
    /// How shared blocks are compressed; `None` stores them.
    pub shared_codec: Option<CodecSettings>,
    /// Every regular file with at least one byte, in the order its data is to be written.
    pub files: Vec<FileJob>,
    /// Whether files with the same contents share their data.
    pub dedupe: bool,
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

/// Where a tail lies: in which shared block, from which byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailPlace {
    /// Index into [`Placed::shared`].
    pub shared_index: u32,
    /// First byte within the decoded shared block.
    pub offset: u32,
}

/// Where one file's data lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePlace {
    /// Offset of its first stored block in the image.
    pub start: u64,
    /// Its blocks are `Placed::blocks[blocks_start..][..blocks_count]`, lying one behind the other.
    pub blocks_start: u64,
    /// How many blocks, holes included.
    pub blocks_count: u32,
    /// Its tail, if that is in a shared block.
    pub tail: Option<TailPlace>,
    /// How many of its bytes are holes.
    pub hole_len: u64,
}

/// What the pack engine did: where everything lies.
#[derive(Debug, Default)]
pub struct Placed {
    /// One row a node of the tree; rows of nodes without data are empty.
    pub files: Vec<FilePlace>,
    /// Blocks of all files.
    pub blocks: Vec<StoredBlock>,
    /// Shared blocks: offset in the image and length.
    pub shared: Vec<(u64, StoredBlock)>,
    /// Where data ends.
    pub data_end: u64,
    /// Files that could not be read, by rising number; they are stored empty.
    pub failed: Vec<NodeId>,
    /// Files (nodes) that share the data of an earlier one.
    pub duplicate_files: u64,
    /// Bytes of those files.
    pub duplicate_bytes: u64,
}

impl Placed {
    /// The blocks of a file.
    pub fn blocks_of(&self, place: &FilePlace) -> &[StoredBlock] {
        let start = place.blocks_start as usize;
        &self.blocks[start..start + place.blocks_count as usize]
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
