//! Runs of blocks: parts of a file, and their addresses.

/// Blocks of a file that are contiguous on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) block: u64,
    /// Not set for allocated blocks that read as zeros.
    pub(crate) is_written: bool,
}

/// Element that a walk reports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece {
    /// A block of the map.
    Node(u64),
    Run(Run),
}
