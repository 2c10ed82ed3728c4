//! Every fault of an image that this reader names, and how it is said: where, found, allowed.
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become [`Error::corrupt`].

use packfs_codec::DecodeError;
use packfs_core::Error;
use packfs_core::codec::Algorithm;
use std::fmt;

/// Where in the image a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The structure, such as `inode` or `directory entry`.
    pub(crate) what: &'static str,
    /// Offset in the image: of the structure itself, or of the metadata block that holds it.
    pub(crate) at: u64,
    /// Offset within the decoded metadata block, for what lies in one.
    pub(crate) within: Option<u32>,
}

impl Place {
    /// A structure that lies in the image as it is.
    pub(crate) fn at(what: &'static str, at: u64) -> Self {
        Place { what, at, within: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.what, self.at)?;
        match self.within {
            Some(within) => write!(f, "+{within:#x}"),
            None => Ok(()),
        }
    }
}

/// A fault. Fields named `found` hold what the image says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// The file is shorter than a superblock.
    Short {
        len: u64,
        wanted: usize,
    },
    /// The magic is none of the known ones.
    Magic {
        found: u32,
    },
    /// The image says it is longer than the file.
    Truncated {
        bytes_used: u64,
        len: u64,
    },
    /// The image says it is shorter than its own superblock.
    BytesUsed {
        found: u64,
        min: u64,
    },
    BlockSize {
        found: u32,
        min: u32,
        max: u32,
    },
    /// A table's list of positions does not end before what follows.
    TableEnd {
        table: &'static str,
        start: u64,
        list_len: u64,
        limit: u64,
    },
    /// A table does not start before what follows.
    TableOrder {
        table: &'static str,
        start: u64,
        limit: u64,
    },
    /// A table starts inside the superblock.
    TableStart {
        table: &'static str,
        start: u64,
        min: u64,
    },
    /// A position in a table's list is out of its range or does not rise.
    TablePosition {
        table: &'static str,
        index: usize,
        found: u64,
        min: u64,
        end: u64,
    },
    /// A table's blocks end before this row.
    TableRow {
        place: Place,
        index: u64,
    },
    /// A reference points outside its table.
    MetadataPosition {
        place: Place,
        start: u64,
        end: u64,
    },
    MetadataLength {
        place: Place,
        found: u16,
    },
    /// What follows the header of a block of an image with the flag `check`.
    Marker {
        place: Place,
        found: u8,
    },
    MetadataOverrun {
        place: Place,
        end: u64,
        limit: u64,
    },
    MetadataDecode {
        place: Place,
        algorithm: Algorithm,
        reason: DecodeError,
    },
    MetadataEmpty {
        place: Place,
    },
    /// A reference points behind the end of the decoded block.
    MetadataOffset {
        place: Place,
        found: u32,
        len: u32,
    },
    /// A record goes on behind the last block of its table.
    RecordEnd {
        place: Place,
        wanted: u64,
        limit: u64,
    },
    InodeType {
        place: Place,
        found: u16,
    },
    InodeNumberZero {
        place: Place,
    },
    IdIndex {
        place: Place,
        table: &'static str,
        found: u16,
        count: u32,
    },
    FileLength {
        place: Place,
        found: u64,
    },
    /// A file needs more size words than the inode table can hold.
    FileWords {
        place: Place,
        words: u64,
        max: u64,
    },
    FragmentIndex {
        place: Place,
        found: u32,
        count: u32,
    },
    Tail {
        place: Place,
        start: u32,
        len: u32,
        max: u32,
    },
    SizeWord {
        place: Place,
        found: u32,
        max: u32,
    },
    DataRange {
        place: Place,
        start: u64,
        len: u64,
        min: u64,
        end: u64,
    },
    StoredLength {
        place: Place,
        found: u32,
        wanted: u32,
    },
    LinkLength {
        place: Place,
    },
    LinkNul {
        place: Place,
    },
    RunEnd {
        place: Place,
        left: u32,
        wanted: u32,
    },
    EntryType {
        place: Place,
        found: u16,
    },
    EntryName {
        place: Place,
        fault: &'static str,
    },
    /// An entry of a directory's index points behind the listing.
    IndexOffset {
        place: Place,
        found: u32,
        len: u32,
    },
    /// Structures overlap so often that all together they are longer than their table can be.
    Overlap {
        place: Place,
    },
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::Short { len, wanted } => write!(f, "superblock: {len} bytes in the file, {wanted} needed"),
            C::Magic { found } => {
                write!(f, "superblock at 0x0: magic {found:#010x}, none of an old squashfs image")
            }
            C::Truncated { bytes_used, len } => {
                write!(f, "superblock: the image is {bytes_used} bytes long, the file only {len}")
            }
            C::BytesUsed { found, min } => {
                write!(f, "superblock: image length {found}, at least {min} allowed")
            }
            C::BlockSize { found, min, max } => {
                write!(f, "superblock: block size {found}, powers of two from {min} to {max} allowed")
            }
            C::TableEnd { table, start, list_len, limit } => {
                write!(f, "{table} at {start:#x}: its list of {list_len} bytes has to end by {limit:#x}")
            }
            C::TableOrder { table, start, limit } => {
                write!(f, "{table} at {start:#x}: has to start before {limit:#x}")
            }
            C::TableStart { table, start, min } => {
                write!(f, "{table} at {start:#x}: has to start behind the superblock, at {min:#x} or later")
            }
            C::TablePosition { table, index, found, min, end } => {
                write!(f, "{table}: position {index} is {found:#x}, {min:#x} up to {end:#x} allowed")
            }
            C::TableRow { place, index } => write!(f, "{place}: ends before row {index}"),
            C::MetadataPosition { place, start, end } => {
                write!(f, "{place}: no metadata block can start there, {start:#x} up to {end:#x} allowed")
            }
            C::MetadataLength { place, found } => {
                write!(f, "{place}: stored length {found}, 1 to 8192 allowed")
            }
            C::Marker { place, found } => {
                write!(f, "{place}: marker {found:#04x} behind its header, 0xff allowed")
            }
            C::MetadataOverrun { place, end, limit } => {
                write!(f, "{place}: ends at {end:#x}, {limit:#x} at most allowed")
            }
            C::MetadataDecode { place, algorithm, reason } => write!(f, "{place}: {algorithm}: {reason}"),
            C::MetadataEmpty { place } => write!(f, "{place}: decodes to nothing, 1 to 8192 bytes allowed"),
            C::MetadataOffset { place, found, len } => {
                write!(f, "{place}: offset {found} into a block that decodes to {len} bytes")
            }
            C::RecordEnd { place, wanted, limit } => {
                write!(f, "{place}: {wanted} more bytes wanted, but the table ends at {limit:#x}")
            }
            C::InodeType { place, found } => {
                write!(f, "{place}: type {found}, which its version does not have")
            }
            C::InodeNumberZero { place } => write!(f, "{place}: inode number 0, at least 1 allowed"),
            C::IdIndex { place, table, found, count } => {
                write!(f, "{place}: owner index {found}, the image has {count} {table}")
            }
            C::FileLength { place, found } => {
                write!(f, "{place}: file length {found}, at most {} allowed", i64::MAX)
            }
            C::FileWords { place, words, max } => {
                write!(f, "{place}: the file needs {words} block sizes, the inode table can hold {max}")
            }
            C::FragmentIndex { place, found, count } => {
                write!(f, "{place}: fragment {found}, the image has {count} fragments")
            }
            C::Tail { place, start, len, max } => {
                write!(
                    f,
                    "{place}: tail of {len} bytes at {start} of its fragment, which holds {max} bytes at most"
                )
            }
            C::SizeWord { place, found, max } => write!(
                f,
                "{place}: block size word {found:#x}, lengths from 1 to {max} and the bit 0x1000000 allowed"
            ),
            C::DataRange { place, start, len, min, end } => {
                write!(f, "{place}: data of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed")
            }
            C::StoredLength { place, found, wanted } => {
                write!(f, "{place}: uncompressed block of {found} bytes, {wanted} allowed")
            }
            C::LinkLength { place } => write!(f, "{place}: link target of 0 bytes"),
            C::LinkNul { place } => write!(f, "{place}: link target with a NUL byte"),
            C::RunEnd { place, left, wanted } => {
                write!(f, "{place}: {wanted} bytes wanted, but the directory's size leaves {left}")
            }
            C::EntryType { place, found } => write!(f, "{place}: type {found}, 1 to 7 allowed"),
            C::EntryName { place, fault } => write!(f, "{place}: {fault}"),
            C::IndexOffset { place, found, len } => {
                write!(f, "{place}: offset {found} in a listing of {len} bytes")
            }
            C::Overlap { place } => {
                write!(
                    f,
                    "{place}: with all read before, it is longer than its table can be; they must overlap"
                )
            }
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Error {
        let error = Error::corrupt("squashfs-legacy image", corruption);
        match corruption {
            Corruption::Short { .. } | Corruption::Truncated { .. } => {
                error.hint("the file looks truncated; copy or download it again")
            }
            _ => error,
        }
    }
}
