//! The dense encoder: the shortest sequence of matches and literals.
//!
//! Every cost in LZO1X is a whole number of bytes that depends, besides the match itself, only on
//! the preceding literals, so one pass finds the minimum: for each position the cheapest match that
//! ends there, and from those the cheapest run of literals. Of equally long paths the one with
//! fewer instructions is chosen, as it decodes faster.

use super::emit::Emitter;
use super::finder::{Finder, Found};
use super::format::{
    CARRIED_MAX, FAR_LEN_MAX, FIRST_RUN_MAX, MIDDLE_DISTANCE_MAX, MIDDLE_LEN_MAX, PAIR_DISTANCE_MAX,
    PAIR_LEN, RUN_LEN_MAX, SHORT_DISTANCE_MAX, SHORT_LEN_MAX, TRIPLE_DISTANCE_MAX, TRIPLE_LEN, extension_len,
};
use crate::words::{common_len, zeroed};

/// Positions decided at a time.
const SEGMENT_LEN: usize = 1 << 15;
/// Cost of one byte of output.
const BYTE: u32 = 64;
/// Additional cost of one instruction.
const INSTRUCTION: u32 = 1;
/// Maximum number of bytes by which a long match is shortened; more has hardly ever been useful.
const SHORTENED_MAX: usize = 7;
/// More than any cost within a segment.
const UNREACHED: u32 = u32::MAX / 2;
/// Cost of a segment's start, with room for the literals carried over to it.
const START: u32 = BYTE * 4;
/// Shift of the run in an arrival by a pair, as the distance needs only the lower bits.
const PAIR_RUN_SHIFT: u32 = 12;

/// The cheapest match that ends at a position.
#[derive(Clone, Copy)]
struct Arrival {
    cost: u32,
    len: u16,
    distance: u16,
}

impl Arrival {
    const NONE: Arrival = Arrival { cost: UNREACHED, len: 0, distance: 0 };
}

/// A run of literals, which may be empty, and the match after it.
#[derive(Clone, Copy)]
struct Step {
    run: usize,
    distance: usize,
    len: usize,
}

pub(super) struct Optimal<F> {
    finder: F,
    /// By two bytes, the newest position with them, modulo 64 KiB.
    pairs: Box<[u16; 1 << 16]>,
    found: Vec<Found>,
    arrivals: Vec<Arrival>,
    /// By position of the segment, the literals at the end of the cheapest path to it, within the
    /// segment.
    runs: Vec<u16>,
    steps: Vec<Step>,
    /// Minimum length of a match that ends the search.
    nice_len: usize,
}

/// The cheapest paths to the current position of a segment, by the literals at their end.
struct Reached {
    /// The cheapest match that ended here, and one, two, and three positions ago.
    matched: [u32; CARRIED_MAX + 1],
    /// The cheapest path that ends in four literals or more.
    long: u32,
    long_run: usize,
    /// Length at which the long run needs another extension byte.
    longer_at: usize,
}

impl Reached {
    fn at_start(pending: usize, is_first: bool) -> Self {
        let mut reached = Reached {
            matched: [UNREACHED; CARRIED_MAX + 1],
            long: UNREACHED,
            long_run: pending,
            longer_at: RUN_LEN_MAX + 1,
        };
        if is_first {
            reached.long = START + BYTE;
            reached.longer_at = FIRST_RUN_MAX + 1;
        } else if pending <= CARRIED_MAX {
            reached.matched[pending] = START - BYTE * pending as u32;
        } else {
            reached.long = START;
            if pending > RUN_LEN_MAX {
                reached.longer_at = RUN_LEN_MAX + 1 + 255 * extension_len(pending - RUN_LEN_MAX);
            }
        }
        reached
    }

    #[inline(always)]
    fn advance(&mut self, cost: u32) {
        let [zero, one, two, three] = self.matched;
        self.long += BYTE;
        self.long_run += 1;
        if self.long_run == self.longer_at {
            self.long += BYTE;
            self.longer_at = RUN_LEN_MAX + 1 + 255 * extension_len(self.long_run - RUN_LEN_MAX);
        }
        let fresh = three + BYTE * 5 + INSTRUCTION;
        if fresh <= self.long {
            self.long = fresh;
            self.long_run = CARRIED_MAX + 1;
            self.longer_at = RUN_LEN_MAX + 1;
        }
        self.matched = [cost, zero, one, two];
    }

