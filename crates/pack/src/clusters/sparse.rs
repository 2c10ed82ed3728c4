//! Files that are mostly holes: detected from their sources before packing, and given chunks of a
//! suitable length.
//!
//! An index of compressed blocks grows with the length of a file; a map of chunks, with its length
//! divided by that of a chunk. If nearly nothing of a file is data, the map is smaller than the
//! index alone, and readers find the holes.

use crate::context::Context;
use packfs_core::{ContentReader, Error, NodeId, Result};
use packfs_format::{ClusterPlan, Clusters, Plan, Recipe, SparsePlan, Tail};

/// Shorter files are not examined.
const LEN_MIN: u64 = 1 << 20;
/// A file to be compressed gets chunks if at most 1 / `DATA_SHARE` of it is data: an index takes
/// about as much.
const DATA_SHARE: u64 = 512;
/// Longest chunk of a file with data, in bytes; one is held in memory and padded with zeros.
const CHUNK_LEN_MAX: u64 = 64 << 20;
/// Longest chunk while the map stays within [`ROWS_FEW`]: longer ones exceed what 32-bit machines
/// read.
const CHUNK_LEN_USUAL: u64 = 1 << 30;
const ROWS_FEW: u64 = 1 << 16;
const ROWS_MAX: u64 = 1 << 22;

/// Errors: `Failed` for a file that neither an index nor a map can represent.
pub(crate) fn settle(context: &Context<'_, Clusters>, format: &str) -> Result<Option<Plan<Clusters>>> {
    let cut = &context.plan.data;
    let Some(sparse) = cut.sparse.filter(|_| context.plan.holes) else { return Ok(None) };
    let mut changed: Option<Plan<Clusters>> = None;
    for (index, job) in context.plan.files.iter().enumerate() {
        let len = context.len(job.node);
        let recipe = &cut.recipes[usize::from(job.storage.recipe)];
        if len < LEN_MIN || matches!(recipe, Recipe::Chunks { .. }) {
            continue;
        }
        let is_compressed = matches!(recipe, Recipe::Clusters { .. });
        let data = DataMap::of(context, job.node, cut, is_compressed);
        if is_compressed && cut.byte_aligned && data.is_whole {
            // An index of extents represents holes directly.
            continue;
        }
        let Some(chunk_len) = data.chunk_len(&sparse) else {
            refuse_endless(
                context,
                job.node,
                format,
                if is_compressed { sparse.clusters_len_max } else { MAP_LEN_MAX },
            )?;
            continue;
        };
        let plan = changed.get_or_insert_with(|| context.plan.clone());
        let cut = &mut plan.data;
        let recipe = Recipe::Chunks { chunk_len };
        let known = cut.recipes.iter().position(|row| *row == recipe);
        let number = known.unwrap_or_else(|| {
            cut.recipes.push(recipe);
            cut.recipes.len() - 1
        });
        let storage = &mut plan.files[index].storage;
        (storage.recipe, storage.tail) = (number as u16, Tail::Own);
    }
    Ok(changed)
}

pub(super) fn longest_chunk(cut: &ClusterPlan) -> u64 {
    let chunk_len = |recipe: &Recipe| match recipe {
        Recipe::Chunks { chunk_len } if *chunk_len <= CHUNK_LEN_MAX => *chunk_len,
        _ => 0,
    };
    cut.recipes.iter().map(chunk_len).max().unwrap_or(0)
}

/// Longest file with data that is stored as a map of chunks.
const MAP_LEN_MAX: u64 = CHUNK_LEN_MAX * ROWS_MAX;

/// Errors: `Failed` for a file longer than `most`, as found in hostile archives.
fn refuse_endless(context: &Context<'_, Clusters>, node: NodeId, format: &str, most: u64) -> Result<()> {
    let len = context.len(node);
    if len <= most {
        return Ok(());
    }
    let path = context.tree.path(node);
    let message = format!(
        "cannot store {path:?}: it has {len} bytes, and not only holes; {format} lists at most {most} here"
    );
    Err(Error::failed(message).hint("a rule such as -O rule=PATH=none stores it uncompressed, with holes"))
}

/// Most runs of data in a map; a file with more is stored like any other.
const RUNS_MAX: u64 = 1 << 20;

struct DataMap {
    len: u64,
    data_len: u64,
    /// True if all runs of data were seen.
    is_whole: bool,
    /// Rows for each chunk length, from that of a block on: chunks with data, and the end of the
    /// last one.
    touched: Vec<(u64, u64)>,
    block_bits: u32,
}

impl DataMap {
    /// Reads the runs of a file until more of them make no difference. An unreadable file counts as
    /// data; the error is reported when it is packed.
    fn of(context: &Context<'_, Clusters>, node: NodeId, cut: &ClusterPlan, is_compressed: bool) -> DataMap {
        let len = context.len(node);
        let block_bits = cut.block_len.trailing_zeros();
        let bits_max = CHUNK_LEN_MAX.trailing_zeros();
        let touched = vec![(0, 0); (bits_max + 1).saturating_sub(block_bits) as usize];
        let mut map = DataMap { len, data_len: 0, is_whole: false, touched, block_bits };
        let enough = if is_compressed { len / DATA_SHARE } else { len / 2 };
        let seen = context.open(node).and_then(|mut reader| map.estimate(reader.as_mut(), enough));
        if seen.is_err() {
            map.is_whole = false;
        }
        map
    }

