//! Lengths of LZ4's block format.

/// Shortest match.
pub(super) const MATCH_LEN_MIN: usize = 4;
/// Farthest a match may copy from.
pub(super) const DISTANCE_MAX: usize = 65_535;
/// Longest match that its token says alone.
pub(super) const MATCH_LEN_SHORT: usize = 18;
/// Longest run of literals that its token says alone.
pub(super) const RUN_LEN_SHORT: usize = 14;
/// So many bytes more each further byte of a length says.
pub(super) const EXTENSION: usize = 255;
/// A block ends in so many literals or more, if there is a match in it.
pub(super) const END_RUN_LEN: usize = 5;
/// No match starts closer to the end of a block.
pub(super) const END_MATCH_LEN: usize = 12;
/// Bytes of a match besides the further bytes of its length: its token and its distance.
pub(super) const MATCH_COST: u32 = 3;

/// The bytes that a length takes beyond its token, which alone says up to `short`.
#[inline(always)]
pub(super) fn extension_len(len: usize, short: usize) -> usize {
    if len <= short { 0 } else { (len - short - 1) / EXTENSION + 1 }
}
