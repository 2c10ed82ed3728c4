//! The high compression encoder: the shortest parse over the matches that it finds.
//!
//! The finder computes step by step where matches can end, the parse the cost of each position, and
//! thereby also the input that fits into an output. No state is kept between blocks.

mod emit;
mod finder;
mod format;
mod parse;
#[cfg(test)]
mod tests;

use emit::Emitter;
use finder::{Effort, Ladder, Step};
use parse::{Match, Parse};

use crate::Fit;

/// `LZ4_MAX_INPUT_SIZE`.
const SRC_LEN_MAX: usize = 0x7E00_0000;
/// Positions decided at a time.
const CHUNK_LEN: usize = 1 << 18;
/// Positions searched at a time: with fewer, less is searched in vain when the output is full.
const BATCH_LEN: usize = 256;
/// With less space left than this, nothing is decided before the end is known.
const END_ROOM: usize = 64;

pub(super) struct High {
    ladder: Ladder,
    steps: Vec<Step>,
    parse: Parse,
    matches: Vec<Match>,
}

impl High {
    /// `level` is 11 or 12.
    pub(super) fn new(level: u8) -> High {
        High {
            ladder: Ladder::new(effort(level)),
            steps: Vec::new(),
            parse: Parse::default(),
            matches: Vec::new(),
        }
    }

    /// Writes one raw block; `None` if it does not fit.
    pub(super) fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if src.len() > SRC_LEN_MAX {
            return None;
        }
        self.fill(src, dst, true).map(|fit| fit.written)
    }

    pub(super) fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Fit {
        if src.is_empty() {
            return Fit::default();
        }
        self.fill(&src[..src.len().min(SRC_LEN_MAX)], dst, false).unwrap_or_default()
    }

    /// Repeats `compress_to_fit` for a shorter output; the previous call encoded all of `src`.
    pub(super) fn shorten(&mut self, src: &[u8], dst: &mut [u8]) -> Fit {
        // After a partial decision, the parse no longer has the paths to earlier positions.
        if src.is_empty() || self.parse.chunk_len() != src.len() {
            return self.compress_to_fit(src, dst);
        }
        let Some((end, way_end)) = self.parse.farthest(dst.len()) else { return Fit::default() };
        let mut out = Emitter::new(dst);
        let anchor = self.put(src, way_end, &mut out);
        out.last_literals(&src[anchor..end]);
        Fit { consumed: end, written: out.len() }
    }

    /// Encodes as much as fits into one raw block; with `whole`, returns `None` if that is not all.
    fn fill(&mut self, src: &[u8], dst: &mut [u8], whole: bool) -> Option<Fit> {
        let room = dst.len();
        self.ladder.reset(src.len());
        self.steps.clear();
        self.parse.reset();
        let mut out = Emitter::new(dst);
        while self.parse.end() < src.len() && (self.parse.end_cost() as usize) < room + 1 {
            if self.parse.chunk_len() >= CHUNK_LEN && self.parse.end_cost() as usize + END_ROOM <= room {
                let anchor = self.put(src, self.parse.end(), &mut out);
                self.parse.begin_chunk(anchor, &mut self.steps);
            }
            let to = (self.parse.end() + BATCH_LEN).min(src.len());
            self.ladder.climb(src, to, &mut self.steps);
            self.parse.advance(&self.steps, to);
        }
        let end = self.parse.end();
        let (end, way_end) = if end == src.len() && (self.parse.end_cost() as usize) < room {
            (end, end)
        } else if whole {
            return None;
        } else {
            self.parse.farthest(room)?
        };
        let anchor = self.put(src, way_end, &mut out);
        out.last_literals(&src[anchor..end]);
        Some(Fit { consumed: end, written: out.len() })
    }

    /// Writes the matches on the cheapest path to `end` with the literals before them; returns the
    /// end of the last one.
    fn put(&mut self, src: &[u8], end: usize, out: &mut Emitter<'_>) -> usize {
        self.parse.trace(end, &mut self.matches);
        let mut anchor = self.parse.anchor();
        for &Match { start, len, distance } in self.matches.iter().rev() {
            out.sequence(&src[anchor..start], distance, len);
            anchor = start + len;
        }
        anchor
    }
}

fn effort(level: u8) -> Effort {
    let (depth_max, strangers_max) = match level {
        ..=11 => (16, 2),
        _ => (256, 16),
    };
    Effort { rungs: &[4, 5, 6, 7, 8, 16], depth_max, strangers_max }
}
