//! Faults of a partition table and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(crate) enum Corruption in "partition table" {}

    Signature = "neither a boot record at 0x0 nor a GPT header exists";
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
    Unprotected = "a GPT is at 0x200 or 0x1000, but the boot record has no entry of type 0xee at sector 1, so that \
        it does not count" => hint "--partition-table gpt reads it";
    Start { number: u32 } = "partition {number}: starts with sector 0, where the table is";
    NoSectors { number: u32, kind: u8 } = "partition {number}: type {kind:#04x} without sectors";
    NoKind { number: u32, count: u32 } =
        "partition {number}: type 0x00, which marks an unused entry, with {count} sectors";
    Backwards { number: u32, first: u64, last: u64 } =
        "partition {number}: ends with sector {last}, before it starts with {first}";
    Beyond { number: u32, end: u64, limit: u64 } =
        "partition {number}: ends at {end:#x}, but the disk at {limit:#x}" => hint TRUNCATED;
    Overlap { number: u32, other: u32 } = "partition {number}: shares sectors with partition {other}";
    Covers { number: u32, what: &'static str, at: u64 } = "partition {number}: covers the {what} at {at:#x}";
    LinkSignature { at: u64 } = "extended boot record at {at:#x}: it has no signature" => hint TRUNCATED;
    LinkPlace { at: u64, start: u64, end: u64 } =
        "extended boot record at {at:#x}: {start:#x} up to {end:#x} allowed";
    LinkAgain { at: u64 } = "extended boot record at {at:#x}: the chain returns here";
    LinkCount { max: usize } = "extended boot records: more than the {max} that are followed";
}
