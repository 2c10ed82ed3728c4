//! Small files and tails that another file's block begins with: they lie in that block.
//!
//! The samples of blocks are there already, so all it takes is to look up what a tail begins with.
//! Workers do that; where the block is stored is known in the end.

use super::samples::{self, Long, SAMPLE_LEN, Samples};
use super::{LOOKED_MAX, Runs, TRIED_MAX};
use crate::context::Context;
use crate::failures::Failures;
use crate::same::Earlier;
use crate::seen::TailId;
use packfs_core::{NodeId, Result};
use packfs_format::{Blocks, Placed, SharedTail};
use std::collections::HashSet;

/// A block of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Home {
    pub(super) node: NodeId,
    pub(super) block: u32,
}

/// What blocks of long files begin with.
#[derive(Default)]
pub(super) struct Homes {
    pub files: Vec<Long>,
    pub samples: Samples,
    /// Whether files that cannot be read are left out.
    pub may_be_left_out: bool,
}

impl Runs {
    /// The block of a file that is stored which begins with the tail of this one.
    ///
    /// Errors: those of reading that file, unless it may be left out; it is like no other then.
    pub(crate) fn home_of(
        &self,
        context: &Context<'_, Blocks>,
        job: u32,
        tail: &[u8],
    ) -> Result<Option<Home>> {
        let Some(hash) = tail.get(..SAMPLE_LEN as usize).and_then(samples::hash) else { return Ok(None) };
        let hosts = self.homes.samples.with_hash(hash, LOOKED_MAX)?;
        let likely = hosts.iter().filter(|host| {
            let file = &self.homes.files[host.file as usize];
            let rest = file.len - u64::from(host.block) * self.block_len;
            // What is used first must not lie among the rest.
            let is_near = job >= context.boundaries.first_used || file.job < context.boundaries.first_used;
            is_near && tail.len() as u64 <= rest.min(self.block_len) && !self.of.contains_key(&file.node)
        });
        for host in likely.take(TRIED_MAX) {
            let home = Home { node: self.homes.files[host.file as usize].node, block: host.block };
            match begins_with(context, &home, self.block_len, tail) {
                Ok(true) => return Ok(Some(home)),
                Ok(false) => {}
                Err(_) if self.homes.may_be_left_out => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Compares all bytes, those at the end first.
fn begins_with(context: &Context<'_, Blocks>, home: &Home, block_len: u64, tail: &[u8]) -> Result<bool> {
    let mut earlier = Earlier::new(context);
    let start = u64::from(home.block) * block_len;
    let (front, end) = tail.split_at(tail.len().saturating_sub(SAMPLE_LEN as usize));
    Ok(earlier.holds(home.node, start + front.len() as u64, end)?
        && earlier.holds(home.node, start, front)?)
}

/// Tails that lie in other files' blocks.
#[derive(Default)]
pub(crate) struct Lodgers {
    all: Vec<(Home, TailId, u32)>,
}

impl Lodgers {
    /// A tail of so many bytes has such a home.
    pub(crate) fn add(&mut self, id: TailId, len: u32, home: Home) {
        self.all.push((home, id, len));
    }

    /// Gives every tail its place, now that all blocks have theirs; returns those whose home could
    /// not be read.
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
                let lent = (at, blocks[block]);
                let index = (placed.data.shared.len() + placed.data.lent.len()) as u32;
                placed.data.lent.push(lent);
                for &(_, id, len) in in_block {
                    tail_places[id as usize] = SharedTail { index, offset: 0 };
                    placed.data.lent_tails += 1;
                    placed.data.lent_bytes += u64::from(len);
                }
            }
        }
        lost
    }
}
