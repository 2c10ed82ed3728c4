//! Finds parts of files that occur in earlier files: all files are cut into chunks and hashed in
//! parallel, then looked up in plan order. Results are likely, not certain, so the caller compares
//! bytes.

use super::cdc::Chunker;
use crate::PackOptions;
use crate::clusters::shape::{Shape, piece_len, shape};
use crate::context::{Context, Piece};
use crate::duplicates::Duplicates;
use crate::parallel::read_in_parallel;
use packfs_core::{Progress, Result, Stage};
use packfs_format::{ClusterPlan, Clusters};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// Average chunk length in small trees, as a power of two.
const CHUNK_LOG: u32 = 11;
/// Most chunks of all files; larger trees have longer chunks, so memory stays bounded.
const CHUNK_COUNT: u64 = 2 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub job: u32,
    pub offset: u64,
}

/// Bytes of a file that probably equal earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub at: Position,
    pub len: u64,
    /// Position of the earlier bytes, in another piece.
    pub origin: Position,
}

#[derive(Default)]
pub(crate) struct Regions {
    all: Vec<Region>,
    /// Bytes by which a region may extend beyond the chunks found, on both sides.
    pub slack: u64,
}

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
    /// A file that cannot be read has no regions; the error is reported when it is packed.
    pub(crate) fn find(
        context: &Context<'_, Clusters>,
        cut: &ClusterPlan,
        duplicates: &Duplicates,
        options: &PackOptions,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let units = units(context, cut, duplicates);
        let bytes_total: u64 =
            units.iter().map(|unit| unit.range.end - unit.range.start).fold(0, u64::saturating_add);
        let log = (CHUNK_LOG..24).find(|&log| bytes_total >> log <= CHUNK_COUNT).unwrap_or(24);
        let chunker = Chunker::new(log);
        progress.begin(Stage::Dedupe, units.len() as u64, bytes_total);
        let chunks = read_in_parallel(options, progress, &units, |unit| {
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

    pub(crate) fn lead_into(&self, piece: &Piece, before: &[Piece]) -> bool {
        let Some(first) = before.first() else { return false };
        let first = Position { job: first.job, offset: first.range.start };
        // Another file can be used only once all of it is placed.
        let end_of = |region: &Region| {
            if region.origin.job == piece.job {
                Position { offset: region.origin.offset + region.len, ..region.origin }
            } else {
                Position { job: region.origin.job + 1, offset: 0 }
            }
        };
        self.within(piece.job, &piece.range).iter().any(|region| end_of(region) > first)
    }

    pub(crate) fn within(&self, job: u32, range: &Range<u64>) -> &[Region] {
        let index = |offset| self.all.partition_point(|region| region.at < Position { job, offset });
        &self.all[index(range.start)..index(range.end)]
    }
}

fn units(context: &Context<'_, Clusters>, cut: &ClusterPlan, duplicates: &Duplicates) -> Vec<Unit> {
    let mut units = Vec::new();
    for (job, file) in context.plan.files.iter().enumerate() {
        let len = context.len(file.node);
        let in_clusters = matches!(shape(cut, file.storage, len), Shape::Clusters { .. });
        if !in_clusters || duplicates.original(file.node).is_some() {
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
    // `buf` starts at `start`.
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
            // Zeros are stored as holes anyway.
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
    first: HashMap<u64, Position>,
    regions: Vec<Region>,
}

impl Finder {
    fn look_up(&mut self, unit: &Unit, chunks: &[Chunk]) {
        for chunk in chunks {
            let at = Position { job: unit.job, offset: chunk.offset };
            let origin = match self.first.entry(chunk.hash) {
                Entry::Occupied(first) => *first.get(),
                Entry::Vacant(free) => {
                    free.insert(at);
                    continue;
                }
            };
            // Clusters of the same piece are not known before it is cut.
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
    fn goes_on(&self, at: Position, origin: Position) -> bool {
        let after = |position: Position| Position { offset: position.offset + self.len, ..position };
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
        // True if `later`, whose first 100 bytes equal those at `origin`, must not be in a span
        // with `before`.
        let leads = |before: Piece, later: &Piece, origin: (u32, u64)| {
            let at = Position { job: later.job, offset: later.range.start };
            let origin = Position { job: origin.0, offset: origin.1 };
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
