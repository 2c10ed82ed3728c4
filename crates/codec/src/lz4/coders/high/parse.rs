//! The parse: the shortest sequence of literals and matches.
//!
//! Every cost in LZ4 is a whole number of bytes, so one pass over the steps of the match finder
//! computes for each position the cost of the cheapest path there, and whether it ends in a literal
//! or in which match. The cost includes everything except the token of the literals at the end of
//! the block. Of a match, only the longest form is tried, and the longest forms with fewer bytes of
//! length: the cheapest path to a position hardly ever costs less than that to an earlier one.
//!
//! Costs are kept for one chunk of the input at a time, which bounds memory.

use super::finder::Step;
use super::format::{
    END_MATCH_LEN, END_RUN_LEN, EXTENSION, MATCH_COST, MATCH_LEN_MIN, MATCH_LEN_SHORT, RUN_LEN_SHORT,
    extension_len,
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) distance: u16,
}

/// Last step of the cheapest path to a position: a match, or with length 0 a literal.
#[derive(Clone, Copy, Default)]
struct Arrival {
    len: u32,
    distance: u16,
}

/// Cheapest paths to the positions of a chunk; positions count from the start of the input.
#[derive(Default)]
pub(super) struct Parse {
    start: usize,
    /// Start of the pending literals, which continue to the start of the chunk; everything before
    /// is written.
    anchor: usize,
    /// By position of the chunk that was reached.
    costs: Vec<u32>,
    arrivals: Vec<Arrival>,
    /// Literals at the end of the cheapest path to the last position.
    run: usize,
    /// Length at which the run takes one more byte.
    longer_at: usize,
    /// The first step that may reach beyond the last position.
    step: usize,
}

impl Parse {
    pub(super) fn reset(&mut self) {
        self.restart(0, 0, 0);
        self.step = 0;
    }

    fn restart(&mut self, start: usize, anchor: usize, cost: u32) {
        self.start = start;
        self.anchor = anchor;
        self.costs.clear();
        self.arrivals.clear();
        self.costs.push(cost);
        self.arrivals.push(Arrival::default());
        self.set_run(start - anchor);
    }

    fn set_run(&mut self, run: usize) {
        self.run = run;
        self.longer_at = RUN_LEN_SHORT + 1 + EXTENSION * extension_len(run, RUN_LEN_SHORT);
    }

    pub(super) fn end(&self) -> usize {
        self.start + self.costs.len() - 1
    }

    pub(super) fn end_cost(&self) -> u32 {
        self.costs[self.costs.len() - 1]
    }

    pub(super) fn chunk_len(&self) -> usize {
        self.costs.len() - 1
    }

    pub(super) fn anchor(&self) -> usize {
        self.anchor
    }

    /// Advances to position `to`. `steps` must contain all that start [`MATCH_LEN_MIN`] or more
    /// before it.
    pub(super) fn advance(&mut self, steps: &[Step], to: usize) {
        let room = to - self.start + 1;
        if self.costs.capacity() < room {
            self.costs.reserve(room - self.costs.len());
            self.arrivals.reserve(room - self.arrivals.len());
        }
        while self.end() < to {
            let next = self.end() + 1;
            let Some(step) = steps.get(self.step) else {
                self.literals(to);
                return;
            };
            let first = step.start as usize + MATCH_LEN_MIN;
            if (step.reach as usize) < next {
                self.step += 1;
            } else if next < first {
                self.literals(to.min(first - 1));
            } else {
                self.matches(step, to.min(step.reach as usize));
            }
        }
    }

    fn literals(&mut self, to: usize) {
        let mut cost = self.end_cost();
        for _ in self.end()..to {
            cost = self.literal_cost(cost);
            self.costs.push(cost);
        }
        self.arrivals.resize(self.costs.len(), Arrival::default());
    }

    #[inline(always)]
    fn literal_cost(&mut self, cost: u32) -> u32 {
        self.run += 1;
        if self.run == self.longer_at {
            self.longer_at += EXTENSION;
            return cost + 2;
        }
        cost + 1
    }

