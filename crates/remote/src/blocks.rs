//! Blocks held in memory; the one used longest ago is evicted first.

use crate::plan::BLOCK_LEN;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Block of an object.
pub(crate) type Block = Arc<[u8]>;

pub(crate) struct Blocks {
    held: HashMap<u64, (Block, u64)>,
    /// Blocks by the time of their last use.
    by_use: BTreeMap<u64, u64>,
    now: u64,
    max: usize,
}

impl Blocks {
    /// Creates a cache of so many bytes, at least one block.
    pub(crate) fn new(len: u64) -> Self {
        let max = usize::try_from(len / BLOCK_LEN).unwrap_or(usize::MAX).max(1);
        Blocks { held: HashMap::new(), by_use: BTreeMap::new(), now: 0, max }
    }

    pub(crate) fn holds(&self, number: u64) -> bool {
        self.held.contains_key(&number)
    }

    pub(crate) fn get(&mut self, number: u64) -> Option<Block> {
        self.now = self.now.saturating_add(1);
        let (block, used) = self.held.get_mut(&number)?;
        self.by_use.remove(used);
        self.by_use.insert(self.now, number);
        *used = self.now;
        Some(Arc::clone(block))
    }

    pub(crate) fn insert(&mut self, number: u64, block: Block) {
        self.now = self.now.saturating_add(1);
        if let Some((_, used)) = self.held.insert(number, (block, self.now)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.now, number);
        while self.held.len() > self.max {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.held.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_used_longest_ago_goes_first() {
        let mut blocks = Blocks::new(2 * BLOCK_LEN);
        let block = |byte| Arc::from([byte].as_slice());
        blocks.insert(1, block(1));
        blocks.insert(2, block(2));
        assert_eq!(*blocks.get(1).unwrap(), [1]);
        blocks.insert(3, block(3));
        assert!(blocks.holds(1) && !blocks.holds(2) && blocks.holds(3));
        blocks.insert(3, block(4));
        assert_eq!(*blocks.get(3).unwrap(), [4]);
        assert_eq!(blocks.held.len(), blocks.by_use.len());
    }
}
