//! The match finder of the dense levels: binary search trees over the window, one per hash of four
//! bytes, and the newest position per hash of three.
//!
//! A tree is sorted by the bytes at each position and, towards its leaves, by age, so that the path
//! to the position being inserted visits every longest match of each distance in turn. Inserting a
//! position makes it the root and splits the tree along that path. Links are the distance from a
//! position to an older one, 0 without one, in a ring of 64 KiB of positions: no link reaches
//! beyond the window, so none can refer to a position that the ring has reused.

use super::finder::{Finder, Found};
use super::format::{DISTANCE_MAX, PAIR_LEN, TRIPLE_LEN};
use crate::words::{common_len, load4, zeroed};

const RING_LEN: usize = 1 << 16;
const HEAD_LOG: u32 = 15;
const TRIPLE_LOG: u32 = 16;
/// Bytes that a position must have before the end of the input to be searched and inserted.
const TAIL_LEN: usize = 4;

/// Positions of the window in search order. [`Finder::reset`] clears all of it.
pub(super) struct Tree {
    /// By hash, one more than the newest position, modulo 2^32; 0 without one.
    heads: Box<[u32; 1 << HEAD_LOG]>,
    /// By hash of three bytes, the newest position modulo 64 KiB.
    triples: Box<[u16; 1 << TRIPLE_LOG]>,
    /// By position modulo the ring: the links to smaller and to greater strings.
    links: Box<[[u16; 2]; RING_LEN]>,
    depth_max: usize,
}

/// A link: its owner, and its side.
#[derive(Clone, Copy)]
struct Link {
    owner: usize,
    side: usize,
}

impl Tree {
    pub(super) fn new(depth_max: usize) -> Self {
        Tree { heads: zeroed(), triples: zeroed(), links: zeroed(), depth_max }
    }

    /// Inserts `at` and calls `visit` for its matches, with increasing length and distance.
    #[inline]
    fn search(&mut self, src: &[u8], at: usize, len_max: usize, mut visit: impl FnMut(Found)) {
        let len_max = len_max.min(src.len() - at);
        if src.len() - at < TAIL_LEN {
            return;
        }
        let word = load4(src, at);
        let mut best = PAIR_LEN;
        let triple = &mut self.triples[hash3(word)];
        let distance = usize::from((at as u16).wrapping_sub(*triple));
        *triple = at as u16;
        if distance.wrapping_sub(1) < at.min(DISTANCE_MAX) && (load4(src, at - distance) ^ word) << 8 == 0 {
            best = TRIPLE_LEN;
            visit(Found { len: TRIPLE_LEN, distance });
        }
        let head = &mut self.heads[hash(word)];
        let mut distance = (at as u32).wrapping_add(1).wrapping_sub(*head) as usize;
        *head = (at as u32).wrapping_add(1);
        let distance_max = at.min(DISTANCE_MAX);
        let mut before = Link { owner: at, side: 0 };
        let mut after = Link { owner: at, side: 1 };
        let (mut before_len, mut after_len) = (0, 0);
        for _ in 0..self.depth_max {
            if distance > distance_max {
                break;
            }
            let place = at - distance;
            let children = self.links[place % RING_LEN];
            let len = common_len(src, place, at, before_len.min(after_len), len_max);
            if len > best {
                best = len;
                visit(Found { len, distance });
            }
            if len == len_max {
                // The strings are indistinguishable: `at` replaces the older position in the tree.
                self.set(before, place, children[0]);
                self.set(after, place, children[1]);
                return;
            }
            let child = if src[place + len] < src[at + len] {
                self.links[before.owner % RING_LEN][before.side] = (before.owner - place) as u16;
                before = Link { owner: place, side: 1 };
                before_len = len;
                children[1]
            } else {
                self.links[after.owner % RING_LEN][after.side] = (after.owner - place) as u16;
                after = Link { owner: place, side: 0 };
                after_len = len;
                children[0]
            };
            if child == 0 {
                break;
            }
            distance += usize::from(child);
        }
        self.links[before.owner % RING_LEN][before.side] = 0;
        self.links[after.owner % RING_LEN][after.side] = 0;
    }

    /// Points `link` to the position that `child` is from `place`.
    #[inline]
    fn set(&mut self, link: Link, place: usize, child: u16) {
        let distance = link.owner - place + usize::from(child);
        let reachable = child != 0 && distance <= DISTANCE_MAX;
        self.links[link.owner % RING_LEN][link.side] = if reachable { distance as u16 } else { 0 };
    }
}

impl Finder for Tree {
    fn reset(&mut self) {
        self.heads.fill(0);
        self.triples.fill(0);
    }

    #[inline]
    fn insert(&mut self, src: &[u8], at: usize, len_max: usize, found: &mut Vec<Found>) {
        found.clear();
        self.search(src, at, len_max, |match_found| found.push(match_found));
    }

    #[inline]
    fn skip(&mut self, src: &[u8], at: usize, len_max: usize) {
        self.search(src, at, len_max, |_| ());
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
