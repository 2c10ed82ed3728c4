//! The match finder: the farthest end of matches, as a step function of their start.
//!
//! A match can also start later, so the farthest end of any match never decreases with the
//! position. The [`Step`]s at which it increases describe all matches: every span that starts at a
//! step or after it and ends at its reach or before has a match.
//!
//! A match that reaches farther than all before contains the string that ends at its end. The
//! finder searches for the last bytes of that string, with the length of a rung of the [`Ladder`]
//! that is not longer than the match would be. Each rung chains the positions with equal strings of
//! its length. If no such string is found, no match that starts before can reach farther; the next
//! lower rung then searches for a shorter string. Otherwise the match is extended in both
//! directions.

use super::format::{DISTANCE_MAX, END_MATCH_LEN, END_RUN_LEN, MATCH_LEN_MIN};
use crate::words::{common_back, common_len, load8, zeroed};

const RING_LEN: usize = 1 << 17;
const HEAD_COUNT: usize = 1 << 17;
const HASH_SHIFT: u32 = u64::BITS - HEAD_COUNT.ilog2();
/// Positions chained at a time; with the maximum distance it must fit into the ring.
const BATCH_LEN: usize = 2048;
const WORD_LEN: usize = 8;
const RUNG_LEN_MAX: usize = 32;
/// Strings of this length are so rare that all their positions are compared; for shorter ones the
/// first is taken, as the next rung has already searched longer matches.
const FULL_LEN: usize = 8;

/// From `start` on, matches reach up to `reach`; both are positions in the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) start: u32,
    pub(super) reach: u32,
    pub(super) distance: u16,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Lengths of strings, rising from [`MATCH_LEN_MIN`].
    pub(super) rungs: &'static [usize],
    pub(super) depth_max: usize,
    /// Maximum positions of other strings with the same hash.
    pub(super) strangers_max: usize,
}

pub(super) struct Ladder {
    rungs: Vec<Rung>,
    /// By length of a match, up to the longest string, the highest rung that is not longer.
    rung_of: [u8; RUNG_LEN_MAX + 1],
    effort: Effort,
    /// Matches start before this position.
    starts_end: usize,
    /// Matches end at or before this position.
    limit: usize,
    /// All steps before this position are known.
    at: usize,
    /// Reach of matches from there.
    reach: usize,
}

/// Positions by the string of `len` bytes that starts there.
struct Rung {
    len: usize,
    /// By hash, the newest position modulo 2^16.
    heads: Box<[u16; HEAD_COUNT]>,
    /// By position, modulo the ring, the distance to the previous one of the same hash; 0 without
    /// one.
    links: Box<[u16; RING_LEN]>,
    /// Positions before this one are chained.
    built: usize,
    /// Short inputs use fewer heads, by this shift.
    hash_shift: u32,
}

#[derive(Clone, Copy)]
struct Found {
    back: usize,
    ahead: usize,
    distance: usize,
}

impl Ladder {
    pub(super) fn new(effort: Effort) -> Ladder {
        let rungs = effort.rungs.iter().map(|&len| Rung::new(len)).collect();
        let mut rung_of = [0; RUNG_LEN_MAX + 1];
        for (len, rung) in rung_of.iter_mut().enumerate() {
            *rung = effort.rungs.iter().filter(|&&rung_len| rung_len <= len).count().saturating_sub(1) as u8;
        }
        Ladder { rungs, rung_of, effort, starts_end: 0, limit: 0, at: 0, reach: 0 }
    }

    /// Clears all chains for an input of `src_len` bytes.
    pub(super) fn reset(&mut self, src_len: usize) {
        self.starts_end = (src_len + 1).saturating_sub(END_MATCH_LEN);
        self.limit = src_len.saturating_sub(END_RUN_LEN);
        self.at = 0;
        self.reach = MATCH_LEN_MIN - 1;
        for rung in &mut self.rungs {
            rung.reset(src_len);
        }
    }

    /// Appends the steps before `until` to `steps`; the next call may replace the last one if it
    /// does not start before `until`.
    pub(super) fn climb(&mut self, src: &[u8], until: usize, steps: &mut Vec<Step>) {
        let until = until.min(self.starts_end);
        while self.at < until {
            if self.reach >= self.limit {
                self.at = self.starts_end;
                return;
            }
            let len = self.reach + 1 - self.at;
            let rung = &mut self.rungs[usize::from(self.rung_of[len.min(RUNG_LEN_MAX)])];
            let string = self.reach + 1 - rung.len;
            if string >= rung.built {
                rung.build(src, string + BATCH_LEN);
            }
            if let Some(found) = rung.search(src, string, string - self.at, self.limit, &self.effort) {
                self.at = string - found.back;
                self.reach = string + found.ahead;
                if self.at >= self.starts_end {
                    return;
                }
                let step =
                    Step { start: self.at as u32, reach: self.reach as u32, distance: found.distance as u16 };
                match steps.last_mut() {
                    Some(last) if last.start == step.start => *last = step,
                    _ => steps.push(step),
                }
            } else {
                self.at = string + 1;
                self.reach = self.reach.max(self.at + MATCH_LEN_MIN - 1);
            }
        }
    }
}

impl Rung {
    fn new(len: usize) -> Rung {
        Rung { len, heads: zeroed(), links: zeroed(), built: 0, hash_shift: 0 }
    }

