//! Files in blocks: collects them from the inputs, and assigns new offsets.

use crate::files::{ByInput, check_rows, inode_of};
use crate::moves::Moves;
use crate::ranges::Ranges;
use crate::write::Job;
use packfs_core::{Error, Result};
use packfs_format::{
    AnyStored, Blocks, BlocksPlaced, FilePlace, Placed, Plan, SharedTail, StoredBlock, StoredBlocks,
};
use std::ops::Range;

/// Index of a shared block that no file refers to.
const UNUSED: u32 = u32::MAX;

/// Reads no data.
pub(crate) fn gather(
    job: &Job<'_>,
    plan: &Plan<Blocks>,
    by_input: &ByInput,
) -> Result<(Placed<Blocks>, Moves)> {
    let mut files = vec![FilePlace::default(); job.scanned.tree.node_count() as usize];
    let mut data = BlocksPlaced::default();
    let (mut ranges, mut shared_ends) = (Vec::new(), Vec::new());
    for (index, input) in job.inputs.iter().enumerate() {
        job.check_cancelled()?;
        job.warm.touch(index);
        let Some(AnyStored::Blocks(stored)) = input.volume.stored() else {
            return Err(job.not_stored(index));
        };
        let gathered = Input { stored, job, by_input: by_input.of(index) }.gather(&mut files, &mut data);
        ranges.push(gathered.map_err(|error| error.at(&input.name))?);
        shared_ends.push(data.shared.len());
    }
    let moves = Moves::new(ranges, plan.data_start, false);
    let mut shared = 0;
    for (index, &end) in shared_ends.iter().enumerate() {
        for &node in by_input.of(index) {
            if let Some(place) = files.get_mut(node.index())
                && place.start > 0
            {
                place.start = moves.place(index, place.start)?;
            }
        }
        for row in data.shared.get_mut(shared..end).unwrap_or_default() {
            row.0 = moves.place(index, row.0)?;
        }
        shared = end;
    }
    Ok((Placed { files, data_end: moves.end, data, ..Placed::default() }, moves))
}

struct Input<'a> {
    stored: &'a dyn StoredBlocks,
    job: &'a Job<'a>,
    by_input: &'a [packfs_core::NodeId],
}

impl Input<'_> {
    /// Returns the ranges of the image that the blocks take. Offsets are still those of the input.
    fn gather(&self, files: &mut [FilePlace<Blocks>], data: &mut BlocksPlaced) -> Result<Vec<Range<u64>>> {
        let mut ranges = Ranges::new(1);
        let shared = self.stored.shared()?;
        let mut numbers = vec![UNUSED; shared.len()];
        for &node in self.by_input {
            let first = data.blocks.len();
            let place = self.stored.file(inode_of(self.job.scanned, node)?, &mut data.blocks);
            let place =
                place.map_err(|error| error.at(format_args!("{:?}", self.job.scanned.tree.path(node))))?;
            check_rows(&self.job.options.limits, &data.blocks)?;
            let blocks = data.blocks.get(first..).unwrap_or_default();
            let stored_len =
                blocks.iter().map(|block| u64::from(block.stored_len)).fold(0, u64::saturating_add);
            ranges.add(place.start, stored_len);
            let tail =
                place.tail.map(|tail| renumber(tail, &shared, &mut numbers, &mut data.shared)).transpose()?;
            if let Some(row) = files.get_mut(node.index()) {
                *row = FilePlace { first: first as u64, tail, ..place };
            }
        }
        for ((start, block), _) in shared.iter().zip(&numbers).filter(|(_, number)| **number != UNUSED) {
            ranges.add(*start, block.stored_len.into());
        }
        Ok(ranges.finish())
    }
}

/// Numbers blocks in the order of their first use.
fn renumber(
    tail: SharedTail,
    shared: &[(u64, StoredBlock)],
    numbers: &mut [u32],
    all: &mut Vec<(u64, StoredBlock)>,
) -> Result<SharedTail> {
    let lost = || Error::failed("internal: a tail in no fragment");
    let index = tail.index as usize;
    let (number, row) = numbers.get_mut(index).zip(shared.get(index)).ok_or_else(lost)?;
    if *number == UNUSED {
        let next = u32::try_from(all.len()).ok().filter(|&next| next != UNUSED);
        *number = next.ok_or_else(|| {
            Error::unsupported("merge", format!("more than {UNUSED} fragments")).hint("use larger blocks")
        })?;
        all.push(*row);
    }
    Ok(SharedTail { index: *number, ..tail })
}
