//! Samples: the hash of the first bytes of each block of long files, in sixteen bytes a block.
//!
//! A sample proves nothing; the caller compares bytes.

use super::spilled::{Sample, Spilled};
use crate::PackOptions;
use crate::context::{Context, is_zero};
use crate::parallel::read_in_parallel;
use packfs_core::{ContentReader, NodeId, Progress, Result};
use packfs_format::Blocks;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// Bytes of a block that are hashed. Blocks that begin with as many zeros have no sample.
pub(super) const SAMPLE_LEN: u64 = 512;
/// Most samples of all files. With more blocks, only every second, fourth, ... block of a file has
/// one, so that samples stay below 64 MiB for any tree. `--memory` limits how many are in memory at
/// a time; the image does not depend on it.
const SAMPLES_MAX: u64 = 4 << 20;
/// Blocks sampled before results are sorted and stored.
const BATCH_BLOCKS: u64 = 64 << 10;
const UNIT_BLOCKS: u64 = 4096;
/// Most such units of one file.
const UNITS_MAX: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Long {
    pub node: NodeId,
    pub job: u32,
    pub len: u64,
    /// Blocks of its own; the last one may be short.
    pub blocks: u64,
}

/// Samples with the same hash are in the order of files.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) spilled: Vec<Spilled>,
    rows: Vec<Sample>,
    first: Vec<Option<Sample>>,
}

impl Samples {
    /// Keeps `room` bytes of samples in memory, and spools the others beside `output`. An
    /// unreadable file has no samples, if unreadable files are skipped.
    pub(super) fn take(
        context: &Context<'_, Blocks>,
        files: &[Long],
        options: &PackOptions,
        progress: &dyn Progress,
        (output, room): (&Path, u64),
    ) -> Result<Self> {
        let stride = stride(files.iter().map(|file| file.blocks).sum());
        let rows_max = usize::try_from(room).unwrap_or(usize::MAX) / size_of::<Sample>();
        let mut samples = Samples { first: vec![None; files.len()], ..Samples::default() };
        let units = units(files);
        let mut rest = &units[..];
        while !rest.is_empty() {
            let mut blocks = 0;
            let more = |unit: &&(u32, Range<u64>)| {
                blocks += (unit.1.end - unit.1.start) / stride;
                blocks < BATCH_BLOCKS.min(rows_max as u64)
            };
            let count = rest.iter().take_while(more).count().max(1);
            let (batch, left) = rest.split_at(count);
            rest = left;
            let found = read_in_parallel(options, progress, batch, |(file, blocks)| {
                sample_blocks(context, &files[*file as usize], *file, blocks.clone(), stride)
            })?;
            for sample in found.into_iter().flat_map(Option::unwrap_or_default) {
                samples.first[sample.file as usize].get_or_insert(sample);
                samples.rows.push(sample);
            }
            if !rest.is_empty() && samples.rows.len() >= rows_max {
                samples.rows.sort_unstable();
                samples.spilled.push(Spilled::write(&samples.rows, output)?);
                samples.rows.clear();
            }
        }
        samples.rows.sort_unstable();
        samples.rows.shrink_to_fit();
        Ok(samples)
    }

    pub(super) fn first_of(&self, file: u32) -> Option<Sample> {
        self.first.get(file as usize).copied().flatten()
    }

    /// Returns at most `most` blocks, in the order of files.
    pub(super) fn with_hash(&self, hash: u64, most: usize) -> Result<Cow<'_, [Sample]>> {
        let start = self.rows.partition_point(|row| row.hash < hash);
        let end = self.rows.partition_point(|row| row.hash <= hash);
        let rows = &self.rows[start..end];
        if self.spilled.is_empty() {
            return Ok(Cow::Borrowed(&rows[..rows.len().min(most)]));
        }
        let mut found = Vec::new();
        for spilled in &self.spilled {
            spilled.find(hash, most, &mut found)?;
        }
        found.extend(rows.iter().take(most - found.len()));
        Ok(Cow::Owned(found))
    }
}

/// Distance of sampled blocks, a power of two.
fn stride(blocks: u64) -> u64 {
    blocks.div_ceil(SAMPLES_MAX).max(1).next_power_of_two()
}

fn units(files: &[Long]) -> Vec<(u32, Range<u64>)> {
    let mut units = Vec::new();
    for (index, file) in (0..).zip(files) {
        // Each unit opens the file, which may be one long hole.
        let unit = UNIT_BLOCKS.max(file.blocks.div_ceil(UNITS_MAX));
        let mut start = 0;
        while start < file.blocks {
            let end = file.blocks.min(start + unit);
            units.push((index, start..end));
            start = end;
        }
    }
    units
}

fn sample_blocks(
    context: &Context<'_, Blocks>,
    file: &Long,
    index: u32,
    blocks: Range<u64>,
    stride: u64,
) -> Result<Vec<Sample>> {
    let block_len = context.block_len();
    let mut reader = context.open(file.node)?;
    let mut data = 0..0;
    let mut samples = Vec::new();
    for block in (blocks.start.next_multiple_of(stride)..blocks.end).step_by(stride as usize) {
        let offset = block * block_len;
        if data.end <= offset {
            let Some(next) = reader.next_data(offset)? else { break };
            data = next;
        }
        let len = block_len.min(file.len - offset);
        if data.start < offset + len.min(SAMPLE_LEN)
            && let Some(hash) = sample(&mut *reader, offset, len)?
        {
            // No file has more blocks than a plan can count.
            samples.push(Sample { hash, file: index, block: u32::try_from(block).unwrap_or(u32::MAX) });
        }
    }
    Ok(samples)
}

fn sample(reader: &mut (dyn ContentReader + '_), offset: u64, len: u64) -> Result<Option<u64>> {
    let mut bytes = [0; SAMPLE_LEN as usize];
    let bytes = &mut bytes[..len.min(SAMPLE_LEN) as usize];
    reader.read_exact_at(offset, bytes)?;
    Ok(hash(bytes))
}

/// `None` for zeros.
pub(super) fn hash(beginning: &[u8]) -> Option<u64> {
    (!is_zero(beginning)).then(|| xxhash_rust::xxh3::xxh3_64(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_for_any_number_of_blocks() {
        for (blocks, wanted) in [(0, 1), (1, 1), (SAMPLES_MAX, 1), (SAMPLES_MAX + 1, 2), (SAMPLES_MAX * 5, 8)]
        {
            assert_eq!(stride(blocks), wanted, "{blocks}");
            assert!(blocks / stride(blocks) <= SAMPLES_MAX);
        }
    }

    #[test]
    fn long_files_are_looked_at_by_several_workers() {
        let file = |blocks| Long { node: NodeId::ROOT, job: 0, len: blocks * 10, blocks };
        let units = units(&[file(3), file(UNIT_BLOCKS + 1)]);
        assert_eq!(units, [(0, 0..3), (1, 0..UNIT_BLOCKS), (1, UNIT_BLOCKS..UNIT_BLOCKS + 1)]);
    }
}