    fn estimate(&mut self, reader: &mut dyn ContentReader, enough: u64) -> Result<()> {
        let mut offset = 0;
        for _ in 0..RUNS_MAX {
            let Some(run) = reader.next_data(offset)?.filter(|run| run.start < self.len) else {
                self.is_whole = true;
                return Ok(());
            };
            let (start, end) = (run.start.max(offset), run.end.min(self.len));
            if end <= start {
                return Ok(());
            }
            self.data_len += end - start;
            if self.data_len > enough {
                return Ok(());
            }
            for (bits, (count, last_end)) in (self.block_bits..).zip(&mut self.touched) {
                let first = (start >> bits).max(*last_end);
                let behind = ((end - 1) >> bits) + 1;
                *count += behind.saturating_sub(first);
                *last_end = behind;
            }
            offset = end;
        }
        Ok(())
    }

    /// Returns the chunk length for which data and map take least; `None` if no length leaves out a
    /// hole.
    fn chunk_len(&self, sparse: &SparsePlan) -> Option<u64> {
        if !self.is_whole {
            return None;
        }
        let rows = |bits: u32| ((self.len - 1) >> bits) + 1;
        let bits_max = sparse.chunk_len_max.trailing_zeros();
        if self.data_len == 0 {
            let is_enough = |bits: &u32| {
                if 1 << bits < CHUNK_LEN_USUAL { rows(*bits) == 1 } else { rows(*bits) <= ROWS_FEW }
            };
            let bits = (self.block_bits..bits_max).find(is_enough).unwrap_or(bits_max);
            return (rows(bits) <= ROWS_MAX).then_some(1 << bits);
        }
        let lens = (self.block_bits..=bits_max).zip(&self.touched);
        let lens = lens.filter(|&(bits, &(count, _))| rows(bits) <= ROWS_MAX && count < rows(bits));
        // Ties go to the shortest chunks.
        let best = lens.min_by_key(|&(bits, &(count, _))| (count << bits) + rows(bits) * sparse.row_len);
        best.map(|(bits, _)| 1 << bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    const SPARSE: SparsePlan =
        SparsePlan { row_len: 4, chunk_len_max: 4096 << 31, clusters_len_max: 1 << 38 };

    struct Runs(Vec<Range<u64>>);

    impl ContentReader for Runs {
        fn read_exact_at(&mut self, _: u64, _: &mut [u8]) -> Result<()> {
            Err(Error::failed("nothing is to be read"))
        }

        fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
            Ok(self.0.iter().find(|run| run.end > offset).map(|run| run.start.max(offset)..run.end))
        }
    }

    /// Returns the chunk length for a file with these runs of data.
    fn chunk_len(len: u64, runs: &[(u64, u64)]) -> Option<u64> {
        let runs = runs.iter().map(|&(start, end)| start..end).collect();
        let mut map =
            DataMap { len, data_len: 0, is_whole: false, touched: vec![(0, 0); 15], block_bits: 12 };
        map.estimate(&mut Runs(runs), len / 2).unwrap();
        map.chunk_len(&SPARSE)
    }

    #[test]
    fn a_file_without_data_has_few_rows_however_long_it_is() {
        assert_eq!(chunk_len(1 << 20, &[]), Some(1 << 20));
        assert_eq!(chunk_len((1 << 20) + 1, &[]), Some(1 << 21));
        assert_eq!(chunk_len(1 << 40, &[]), Some(1 << 30));
        assert_eq!(chunk_len((1 << 63) - 4096, &[]), Some(4096 << 31));
    }

    #[test]
    fn chunks_are_as_long_as_data_and_map_take_least() {
        assert_eq!(chunk_len(1 << 24, &[(0, 4096)]), Some(8 << 10));
        let islands = [(12288, 16384), (1 << 39, (1 << 39) + 4096), ((1 << 40) - 4096, 1 << 40)];
        assert_eq!(chunk_len(1 << 40, &islands), Some(1 << 20));
        assert_eq!(
            chunk_len(1 << 24, &[(0, 1 << 23), ((1 << 23) + 4096, 1 << 24)]),
            None,
            "more than half is data"
        );
        assert_eq!(chunk_len(1 << 62, &[(0, 1)]), None, "no map is that long");
    }

    #[test]
    fn runs_that_meet_in_a_chunk_count_once() {
        let mut map =
            DataMap { len: 1 << 20, data_len: 0, is_whole: false, touched: vec![(0, 0); 3], block_bits: 12 };
        map.estimate(&mut Runs(vec![0..4096, 8192..12288, 16384..20480]), 1 << 20).unwrap();
        assert_eq!(map.touched.iter().map(|row| row.0).collect::<Vec<_>>(), [3, 3, 2]);
    }
}
