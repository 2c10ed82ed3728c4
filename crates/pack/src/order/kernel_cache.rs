//! Model of the shared blocks that Linux's SquashFS driver keeps decoded (`fs/squashfs/cache.c`).

/// Number of these blocks (`CONFIG_SQUASHFS_FRAGMENT_CACHE_SIZE`).
pub(crate) const KERNEL_KEEPS: usize = 3;

/// FIFO: the block that came first is evicted first, used or not.
#[derive(Clone, Copy, Default)]
pub(crate) struct KernelCache {
    blocks: [Option<u32>; KERNEL_KEEPS],
    next: usize,
}

impl KernelCache {
    /// Returns true if the block had to be decoded.
    pub(crate) fn read(&mut self, block: u32) -> bool {
        let missing = !self.blocks.contains(&Some(block));
        if missing {
            self.blocks[self.next] = Some(block);
            self.next = (self.next + 1) % KERNEL_KEEPS;
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_three_blocks_is_dropped_though_it_was_used_last() {
        let mut cache = KernelCache::default();
        let missing: Vec<bool> = [1, 2, 3, 1, 4, 1].map(|block| cache.read(block)).into();
        assert_eq!(missing, [true, true, true, false, true, true]);
    }
}
