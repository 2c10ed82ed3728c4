//! Faults of an Android sparse image and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(super) enum Corruption in "android-sparse image" {}

    Short { len: u64 } = "the file is {len} bytes long, 28 needed for a header" => hint TRUNCATED;
    Signature = "no 0xed26ff3a at 0x0";
    BlockSize { found: u32 } = "header: block size {found}, multiples of 4 up to 67108864 allowed";
    HeaderSize { what: &'static str, found: u16, min: u64 } =
        "header: a {what} has {found} bytes, at least {min} expected";
    ChunkCount { found: u64, max: u64 } = "header: {found} chunks, room for {max}" => hint TRUNCATED;
    BlockCount { found: u64, blocks: u64 } = "header: {found} blocks, but the chunks have {blocks}";
    ChunkKind { index: u32, at: u64, found: u16 } =
        "chunk {index} at {at:#x}: type {found:#06x}, 0xcac1 to 0xcac4 allowed";
    ChunkLength { index: u32, at: u64, found: u64, wanted: u64 } =
        "chunk {index} at {at:#x}: {found} bytes long, {wanted} expected";
    ChunkEnd { index: u32, at: u64, len: u64, limit: u64 } =
        "chunk {index} at {at:#x}: {len} bytes, which have to end by {limit:#x}" => hint TRUNCATED;
}
