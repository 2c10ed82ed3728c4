//! What every part of the engine needs to know of the whole: the tree, its contents and the plan.

use packfs_codec::CodecSettings;
use packfs_core::{ContentReader, Contents, Error, NodeId, NodeKind, Result, Tree};
use packfs_format::{DataKind, FileJob, Plan};
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

impl Piece {
    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// A kind of data, with the facts of its plans that ordering and comparing files depend on.
pub(crate) trait Kind: DataKind {
    /// Returns the unit of data in the image.
    fn block_len(plan: &Self::Plan) -> u32;

    /// Returns true if all of a file of `len` bytes goes where other files go, too.
    fn shares_whole(plan: &Self::Plan, storage: Self::Storage, len: u64) -> bool;

    /// Returns true if a file is compared with others while it is packed, as one tail, and needs no
    /// look before.
    fn is_compared_as_tail(plan: &Self::Plan, storage: Self::Storage, len: u64) -> bool;

    /// Returns true if a file must not be compressed and serves all that have the same contents.
    fn is_flat(storage: Self::Storage) -> bool;

    /// Returns the first of the files for data that a file may lie in.
    fn data_file(storage: Self::Storage) -> u16;

    /// Returns about how much input is compressed together of files that share their place, and the
    /// codec if it is.
    fn shared_window(plan: &Self::Plan) -> (u32, Option<&CodecSettings>);

    /// Returns the length of shared blocks if readers keep only a few of them decoded.
    fn shared_block_len(plan: &Self::Plan) -> Option<u64>;
}

/// Files of a plan that share no block with those before them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Boundaries {
    /// Number of the first files that are among [`Plan::first_used`].
    pub first_used: u32,
    /// Indexes of files at which a stretch of the tree starts, in order.
    pub stretch_starts: Vec<u32>,
}

impl Boundaries {
    /// Returns all of them, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.first_used).chain(self.stretch_starts.iter().copied())
    }
}

/// What a task needs to know of the whole.
pub(crate) struct Context<'a, K: DataKind> {
    pub tree: &'a Tree,
    pub contents: &'a dyn Contents,
    pub plan: &'a Plan<K>,
    pub boundaries: &'a Boundaries,
}

impl<K: DataKind> Context<'_, K> {
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

    pub(crate) fn job(&self, piece: &Piece) -> &FileJob<K> {
        &self.plan.files[piece.job as usize]
    }

    pub(crate) fn node(&self, job: u32) -> NodeId {
        self.plan.files[job as usize].node
    }
}

impl<K: Kind> Context<'_, K> {
    /// Whether a file is compared with others while it is packed, as one tail, and needs no look
    /// before.
    pub(crate) fn is_compared_as_tail(&self, job: &FileJob<K>) -> bool {
        K::is_compared_as_tail(&self.plan.data, job.storage, self.len(job.node))
    }

    /// Whether all of a file goes into blocks that other files share.
    pub(crate) fn shares_whole(&self, job: &FileJob<K>) -> bool {
        K::shares_whole(&self.plan.data, job.storage, self.len(job.node))
    }
}

/// Whether all bytes are zero; looks at the first few before it looks at all.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(bytes.len().min(16));
    head.iter().all(|&b| b == 0)
        && rest.chunks(4096).all(|chunk| chunk.iter().fold(0, |acc, &b| acc | b) == 0)
}
