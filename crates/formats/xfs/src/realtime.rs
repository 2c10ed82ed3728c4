//! Realtime section: file data on a separate device, or after the rest of the filesystem.

use crate::super_block::{SuperBlock, low_bits};
use packfs_format::units::*;

pub(crate) struct Realtime {
    /// Offset of the first block in the data image; `None` if its device is missing.
    start: Option<u64>,
    block_len: u64,
    blocks: u64,
    /// Blocks of a group, and bits of the block number within it; 0 without groups.
    group_blocks: u64,
    group_log: u32,
    /// True if groups are aligned to powers of two in offsets.
    has_gaps: bool,
}

impl Realtime {
    pub(crate) fn new(super_block: &SuperBlock, start: Option<u64>) -> Self {
        Realtime {
            start,
            block_len: super_block.block_len,
            blocks: super_block.rt_blocks,
            group_blocks: super_block.rt_group_blocks,
            group_log: super_block.rt_group_log,
            has_gaps: super_block.has(crate::features::ZONE_GAPS),
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.start.is_some()
    }

    pub(crate) fn len(&self) -> u64 {
        let blocks = match (self.has_gaps, self.blocks.checked_div(self.group_blocks)) {
            (true, Some(groups)) => {
                // A section that cannot be is longer than every device.
                let group = 1_u64.checked_shl(self.group_log).unwrap_or(u64::MAX);
                nth_at(self.blocks.remainder(self.group_blocks), groups, group)
            }
            _ => self.blocks,
        };
        nth_at(0, blocks, self.block_len)
    }

    /// Returns the offset of `count` blocks within the section; `None` if they exceed it.
    pub(crate) fn blocks_at(&self, block: u64, count: u64) -> Option<u64> {
        let first = match self.group_blocks {
            0 => block,
            group_blocks => {
                let group = block >> self.group_log;
                let within = block & low_bits(self.group_log);
                if within.checked_add(count)? > group_blocks {
                    return None;
                }
                if self.has_gaps { block } else { group.checked_mul(group_blocks)?.checked_add(within)? }
            }
        };
        let is_inside = self.has_gaps || first.checked_add(count)? <= self.blocks;
        first.checked_mul(self.block_len).filter(|_| is_inside)
    }

    /// Returns the offset of `count` blocks in the data image; `None` if the section is missing.
    pub(crate) fn data_at(&self, block: u64, count: u64) -> Option<u64> {
        self.start?.checked_add(self.blocks_at(block, count)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(group_blocks: u64, has_gaps: bool) -> Realtime {
        Realtime { start: Some(1 << 20), block_len: 4096, blocks: 300, group_blocks, group_log: 7, has_gaps }
    }

    #[test]
    fn blocks_of_groups_follow_each_other() {
        assert_eq!(section(0, false).data_at(299, 1), Some((1 << 20) + 299 * 4096));
        assert_eq!(section(0, false).data_at(299, 2), None);
        assert_eq!(section(100, false).blocks_at(2 << 7 | 99, 1), Some(299 * 4096));
        assert_eq!(section(100, false).blocks_at(2 << 7 | 99, 2), None);
        assert_eq!(section(100, true).blocks_at(2 << 7 | 99, 1), Some((256 + 99) * 4096));
        assert_eq!(Realtime { start: None, ..section(0, false) }.data_at(0, 1), None);
    }
}
