//! Faults of a VHDX image and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(super) enum Corruption in "vhdx image" {}

    Signature = "no \"vhdxfile\" at 0x0";
    Headers = "neither header at 0x10000 and 0x20000 is sound" => hint TRUNCATED;
    RegionTables = "neither table of regions at 0x30000 and 0x40000 is sound" => hint TRUNCATED;
    RegionCount { found: u32 } = "table of regions: {found} entries, at most 2047 allowed";
    RegionMissing { what: &'static str } = "table of regions: no {what}";
    RegionEnd { what: &'static str, at: u64, len: u64, limit: u64 } =
        "{what} at {at:#x}: {len} bytes, which have to end by {limit:#x}" => hint TRUNCATED;
    MetadataSignature { at: u64 } = "metadata at {at:#x}: no \"metadata\"";
    MetadataCount { found: u16 } = "metadata: {found} entries, at most 2047 allowed";
    ItemMissing { what: &'static str } = "metadata: no {what}";
    ItemPlace { what: &'static str, at: u64, len: u32, limit: u64 } =
        "metadata: {len} bytes of {what} at {at:#x}, which have to end by {limit:#x}";
    BlockSize { found: u32 } = "metadata: block size {found}, powers of two from 1048576 to 268435456 allowed";
    SectorSize { found: u32 } = "metadata: sector size {found}, 512 and 4096 allowed";
    DiskLength { found: u64, max: u64 } = "metadata: a disk of {found} bytes, up to {max} allowed";
    TableEnd { at: u64, rows: u64, limit: u64 } =
        "block table at {at:#x}: {rows} entries, which have to end by {limit:#x}";
    BlockState { block: u64, found: u64 } = "block {block}: state {found}, 0 to 3 and 6 allowed";
    BlockPlace { block: u64, at: u64, limit: u64 } =
        "block {block}: is at {at:#x}, but the file ends at {limit:#x}" => hint TRUNCATED;
    LogPlace { at: u64, len: u64, limit: u64 } =
        "log at {at:#x}: {len} bytes, multiples of 1048576 that end by {limit:#x} allowed";
    LogEmpty { at: u64 } = "log at {at:#x}: the image was not closed, but no change is sound"
        => hint "qemu-img check -r all FILE closes it without them";
    LogChange { at: u64, found: u64 } = "log at {at:#x}: a change of byte {found:#x}, multiples of 4096 allowed";
    LogEntry { at: u64, sequence: u64, fault: &'static str } = "log at {at:#x}: entry {sequence}: {fault}";
    LogLength { found: u64, limit: u64 } =
        "log: the file was {found} bytes long, and is {limit}" => hint TRUNCATED;
}