    /// Advances to `to`, where the match of `step` can end at every position.
    fn matches(&mut self, step: &Step, to: usize) {
        let distance = step.distance;
        let source = step.start as usize - self.start;
        let to = to - self.start;
        let base = self.costs[source] + MATCH_COST;
        let mut cost = self.end_cost();
        let mut at = self.costs.len();
        while at <= to && at - source <= MATCH_LEN_SHORT {
            cost = self.choose(cost, base, at - source, distance);
            at += 1;
        }
        let extension = extension_len(at - source, MATCH_LEN_SHORT);
        let mut longest = MATCH_LEN_SHORT + EXTENSION * extension;
        let mut extension = extension as u32;
        while at <= to {
            let len = at - source;
            if len > longest {
                longest += EXTENSION;
                extension += 1;
            }
            let mut best = (base + extension, len);
            let short = self.costs[at - MATCH_LEN_SHORT] + MATCH_COST;
            if short < best.0 {
                best = (short, MATCH_LEN_SHORT);
            }
            if extension > 1 {
                let shorter_len = longest - EXTENSION;
                let shorter = self.costs[at - shorter_len] + MATCH_COST + extension - 1;
                if shorter < best.0 {
                    best = (shorter, shorter_len);
                }
            }
            cost = self.choose(cost, best.0, best.1, distance);
            at += 1;
        }
    }

    /// Advances one position, choosing between a literal and an arriving match.
    #[inline(always)]
    fn choose(&mut self, cost: u32, match_cost: u32, len: usize, distance: u16) -> u32 {
        let literal_cost = self.literal_cost(cost);
        let (cost, arrival) = if match_cost <= literal_cost {
            self.run = 0;
            self.longer_at = RUN_LEN_SHORT + 1;
            (match_cost, Arrival { len: len as u32, distance })
        } else {
            (literal_cost, Arrival::default())
        };
        self.costs.push(cost);
        self.arrivals.push(arrival);
        cost
    }

    /// End of the last match on the cheapest path to `place`, if it is in the chunk.
    fn last_match_end(&self, place: usize) -> Option<usize> {
        let arrivals = &self.arrivals[1..=place - self.start];
        arrivals.iter().rposition(|arrival| arrival.len != 0).map(|index| self.start + 1 + index)
    }

    /// Collects the matches on the cheapest path to `place`, last first.
    pub(super) fn trace(&self, mut place: usize, matches: &mut Vec<Match>) {
        matches.clear();
        while let Some(end) = self.last_match_end(place) {
            let Arrival { len, distance } = self.arrivals[end - self.start];
            place = end - len as usize;
            matches.push(Match { start: place, len: len as usize, distance });
        }
    }

    /// Starts a new chunk at the last position, to which everything up to `anchor` is written, and
    /// removes used steps.
    pub(super) fn begin_chunk(&mut self, anchor: usize, steps: &mut Vec<Step>) {
        let start = self.end();
        self.restart(start, anchor, self.end_cost());
        steps.drain(..self.step);
        self.step = 0;
        for step in steps.iter_mut() {
            step.start = step.start.max(start as u32);
        }
    }

    /// Returns the farthest end of a block of up to `room` bytes, and the end of the path before
    /// its last literals; `None` if `room` is too small for anything.
    pub(super) fn farthest(&self, room: usize) -> Option<(usize, usize)> {
        let last = self.costs.iter().rposition(|&cost| (cost as usize) < room)?;
        (0..=last).rev().find_map(|index| {
            let end = self.start + index;
            let way_end = self.way_end(end);
            (end > 0 && self.block_len(end, way_end) <= room).then_some((end, way_end))
        })
    }

    /// Returns the end of the path before the last literals of a block that ends at `end`, within
    /// the input.
    fn way_end(&self, end: usize) -> usize {
        let way_end = end.saturating_sub(END_RUN_LEN).max(self.start);
        match self.last_match_end(way_end) {
            Some(match_end) => {
                let start = match_end - self.arrivals[match_end - self.start].len as usize;
                if start + END_MATCH_LEN <= end { way_end } else { start }
            }
            None => way_end,
        }
    }

    /// Length of a block that follows the cheapest path to `way_end`, and continues to `end` with
    /// literals.
    pub(super) fn block_len(&self, end: usize, way_end: usize) -> usize {
        let run_start = self.last_match_end(way_end).unwrap_or(self.anchor);
        let run_len = extension_len(end - run_start, RUN_LEN_SHORT);
        let way_run_len = extension_len(way_end - run_start, RUN_LEN_SHORT);
        self.costs[way_end - self.start] as usize + end - way_end + run_len - way_run_len + 1
    }
}
