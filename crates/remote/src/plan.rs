//! Blocks that are missing, as requests.

use std::ops::Range;

/// Length of a block in bytes, in memory and on disk.
pub(crate) const BLOCK_LEN: u64 = 64 << 10;
/// Blocks between two requested ones that are fetched with them: they cost less than a round trip.
const GAP_MAX: u64 = 4;
/// Blocks of a request; longer ranges are fetched by several in parallel.
const PIECE_MAX: u64 = 16;

/// Returns requests for blocks, which are in order: neighbours together, long ranges in pieces.
pub(crate) fn requests(blocks: impl IntoIterator<Item = u64>) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for block in blocks {
        let end = block.saturating_add(1);
        match found.last_mut() {
            Some(last)
                if block.saturating_sub(last.end) <= GAP_MAX
                    && end.saturating_sub(last.start) <= PIECE_MAX =>
            {
                last.end = last.end.max(end);
            }
            _ => found.push(block..end),
        }
    }
    found
}

/// Returns the blocks that hold a range of bytes.
pub(crate) fn blocks_of(range: &Range<u64>) -> Range<u64> {
    if range.is_empty() { 0..0 } else { range.start / BLOCK_LEN..range.end.div_ceil(BLOCK_LEN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_come_together_and_long_ranges_in_pieces() {
        assert_eq!(requests([]), []);
        assert_eq!(requests([3, 9]), [3..4, 9..10]);
        assert_eq!(requests([3, 4, 9, 15]), [3..10, 15..16]);
        assert_eq!(requests(0..40), [0..16, 16..32, 32..40]);
        assert_eq!(requests([2, u64::MAX]), [2..3, u64::MAX..u64::MAX]);
    }

    #[test]
    fn ranges_of_bytes_touch_whole_blocks() {
        assert_eq!(blocks_of(&(0..1)), 0..1);
        assert_eq!(blocks_of(&(BLOCK_LEN - 1..BLOCK_LEN + 1)), 0..2);
        assert_eq!(blocks_of(&(5..5)), 0..0);
    }
}
