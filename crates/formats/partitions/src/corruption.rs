//! Faults of a partition table and their messages: place, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    /// Faults of a partition table; `found` is the value that it stores.
    pub(crate) enum Corruption in "partition table" {}

    Signature = "neither a boot record at 0x0 nor a GPT header is there";
    GptSignature { at: u64 } = "GPT header at {at:#x}: no \"EFI PART\"";
    HeaderSize { at: u64, found: u32, max: u64 } =
        "GPT header at {at:#x}: header size {found}, 92 to {max} allowed";
    HeaderChecksum { at: u64, found: u32, computed: u32 } =
        "GPT header at {at:#x}: checksum {found:#010x}, but it is {computed:#010x}";
    HeaderPlace { at: u64, found: u64, wanted: u64 } =
        "GPT header at {at:#x}: says it is sector {found}, but it is {wanted}";
    EntrySize { at: u64, found: u32 } =
        "GPT header at {at:#x}: entry size {found}, multiples of 8 from 128 to 4096 allowed";
    EntryCount { at: u64, found: u32 } = "GPT header at {at:#x}: {found} entries, at most 4096 allowed";
    EntriesPlace { at: u64, found: u64, len: u64, limit: u64 } =
        "GPT header at {at:#x}: {len} bytes of entries in sector {found}, which have to end by {limit:#x}";
    EntriesChecksum { at: u64, found: u32, computed: u32 } =
        "GPT entries at {at:#x}: checksum {found:#010x}, but it is {computed:#010x}";
    Backwards { number: u32, first: u64, last: u64 } =
        "partition {number}: ends with sector {last}, before it starts with {first}";
    Beyond { number: u32, end: u64, limit: u64 } =
        "partition {number}: ends at {end:#x}, but the disk at {limit:#x}" => hint TRUNCATED;
    Overlap { number: u32, other: u32 } = "partition {number}: shares sectors with partition {other}";
    LinkSignature { at: u64 } = "extended boot record at {at:#x}: no boot record is there";
    LinkPlace { at: u64, start: u64, end: u64 } =
        "extended boot record at {at:#x}: {start:#x} up to {end:#x} allowed";
    LinkAgain { at: u64 } = "extended boot record at {at:#x}: the chain returns here";
    LinkCount { max: usize } = "extended boot records: more than the {max} that are followed";
}
