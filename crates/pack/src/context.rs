//! What every part of the engine needs to know of the whole: the tree, its contents and the plan.

use crate::base::{Reuse, Trust};
use packfs_core::{ContentReader, Contents, Error, NodeId, NodeKind, Result, Tree, Witnessed};
use packfs_format::{Cut, FileJob, Plan, Tail};
use std::ops::Range;

/// A stretch of one file: whole blocks, or up to the file's end with its tail.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Index of the file in the plan.
    pub job: u32,
    /// Which bytes of the file; starts at a block boundary.
    pub range: Range<u64>,
    /// Whether `range` ends where the file ends.
    pub last: bool,
    /// True if the source says that all of it is a hole, so that nothing of it is read.
    pub is_hole: bool,
}

/// What a task needs to know of the whole.
pub(crate) struct Context<'a> {
    pub tree: &'a Tree,
    pub contents: &'a dyn Contents,
    pub plan: &'a Plan,
    /// What may be copied from an earlier image.
    pub reuse: Option<&'a Reuse<'a>>,
}

impl Context<'_> {
    pub(crate) fn block_len(&self) -> u64 {
        match &self.plan.cut {
            Cut::FixedInput { block_len } => u64::from(*block_len),
            Cut::FixedOutput(cut) => u64::from(cut.block_len),
        }
    }

    pub(crate) fn open(&self, node: NodeId) -> Result<Box<dyn ContentReader + '_>> {
        match self.tree.node(node).kind {
            NodeKind::File { content, .. } => self.contents.open(content),
            _ => Err(Error::failed("internal: only files have contents")),
        }
    }

    pub(crate) fn len(&self, node: NodeId) -> u64 {
        match self.tree.node(node).kind {
            NodeKind::File { len, .. } => len,
            _ => 0,
        }
    }

    /// Bytes of all files of the plan, holes included.
    pub(crate) fn bytes_total(&self) -> u64 {
        self.plan.files.iter().fold(0, |sum, job| sum.saturating_add(self.len(job.node)))
    }

    pub(crate) fn node(&self, job: u32) -> NodeId {
        self.plan.files[job as usize].node
    }

    /// Whether all that a file shares with others stays where it is in a block of the base.
    pub(crate) fn keeps_tail_of(&self, node: NodeId) -> bool {
        self.reuse.is_some_and(|reuse| reuse.keeps_tail_of(node))
    }

    /// What is known of bytes of a file that stay where they are in the base.
    pub(crate) fn kept_is_known(&self, node: NodeId) -> Witnessed {
        let found = self.reuse.and_then(|reuse| reuse.match_of(node));
        match found.map(|found| found.trust) {
            Some(Trust::Blind) => Witnessed::Nothing,
            _ => Witnessed::Decodable,
        }
    }

    /// Whether a file is compared with others while it is packed, as one tail, and needs no look before.
    pub(crate) fn is_compared_as_tail(&self, job: &FileJob) -> bool {
        match &self.plan.cut {
            Cut::FixedInput { .. } => self.shares_whole(job),
            Cut::FixedOutput(cut) => crate::clusters::is_compared_as_tail(cut, job, self.len(job.node)),
        }
    }

    /// Whether all of a file goes into blocks that other files share.
    pub(crate) fn shares_whole(&self, job: &FileJob) -> bool {
        match &self.plan.cut {
            Cut::FixedInput { .. } => job.tail != Tail::Own && self.len(job.node) < self.block_len(),
            Cut::FixedOutput(cut) => crate::clusters::shares_whole(cut, job, self.len(job.node)),
        }
    }

    /// With [`Cut::FixedInput`]: length of the part of a file that goes into a shared block; 0: none.
    pub(crate) fn shared_tail_len(&self, job: u32) -> u64 {
        let job = self.plan.files[job as usize];
        match job.tail {
            Tail::Own | Tail::Inline => 0,
            Tail::Shared => self.len(job.node) % self.block_len(),
            Tail::SharedWhole => self.len(job.node),
        }
    }
}

/// Whether all bytes are zero; looks at the first few before it looks at all.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(bytes.len().min(16));
    head.iter().all(|&b| b == 0)
        && rest.chunks(4096).all(|chunk| chunk.iter().fold(0, |acc, &b| acc | b) == 0)
}