    #[inline(always)]
    fn short(&self) -> (u32, usize) {
        let [_, one, two, three] = self.matched;
        let mut best = (one + BYTE, 1);
        if two + BYTE * 2 < best.0 {
            best = (two + BYTE * 2, 2);
        }
        if three + BYTE * 3 < best.0 {
            best = (three + BYTE * 3, 3);
        }
        best
    }

    #[inline(always)]
    fn best(&self, short: (u32, usize)) -> (u32, usize) {
        let mut best = (self.matched[0], 0);
        if short.0 < best.0 {
            best = short;
        }
        if self.long < best.0 {
            best = (self.long, self.long_run);
        }
        best
    }
}

impl<F: Finder> Optimal<F> {
    pub(super) fn new(nice_len: usize, finder: F) -> Self {
        Optimal {
            finder,
            pairs: zeroed(),
            found: Vec::new(),
            arrivals: Vec::new(),
            runs: Vec::new(),
            steps: Vec::new(),
            nice_len,
        }
    }

    /// Encodes `src` completely; `None` if `dst` is too small.
    pub(super) fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        self.finder.reset();
        self.pairs.fill(0);
        let mut out = Emitter::new(dst);
        let mut anchor = 0;
        let mut at = 0;
        while at < src.len() {
            let (end, nice) = self.decide(src, at, at - anchor);
            for step in self.steps.iter().rev() {
                anchor = put(&mut out, src, anchor, *step)?;
            }
            at = end;
            if let Some(Found { len, distance }) = nice {
                let len = common_len(src, at - distance, at, len, src.len() - at);
                anchor = put(&mut out, src, anchor, Step { run: at - anchor, distance, len })?;
                for place in at + 1..anchor {
                    self.finder.skip(src, place, self.nice_len);
                    self.meet_pair(src, place);
                }
                at = anchor;
            }
        }
        if anchor < src.len() {
            out.literals(src, anchor, src.len() - anchor)?;
        }
        out.finish()
    }

    /// Decides the encoding of a segment at `start`, with `pending` literals before it: collects
    /// the steps, last first, and returns their total length, and the match to take after them if
    /// the segment ends at a long one.
    fn decide(&mut self, src: &[u8], start: usize, pending: usize) -> (usize, Option<Found>) {
        let segment_len = SEGMENT_LEN.min(src.len() - start);
        if self.arrivals.len() <= segment_len {
            self.arrivals.resize(segment_len + 1, Arrival::NONE);
            self.runs.resize(segment_len + 1, 0);
        }
        let mut reached = Reached::at_start(pending, start == 0);
        let mut at = 0;
        let mut nice = None;
        loop {
            let short = reached.short();
            let (cost, run) = reached.best(short);
            self.runs[at] = run.min(at) as u16;
            if at == segment_len {
                break;
            }
            let pair = self.find(src, start + at);
            if let Some(last) = self.found.last()
                && last.len >= self.nice_len
            {
                nice = Some(*last);
                break;
            }
            self.relax(at, segment_len, cost, run, short, pair);
            at += 1;
            reached.advance(self.arrivals[at].cost);
        }
        self.trace(at, pending);
        let used = segment_len.min(at + self.nice_len);
        self.arrivals[..=used].fill(Arrival::NONE);
        (start + at, nice)
    }

    /// Inserts the position `at`, collects its matches in `found`, and returns the distance of the
    /// nearest match of two bytes if a pair can encode it, else 0.
    #[inline]
    fn find(&mut self, src: &[u8], at: usize) -> usize {
        self.finder.insert(src, at, self.nice_len, &mut self.found);
        let distance = self.meet_pair(src, at);
        let is_near = distance.wrapping_sub(1) < at.min(PAIR_DISTANCE_MAX);
        if is_near && src[at - distance..at - distance + 2] == src[at..at + 2] { distance } else { 0 }
    }

    /// Makes `at` the newest position of its two bytes and returns the distance, modulo 64 KiB, of
    /// the previous one.
    #[inline]
    fn meet_pair(&mut self, src: &[u8], at: usize) -> usize {
        let Some(two) = src.get(at..).and_then(|rest| rest.first_chunk::<2>()) else { return 0 };
        let newest = &mut self.pairs[usize::from(u16::from_le_bytes(*two))];
        let distance = usize::from((at as u16).wrapping_sub(*newest));
        *newest = at as u16;
        distance
    }

    /// Offers every match found at position `at` of the segment to the positions where it can end.
    #[inline]
    fn relax(
        &mut self,
        at: usize,
        segment_len: usize,
        cost: u32,
        run: usize,
        short: (u32, usize),
        pair: usize,
    ) {
        let arrivals = &mut self.arrivals[at..=segment_len];
        let room = arrivals.len() - 1;
        if pair != 0 && room >= PAIR_LEN {
            let marked = pair | short.1 << PAIR_RUN_SHIFT;
            offer(arrivals, PAIR_LEN, PAIR_LEN, marked, short.0 + 2 * BYTE + INSTRUCTION);
        }
        let cost = cost + INSTRUCTION;
        let mut from = TRIPLE_LEN;
        for &Found { len, distance } in &self.found {
            let len = len.min(room);
            if distance <= SHORT_DISTANCE_MAX {
                offer(arrivals, from, len.min(SHORT_LEN_MAX), distance, cost + 2 * BYTE);
                from = from.max(SHORT_LEN_MAX + 1);
            } else if distance <= TRIPLE_DISTANCE_MAX && from == TRIPLE_LEN && run > CARRIED_MAX {
                offer(arrivals, from, len.min(TRIPLE_LEN), distance, cost + 2 * BYTE);
                from += 1;
            }
            let len_max = if distance <= MIDDLE_DISTANCE_MAX { MIDDLE_LEN_MAX } else { FAR_LEN_MAX };
            offer(arrivals, from, len.min(len_max), distance, cost + 3 * BYTE);
            let mut from_long = from.max(len_max + 1);
            while from_long <= len {
                let extensions = extension_len(from_long - len_max);
                let to = len.min(len_max + 255 * extensions);
                offer(
                    arrivals,
                    from_long.max(to.saturating_sub(SHORTENED_MAX)),
                    to,
                    distance,
                    cost + (3 + extensions as u32) * BYTE,
                );
                from_long = to + 1;
            }
            from = len + 1;
        }
    }

    /// Follows the cheapest path back from position `at` of the segment.
    fn trace(&mut self, mut at: usize, pending: usize) {
        self.steps.clear();
        at -= usize::from(self.runs[at]);
        while at > 0 {
            let Arrival { len, distance, .. } = self.arrivals[at];
            let (len, mut distance) = (usize::from(len), usize::from(distance));
            at -= len;
            let mut run = usize::from(self.runs[at]);
            if len == PAIR_LEN {
                run = distance >> PAIR_RUN_SHIFT;
                distance &= (1 << PAIR_RUN_SHIFT) - 1;
            }
            if run >= at {
                run = at + pending;
                at = 0;
            } else {
                at -= run;
            }
            self.steps.push(Step { run, distance, len });
        }
    }
}

/// Offers one match to the positions `from` to `to`.
#[inline(always)]
fn offer(arrivals: &mut [Arrival], from: usize, to: usize, distance: usize, cost: u32) {
    if from > to {
        return;
    }
    for (arrival, len) in arrivals[from..=to].iter_mut().zip(from..) {
        if cost < arrival.cost {
            *arrival = Arrival { cost, len: len as u16, distance: distance as u16 };
        }
    }
}

/// Writes one step whose literals start at `anchor` and returns the start of the next one.
#[inline]
fn put(out: &mut Emitter<'_>, src: &[u8], anchor: usize, step: Step) -> Option<usize> {
    if step.run != 0 {
        out.literals(src, anchor, step.run)?;
    }
    out.matched(step.distance, step.len, step.run)?;
    Some(anchor + step.run + step.len)
}
