//! The parse: of all ways to say the input in literals and matches, the shortest.
//!
//! Every cost of LZ4 is a whole number of bytes, so one pass forward over the steps of the match
//! finder tells for each place what the cheapest way there costs, and whether it ends in a literal
//! or in which match. It counts all but the token of the literals that a block ends in. Of a match
//! only the longest form is requested, and the longest forms that take fewer bytes for their
//! length: the cheapest way to a place hardly ever costs less than that to an earlier one.
//!
//! Costs are kept for one chunk of the input at a time, that what never ends takes no more memory
//! than that.

use super::finder::Step;
use super::format::{
    END_MATCH_LEN, END_RUN_LEN, EXTENSION, MATCH_COST, MATCH_LEN_MIN, MATCH_LEN_SHORT, RUN_LEN_SHORT,
    extension_len,
};

/// A match on the cheapest way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) distance: u16,
}

/// End of the cheapest way to a place: in a match, or for a length of 0 in a literal.
#[derive(Clone, Copy, Default)]
struct Arrival {
    len: u32,
    distance: u16,
}

/// The cheapest ways to the places of a chunk. Places are of the whole input.
#[derive(Default)]
pub(super) struct Parse {
    /// The chunk's start.
    start: usize,
    /// Start of the literals: everything before it is written; from there to the chunk's start are
    /// literals.
    anchor: usize,
    /// Per place of the chunk that was come to.
    costs: Vec<u32>,
    arrivals: Vec<Arrival>,
    /// Literals that the cheapest way to the last place ends in.
    run: usize,
    /// At this length the run takes one byte more.
    longer_at: usize,
    /// The first step that may reach beyond the last place.
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

    /// The last place that was come to.
    pub(super) fn end(&self) -> usize {
        self.start + self.costs.len() - 1
    }

    /// Returns the cost of the cheapest way to the last place.
    pub(super) fn end_cost(&self) -> u32 {
        self.costs[self.costs.len() - 1]
    }

    pub(super) fn chunk_len(&self) -> usize {
        self.costs.len() - 1
    }

    pub(super) fn anchor(&self) -> usize {
        self.anchor
    }

    /// Goes on to the place `to`. `steps` holds all that start [`MATCH_LEN_MIN`] or more before it.
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

    /// Goes on to `to` in literals.
    fn literals(&mut self, to: usize) {
        let mut cost = self.end_cost();
        for _ in self.end()..to {
            cost = self.literal_cost(cost);
            self.costs.push(cost);
        }
        self.arrivals.resize(self.costs.len(), Arrival::default());
    }

    /// The cost of one literal more after a way of this cost.
    #[inline(always)]
    fn literal_cost(&mut self, cost: u32) -> u32 {
        self.run += 1;
        if self.run == self.longer_at {
            self.longer_at += EXTENSION;
            return cost + 2;
        }
        cost + 1
    }

    /// Goes on to `to`, where the match of `step` can end wherever the way goes on to.
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

    /// Goes on one place, from the last one's cost, to where a match arrives.
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

    /// The end of the last match on the cheapest way to `place`, if it lies in the chunk.
    fn last_match_end(&self, place: usize) -> Option<usize> {
        let arrivals = &self.arrivals[1..=place - self.start];
        arrivals.iter().rposition(|arrival| arrival.len != 0).map(|index| self.start + 1 + index)
    }

    /// Leaves the matches on the cheapest way to `place` in `matches`, last first.
    pub(super) fn trace(&self, mut place: usize, matches: &mut Vec<Match>) {
        matches.clear();
        while let Some(end) = self.last_match_end(place) {
            let Arrival { len, distance } = self.arrivals[end - self.start];
            place = end - len as usize;
            matches.push(Match { start: place, len: len as usize, distance });
        }
    }

    /// Begins a new chunk at the last place, the way to which is said up to `anchor`, and forgets
    /// the steps used up.
    pub(super) fn begin_chunk(&mut self, anchor: usize, steps: &mut Vec<Step>) {
        let start = self.end();
        self.restart(start, anchor, self.end_cost());
        steps.drain(..self.step);
        self.step = 0;
        for step in steps.iter_mut() {
            step.start = step.start.max(start as u32);
        }
    }

    /// The farthest place where a block of up to `room` bytes can end, and how far the cheapest way
    /// is to be followed there: literals are behind. Nothing if `room` is too small for anything.
    pub(super) fn farthest(&self, room: usize) -> Option<(usize, usize)> {
        let last = self.costs.iter().rposition(|&cost| (cost as usize) < room)?;
        (0..=last).rev().find_map(|index| {
            let end = self.start + index;
            let way_end = self.way_end(end);
            (end > 0 && self.block_len(end, way_end) <= room).then_some((end, way_end))
        })
    }

    /// Returns how far a block that ends at `end`, within the input, can follow the cheapest way.
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

    /// Length of a block that goes to `way_end` the cheapest way, and then on to `end` in literals.
    pub(super) fn block_len(&self, end: usize, way_end: usize) -> usize {
        let run_start = self.last_match_end(way_end).unwrap_or(self.anchor);
        let run_len = extension_len(end - run_start, RUN_LEN_SHORT);
        let way_run_len = extension_len(way_end - run_start, RUN_LEN_SHORT);
        self.costs[way_end - self.start] as usize + end - way_end + run_len - way_run_len + 1
    }
}
