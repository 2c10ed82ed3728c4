//! Reference counts: a writer would overwrite a cluster with more uses than its count. Counted
//! clusters without a use are left to `qemu-img check`.

use crate::volume::QcowVolume;
use packfs_core::{Result, range_at, usize_of};
use packfs_format::check::{Report, Tally};
use packfs_format::units::*;

/// A block of reference counts: its number, and its bytes if it exists.
type Block = (u64, Option<Vec<u8>>);

impl QcowVolume {
    pub(super) fn check_refcounts(&self, report: &mut Report<'_>) -> Result<()> {
        let cluster_bits = self.top.geometry.cluster_bits;
        // Each use adds one from its first cluster on, and subtracts it after its last.
        let mut changes: Vec<(u64, bool)> = Vec::new();
        let end = self.top.geometry.image_len;
        self.each_claim(&mut |range, _| {
            let last = left(range.end.min(end), 1);
            if range.start < range.end.min(end) {
                changes.push((range.start >> cluster_bits, true));
                changes.push(((last >> cluster_bits).plus(1), false));
            }
        })?;
        changes.sort_unstable();
        let mut uses = 0_u64;
        let mut block = (u64::MAX, None);
        let mut wrong = Tally::default();
        for pair in changes.windows(2) {
            let &[(cluster, is_more), (next, _)] = pair else { continue };
            uses = if is_more { uses.plus(1) } else { uses.minus(1) };
            for cluster in (cluster..next).take_while(|_| uses > 0) {
                let count = self.refcount(cluster, &mut block)?;
                if count < uses {
                    let at = cluster << cluster_bits;
                    wrong.add(|| format!("the cluster at {at:#x}, used {uses} times, counted {count} times"));
                }
            }
        }
        wrong.error(report, "reference counts", "clusters used more often than they are counted");
        Ok(())
    }

    fn refcount(&self, cluster: u64, block: &mut Block) -> Result<u64> {
        let geometry = &self.top.geometry;
        let (cluster_len, order) = (geometry.cluster_len(), geometry.refcount_order);
        let per_block = cluster_len.times(8) >> order;
        let number = cluster.quotient(per_block);
        if block.0 != number {
            *block = (number, self.refcount_block(number)?);
        }
        let Some(bytes) = &block.1 else { return Ok(0) };
        let bit = cluster.remainder(per_block) << order;
        let at = usize_of(bit / 8);
        let word = bytes.within(at..at.plus(1 << left(order, 3)));
        let count = word.iter().fold(0, |count, byte| count << 8 | u64::from(*byte));
        let mask = if order < 3 { (1_u64 << (1_u32 << order)).wrapping_sub(1) } else { u64::MAX };
        Ok(count >> (bit % 8) & mask)
    }

    /// `None` if the block does not exist.
    fn refcount_block(&self, number: u64) -> Result<Option<Vec<u8>>> {
        let geometry = &self.top.geometry;
        let row = range_at(geometry.refcounts.start.plus(number.times(8)), 8);
        if row.end > geometry.refcounts.end.min(geometry.image_len) {
            return Ok(None);
        }
        let mut raw = [0; 8];
        self.image.read_exact_at(row.start, &mut raw)?;
        let at = u64::from_be_bytes(raw) & crate::space::REFCOUNT_OFFSET_MASK;
        let mut bytes = vec![0; usize_of(geometry.cluster_len())];
        if at == 0 || range_at(at, geometry.cluster_len()).end > geometry.image_len {
            return Ok(None);
        }
        self.image.read_exact_at(at, &mut bytes)?;
        Ok(Some(bytes))
    }
}
