//! Compares candidates with the bytes of a piece: the length of a stored cluster that recurs, and
//! if it may be shared.

use super::Candidate;
use crate::clusters::stored::{CutCluster, CutForm};
use crate::context::Context;
use crate::file_comparer::FileComparer;
use packfs_format::{Cluster, ClusterForm, Clusters};

/// Fewer blocks are not worth the cuts before and after them.
const BLOCKS_MIN: usize = 2;
/// Blocks of a run that are tried; more than the widened part of a region has.
const BLOCKS_TRIED: usize = 64;

pub(crate) struct Matcher<'a> {
    earlier: FileComparer<'a, Clusters>,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(context: &'a Context<'a, Clusters>) -> Self {
        Matcher { earlier: FileComparer::new(context) }
    }

    /// Returns the position in `input`, from `at` on, at which a candidate recurs, and the shared
    /// cluster. `input` starts at `piece_start` of its file.
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
        // A file that cannot be read again cannot be shared; that is no error.
        let same =
            self.earlier.same_len(candidate.node, candidate.origin + skip as u64, &rest[..most]).ok()?;
        let len = match cluster.form {
            ClusterForm::Plain => same / block_len * block_len,
            _ => same,
        };
        // The number of blocks of a cluster is stored in the index of the block after its first
        // one.
        let units = (start + len) / block_len - start / block_len;
        (len >= BLOCKS_MIN * block_len && units >= 2).then(|| shared(&cluster, skip as u32, len as u32))
    }
}

fn shared(cluster: &Cluster, skip: u32, len: u32) -> CutCluster {
    let (offset, stored_len, form) = match cluster.form {
        ClusterForm::Plain => (cluster.offset + u64::from(skip), len, ClusterForm::Plain),
        form if u64::from(len) == cluster.len => (cluster.offset, cluster.stored_len, form),
        _ => (cluster.offset, cluster.stored_len, ClusterForm::CompressedPart),
    };
    let form = CutForm::Shared(offset, form);
    CutCluster { len: len.into(), stored_len, space: 0, form, second: cluster.second }
}
