//! The middle encoder: takes the match of a position unless the next position has a better one,
//! which saves more bytes by the true cost of the instruction.

use super::chain::Chain;
use super::emit::Emitter;
use super::finder::{Finder, Found};
use super::format::{
    FAR_LEN_MAX, MIDDLE_DISTANCE_MAX, MIDDLE_LEN_MAX, SHORT_DISTANCE_MAX, SHORT_LEN_MAX, extension_len,
};

pub(super) struct Lazy {
    chain: Chain,
    /// Length of a match that ends the search at a position.
    nice_len: usize,
    /// Saving at which a match is taken without a search at the next position.
    good_enough: usize,
}

#[derive(Clone, Copy, Default)]
struct Choice {
    /// Bytes that the match saves over literals.
    saved: usize,
    len: usize,
    distance: usize,
}

/// Length of the instruction for a match of three bytes or more.
#[inline(always)]
fn cost(len: usize, distance: usize) -> usize {
    if len <= SHORT_LEN_MAX && distance <= SHORT_DISTANCE_MAX {
        return 2;
    }
    let len_max = if distance <= MIDDLE_DISTANCE_MAX { MIDDLE_LEN_MAX } else { FAR_LEN_MAX };
    if len <= len_max { 3 } else { 3 + extension_len(len - len_max) }
}

impl Lazy {
    pub(super) fn new(nice_len: usize, depth_max: usize, good_enough: usize) -> Self {
        Lazy { chain: Chain::new(depth_max), nice_len, good_enough }
    }

    /// Inserts the position `at` and chooses among its matches.
    #[inline(always)]
    fn search(&mut self, src: &[u8], at: usize) -> Choice {
        let mut best = Choice::default();
        self.chain.search(src, at, self.nice_len, |Found { len, distance }| {
            let cost = cost(len, distance);
            if len > best.saved + cost {
                best = Choice { saved: len - cost, len, distance };
            }
        });
        best
    }

    /// Encodes `src` completely; `None` if `dst` is too small.
    pub(super) fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        self.chain.reset();
        let mut out = Emitter::new(dst);
        let mut anchor = 0;
        let mut at = 0;
        while at < src.len() {
            let mut choice = self.search(src, at);
            if choice.saved == 0 {
                at += 1;
                continue;
            }
            let mut inserted = at + 1;
            while choice.saved < self.good_enough && at + 1 < src.len() {
                let next = self.search(src, at + 1);
                inserted = at + 2;
                if next.saved <= choice.saved {
                    break;
                }
                choice = next;
                at += 1;
            }
            for place in inserted..at + choice.len {
                self.chain.pass(src, place);
            }
            if at > anchor {
                out.literals(src, anchor, at - anchor)?;
            }
            out.matched(choice.distance, choice.len, at - anchor)?;
            at += choice.len;
            anchor = at;
        }
        if anchor < src.len() {
            out.literals(src, anchor, src.len() - anchor)?;
        }
        out.finish()
    }
}
