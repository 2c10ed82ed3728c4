//! Lengths of LZ4's block format.

pub(super) const MATCH_LEN_MIN: usize = 4;
pub(super) const DISTANCE_MAX: usize = 65_535;
/// Longest match whose length fits in the token.
pub(super) const MATCH_LEN_SHORT: usize = 18;
/// Longest run of literals whose length fits in the token.
pub(super) const RUN_LEN_SHORT: usize = 14;
/// Length that each further byte adds.
pub(super) const EXTENSION: usize = 255;
/// Minimum literals at the end of a block that contains a match.
pub(super) const END_RUN_LEN: usize = 5;
/// Minimum distance of a match's start from the end of a block.
pub(super) const END_MATCH_LEN: usize = 12;
/// Bytes of a match without the further bytes of its length: token and distance.
pub(super) const MATCH_COST: u32 = 3;

/// Bytes of a length outside of its token, which alone represents up to `short`.
#[inline(always)]
pub(super) fn extension_len(len: usize, short: usize) -> usize {
    if len <= short { 0 } else { (len - short - 1) / EXTENSION + 1 }
}
