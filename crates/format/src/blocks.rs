//! Data in blocks: files are cut by input length (SquashFS, cramfs, zisofs, cloop).

use crate::{DataKind, FilePlace, Placed, units::*};
use packfs_codec::CodecSettings;
use packfs_core::range_at;
use std::ops::Range;

/// Data in blocks of equal input length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks;

impl DataKind for Blocks {
    type Plan = BlockPlan;
    type Storage = BlockStorage;
    type Form = BlockForm;
    type Tail = SharedTail;
    type Placed = BlocksPlaced;
}

/// Plan of blocks.
#[derive(Clone, Debug)]
pub struct BlockPlan {
    /// Bytes of input in each block but the last of a file.
    pub block_len: u32,
    /// Codec of the blocks of files; `None`: uncompressed.
    pub block_codec: Option<CodecSettings>,
    /// Codec of shared blocks; `None`: uncompressed.
    pub shared_codec: Option<CodecSettings>,
    /// Storage of blocks that do not shrink.
    pub incompressible: Incompressible,
    /// Alignment of files in the image, in bytes; gaps are zero.
    pub file_align: u32,
    /// Additional alignment of files in one run ([`BlockForm::Flat`]).
    pub flat_align: u32,
    /// Space before each file's blocks.
    pub lead: Option<Lead>,
    /// Data of files that is stored once.
    pub sharing: BlockSharing,
}

impl BlockPlan {
    /// Returns the plan of blocks of this length and codec without sharing of parts, and without
    /// alignment.
    pub fn new(block_len: u32, codec: Option<CodecSettings>) -> Self {
        BlockPlan {
            block_len,
            block_codec: codec,
            shared_codec: None,
            incompressible: Incompressible::StoreBlock,
            file_align: 1,
            flat_align: 1,
            lead: None,
            sharing: BlockSharing::Files,
        }
    }
}

/// Storage of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStorage {
    /// Separate blocks, the last of which may be short.
    Blocks,
    /// Separate blocks; the rest shares a block with other files' tails (a SquashFS fragment).
    SharedTail,
    /// One uncompressed run, whatever a codec would save, such as for boot images and execution in
    /// place.
    Flat,
}

/// Data that different files may share. Each value includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockSharing {
    /// Whole files only.
    Files,
    /// All blocks of a file may be a run of another's.
    Runs,
    /// The tail of such a file may be in a shared block, whatever its [`BlockStorage`] is, and a
    /// tail for a shared block may be a part of another file's own block instead.
    RunsAndTails,
}

/// Space before the blocks of each nonempty file, which the format fills once their lengths are
/// known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Bytes for each file.
    pub fixed_len: u32,
    /// Bytes for each of its blocks, in addition.
    pub per_block_len: u32,
}

impl Lead {
    /// Length before `block_count` blocks, in bytes.
    pub fn len(self, block_count: u64) -> u64 {
        u64::from(self.per_block_len).times(block_count).plus(self.fixed_len.into())
    }

    /// True if no space is reserved before `block_count` blocks.
    pub fn is_empty(self, block_count: u64) -> bool {
        self.len(block_count) == 0
    }
}

/// Treatment of incompressible blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Incompressible {
    /// Each is stored uncompressed: the image records the form of each block.
    #[default]
    StoreBlock,
    /// Each is encoded like any other, and larger than before: the image only has encoded blocks.
    Encode,
    /// A file whose sample does not shrink is stored uncompressed, in one run ([`BlockForm::Flat`])
    /// without a [`Lead`]; each block of any other file is encoded.
    StoreFile,
}

/// Length of a block on disk and its form; a hole has length 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBlock {
    /// Bytes on disk, 0 for a hole.
    pub stored_len: u32,
    /// True if those bytes are compressed.
    pub compressed: bool,
}

impl StoredBlock {
    /// A block of zeros, which is not stored.
    pub const HOLE: StoredBlock = StoredBlock { stored_len: 0, compressed: false };
}

/// Form in which a file was stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockForm {
    /// In [`BlocksPlaced::blocks`], in sequence.
    #[default]
    Blocks,
    /// Uncompressed, in one run at [`FilePlace::start`].
    Flat,
}

/// Position of a tail in a shared block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTail {
    /// Index into [`BlocksPlaced::shared`], or after its end into [`BlocksPlaced::borrowed`].
    pub index: u32,
    /// First byte within the decoded shared block.
    pub offset: u32,
}

/// Positions of blocks.
#[derive(Debug, Default)]
pub struct BlocksPlaced {
    /// Blocks of all files.
    pub blocks: Vec<StoredBlock>,
    /// Shared blocks: offset in the image and length.
    pub shared: Vec<(u64, StoredBlock)>,
    /// Blocks of files that contain tails of others: offset in the image and length.
    pub borrowed: Vec<(u64, StoredBlock)>,
    /// Number of files whose blocks are all a run of another's.
    pub run_files: u64,
    /// Bytes in those blocks.
    pub run_bytes: u64,
    /// Number of tails in [`BlocksPlaced::borrowed`].
    pub duplicate_tails: u64,
    /// Their length, in bytes.
    pub duplicate_tail_bytes: u64,
}

impl Placed<Blocks> {
    /// Returns the reserved leads, in unspecified order.
    pub fn leads(&self, lead: Option<Lead>) -> impl Iterator<Item = Range<u64>> {
        let has_lead = |place: &&FilePlace<Blocks>| place.form == BlockForm::Blocks && place.count > 0;
        let range = move |place: &FilePlace<Blocks>| {
            lead.map(|lead| range_at(place.start, lead.len(place.count.into())))
        };
        self.files.iter().filter(has_lead).filter_map(range)
    }

    /// Returns the blocks of a file.
    pub fn blocks_of(&self, place: &FilePlace<Blocks>) -> &[StoredBlock] {
        &self.data.blocks[place.rows()]
    }

    /// Returns the bytes of holes in a file of `len` bytes, given the length of blocks.
    pub fn hole_len(&self, place: &FilePlace<Blocks>, block_len: u64, len: u64) -> u64 {
        let holes = self.blocks_of(place).iter().zip(0_u64..).filter(|(block, _)| block.stored_len == 0);
        let hole_len = |index: u64| len.minus(index.times(block_len)).min(block_len);
        holes.fold(0, |sum, (_, index)| sum.plus(hole_len(index)))
    }
}
