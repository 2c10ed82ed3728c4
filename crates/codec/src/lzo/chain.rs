//! The match finder of the middle levels: places with equal hashes of four bytes, newest first.
//!
//! Everything is kept modulo 64 KiB, links as the distance to the next older place, 0 for none. A
//! head overtaken that way leads into places of other hashes; comparing the bytes sorts them out.

use super::finder::{Finder, Found};
use super::format::{DISTANCE_MAX, PAIR_LEN, TRIPLE_LEN};
use crate::words::{common_len, load4, zeroed};

const RING_LEN: usize = 1 << 16;
const HEAD_LOG: u32 = 15;
const TRIPLE_LOG: u32 = 15;
/// Bytes a place must have before the end of the input to be searched and inserted.
const TAIL_LEN: usize = 4;

/// Places of the window by hash. Holds nothing that outlives [`Finder::reset`].
pub(super) struct Chain {
    /// Per hash of four bytes, the newest place.
    heads: Box<[u16; 1 << HEAD_LOG]>,
    /// Per hash of three bytes, the newest place.
    triples: Box<[u16; 1 << TRIPLE_LOG]>,
    /// Per place, the distance to the next older one of its hash.
    links: Box<[u16; RING_LEN]>,
    /// Most places compared in one search.
    depth_max: usize,
}

impl Chain {
    pub(super) fn new(depth_max: usize) -> Self {
        Chain { heads: zeroed(), triples: zeroed(), links: zeroed(), depth_max }
    }

    /// Inserts `at` without looking for matches.
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

    /// Inserts `at` and shows `visit` its matches, ever longer and ever farther, from three bytes
    /// on; stops at one of `len_nice` or more.
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
            // Only a place whose bytes there are equal too can be better.
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

/// Hash of the four bytes of `word`.
#[inline(always)]
fn hash(word: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HEAD_LOG)) as usize
}

/// Hash of the first three bytes of `word`.
#[inline(always)]
fn hash3(word: u32) -> usize {
    ((word << 8).wrapping_mul(0x9e37_79b1) >> (u32::BITS - TRIPLE_LOG)) as usize
}