    fn reset(&mut self, src_len: usize) {
        let used_log = (usize::BITS - src_len.leading_zeros()).clamp(8, HEAD_COUNT.ilog2());
        self.hash_shift = HEAD_COUNT.ilog2() - used_log;
        self.heads[..1 << used_log].fill(0);
        self.built = 0;
    }

    /// Chains the positions before `end` whose strings are within the input.
    fn build(&mut self, src: &[u8], end: usize) {
        let end = end.min((src.len() + 1).saturating_sub(self.len.max(WORD_LEN)));
        let words = words(src, self.built, end);
        if self.len <= WORD_LEN {
            let unused = u64::BITS - 8 * self.len as u32;
            self.chain(words.map(|word| word << unused));
        } else {
            let offset = self.len - WORD_LEN;
            let lasts = self::words(src, self.built + offset, end + offset);
            self.chain(words.zip(lasts).map(|(first, last)| first ^ last.rotate_left(29)));
        }
    }

    /// Chains positions by words that contain their strings.
    #[inline(always)]
    fn chain(&mut self, words: impl Iterator<Item = u64>) {
        let mut place = self.built;
        for word in words {
            let hash = (word.wrapping_mul(0x9E37_79B1_85EB_CA87) >> HASH_SHIFT >> self.hash_shift) as usize
                % HEAD_COUNT;
            let head = &mut self.heads[hash];
            self.links[place % RING_LEN] = (place as u16).wrapping_sub(*head);
            *head = place as u16;
            place += 1;
        }
        self.built = place;
    }

    /// Among older positions of the chained string at `string`, finds the one with the most equal
    /// bytes before it, up to `back_max`, and then the most after it, up to `limit`.
    #[inline]
    fn search(
        &self,
        src: &[u8],
        string: usize,
        back_max: usize,
        limit: usize,
        effort: &Effort,
    ) -> Option<Found> {
        let distance_max = string.min(DISTANCE_MAX);
        let word = load8(src, string);
        let mut best: Option<Found> = None;
        let mut distance = 0;
        let mut strangers = 0;
        if self.len >= WORD_LEN && word == word.rotate_left(8) {
            let run = 1 + common_len(src, string, string + 1, 0, limit - string - 1);
            if run >= self.len {
                return self.search_runs(src, string, run, back_max, limit, effort);
            }
        }
        for _ in 0..effort.depth_max {
            let link = usize::from(self.links[(string - distance) % RING_LEN]);
            distance += link;
            if link == 0 || distance > distance_max {
                break;
            }
            let place = string - distance;
            if let Some(best) = best
                && best.back == back_max
                && src[place + best.ahead] != src[string + best.ahead]
            {
                continue;
            }
            let differing = load8(src, place) ^ word;
            let mut ahead = (differing.trailing_zeros() / 8) as usize;
            if differing == 0 && string + WORD_LEN < limit {
                let max = limit - string - WORD_LEN;
                ahead += common_len(src, place + WORD_LEN, string + WORD_LEN, 0, max);
            }
            if ahead < self.len {
                strangers += 1;
                if strangers > effort.strangers_max {
                    break;
                }
                continue;
            }
            ahead = ahead.min(limit - string);
            let back = common_back(src, place, string, back_max.min(place));
            if best.is_none_or(|best| (best.back, best.ahead) < (back, ahead)) {
                best = Some(Found { back, ahead, distance });
                if back == back_max && (self.len < FULL_LEN || string + ahead == limit) {
                    break;
                }
            }
        }
        best
    }

    /// Does the same as [`Rung::search`] if `run` bytes from `string` on are equal. In each older
    /// run of that byte, compares only the positions with as much of the run before or after them.
    fn search_runs(
        &self,
        src: &[u8],
        string: usize,
        run: usize,
        back_max: usize,
        limit: usize,
        effort: &Effort,
    ) -> Option<Found> {
        let distance_max = string.min(DISTANCE_MAX);
        let word = load8(src, string);
        let run_back = common_back(src, string, string + 1, back_max.min(string));
        let mut best: Option<Found> = None;
        let mut distance = 0;
        let mut strangers = 0;
        for _ in 0..effort.depth_max {
            let link = usize::from(self.links[(string - distance) % RING_LEN]);
            distance += link;
            if link == 0 || distance > distance_max {
                break;
            }
            let newest = string - distance;
            if load8(src, newest) != word {
                strangers += 1;
                if strangers > effort.strangers_max {
                    break;
                }
                continue;
            }
            let start = newest - common_back(src, newest, newest + 1, distance_max - distance);
            let end = newest + 1 + common_len(src, newest, newest + 1, 0, run.min(limit - newest - 1));
            let same_start = newest.min(start + run_back);
            let same_end = newest.min(end.saturating_sub(run));
            let mut offer = |place: usize| {
                let ahead = common_len(src, place, string, 0, limit - string);
                let back = common_back(src, place, string, back_max.min(place));
                if ahead >= self.len && best.is_none_or(|best| (best.back, best.ahead) < (back, ahead)) {
                    best = Some(Found { back, ahead, distance: string - place });
                }
            };
            offer(same_start);
            if same_end > same_start {
                offer(same_end);
            }
            distance = string - start;
        }
        best
    }
}

#[inline(always)]
fn words(src: &[u8], start: usize, end: usize) -> impl Iterator<Item = u64> {
    let bytes = if start < end { &src[start..end + WORD_LEN - 1] } else { &[] };
    bytes.windows(WORD_LEN).map(|bytes| load8(bytes, 0))
}
