//! Cost of a walk along the tree for Linux, as files were placed, and beside tree order.

use crate::context::Context;
use crate::order::KernelCache;
use crate::report::WalkReads;
use packfs_format::{Blocks, Placed, SharedTail};
use std::collections::HashMap;

/// Walks along the tree. Blocks of files that hold the tails of others count, too.
pub(super) fn walk(context: &Context<'_, Blocks>, placed: &Placed<Blocks>) -> WalkReads {
    let shared = [&placed.data.shared[..], &placed.data.borrowed].concat();
    let mut in_tree_order = TreeOrder::new(context, placed.data.shared.len() as u32);
    let (mut kept, mut kept_in_tree_order) = (KernelCache::default(), KernelCache::default());
    let mut walk = WalkReads::default();
    for (node, file) in placed.files.iter().enumerate() {
        let Some(tail) = file.tail else { continue };
        if kept.read(tail.index) {
            walk.decodes += 1;
            let block = shared.get(tail.index as usize);
            walk.read_bytes += block.map_or(0, |(_, block)| u64::from(block.stored_len));
        }
        if kept_in_tree_order.read(in_tree_order.block_of(node, tail)) {
            walk.path_decodes += 1;
        }
    }
    walk.other_blocks = placed.data.blocks.iter().filter(|block| block.stored_len > 0).count() as u64;
    walk
}

struct TreeOrder {
    lens: Vec<u64>,
    block_len: u64,
    /// Shared blocks of the image; blocks after them hold files of their own.
    shared_count: u32,
    /// Block of each tail that was met; equal tails are stored once.
    blocks: HashMap<(u32, u32), u32>,
    block: u32,
    filled: u64,
}

impl TreeOrder {
    fn new(context: &Context<'_, Blocks>, shared_count: u32) -> Self {
        let mut lens = vec![0; context.tree.node_count() as usize];
        for job in &context.plan.files {
            lens[job.node.index()] = context.shared_len(job);
        }
        // Numbers of these blocks begin where those of the image cannot be.
        let block_len = context.block_len();
        TreeOrder { lens, block_len, shared_count, blocks: HashMap::new(), block: u32::MAX, filled: 0 }
    }

    fn block_of(&mut self, node: usize, tail: SharedTail) -> u32 {
        if tail.index >= self.shared_count {
            return tail.index;
        }
        if let Some(&block) = self.blocks.get(&(tail.index, tail.offset)) {
            return block;
        }
        let len = self.lens.get(node).copied().unwrap_or(0);
        if self.filled + len > self.block_len {
            self.block -= 1;
            self.filled = 0;
        }
        self.filled += len;
        self.blocks.insert((tail.index, tail.offset), self.block);
        self.block
    }
}
