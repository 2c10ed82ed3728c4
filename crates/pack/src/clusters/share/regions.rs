//! Finds which parts of files occur in files before, by contents: all files are cut into chunks and
//! hashed in parallel, then looked up in plan order. What it finds is likely, not certain; who uses
//! it compares bytes.

use super::cdc::Chunker;
use crate::PackOptions;
use crate::clusters::shape::{Shape, piece_len, shape};
use crate::context::{Context, Piece};
use crate::parallel::learn_in_parallel;
use crate::twins::Twins;
use packfs_core::{Progress, Result, Stage};
use packfs_format::{ClusterPlan, Clusters};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// Chunks are about so long in small trees.
const CHUNK_LOG: u32 = 11;
/// Chunks of all files together: longer ones in larger trees keep their number, and so memory,
/// below this.
const CHUNK_COUNT: u64 = 2 << 20;

/// A place in the files of a plan: which file, which byte. Ordered as the plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// Index of the file in the plan.
    pub job: u32,
    /// Offset in the file.
    pub offset: u64,
}

/// Bytes of a file that seem to be the same as earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub at: Spot,
    pub len: u64,
    /// Where the same bytes were before, in another piece.
    pub origin: Spot,
}

/// All of them, in plan order.
#[derive(Default)]
pub(crate) struct Regions {
    all: Vec<Region>,
    /// How far a region may reach further than was found, on both sides.
    pub slack: u64,
}

/// A stretch that one worker takes.
struct Unit {
    job: u32,
    range: Range<u64>,
}

struct Chunk {
    offset: u64,
    len: u32,
    hash: u64,
}

impl Regions {
    /// Hashes every file that is stored in clusters. A file that cannot be read has no regions, and
    /// fails when it is packed.
    pub(crate) fn find(
        context: &Context<'_, Clusters>,
        cut: &ClusterPlan,
        twins: &Twins,
        options: &PackOptions,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let units = units(context, cut, twins);
        let bytes_total: u64 =
            units.iter().map(|unit| unit.range.end - unit.range.start).fold(0, u64::saturating_add);
        let log = (CHUNK_LOG..24).find(|&log| bytes_total >> log <= CHUNK_COUNT).unwrap_or(24);
        let chunker = Chunker::new(log);
        progress.begin(Stage::Dedupe, units.len() as u64, bytes_total);
        let chunks = learn_in_parallel(options, progress, &units, |unit| {
            let chunks = chunks(context, unit, chunker);
            progress.advance(1, unit.range.end - unit.range.start, 0);
            chunks
        })?;
        let mut finder = Finder::default();
        for (unit, chunks) in units.iter().zip(chunks) {
            finder.look_up(unit, &chunks.unwrap_or_default());
        }
        Ok(Regions { all: finder.regions, slack: chunker.len_max() as u64 })
    }

    /// Whether a piece shares anything with pieces right before it in the plan.
    pub(crate) fn lead_into(&self, piece: &Piece, before: &[Piece]) -> bool {
        let Some(first) = before.first() else { return false };
        let first = Spot { job: first.job, offset: first.range.start };
        // Of other files nothing is known before all of them is placed.
        let end_of = |region: &Region| match region.origin.job == piece.job {
            true => Spot { offset: region.origin.offset + region.len, ..region.origin },
            false => Spot { job: region.origin.job + 1, offset: 0 },
        };
        self.within(piece.job, &piece.range).iter().any(|region| end_of(region) > first)
    }

    /// Those that start in a stretch of a file.
    pub(crate) fn within(&self, job: u32, range: &Range<u64>) -> &[Region] {
        let index = |offset| self.all.partition_point(|region| region.at < Spot { job, offset });
        &self.all[index(range.start)..index(range.end)]
    }
}

fn units(context: &Context<'_, Clusters>, cut: &ClusterPlan, twins: &Twins) -> Vec<Unit> {
    let mut units = Vec::new();
    for (job, file) in context.plan.files.iter().enumerate() {
        let len = context.len(file.node);
        let in_clusters = matches!(shape(cut, file.storage, len), Shape::Clusters { .. });
        if !in_clusters || twins.original(file.node).is_some() {
            continue;
        }
        let piece_len = piece_len(cut, file.storage, len);
        let mut start = 0;
        while start < len {
            let end = len.min(start + piece_len);
            units.push(Unit { job: job as u32, range: start..end });
            start = end;
        }
    }
    units
}

