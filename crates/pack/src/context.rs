//! Inputs of all stages of an engine: the tree, its contents and the plan.

use packfs_codec::CodecSettings;
use packfs_core::{ContentReader, Contents, Error, ErrorKind, NodeId, NodeKind, Result, Tree};
use packfs_format::{DataKind, FileJob, Plan};
use std::ops::Range;

/// A range of one file: whole blocks, or up to the end of the file.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub job: u32,
    /// Range in the file; starts at a block boundary.
    pub range: Range<u64>,
    pub last: bool,
    /// True if the source reports the range as a hole; it is not read then.
    pub is_hole: bool,
}

impl Piece {
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

pub(crate) trait Kind: DataKind {
    /// Returns the unit of data in the image.
    fn block_len(plan: &Self::Plan) -> u32;

    /// Returns true if a file of `len` bytes is stored entirely in shared blocks.
    fn shares_whole(plan: &Self::Plan, storage: Self::Storage, len: u64) -> bool;

    /// Returns the length of the end of a file, or of the whole file, that goes into shared blocks.
    fn shared_len(plan: &Self::Plan, storage: Self::Storage, len: u64) -> u64 {
        if Self::shares_whole(plan, storage, len) { len } else { 0 }
    }

    /// Returns true if a file is compared as a tail while it is packed, not before.
    fn is_compared_as_tail(plan: &Self::Plan, storage: Self::Storage, len: u64) -> bool;

    /// Returns true if a file must not be compressed and represents all files with the same
    /// contents.
    fn is_flat(storage: Self::Storage) -> bool;

    /// Returns the number of the first data file that may hold the file.
    fn data_file(storage: Self::Storage) -> u16;

    /// Returns about how much input of files in shared blocks is compressed together, and the codec
    /// if compressed.
    fn shared_window(plan: &Self::Plan) -> (u32, Option<&CodecSettings>);

    /// Returns the length of shared blocks if readers keep only a few of them decoded.
    fn shared_block_len(plan: &Self::Plan) -> Option<u64>;
}

/// Files of a plan that share no block with earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Boundaries {
    /// Number of files at the beginning that belong to [`Plan::first_used`].
    pub first_used: u32,
    /// Indexes of files at which a range of the tree starts, in order.
    pub stretch_starts: Vec<u32>,
    /// Small files that are stored although an equal one is, because that one lies far away;
    /// ascending.
    pub stored_again: Vec<NodeId>,
}

impl Boundaries {
    pub(crate) fn is_stored_again(&self, node: NodeId) -> bool {
        self.stored_again.binary_search_by_key(&node.index(), |other| other.index()).is_ok()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.first_used).chain(self.stretch_starts.iter().copied())
    }
}

pub(crate) struct Context<'a, K: DataKind> {
    pub tree: &'a Tree,
    pub contents: &'a dyn Contents,
    pub plan: &'a Plan<K>,
    pub boundaries: &'a Boundaries,
}

impl<K: DataKind> Context<'_, K> {
    pub(crate) fn open(&self, node: NodeId) -> Result<Box<dyn ContentReader + '_>> {
        match self.tree.node(node).kind {
            NodeKind::File { content, .. } if self.contents.names_files() => self.contents.open(content),
            NodeKind::File { content, .. } => {
                let inner = self.contents.open(content).map_err(|error| named(self.tree, node, error))?;
                Ok(Box::new(NamedReader { inner, tree: self.tree, node }))
            }
            _ => Err(Error::failed("cannot open contents: not a regular file")),
        }
    }

    pub(crate) fn place(&self, node: NodeId) -> Option<Box<[u64]>> {
        match self.tree.node(node).kind {
            NodeKind::File { content, .. } => self.contents.place(content),
            _ => None,
        }
    }

    pub(crate) fn len(&self, node: NodeId) -> u64 {
        match self.tree.node(node).kind {
            NodeKind::File { len, .. } => len,
            _ => 0,
        }
    }

    /// Bytes, holes included.
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
    pub(crate) fn shared_len(&self, job: &FileJob<K>) -> u64 {
        K::shared_len(&self.plan.data, job.storage, self.len(job.node))
    }

    pub(crate) fn is_compared_as_tail(&self, job: &FileJob<K>) -> bool {
        K::is_compared_as_tail(&self.plan.data, job.storage, self.len(job.node))
    }

    pub(crate) fn shares_whole(&self, job: &FileJob<K>) -> bool {
        K::shares_whole(&self.plan.data, job.storage, self.len(job.node))
    }
}

/// Tests the first few bytes before the rest, for speed.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(bytes.len().min(16));
    head.iter().all(|&b| b == 0)
        && rest.chunks(4096).all(|chunk| chunk.iter().fold(0, |acc, &b| acc | b) == 0)
}

/// A file of a source that does not know its path.
struct NamedReader<'a> {
    inner: Box<dyn ContentReader + 'a>,
    tree: &'a Tree,
    node: NodeId,
}

impl ContentReader for NamedReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_exact_at(offset, buf).map_err(|error| named(self.tree, self.node, error))
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        self.inner.next_data(offset).map_err(|error| named(self.tree, self.node, error))
    }

    fn check_unchanged(&mut self) -> Result<()> {
        self.inner.check_unchanged()
    }
}

/// Names the file in an error about the image that it lies in.
fn named(tree: &Tree, node: NodeId, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Failed | ErrorKind::Unsupported => {
            error.at(format_args!("{:?}", tree.path(node)))
        }
        _ => error,
    }
}
