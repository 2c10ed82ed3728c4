//! The faults that an image of any generation can have, and how they are said: where, found,
//! allowed.
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become
//! [`Error::corrupt`].

use crate::place::Place;
use packfs_codec::Algorithm;
use packfs_codec::DecodeError;
use packfs_core::Error;
use std::fmt;

/// A fault. Fields named `found` hold what the image says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The messages below say what each field is.
pub(crate) enum MetadataFault {
    /// A table's list of positions does not end before what follows.
    TableEnd { table: &'static str, start: u64, list_len: u64, limit: u64 },
    /// A table does not start before what follows.
    TableOrder { table: &'static str, start: u64, limit: u64 },
    /// A table starts inside the superblock.
    TableStart { table: &'static str, start: u64, min: u64 },
    /// A position in a table's list is out of its range or does not rise.
    TablePosition { table: &'static str, index: usize, found: u64, min: u64, end: u64 },
    /// A table's blocks end before this row.
    TableRow { place: Place, index: u64 },
    /// A reference points outside its table.
    MetadataPosition { place: Place, start: u64, end: u64 },
    /// The header of a metadata block.
    MetadataLength { place: Place, found: u16 },
    /// What follows the header of a block of an image with the flag `check`.
    Marker { place: Place, found: u8 },
    /// A metadata block goes on behind the end of its table.
    MetadataOverrun { place: Place, end: u64, limit: u64 },
    /// A metadata block that does not decode.
    MetadataDecode { place: Place, algorithm: Algorithm, reason: DecodeError },
    /// A metadata block that decodes to no bytes.
    MetadataEmpty { place: Place },
    /// A reference points behind the end of the decoded block.
    MetadataOffset { place: Place, found: u32, len: u32 },
    /// A record goes on behind the last block of its table.
    RecordEnd { place: Place, wanted: u64, limit: u64 },
    /// An inode with a number that means none.
    InodeNumberZero { place: Place },
    /// A file longer than any can be.
    FileLength { place: Place, found: u64 },
    /// A file needs more size words than the inode table can hold.
    FileWords { place: Place, words: u64, max: u64 },
    /// A file's tail is in a fragment that is not there.
    FragmentIndex { place: Place, found: u32, count: u32 },
    /// A file's tail ends behind the end of its fragment.
    Tail { place: Place, start: u32, len: u32, max: u32 },
    /// A fragment without a byte.
    EmptyFragment { place: Place },
    /// Data outside the part of the image that holds data.
    DataRange { place: Place, start: u64, len: u64, min: u64, end: u64 },
    /// A block that is stored as it is, with another length than the file has there.
    StoredLength { place: Place, found: u32, wanted: u32 },
    /// The target of a symbolic link.
    LinkNul { place: Place },
    /// More entries below a header than there can be.
    RunCount { place: Place, found: u32 },
    /// A listing goes on behind the length that its directory gives it.
    RunEnd { place: Place, left: u32, wanted: u32 },
    /// A directory entry's type.
    EntryType { place: Place, found: u16 },
    /// A directory entry's name.
    EntryName { place: Place, fault: &'static str },
    /// An entry of a directory's index points behind the listing.
    IndexOffset { place: Place, found: u32, len: u32 },
    /// The name in an entry of a directory's index.
    IndexName { place: Place, found: u32 },
    /// Structures overlap so often that all together they are longer than their table can be.
    Overlap { place: Place },
    /// Directories name more inodes than there can be.
    Inodes { max: u64 },
}

impl fmt::Display for MetadataFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use MetadataFault as F;
        match *self {
            F::TableEnd { table, start, list_len, limit } => {
                write!(f, "{table} at {start:#x}: its list of {list_len} bytes has to end by {limit:#x}")
            }
            F::TableOrder { table, start, limit } => {
                write!(f, "{table} at {start:#x}: has to start before {limit:#x}")
            }
            F::TableStart { table, start, min } => {
                write!(f, "{table} at {start:#x}: has to start behind the superblock, at {min:#x} or later")
            }
            F::TablePosition { table, index, found, min, end } => {
                write!(f, "{table}: position {index} is {found:#x}, {min:#x} up to {end:#x} allowed")
            }
            F::TableRow { place, index } => write!(f, "{place}: ends before row {index}"),
            F::MetadataPosition { place, start, end } => {
                write!(f, "{place}: no metadata block can start there, {start:#x} up to {end:#x} allowed")
            }
            F::MetadataLength { place, found } => {
                write!(f, "{place}: stored length {found}, 1 to 8192 allowed")
            }
            F::Marker { place, found } => {
                write!(f, "{place}: marker {found:#04x} behind its header, 0xff allowed")
            }
            F::MetadataOverrun { place, end, limit } => {
                write!(f, "{place}: ends at {end:#x}, {limit:#x} at most allowed")
            }
            F::MetadataDecode { place, algorithm, reason } => write!(f, "{place}: {algorithm}: {reason}"),
            F::MetadataEmpty { place } => write!(f, "{place}: decodes to nothing, 1 to 8192 bytes allowed"),
            F::MetadataOffset { place, found, len } => {
                write!(f, "{place}: offset {found} into a block that decodes to {len} bytes")
            }
            F::RecordEnd { place, wanted, limit } => {
                write!(f, "{place}: {wanted} more bytes wanted, but the table ends at {limit:#x}")
            }
            F::InodeNumberZero { place } => write!(f, "{place}: inode number 0, at least 1 allowed"),
            F::FileLength { place, found } => {
                write!(f, "{place}: file length {found}, at most {} allowed", i64::MAX)
            }
            F::FileWords { place, words, max } => {
                write!(f, "{place}: the file needs {words} block sizes, the inode table can hold {max}")
            }
            F::FragmentIndex { place, found, count } => {
                write!(f, "{place}: fragment {found}, the image has {count} fragments")
            }
            F::Tail { place, start, len, max } => write!(
                f,
                "{place}: tail of {len} bytes at {start} of its fragment, which holds {max} bytes at most"
            ),
            F::EmptyFragment { place } => write!(f, "{place}: stored length 0, at least 1 allowed"),
            F::DataRange { place, start, len, min, end } => {
                write!(f, "{place}: data of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed")
            }
            F::StoredLength { place, found, wanted } => {
                write!(f, "{place}: uncompressed block of {found} bytes, {wanted} allowed")
            }
            F::LinkNul { place } => write!(f, "{place}: link target with a NUL byte"),
            F::RunCount { place, found } => write!(f, "{place}: {found} entries, 1 to 256 allowed"),
            F::RunEnd { place, left, wanted } => {
                write!(f, "{place}: {wanted} bytes wanted, but the directory's size leaves {left}")
            }
            F::EntryType { place, found } => write!(f, "{place}: type {found}, 1 to 7 allowed"),
            F::EntryName { place, fault } => write!(f, "{place}: {fault}"),
            F::IndexOffset { place, found, len } => {
                write!(f, "{place}: offset {found} in a listing of {len} bytes")
            }
            F::IndexName { place, found } => write!(f, "{place}: name of {found} bytes, 1 to 256 allowed"),
            F::Overlap { place } => write!(
                f,
                "{place}: with all read before, it is longer than its table can be; they must overlap"
            ),
            F::Inodes { max } => {
                write!(f, "more inodes than the {max} that its superblock and inode table allow")
            }
        }
    }
}

impl From<MetadataFault> for Error {
    fn from(fault: MetadataFault) -> Error {
        match fault {
            MetadataFault::MetadataDecode { reason, .. } => reason.of("squashfs image", fault),
            _ => Error::corrupt("squashfs image", fault),
        }
    }
}
