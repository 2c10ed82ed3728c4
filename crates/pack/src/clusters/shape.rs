//! Storage of one file, as determined by the plan and the file's length.

use packfs_format::{ClusterPlan, ClusterRecipe, ClusterStorage, Recipe, Tail};

/// Whole files up to this many blocks are compared as tails of the packed stream while they are
/// packed. Longer ones are compared before, because incompressible ones do not go there.
const COMPARED_BLOCKS: u64 = 4;
/// Files shorter than this many full clusters go to the packed stream whole: the first cluster
/// would hold nearly all of such a file, and the rest would go there anyway.
const PACKED_CLUSTERS: u64 = 2;

/// A file is cut into at least this many segments before segments grow,
const SEGMENTS_MIN: u64 = 8;
/// and segments never exceed this length, because several are held in memory.
const SEGMENT_LEN_MAX: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Own,
    /// Separate blocks, but a short last block is inline if the file turns out to be flat.
    OwnUnlessFlat,
    Inline,
    Packed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// The whole file goes to the packed stream at once.
    Whole {
        /// Recipe used instead if the file looks incompressible.
        else_by: Option<&'a ClusterRecipe>,
    },
    /// The whole file goes to the packed stream, piece by piece.
    Stream,
    /// Uncompressed; in chunks if the source reports holes.
    Flat {
        sparse_chunk_len: Option<u64>,
        end: End,
    },
    Chunks {
        chunk_len: u64,
    },
    Clusters {
        recipe: &'a ClusterRecipe,
        end: End,
    },
}

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
            // Byte-aligned clusters have no padding that an inline tail could save, and formats
            // cannot tell the two apart.
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

fn flat_end(tail: Tail) -> End {
    match tail {
        Tail::Inline => End::Inline,
        _ => End::Own,
    }
}

/// True for a file that is compared as a tail later, or stores no blocks.
pub(super) fn is_compared_as_tail(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> bool {
    let block_len = u64::from(cut.block_len);
    match shape(cut, job, len) {
        Shape::Whole { .. } => len <= COMPARED_BLOCKS * block_len,
        Shape::Flat { end: End::Inline, .. } | Shape::Clusters { end: End::Inline, .. } => len < block_len,
        Shape::Clusters { end: End::OwnUnlessFlat, .. } => len <= u64::from(cut.inline_flat_max),
        _ => false,
    }
}

pub(super) fn shares_whole(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> bool {
    matches!(shape(cut, job, len), Shape::Whole { .. })
}

pub(super) fn is_packed(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> bool {
    matches!(shape(cut, job, len), Shape::Whole { .. } | Shape::Stream)
}

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

pub(super) fn hole_max(cut: &ClusterPlan, job: ClusterStorage, len: u64) -> u64 {
    match shape(cut, job, len) {
        Shape::Clusters { .. } if !cut.byte_aligned => piece_len(cut, job, len),
        Shape::Whole { .. } | Shape::Stream => 0,
        Shape::Clusters { .. } | Shape::Chunks { .. } | Shape::Flat { .. } => u64::MAX,
    }
}

/// Returns the length of the parts of a file that are compressed independently. Each ends in a
/// cluster that is not full, so a long file has few of them, but enough for many threads.
fn segment_len(cut: &ClusterPlan, len: u64) -> u64 {
    let longest = cut.segment_len.max(SEGMENT_LEN_MAX / cut.segment_len * cut.segment_len);
    (len / SEGMENTS_MIN / cut.segment_len * cut.segment_len).clamp(cut.segment_len, longest)
}

pub(super) fn longest_segment(cut: &ClusterPlan, file_lens: impl Iterator<Item = u64>) -> u64 {
    segment_len(cut, file_lens.max().unwrap_or(0))
}
