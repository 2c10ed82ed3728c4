//! The fast encoders: one table of recent places, the first match found is taken.
//!
//! Searches ever more sparsely the longer it finds nothing, so that incompressible input costs
//! little. Places are kept modulo 64 KiB: an entry overtaken that way names a wrong place, which
//! the comparison of the bytes reveals.

use super::emit::Emitter;
use super::format::DISTANCE_MAX;
use crate::words::{common_len, load4, load8};

/// Shortest match looked for.
const MATCH_LEN_MIN: usize = 4;
/// Bytes at the end where no search starts, so that words can be read there.
const TAIL_LEN: usize = 8;
/// Base-2 logarithm of the literals after which the search strides one byte further each time.
const STRIDE_LOG: u32 = 5;

/// Encodes `src` whole; `None` if `dst` is too small. `table` is scratch of any content.
///
/// Places are found by `HASHED_LEN` bytes, 4 to 8: the more, the fewer and longer the matches, and
/// the faster.
pub(super) fn compress<const SLOTS: usize, const HASHED_LEN: u32>(
    table: &mut [u16; SLOTS],
    src: &[u8],
    dst: &mut [u8],
) -> Option<usize> {
    let mut out = Emitter::new(dst);
    table.fill(0);
    let limit = src.len().saturating_sub(TAIL_LEN);
    // Literals not yet written start here.
    let mut anchor = 0;
    // Position 0 is in the table already: its entry is what an empty slot says.
    let mut at = 1;
    'search: while at < limit {
        let words = load8(src, at);
        let slot = &mut table[slot_of::<SLOTS, HASHED_LEN>(words)];
        let distance = usize::from((at as u16).wrapping_sub(*slot));
        *slot = at as u16;
        let same = load4(src, at.saturating_sub(distance)) == words as u32;
        if !(same & (distance.wrapping_sub(1) < at.min(DISTANCE_MAX))) {
            at += 1 + ((at - anchor) >> STRIDE_LOG);
            continue 'search;
        }
        let end = at + common_len(src, at - distance, at, MATCH_LEN_MIN, src.len() - at);
        let mut start = at;
        while start > anchor && start > distance && src[start - 1] == src[start - 1 - distance] {
            start -= 1;
        }
        let run = start - anchor;
        if run != 0 {
            out.literals(src, anchor, run)?;
        }
        out.matched(distance, end - start, run)?;
        anchor = end;
        at = end;
        if at < limit {
            table[slot_of::<SLOTS, HASHED_LEN>(load8(src, at - 2))] = (at - 2) as u16;
        }
    }
    if anchor < src.len() {
        out.literals(src, anchor, src.len() - anchor)?;
    }
    out.finish()
}

/// Returns the slot of a place that starts with `words` in a table of `SLOTS`, a power of two.
#[inline(always)]
fn slot_of<const SLOTS: usize, const HASHED_LEN: u32>(words: u64) -> usize {
    let hashed = words << (u64::BITS - 8 * HASHED_LEN);
    (hashed.wrapping_mul(0x9e37_79b1_85eb_ca87) >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}
