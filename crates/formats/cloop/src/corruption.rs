//! Every fault of a cloop file that this reader names, and how it is said: where, found, allowed.
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become
//! [`Error::corrupt`].

use packfs_core::Error;
use std::fmt;

/// A fault. Fields named `found` hold what the file says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// The file is shorter than a head.
    Short {
        len: u64,
    },
    /// It neither starts nor ends as a cloop.
    Signature,
    BlockSize {
        found: u32,
    },
    /// There is no room for so many rows of the index.
    IndexEnd {
        at: u64,
        rows: u64,
        row_len: u64,
        limit: u64,
    },
    /// The table of the unreleased version 3 lies outside of the file.
    TableStart {
        found: u64,
        limit: u64,
    },
    /// The disk is longer than its blocks, or shorter than all but the last of them.
    DiskLength {
        found: u64,
        blocks: u64,
        block_len: u32,
    },
    /// A block starts outside of where data may lie.
    BlockStart {
        block: u64,
        found: u64,
        min: u64,
        end: u64,
    },
    /// A block ends before it starts, or behind where data may lie.
    BlockEnd {
        block: u64,
        start: u64,
        found: u64,
        limit: u64,
    },
    BlockLength {
        block: u64,
        found: u64,
        max: u64,
    },
    /// A block that is stored as it is, of another length.
    StoredLength {
        block: u64,
        found: u64,
        wanted: u64,
    },
    Method {
        block: u64,
        found: u64,
    },
    Flags {
        block: u64,
        found: u32,
    },
    /// All blocks together do not fill the place in front of the table of their sizes.
    SizesEnd {
        found: u64,
        limit: u64,
    },
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::Short { len } => write!(f, "the file is {len} bytes long, 136 needed for a head"),
            C::Signature => write!(f, "neither the head at 0x0 nor the file's end is one of a cloop"),
            C::BlockSize { found } => {
                write!(f, "head: block size {found}, multiples of 512 from 512 to 16777216 allowed")
            }
            C::IndexEnd { at, rows, row_len, limit } => {
                write!(f, "index at {at:#x}: {rows} rows of {row_len} bytes, which have to end by {limit:#x}")
            }
            C::TableStart { found, limit } => {
                write!(f, "tail: table at {found:#x}, which has to end by {limit:#x}")
            }
            C::DiskLength { found, blocks, block_len } => {
                write!(f, "table: a disk of {found} bytes does not go with {blocks} blocks of {block_len}")
            }
            C::BlockStart { block, found, min, end } => {
                write!(f, "block {block}: starts at {found:#x}, {min:#x} up to {end:#x} allowed")
            }
            C::BlockEnd { block, start, found, limit } => {
                write!(
                    f,
                    "block {block}: ends at {found:#x}, from behind {start:#x} up to {limit:#x} allowed"
                )
            }
            C::BlockLength { block, found, max } => {
                write!(f, "block {block}: {found} bytes, 1 to {max} allowed")
            }
            C::StoredLength { block, found, wanted } => {
                write!(f, "block {block}: stored as it is in {found} bytes, {wanted} wanted")
            }
            C::Method { block, found } => {
                write!(f, "block {block}: method {found}, 0 (zlib) to 4 (lzo) allowed")
            }
            C::Flags { block, found } => {
                write!(f, "block {block}: flags {found:#x}, one of 0, 2, 4, 8 and 16 allowed")
            }
            C::SizesEnd { found, limit } => {
                write!(f, "tail: all blocks together end at {found:#x}, {limit:#x} at most allowed")
            }
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Error {
        let error = Error::corrupt("cloop image", corruption);
        match corruption {
            Corruption::Short { .. } | Corruption::BlockEnd { .. } | Corruption::IndexEnd { .. } => {
                error.hint("the file may be truncated; copy or download it again")
            }
            _ => error,
        }
    }
}
