//! Faults of a cloop file and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    /// Faults of a cloop file; `found` is the stored value.
    pub(crate) enum Corruption in "cloop image" {}

    Short { len: u64 } =
        "the file is {len} bytes long, 136 needed for a head"
            => hint TRUNCATED;
    Signature = "neither the head at 0x0 nor the file's end is one of a cloop";
    BlockSize { found: u32 } = "head: block size {found}, multiples of 512 from 512 to 16777216 allowed";
    IndexEnd { at: u64, rows: u64, row_len: u64, limit: u64 } =
        "index at {at:#x}: {rows} rows of {row_len} bytes, which have to end by {limit:#x}"
            => hint TRUNCATED;
    TableStart { found: u64, limit: u64 } = "tail: table at {found:#x}, which has to end by {limit:#x}";
    DiskLength { found: u64, blocks: u64, block_len: u32 } =
        "table: a disk of {found} bytes does not go with {blocks} blocks of {block_len}";
    BlockStart { block: u64, found: u64, min: u64, end: u64 } =
        "block {block}: starts at {found:#x}, {min:#x} up to {end:#x} allowed";
    BlockEnd { block: u64, start: u64, found: u64, limit: u64 } =
        "block {block}: ends at {found:#x}, after {start:#x} and up to {limit:#x} allowed"
            => hint TRUNCATED;
    BlockLength { block: u64, found: u64, max: u64 } = "block {block}: {found} bytes, 1 to {max} allowed";
    StoredLength { block: u64, found: u64, wanted: u64 } =
        "block {block}: stored uncompressed in {found} bytes, {wanted} expected";
    Method { block: u64, found: u64 } = "block {block}: method {found}, 0 (zlib) to 4 (lzo) allowed";
    Flags { block: u64, found: u32 } = "block {block}: flags {found:#x}, one of 0, 2, 4, 8 and 16 allowed";
    SizesEnd { found: u64, limit: u64 } =
        "tail: all blocks together end at {found:#x}, {limit:#x} at most allowed";
}
