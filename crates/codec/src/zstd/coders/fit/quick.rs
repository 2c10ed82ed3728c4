//! A parse that can stop and continue anywhere: matches by two tables of positions, as in libzstd's
//! `dfast` strategy.
//!
//! One table contains the last position of each eight bytes, the other of each shortest match.
//! libzstd's own parse consumes all of its input, so the excess is parsed in vain, and its tables
//! are cleared for each input; these keep positions of earlier inputs, which are smaller than those
//! of the current one.

use super::ffi::Sequence;
use crate::words::{common_back, common_len, load4, load8, zeroed};

/// Length of each table; no level has larger ones for this strategy.
const TABLE_LEN: usize = 1 << 18;
const TABLE_LOG: u32 = TABLE_LEN.ilog2();
/// Bytes of one load. Positions closer to the end of a block are not looked up.
const WORD_LEN: usize = 8;
/// Bytes without a match after which positions are skipped, one more each time.
const PATIENCE: usize = 256;
/// Position at which tables are cleared, because inputs become indistinguishable.
const PLACE_MAX: u32 = 1 << 31;
/// A prime close to 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B1_85EB_CA87;

#[derive(Clone, Copy)]
pub(super) struct Tables {
    /// Logarithm of the table of long strings, and of short ones.
    pub(super) long_log: u32,
    pub(super) short_log: u32,
    /// Length of short strings, 4 to 7.
    pub(super) short_len: u32,
}

pub(super) struct Quick {
    long: Box<[u32; TABLE_LEN]>,
    short: Box<[u32; TABLE_LEN]>,
    tables: Tables,
    /// Position in the tables of the input's first byte.
    base: u32,
    /// Position in the tables after all bytes that were ever looked up.
    next_base: u32,
    at: usize,
    /// End of the input in sequences.
    anchor: usize,
    /// The last two offsets, the most recent first.
    offsets: [usize; 2],
}

impl Quick {
    pub(super) fn new() -> Quick {
        Quick {
            long: zeroed(),
            short: zeroed(),
            tables: Tables { long_log: 0, short_log: 0, short_len: 4 },
            base: 1,
            next_base: 1,
            at: 0,
            anchor: 0,
            offsets: [1, 4],
        }
    }

