//! Faults of a VMDK image and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(super) enum Corruption in "vmdk image" {}

    Short { len: u64 } = "the file is {len} bytes long, too short for its header" => hint TRUNCATED;
    Signature { at: u64 } = "header at {at:#x}: no \"KDMV\"" => hint TRUNCATED;
    Compression { flags: u32, compression: u16 } =
        "header: flags {flags:#x} with compression {compression}, 0 without bit 16 and 1 with it allowed";
    GrainSize { found: u64 } = "header: grains of {found} sectors, powers of two from 8 to 2048 allowed";
    TableRows { found: u32 } = "header: {found} entries of a table, 1 to 512 allowed";
    Capacity { found: u64 } = "header: a disk of {found} sectors, too few or too many";
    DescriptorEnd { at: u64, len: u64, limit: u64 } =
        "descriptor at {at:#x}: {len} bytes, at most 65536 that end by {limit:#x} allowed" => hint TRUNCATED;
    DirectoryEnd { at: u64, rows: u64, limit: u64 } =
        "grain directory at {at:#x}: {rows} entries, which have to end by {limit:#x}" => hint TRUNCATED;
    TableCount { found: u64, max: u64 } = "grain directory: {found} tables, room for {max}" => hint TRUNCATED;
    TablePlace { table: u64, at: u64, limit: u64 } =
        "grain table {table}: is at {at:#x}, but the file ends at {limit:#x}" => hint TRUNCATED;
    GrainPlace { grain: u64, at: u64, len: u64, limit: u64 } =
        "grain {grain}: {len} bytes at {at:#x}, but the file ends at {limit:#x}" => hint TRUNCATED;
    PartCount { max: usize } = "descriptor: no part of the disk, or more than {max}";
    PartFile { index: usize } = "descriptor: part {index} names no file";
    PartEnd { index: usize, end: u64, limit: u64 } =
        "descriptor: part {index} ends at {end:#x} of its file, which ends at {limit:#x}" => hint TRUNCATED;
    GrainHead { grain: u64, at: u64, found: u64, first: u64, len: u32 } =
        "grain {grain} at {at:#x}: its head says {len} bytes from sector {found} on, which has to be {first}";
}
