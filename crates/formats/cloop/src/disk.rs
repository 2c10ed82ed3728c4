//! Raw structures of cloop files, byte for byte as they lie on disk. All figures are big-endian but
//! for the index of version 1.0, which was written in the host's order, and hosts were PCs.
//!
//! Owns layout and numbers; says nothing about which values are allowed. Sources: `cloop.h` of the
//! 4.3 kernel module for 2.0 and 4.0, the published writers of the versions before, and genuine
//! files of each.

use std::mem::size_of;
use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a head before its figures: a shell script that mounts the file, filled up with zeros.
pub(crate) const PREAMBLE_LEN: usize = 128;
/// First bytes of every preamble.
pub(crate) const INTERPRETER: &[u8] = b"#!";
/// Offset of the version in a preamble.
pub(crate) const VERSION_AT: usize = 10;
/// Length of the version: `#V2.0 Format`.
pub(crate) const VERSION_LEN: usize = 12;

/// Preambles as writers make them, but for the version. Readers go by their beginning: that of qemu
/// wants all of it.
pub(crate) const SCRIPT_BEFORE_VERSION: &[u8] = b"#!/bin/sh\n#V";
pub(crate) const SCRIPT_BEHIND_VERSION: &[u8] =
    b" Format\nmodprobe cloop file=$0 && mount -r -t iso9660 /dev/cloop $1\nexit $?\n";

/// In front of a file, or, in 4.0, also at its end.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) preamble: [u8; PREAMBLE_LEN],
    pub(crate) block_size: U32,
    pub(crate) num_blocks: U32,
}

/// `num_blocks` of a file whose index is at its end (3.0).
pub(crate) const BLOCKS_IN_TAIL: u32 = u32::MAX;

/// At the end of a 3.0 file, after the sizes of all blocks.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Tail {
    /// Bytes of one size: 4. Higher bits were used later for an index that is compressed itself.
    pub(crate) index_size: U32,
    pub(crate) num_blocks: U32,
}

/// A row of the index of accelerated Knoppix: blocks lie in the order in which they are used.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BlockInfo {
    pub(crate) offset: U64,
    pub(crate) size: U32,
    /// The block's number in the order of use; of no use to readers.
    pub(crate) optidx: U32,
}

/// `\nCLOOP3\n`, the last bytes of a file of the version 3 that never was released.
pub(crate) const ALPHA_SIGNATURE: [u8; 8] = *b"\nCLOOP3\n";
/// Its number.
pub(crate) const ALPHA_VERSION: u32 = 3;

/// At the end of such a file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct AlphaTail {
    pub(crate) table_offset: U64,
    pub(crate) version: U32,
    pub(crate) signature: [u8; 8],
}

/// Table at the tail's offset; `num_blocks + 1` offsets of 8 bytes and `num_blocks` flags of 4
/// follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct AlphaTable {
    pub(crate) num_blocks: U32,
    pub(crate) block_size: U32,
    pub(crate) original_size: U64,
}

const _: () = assert!(size_of::<Head>() == 136);
const _: () = assert!(size_of::<Tail>() == 8);
const _: () = assert!(size_of::<BlockInfo>() == 16);
const _: () = assert!(size_of::<AlphaTail>() == 20);
const _: () = assert!(size_of::<AlphaTable>() == 16);

/// The length of a head.
pub(crate) const HEAD_LEN: u64 = size_of::<Head>() as u64;

/// In 4.0 the upper four bits of an offset say how the block there is stored.
pub(crate) const METHOD_SHIFT: u32 = 60;
pub(crate) const OFFSET_MASK: u64 = (1 << METHOD_SHIFT) - 1;
pub(crate) const METHOD_ZLIB: u64 = 0;
pub(crate) const METHOD_STORED: u64 = 1;
pub(crate) const METHOD_XZ: u64 = 2;
pub(crate) const METHOD_LZ4: u64 = 3;
pub(crate) const METHOD_LZO: u64 = 4;

/// Flags of blocks of the unreleased version 3.
pub(crate) const FLAG_STORED: u32 = 0;
pub(crate) const FLAG_ZLIB: u32 = 2;
pub(crate) const FLAG_LZO: u32 = 4;
pub(crate) const FLAG_XZ: u32 = 8;
pub(crate) const FLAG_LZ4: u32 = 16;

/// The head of a file of version 2.0 or 4.0.
pub(crate) fn head(version: &[u8; 3], block_size: u32, num_blocks: u32) -> Head {
    let mut preamble = [0; PREAMBLE_LEN];
    let script = [SCRIPT_BEFORE_VERSION, version, SCRIPT_BEHIND_VERSION].concat();
    preamble.iter_mut().zip(script).for_each(|(to, byte)| *to = byte);
    Head { preamble, block_size: block_size.into(), num_blocks: num_blocks.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_fits_into_its_preamble() {
        let head = head(b"2.0", 65_536, 1);
        assert!(head.preamble.ends_with(&[0; 8]));
        assert!(head.preamble.starts_with(b"#!/bin/sh\n#V2.0 Format\nmodprobe cloop file=$0 && mount"));
    }
}
