//! Every fault of a partition table that this reader names, and how it is said: where, found,
//! allowed.
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become
//! [`Error::corrupt`].

use packfs_core::Error;
use std::fmt;

/// A fault. Fields named `found` hold what the table says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// There is no table at all.
    Signature,
    /// A header of a GPT that does not start like one.
    GptSignature {
        at: u64,
    },
    HeaderSize {
        at: u64,
        found: u32,
        max: u64,
    },
    HeaderChecksum {
        at: u64,
        found: u32,
        computed: u32,
    },
    HeaderPlace {
        at: u64,
        found: u64,
        wanted: u64,
    },
    EntrySize {
        at: u64,
        found: u32,
    },
    EntryCount {
        at: u64,
        found: u32,
    },
    EntriesPlace {
        at: u64,
        found: u64,
        len: u64,
        limit: u64,
    },
    EntriesChecksum {
        at: u64,
        found: u32,
        computed: u32,
    },
    /// A partition ends before it starts.
    Backwards {
        number: u32,
        first: u64,
        last: u64,
    },
    /// A partition ends behind the disk.
    Beyond {
        number: u32,
        end: u64,
        limit: u64,
    },
    /// Two partitions share sectors.
    Overlap {
        number: u32,
        other: u32,
    },
    /// A link of the chain of logical partitions is no boot record.
    LinkSignature {
        at: u64,
    },
    /// A link lies outside of the extended partition.
    LinkPlace {
        at: u64,
        start: u64,
        end: u64,
    },
    /// A link was there before.
    LinkAgain {
        at: u64,
    },
    /// There are more links than anybody makes.
    LinkCount {
        max: usize,
    },
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::Signature => write!(f, "neither a boot record at 0x0 nor a GPT header is there"),
            C::GptSignature { at } => write!(f, "GPT header at {at:#x}: no \"EFI PART\""),
            C::HeaderSize { at, found, max } => {
                write!(f, "GPT header at {at:#x}: header size {found}, 92 to {max} allowed")
            }
            C::HeaderChecksum { at, found, computed } => {
                write!(f, "GPT header at {at:#x}: checksum {found:#010x}, but it is {computed:#010x}")
            }
            C::HeaderPlace { at, found, wanted } => {
                write!(f, "GPT header at {at:#x}: says it is sector {found}, but it is {wanted}")
            }
            C::EntrySize { at, found } => {
                write!(
                    f,
                    "GPT header at {at:#x}: entry size {found}, multiples of 8 from 128 to 4096 allowed"
                )
            }
            C::EntryCount { at, found } => {
                write!(f, "GPT header at {at:#x}: {found} entries, at most 4096 allowed")
            }
            C::EntriesPlace { at, found, len, limit } => write!(
                f,
                "GPT header at {at:#x}: {len} bytes of entries in sector {found}, which have to end by {limit:#x}"
            ),
            C::EntriesChecksum { at, found, computed } => {
                write!(f, "GPT entries at {at:#x}: checksum {found:#010x}, but it is {computed:#010x}")
            }
            C::Backwards { number, first, last } => {
                write!(f, "partition {number}: ends with sector {last}, before it starts with {first}")
            }
            C::Beyond { number, end, limit } => {
                write!(f, "partition {number}: ends at {end:#x}, but the disk at {limit:#x}")
            }
            C::Overlap { number, other } => {
                write!(f, "partition {number}: shares sectors with partition {other}")
            }
            C::LinkSignature { at } => write!(f, "extended boot record at {at:#x}: no boot record is there"),
            C::LinkPlace { at, start, end } => {
                write!(f, "extended boot record at {at:#x}: {start:#x} up to {end:#x} allowed")
            }
            C::LinkAgain { at } => write!(f, "extended boot record at {at:#x}: the chain comes here again"),
            C::LinkCount { max } => write!(f, "extended boot records: more than the {max} that are followed"),
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Error {
        let error = Error::corrupt("partition table", corruption);
        match corruption {
            Corruption::Beyond { .. } => error.hint("the file looks truncated; copy or download it again"),
            _ => error,
        }
    }
}
