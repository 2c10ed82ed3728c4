//! Small files and tails that equal the beginning of another file's block: they refer to that
//! block.
//!
//! Samples of blocks exist already, so a tail's beginning is looked up in them. Workers do that;
//! the block's position is known only at the end.

use super::samples::{self, Long, SAMPLE_LEN, Samples};
use super::{LOOKED_MAX, Runs, TRIED_MAX};
use crate::context::Context;
use crate::failures::Failures;
use crate::file_comparer::FileComparer;
use crate::seen::TailId;
use packfs_core::{NodeId, Result};
use packfs_format::{Blocks, Placed, SharedTail};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostBlock {
    pub(super) node: NodeId,
    pub(super) block: u32,
}

#[derive(Default)]
pub(super) struct HostBlocks {
    pub files: Vec<Long>,
    pub samples: Samples,
    /// True if unreadable files are skipped.
    pub may_be_left_out: bool,
}

impl Runs {
    /// Errors: those of reading the file, unless unreadable files are skipped.
    pub(crate) fn find_host_block(
        &self,
        context: &Context<'_, Blocks>,
        job: u32,
        tail: &[u8],
    ) -> Result<Option<HostBlock>> {
        let Some(hash) = tail.get(..SAMPLE_LEN as usize).and_then(samples::hash) else { return Ok(None) };
        let hosts = self.host_blocks.samples.with_hash(hash, LOOKED_MAX)?;
        let likely = hosts.iter().filter(|host| {
            let file = &self.host_blocks.files[host.file as usize];
            let rest = file.len - u64::from(host.block) * self.block_len;
            // First-used data must not refer to other data.
            let is_near = job >= context.boundaries.first_used || file.job < context.boundaries.first_used;
            is_near && tail.len() as u64 <= rest.min(self.block_len) && !self.of.contains_key(&file.node)
        });
        for host in likely.take(TRIED_MAX) {
            let host_block =
                HostBlock { node: self.host_blocks.files[host.file as usize].node, block: host.block };
            match begins_with(context, &host_block, self.block_len, tail) {
                Ok(true) => return Ok(Some(host_block)),
                Ok(false) => {}
                Err(_) if self.host_blocks.may_be_left_out => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Compares all bytes, the last ones first.
fn begins_with(
    context: &Context<'_, Blocks>,
    host_block: &HostBlock,
    block_len: u64,
    tail: &[u8],
) -> Result<bool> {
    let mut earlier = FileComparer::new(context);
    let start = u64::from(host_block.block) * block_len;
    let (front, end) = tail.split_at(tail.len().saturating_sub(SAMPLE_LEN as usize));
    Ok(earlier.holds(host_block.node, start + front.len() as u64, end)?
        && earlier.holds(host_block.node, start, front)?)
}

#[derive(Default)]
pub(crate) struct BorrowedTails {
    all: Vec<(HostBlock, TailId, u32)>,
}

impl BorrowedTails {
    pub(crate) fn add(&mut self, id: TailId, len: u32, host_block: HostBlock) {
        self.all.push((host_block, id, len));
    }

    /// Call once all blocks have their place. Returns the tails whose host could not be read.
    pub(crate) fn place(
        mut self,
        failures: &Failures,
        tail_places: &mut [SharedTail],
        placed: &mut Placed<Blocks>,
    ) -> HashSet<TailId> {
        let failed: HashSet<NodeId> = failures.nodes.iter().copied().collect();
        let mut lost = HashSet::new();
        self.all.sort_unstable();
        for of_file in self.all.chunk_by(|a, b| a.0.node == b.0.node) {
            let node = of_file[0].0.node;
            if failed.contains(&node) {
                lost.extend(of_file.iter().map(|(_, id, _)| *id));
                continue;
            }
            let host = placed.files[node.index()];
            let (mut at, mut block) = (host.start, 0);
            for in_block in of_file.chunk_by(|a, b| a.0 == b.0) {
                let wanted = in_block[0].0.block as usize;
                let blocks = placed.blocks_of(&host);
                at += blocks[block..wanted].iter().map(|block| u64::from(block.stored_len)).sum::<u64>();
                block = wanted;
                let borrowed = (at, blocks[block]);
                let index = (placed.data.shared.len() + placed.data.borrowed.len()) as u32;
                placed.data.borrowed.push(borrowed);
                for &(_, id, len) in in_block {
                    tail_places[id as usize] = SharedTail { index, offset: 0 };
                    placed.data.duplicate_tails += 1;
                    placed.data.duplicate_tail_bytes += u64::from(len);
                }
            }
        }
        lost
    }
}
