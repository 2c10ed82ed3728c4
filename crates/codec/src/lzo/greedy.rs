//! The fast encoders: one table of recent positions, and the first match found is taken.
//!
//! The search becomes ever sparser while it finds nothing, so that incompressible input costs
//! little. Positions are stored modulo 64 KiB: an overtaken entry contains a wrong position, which
//! the comparison of bytes detects.

use super::emit::Emitter;
use super::format::DISTANCE_MAX;
use crate::words::{common_len, load4, load8};

const MATCH_LEN_MIN: usize = 4;
/// Bytes at the end where no search starts, so that words can be loaded there.
const TAIL_LEN: usize = 8;
/// Logarithm of the literals after which the stride of the search increases by one.
const STRIDE_LOG: u32 = 5;

/// Encodes `src` completely; `None` if `dst` is too small. `table` is scratch memory with any
/// contents.
///
/// Positions are hashed by `HASHED_LEN` bytes, 4 to 8: with more, matches are fewer and longer, and
/// encoding is faster.
pub(super) fn compress<const SLOTS: usize, const HASHED_LEN: u32>(
    table: &mut [u16; SLOTS],
    src: &[u8],
    dst: &mut [u8],
) -> Option<usize> {
    let mut out = Emitter::new(dst);
    table.fill(0);
    let limit = src.len().saturating_sub(TAIL_LEN);
    // Start of the pending literals.
    let mut anchor = 0;
    // Position 0 is in the table already: it is the value of an empty slot.
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

/// Returns the slot of a position that starts with `words` in a table of `SLOTS`, a power of two.
#[inline(always)]
fn slot_of<const SLOTS: usize, const HASHED_LEN: u32>(words: u64) -> usize {
    let hashed = words << (u64::BITS - 8 * HASHED_LEN);
    (hashed.wrapping_mul(0x9e37_79b1_85eb_ca87) >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}