    /// Starts an input of `src_len` bytes, less than 2^30.
    pub(super) fn begin(&mut self, src_len: usize, tables: Tables) {
        if self.next_base > PLACE_MAX {
            self.long.fill(0);
            self.short.fill(0);
            self.next_base = 1;
        }
        self.base = self.next_base;
        self.next_base += src_len as u32;
        self.tables = Tables {
            long_log: tables.long_log.clamp(8, TABLE_LOG),
            short_log: tables.short_log.clamp(8, TABLE_LOG),
            short_len: tables.short_len.clamp(4, 7),
        };
        (self.at, self.anchor, self.offsets) = (0, 0, [1, 4]);
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn anchor(&self) -> usize {
        self.anchor
    }

    /// Marks all parsed input as in sequences, after the caller added one for the literals.
    pub(super) fn end_literals(&mut self) {
        self.anchor = self.at;
    }

    /// Returns the last `len` literals to the pending run.
    pub(super) fn reopen_literals(&mut self, len: usize) {
        self.anchor -= len;
    }

    /// Parses up to `until` or somewhat further, but not beyond `end`, where a block ends. Appends
    /// sequences, all with matches.
    pub(super) fn advance(&mut self, src: &[u8], until: usize, end: usize, sequences: &mut Vec<Sequence>) {
        let src = &src[..end];
        let Tables { long_log, short_log, short_len } = self.tables;
        let (long_shift, short_shift, unused) =
            (u64::BITS - long_log, u64::BITS - short_log, u64::BITS - 8 * short_len);
        let long_slot = |word: u64| (word.wrapping_mul(SPREAD) >> long_shift) as usize % TABLE_LEN;
        let short_slot =
            |word: u64| ((word << unused).wrapping_mul(SPREAD) >> short_shift) as usize % TABLE_LEN;
        let base = self.base;
        let (long, short) = (&mut *self.long, &mut *self.short);
        // The last position that is looked up.
        let Some(last) = end.checked_sub(WORD_LEN) else {
            self.at = end;
            return;
        };
        let limit = until.min(last + 1);
        let [mut offset, mut second] = self.offsets;
        let mut anchor = self.anchor;
        // Nothing precedes the first byte.
        let mut at = self.at.max(1);
        'sequences: while at < limit {
            let mut step = 1;
            let mut next_step = at + PATIENCE;
            let mut word = load8(src, at);
            let mut slot = long_slot(word);
            let mut found = long[slot];
            let (start, len, distance) = loop {
                let next = at + step;
                let low_slot = short_slot(word);
                let low_found = short[low_slot];
                let place = base + at as u32;
                long[slot] = place;
                short[low_slot] = place;
                if next > last {
                    at = next;
                    break 'sequences;
                }
                if (word >> 8) as u32 == load4(src, at + 1 - offset) {
                    let len = 4 + ahead(src, at + 5 - offset, at + 5);
                    break (at + 1, len, offset);
                }
                let next_word = load8(src, next);
                let next_slot = long_slot(next_word);
                if found >= base {
                    let from = (found - base) as usize;
                    if load8(src, from) == word {
                        let len = 8 + ahead(src, from + 8, at + 8);
                        let back = back(src, from, at, anchor);
                        if step < 4 {
                            long[next_slot] = base + next as u32;
                        }
                        break (at - back, len + back, at - from);
                    }
                }
                let next_found = long[next_slot];
                if low_found >= base {
                    let from = (low_found - base) as usize;
                    if load4(src, from) == word as u32 {
                        let mut best = (at, from, 4 + ahead(src, from + 4, at + 4));
                        if next_found >= base {
                            let from = (next_found - base) as usize;
                            if load8(src, from) == next_word {
                                let len = 8 + ahead(src, from + 8, next + 8);
                                if len > best.2 {
                                    best = (next, from, len);
                                }
                            }
                        }
                        if step < 4 {
                            long[next_slot] = base + next as u32;
                        }
                        let (to, from, len) = best;
                        let back = back(src, from, to, anchor);
                        break (to - back, len + back, to - from);
                    }
                }
                if next >= next_step {
                    step += 1;
                    next_step += PATIENCE;
                }
                (at, word, slot, found) = (next, next_word, next_slot, next_found);
                if at >= limit {
                    break 'sequences;
                }
            };
            let is_last = distance == offset;
            if !is_last {
                (second, offset) = (offset, distance);
            }
            sequences.push(Sequence {
                offset: distance as u32,
                litLength: (start - anchor) as u32,
                matchLength: len as u32,
                rep: u32::from(is_last),
            });
            // Two positions in the match, and two at its end.
            let inside = at + 2;
            at = start + len;
            anchor = at;
            if at > last {
                break;
            }
            let word = load8(src, inside);
            long[long_slot(word)] = base + inside as u32;
            short[short_slot(word)] = base + inside as u32;
            long[long_slot(load8(src, at - 2))] = base + (at - 2) as u32;
            short[short_slot(load8(src, at - 1))] = base + (at - 1) as u32;
            while at <= last && second <= at {
                let word = load8(src, at);
                if word as u32 != load4(src, at - second) {
                    break;
                }
                let len = 4 + ahead(src, at + 4 - second, at + 4);
                (offset, second) = (second, offset);
                long[long_slot(word)] = base + at as u32;
                short[short_slot(word)] = base + at as u32;
                sequences.push(Sequence {
                    offset: offset as u32,
                    litLength: 0,
                    matchLength: len as u32,
                    rep: 1,
                });
                at += len;
                anchor = at;
            }
        }
        self.at = if at > last { end } else { at };
        self.anchor = anchor;
        self.offsets = [offset, second];
    }
}

