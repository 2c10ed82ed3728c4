//! The match finder of the middle levels: positions with equal hashes of four bytes, newest first.
//!
//! Positions are stored modulo 64 KiB, links as the distance to the previous position, 0 without
//! one. A head that was overtaken leads to positions of other hashes; the comparison of bytes
//! excludes them.

use super::finder::{Finder, Found};
use super::format::{DISTANCE_MAX, PAIR_LEN, TRIPLE_LEN};
use crate::words::{common_len, load4, zeroed};

const RING_LEN: usize = 1 << 16;
const HEAD_LOG: u32 = 15;
const TRIPLE_LOG: u32 = 15;
/// Bytes that a position must have before the end of the input to be searched and inserted.
const TAIL_LEN: usize = 4;

/// Positions of the window by hash. [`Finder::reset`] clears all of it.
pub(super) struct Chain {
    /// By hash of four bytes, the newest position.
    heads: Box<[u16; 1 << HEAD_LOG]>,
    /// By hash of three bytes, the newest position.
    triples: Box<[u16; 1 << TRIPLE_LOG]>,
    /// By position, the distance to the previous one of its hash.
    links: Box<[u16; RING_LEN]>,
    depth_max: usize,
}

impl Chain {
    pub(super) fn new(depth_max: usize) -> Self {
        Chain { heads: zeroed(), triples: zeroed(), links: zeroed(), depth_max }
    }

    /// Inserts `at` without searching for matches.
    #[inline(always)]
    pub(super) fn pass(&mut self, src: &[u8], at: usize) {
        if src.len() - at < TAIL_LEN {
            return;
        }
        let word = load4(src, at);
        self.triples[hash3(word)] = at as u16;
        let head = &mut self.heads[hash(word)];
        let distance = usize::from((at as u16).wrapping_sub(*head));
        *head = at as u16;
        self.links[at % RING_LEN] = if distance <= at.min(DISTANCE_MAX) { distance as u16 } else { 0 };
    }

    /// Inserts `at` and calls `visit` for its matches of three bytes and more, with increasing
    /// length and distance; stops at one of `len_nice` or more.
    #[inline(always)]
    pub(super) fn search(&mut self, src: &[u8], at: usize, len_nice: usize, mut visit: impl FnMut(Found)) {
        let len_max = src.len() - at;
        if len_max < TAIL_LEN {
            return;
        }
        let len_nice = len_nice.min(len_max);
        let word = load4(src, at);
        let distance_max = at.min(DISTANCE_MAX);
        let mut best = PAIR_LEN;
        let triple = &mut self.triples[hash3(word)];
        let distance = usize::from((at as u16).wrapping_sub(*triple));
        *triple = at as u16;
        if distance.wrapping_sub(1) < distance_max && (load4(src, at - distance) ^ word) << 8 == 0 {
            best = common_len(src, at - distance, at, TRIPLE_LEN, len_max);
            visit(Found { len: best, distance });
        }
        let head = &mut self.heads[hash(word)];
        let mut distance = usize::from((at as u16).wrapping_sub(*head));
        *head = at as u16;
        if distance > distance_max {
            distance = 0;
        }
        self.links[at % RING_LEN] = distance as u16;
        if distance == 0 || best >= len_nice {
            return;
        }
        best = best.max(TRIPLE_LEN);
        for _ in 0..self.depth_max {
            let place = at - distance;
            // A position can only be better if its bytes there are equal, too.
            if load4(src, place + best - TRIPLE_LEN) == load4(src, at + best - TRIPLE_LEN) {
                let len = common_len(src, place, at, 0, len_max);
                if len > best {
                    best = len;
                    visit(Found { len, distance });
                    if len >= len_nice {
                        return;
                    }
                }
            }
            let link = usize::from(self.links[place % RING_LEN]);
            distance += link;
            if link == 0 || distance > distance_max {
                return;
            }
        }
    }
}

impl Finder for Chain {
    fn reset(&mut self) {
        self.heads.fill(0);
        self.triples.fill(0);
    }

    #[inline]
    fn insert(&mut self, src: &[u8], at: usize, len_max: usize, found: &mut Vec<Found>) {
        found.clear();
        self.search(src, at, len_max, |Found { len, distance }| {
            found.push(Found { len: len.min(len_max), distance });
        });
    }

    #[inline]
    fn skip(&mut self, src: &[u8], at: usize, _len_max: usize) {
        self.pass(src, at);
    }
}

#[inline(always)]
fn hash(word: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HEAD_LOG)) as usize
}

#[inline(always)]
fn hash3(word: u32) -> usize {
    ((word << 8).wrapping_mul(0x9e37_79b1) >> (u32::BITS - TRIPLE_LOG)) as usize
}
