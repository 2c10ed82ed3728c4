//! Runs of blocks: parts of a file, and their places.

/// Blocks of a file that follow each other on disk, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of the first one within the file.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// Number of the first one in the filesystem.
    pub(crate) block: u64,
    /// Not set for blocks that were allocated only, and read as zeros.
    pub(crate) is_written: bool,
}

/// Something that a walk meets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece {
    /// A block that describes where others are.
    Node(u64),
    Run(Run),
}
