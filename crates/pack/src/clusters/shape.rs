//! How one file is to be stored, as far as the plan and its length alone tell.

use packfs_format::{ClusterPlan, ClusterRecipe, ClusterStorage, Recipe, Tail};

/// Whole files up to so many blocks are compared with others as tails of the packed stream, while
/// they are packed; longer ones before, since what turns out incompressible does not go there.
const COMPARED_BLOCKS: u64 = 4;
/// Files shorter than so many full clusters go to the packed stream as a whole: in most of them the
/// first cluster would take nearly everything, and the rest would still have to go there.
const PACKED_CLUSTERS: u64 = 2;

/// Files are not cut into fewer segments than this to make segments longer,
const SEGMENTS_MIN: u64 = 8;
/// and not into longer ones than this, as several are held in memory.
const SEGMENT_LEN_MAX: u64 = 16 << 20;

/// What becomes of the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has blocks of its own.
    Own,
    /// The same, but the format keeps a short last block if the file turns out to be flat.
    OwnUnlessFlat,
    /// The format keeps it.
    Inline,
    /// It goes to the packed stream.
    Packed,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// All of it goes to the packed stream, in one go.
    Whole {
        /// How it is stored instead if it looks incompressible.
        else_by: Option<&'a ClusterRecipe>,
    },
    /// All of it goes to the packed stream, piece by piece.
    Stream,
    /// As it is; in chunks if the source knows of holes.
    Flat {
        /// Length of such chunks.
        sparse_chunk_len: Option<u64>,
        /// Its last short block.
        end: End,
    },
    /// As it is, in chunks.
    Chunks {
        /// Length of all but the last.
        chunk_len: u64,
    },
    /// Compressed.
    Clusters {
        /// How.
        recipe: &'a ClusterRecipe,
        /// What becomes of what does not fill a cluster.
        end: End,
    },
}

/// The shape of a file of `len` bytes.
pub(super) fn shape(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> Shape<'_> {
    let whole_max = match cut.recipes.get(usize::from(job.recipe)) {
        Some(Recipe::Clusters(recipe)) if cut.byte_aligned => u64::from(recipe.cluster_len) - 1,
        Some(Recipe::Clusters(recipe)) => PACKED_CLUSTERS * u64::from(recipe.cluster_len),
        _ => COMPARED_BLOCKS * u64::from(cut.block_len),
    };
    if job.tail == Tail::SharedWhole {
        return if len <= whole_max { Shape::Whole { else_by: None } } else { Shape::Stream };
    }
    match cut.recipes.get(usize::from(job.recipe)) {
        Some(&Recipe::Chunks { chunk_len }) => Shape::Chunks { chunk_len },
        Some(Recipe::Clusters(recipe)) => match job.tail {
            Tail::Shared if len <= whole_max => Shape::Whole { else_by: Some(recipe) },
            Tail::Shared => Shape::Clusters { recipe, end: End::Packed },
            // Byte-aligned clusters waste nothing that an inline tail could save, and formats
            // cannot tell them apart.
            Tail::Inline if !cut.byte_aligned => Shape::Clusters { recipe, end: End::Inline },
            Tail::Own if cut.inline_flat_max > 0 && !cut.byte_aligned => {
                Shape::Clusters { recipe, end: End::OwnUnlessFlat }
            }
            _ => Shape::Clusters { recipe, end: End::Own },
        },
        Some(&Recipe::Flat { sparse_chunk_len }) => Shape::Flat { sparse_chunk_len, end: flat_end(job.tail) },
        None => Shape::Flat { sparse_chunk_len: None, end: End::Own },
    }
}

/// What becomes of the short last block of a file that is stored flat.
fn flat_end(tail: Tail) -> End {
    match tail {
        Tail::Inline => End::Inline,
        _ => End::Own,
    }
}

/// Whether a file needs no look before packing to find another that is the same: it is compared
/// later, or has no stored blocks to share.
pub(super) fn is_compared_as_tail(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> bool {
    let block_len = u64::from(cut.block_len);
    match shape(cut, job, len) {
        Shape::Whole { .. } => len <= COMPARED_BLOCKS * block_len,
        Shape::Flat { end: End::Inline, .. } | Shape::Clusters { end: End::Inline, .. } => len < block_len,
        Shape::Clusters { end: End::OwnUnlessFlat, .. } => len <= u64::from(cut.inline_flat_max),
        _ => false,
    }
}

/// Whether all of a file goes to the packed stream, unless it looks incompressible.
pub(super) fn shares_whole(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> bool {
    matches!(shape(cut, job, len), Shape::Whole { .. })
}

/// How much of a file one worker takes at a time.
pub(super) fn piece_len(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> u64 {
    let stretch = |unit: u64| (crate::spans::SPAN_LEN / unit).max(1) * unit;
    match shape(cut, job, len) {
        Shape::Whole { .. } => len,
        Shape::Stream => crate::spans::SPAN_LEN,
        Shape::Clusters { .. } => segment_len(cut, len),
        Shape::Chunks { chunk_len } => stretch(chunk_len),
        Shape::Flat { sparse_chunk_len, .. } => {
            let block_len = u64::from(cut.block_len);
            stretch(sparse_chunk_len.unwrap_or(block_len).max(block_len))
        }
    }
}

/// Most bytes of a hole in a file that one worker takes at a time.
pub(super) fn hole_max(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> u64 {
    match shape(cut, job, len) {
        Shape::Clusters { .. } if !cut.byte_aligned => piece_len(cut, job, len),
        Shape::Whole { .. } | Shape::Stream => 0,
        Shape::Clusters { .. } | Shape::Chunks { .. } | Shape::Flat { .. } => u64::MAX,
    }
}

/// How much of a file of `len` bytes is compressed on its own. Each segment ends in a cluster that
/// is not full, so a long file has few: enough for many threads all the same.
fn segment_len(cut: &ClusterPlan, len: u64) -> u64 {
    let longest = cut.segment_len.max(SEGMENT_LEN_MAX / cut.segment_len * cut.segment_len);
    (len / SEGMENTS_MIN / cut.segment_len * cut.segment_len).clamp(cut.segment_len, longest)
}

/// The longest segment of all files, or of the packed stream.
pub(super) fn longest_segment(cut: &ClusterPlan, file_lens: impl Iterator<Item = u64>) -> u64 {
    segment_len(cut, file_lens.max().unwrap_or(0))
}
