//! Stored clusters that a piece of a file may share.

use super::Region;
use crate::clusters::files::Rows;
use packfs_core::NodeId;
use packfs_format::{Cluster, ClusterForm, Clusters, FileForm, FilePlace};
use std::ops::Range;

const RUN_LEN_MAX: u64 = 1 << 30;

/// A stored cluster, or run of plain blocks, whose beginning may recur in a piece of another file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Start in the file of the piece.
    pub at: u64,
    /// File it was stored for, and its start there.
    pub node: NodeId,
    pub origin: u64,
    pub cluster: Cluster,
}

pub(crate) struct Origin<'a> {
    pub node: NodeId,
    pub place: &'a FilePlace<Clusters>,
    pub rows: &'a Rows,
    /// End of the range whose rows are known and may be used.
    pub end: u64,
}

/// Regions are widened by `slack`. Runs can be entered at multiples of `block_len`.
pub(crate) fn candidates(
    region: &Region,
    slack: u64,
    piece: &Range<u64>,
    origin: &Origin<'_>,
    block_len: u32,
    out: &mut Vec<Candidate>,
) {
    let before = slack.min(region.at.offset - piece.start);
    let start = region.origin.offset.saturating_sub(before);
    let end = (region.origin.offset + region.len + slack).min(origin.end);
    let mut add = |from: u64, cluster: Cluster| {
        let at = (from + region.at.offset).checked_sub(region.origin.offset);
        if let Some(at) = at.filter(|at| piece.contains(at) && cluster.len > 0) {
            out.push(Candidate { at, node: origin.node, origin: from, cluster });
        }
    };
    // A run can be entered at any of its blocks.
    let unit = u64::from(block_len);
    let run = |from: u64, len: u64, offset: u64| {
        let skip = start.saturating_sub(from).next_multiple_of(unit);
        let whole = len.min(end.saturating_sub(from)) / unit * unit;
        let len = whole.saturating_sub(skip).min(RUN_LEN_MAX) as u32;
        let form = ClusterForm::Plain;
        (
            from + skip,
            Cluster { offset: offset + skip, len: len.into(), stored_len: len, form, second: false },
        )
    };
    match origin.place.form {
        FileForm::Flat => {
            let (from, cluster) = run(0, end, origin.place.start);
            add(from, cluster);
        }
        FileForm::Clusters { .. } => {
            for (from, cluster) in origin.rows.within(origin.place, start, end) {
                match cluster.form {
                    ClusterForm::Plain => {
                        let (from, cluster) = run(from, cluster.len, cluster.offset);
                        add(from, cluster);
                    }
                    ClusterForm::Compressed | ClusterForm::CompressedPart if from >= start => {
                        add(from, cluster)
                    }
                    _ => {}
                }
            }
        }
        FileForm::Chunks { .. } => {}
    }
}
