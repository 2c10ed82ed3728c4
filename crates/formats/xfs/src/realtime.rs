//! Realtime section: file data on a separate device, or after the rest of the filesystem.

use crate::super_block::{SuperBlock, low_bits};
use packfs_core::{Image, Result, usize_of};
use std::ops::Range;
use std::sync::Arc;

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
                let rest = self.blocks.checked_rem(self.group_blocks).unwrap_or(0);
                // A section that cannot be is longer than every device.
                let group = 1_u64.checked_shl(self.group_log).unwrap_or(u64::MAX);
                groups.saturating_mul(group).saturating_add(rest)
            }
            _ => self.blocks,
        };
        blocks.saturating_mul(self.block_len)
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

pub(crate) struct JoinedImage {
    first: Arc<dyn Image>,
    second: Arc<dyn Image>,
}

impl JoinedImage {
    pub(crate) fn new(first: Arc<dyn Image>, second: Arc<dyn Image>) -> Self {
        JoinedImage { first, second }
    }
}

impl Image for JoinedImage {
    fn len(&self) -> u64 {
        self.first.len().saturating_add(self.second.len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let first_len = self.first.len();
        if offset >= first_len {
            return self.second.read_at(offset.saturating_sub(first_len), buf);
        }
        let room = usize_of(first_len.saturating_sub(offset)).min(buf.len());
        let (head, tail) = buf.split_at_mut(room);
        let done = self.first.read_at(offset, head)?;
        if done < head.len() || tail.is_empty() {
            return Ok(done);
        }
        Ok(done.saturating_add(self.second.read_at(0, tail)?))
    }

    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        let first_len = self.first.len();
        if offset < first_len
            && let Some(run) = self.first.next_data(offset)?
        {
            return Ok(Some(run));
        }
        let run = self.second.next_data(offset.saturating_sub(first_len))?;
        let moved = |at: u64| at.saturating_add(first_len);
        Ok(run.map(|run| moved(run.start)..moved(run.end)))
    }

    fn check_unchanged(&self) -> Result<()> {
        self.first.check_unchanged().and_then(|()| self.second.check_unchanged())
    }

    fn name(&self) -> String {
        self.first.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::MemoryImage;

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

    #[test]
    fn joined_images_are_read_across_their_border() {
        let image = |bytes: &[u8]| Arc::new(MemoryImage::new("part", bytes.to_vec()));
        let joined = JoinedImage::new(image(b"abc"), image(b"defg"));
        let mut buf = [0; 8];
        assert_eq!((joined.read_at(1, &mut buf).unwrap(), &buf[..6]), (6, &b"bcdefg"[..]));
        assert_eq!((joined.read_at(5, &mut buf).unwrap(), &buf[..2]), (2, &b"fg"[..]));
        assert_eq!((joined.len(), joined.next_data(3).unwrap()), (7, Some(3..7)));
    }
}