fn chunks(context: &Context<'_, Clusters>, unit: &Unit, chunker: Chunker) -> Result<Vec<Chunk>> {
    const READ_LEN: u64 = 1 << 20;
    let mut reader = context.open(context.node(unit.job))?;
    if reader.next_data(unit.range.start)?.is_none_or(|data| data.start >= unit.range.end) {
        return Ok(Vec::new());
    }
    let mut chunks = Vec::new();
    let mut buf = Vec::new();
    // `buf` holds what follows `start`.
    let mut start = unit.range.start;
    while start < unit.range.end {
        let have = buf.len() as u64;
        let more = (unit.range.end - start - have).min(READ_LEN);
        buf.resize((have + more) as usize, 0);
        reader.read_exact_at(start + have, &mut buf[have as usize..])?;
        let is_end = start + have + more == unit.range.end;
        let mut at = 0;
        while at < buf.len() && (is_end || buf.len() - at >= chunker.len_max()) {
            let len = chunker.cut(&buf[at..]);
            let bytes = &buf[at..at + len];
            // Zeros cost nothing where they are.
            if !crate::context::is_zero(bytes) {
                let hash = xxhash_rust::xxh3::xxh3_64(bytes);
                chunks.push(Chunk { offset: start + at as u64, len: len as u32, hash });
            }
            at += len;
        }
        buf.drain(..at);
        start += at as u64;
    }
    Ok(chunks)
}

#[derive(Default)]
struct Finder {
    first: HashMap<u64, Spot>,
    regions: Vec<Region>,
}

impl Finder {
    fn look_up(&mut self, unit: &Unit, chunks: &[Chunk]) {
        for chunk in chunks {
            let at = Spot { job: unit.job, offset: chunk.offset };
            let origin = match self.first.entry(chunk.hash) {
                Entry::Occupied(first) => *first.get(),
                Entry::Vacant(free) => {
                    free.insert(at);
                    continue;
                }
            };
            // What the same worker makes of the same stretch cannot be known before.
            if origin.job == unit.job && origin.offset >= unit.range.start {
                continue;
            }
            let len = u64::from(chunk.len);
            match self.regions.last_mut() {
                Some(last) if last.goes_on(at, origin) && at.offset != unit.range.start => last.len += len,
                _ => self.regions.push(Region { at, len, origin }),
            }
        }
    }
}

impl Region {
    fn goes_on(&self, at: Spot, origin: Spot) -> bool {
        let after = |spot: Spot| Spot { offset: spot.offset + self.len, ..spot };
        after(self.at) == at && after(self.origin) == origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(job: u32, range: Range<u64>) -> Piece {
        Piece { job, range, last: false, is_hole: false }
    }

    #[test]
    fn pieces_lead_into_those_that_share_with_them() {
        // Whether 100 bytes at the start of `later` that were at `origin` before keep it apart from
        // `before`.
        let leads = |before: Piece, later: &Piece, origin: (u32, u64)| {
            let at = Spot { job: later.job, offset: later.range.start };
            let origin = Spot { job: origin.0, offset: origin.1 };
            let regions = Regions { all: vec![Region { at, len: 100, origin }], slack: 0 };
            regions.lead_into(later, &[before])
        };
        let other = piece(4, 0..500);
        assert!(!leads(piece(3, 0..500), &other, (2, 0)));
        assert!(leads(piece(3, 0..500), &other, (3, 0)));
        assert!(leads(piece(3, 1000..1500), &other, (3, 0)), "all of another file is needed");
        let next = piece(3, 1000..1500);
        assert!(!leads(piece(3, 500..1000), &next, (3, 400)));
        assert!(leads(piece(3, 500..1000), &next, (3, 401)));
    }

    #[test]
    fn nothing_leads_into_the_first_piece_of_a_span() {
        assert!(!Regions::default().lead_into(&piece(0, 0..9), &[]));
    }
}
