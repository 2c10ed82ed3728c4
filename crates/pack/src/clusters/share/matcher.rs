//! Compares candidates with the bytes at hand: how much of a stored cluster recurs, and whether it
//! may be shared there.

use super::Candidate;
use crate::clusters::stored::{CutCluster, CutForm};
use crate::context::Context;
use crate::same::Earlier;
use packfs_format::{Cluster, ClusterForm, Clusters};

/// Less than so many blocks are not worth the cut before and after them.
const BLOCKS_MIN: usize = 2;
/// Blocks of a run that are tried before it is given up: more than the widened part of a region
/// has.
const BLOCKS_TRIED: usize = 64;

/// See the module.
pub(crate) struct Matcher<'a> {
    earlier: Earlier<'a, Clusters>,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(context: &'a Context<'a, Clusters>) -> Self {
        Matcher { earlier: Earlier::new(context) }
    }

    /// Where in `input`, from `at` on, the beginning of a candidate recurs, and the shared cluster;
    /// `None` if too little of it does. `input` starts at `piece_start` of its file.
    pub(crate) fn find(
        &mut self,
        candidate: &Candidate,
        piece_start: u64,
        input: &[u8],
        at: usize,
        block_len: usize,
    ) -> Option<(usize, CutCluster)> {
        let start = (candidate.at - piece_start) as usize;
        if candidate.cluster.form != ClusterForm::Plain {
            let found = (start >= at).then(|| self.compare(candidate, 0, input, start, block_len))?;
            return Some((start, found?));
        }
        let first = at.saturating_sub(start).next_multiple_of(block_len);
        (0..BLOCKS_TRIED).find_map(|block| {
            let skip = first + block * block_len;
            Some((start + skip, self.compare(candidate, skip, input, start + skip, block_len)?))
        })
    }

    fn compare(
        &mut self,
        candidate: &Candidate,
        skip: usize,
        input: &[u8],
        start: usize,
        block_len: usize,
    ) -> Option<CutCluster> {
        let cluster = candidate.cluster;
        let rest = input.get(start..)?;
        let most = (cluster.len as usize).checked_sub(skip)?.min(rest.len());
        if most < BLOCKS_MIN * block_len {
            return None;
        }
        // What can no longer be read cannot be compared, and so not be shared; nothing else follows
        // from that.
        let same =
            self.earlier.same_len(candidate.node, candidate.origin + skip as u64, &rest[..most]).ok()?;
        let len = match cluster.form {
            ClusterForm::Plain => same / block_len * block_len,
            _ => same,
        };
        // Which other blocks a cluster of several blocks takes is said by an index of the block
        // after its first.
        let units = (start + len) / block_len - start / block_len;
        (len >= BLOCKS_MIN * block_len && units >= 2).then(|| shared(&cluster, skip as u32, len as u32))
    }
}

/// The row of a shared beginning.
fn shared(cluster: &Cluster, skip: u32, len: u32) -> CutCluster {
    let (offset, stored_len, form) = match cluster.form {
        ClusterForm::Plain => (cluster.offset + u64::from(skip), len, ClusterForm::Plain),
        form if u64::from(len) == cluster.len => (cluster.offset, cluster.stored_len, form),
        _ => (cluster.offset, cluster.stored_len, ClusterForm::CompressedPart),
    };
    let form = CutForm::Shared(offset, form);
    CutCluster { len: len.into(), stored_len, space: 0, form, second: cluster.second }
}