/// Counts the bytes at `from` that equal those at `to`, up to the end.
#[inline(always)]
fn ahead(src: &[u8], from: usize, to: usize) -> usize {
    common_len(src, from, to, 0, src.len() - to)
}

/// Counts the bytes before `from` that equal those before `to`, back to `anchor`.
#[inline(always)]
fn back(src: &[u8], from: usize, to: usize, anchor: usize) -> usize {
    common_back(src, from, to, from.min(to - anchor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::Random;

    const TABLES: Tables = Tables { long_log: 10, short_log: 9, short_len: 4 };

    /// Strings from a small set, here and there with another byte.
    fn text(random: &mut Random, len: usize) -> Vec<u8> {
        let words: Vec<Vec<u8>> =
            (0..40).map(|i| (0..3 + i % 17).map(|_| random.below(8) as u8).collect()).collect();
        let mut text = Vec::new();
        while text.len() < len {
            text.extend_from_slice(&words[random.below(40) as usize]);
            if random.below(9) == 0 {
                text.push(random.below(256) as u8);
            }
        }
        text.truncate(len);
        text
    }

    /// Returns the data that sequences with these literals stand for.
    fn replayed(src: &[u8], sequences: &[Sequence]) -> Vec<u8> {
        let mut plain: Vec<u8> = Vec::new();
        for sequence in sequences {
            let literals = &src[plain.len()..][..sequence.litLength as usize];
            plain.extend_from_slice(literals);
            assert!(sequence.matchLength >= 4 && sequence.offset >= 1);
            let from = plain.len() - sequence.offset as usize;
            (0..sequence.matchLength as usize).for_each(|i| plain.push(plain[from + i]));
        }
        plain
    }

    #[test]
    fn sequences_cover_their_input_at_every_pause() {
        let mut random = Random::new(1);
        let mut quick = Quick::new();
        for len in (0..40).chain([100, 1000, 5000, 60_000]) {
            for _ in 0..20 {
                let src = text(&mut random, len);
                quick.begin(src.len(), TABLES);
                let mut sequences = Vec::new();
                while quick.at() < src.len() {
                    let until = quick.at() + 1 + random.below(700) as usize;
                    quick.advance(&src, until, src.len(), &mut sequences);
                    assert!(quick.at() >= until.min(src.len()));
                    assert!(replayed(&src, &sequences) == src[..quick.anchor()]);
                }
            }
        }
    }

    #[test]
    fn earlier_inputs_leave_no_trace_in_the_output() {
        let mut random = Random::new(2);
        let (src, other) = (text(&mut random, 20_000), text(&mut random, 20_000));
        let parse = |quick: &mut Quick, src: &[u8], tables| {
            let mut sequences = Vec::new();
            quick.begin(src.len(), tables);
            quick.advance(src, src.len(), src.len(), &mut sequences);
            sequences.iter().map(|s| (s.litLength, s.matchLength, s.offset)).collect::<Vec<_>>()
        };
        let mut used = Quick::new();
        let first = parse(&mut used, &src, TABLES);
        assert!(first.len() > 100);
        parse(&mut used, &other, Tables { long_log: 12, short_log: 12, short_len: 5 });
        assert_eq!(parse(&mut used, &src, TABLES), first);
        used.next_base = PLACE_MAX + 1;
        assert_eq!(parse(&mut used, &src, TABLES), first);
        assert_eq!(used.base, 1);
    }

    #[test]
    fn a_match_ends_where_its_block_ends() {
        let src = vec![7; 1000];
        let mut quick = Quick::new();
        quick.begin(src.len(), TABLES);
        let mut sequences = Vec::new();
        quick.advance(&src, 300, 300, &mut sequences);
        assert_eq!((quick.at(), quick.anchor()), (300, 300));
        quick.advance(&src, 310, 1000, &mut sequences);
        assert_eq!((quick.at(), quick.anchor()), (1000, 1000));
        assert!(replayed(&src, &sequences) == src);
    }
}
