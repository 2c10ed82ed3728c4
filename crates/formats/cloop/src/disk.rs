//! Raw structures of cloop files, big-endian except for the index of version 1.0, which was written
//! in the host's order, and hosts were PCs.
//!
//! Owns layout and numbers; the reader checks which values are allowed. Sources: `cloop.h` of the
//! 4.3 kernel module for 2.0 and 4.0, the published writers of the versions before, and genuine
//! files of each.

use packfs_format::disk;
use zerocopy::big_endian::{U32, U64};

/// Length of the preamble: a shell script that mounts the file, padded with zeros.
pub(crate) const PREAMBLE_LEN: usize = 128;
pub(crate) const INTERPRETER: &[u8] = b"#!";
pub(crate) const VERSION_AT: usize = 10;
/// Length of the version: `#V2.0 Format`.
pub(crate) const VERSION_LEN: usize = 12;

/// Preambles as written, without the version. Readers check their start: that of qemu requires all
/// of it.
pub(crate) const SCRIPT_BEFORE_VERSION: &[u8] = b"#!/bin/sh\n#V";
pub(crate) const SCRIPT_BEHIND_VERSION: &[u8] =
    b" Format\nmodprobe cloop file=$0 && mount -r -t iso9660 /dev/cloop $1\nexit $?\n";

disk! {
    /// Header of a file, or in 4.0 also its footer.
    struct Head (136) { preamble: [u8; PREAMBLE_LEN], block_size: U32, num_blocks: U32 }
}

/// `num_blocks` of a file with its index at the end (3.0).
pub(crate) const BLOCKS_IN_TAIL: u32 = u32::MAX;

disk! {
    /// End of a 3.0 file, after the sizes of all blocks.
    struct Tail (8) {
        /// Length of one size: 4. Higher bits were used later for a compressed index.
        index_size: U32,
        num_blocks: U32,
    }

    /// Row of the index of accelerated Knoppix: blocks are stored in the order of their use.
    struct BlockInfo (16) {
        offset: U64, size: U32,
        /// The block's number in the order of use; readers ignore it.
        optidx: U32,
    }
}

/// `\nCLOOP3\n`, the end of a file of the unreleased version 3.
pub(crate) const ALPHA_SIGNATURE: [u8; 8] = *b"\nCLOOP3\n";
pub(crate) const ALPHA_VERSION: u32 = 3;

disk! {
    /// End of such a file.
    struct AlphaTail (20) { table_offset: U64, version: U32, signature: [u8; 8] }

    /// Table at the tail's offset; `num_blocks + 1` offsets of 8 bytes and `num_blocks` flags of 4
    /// follow.
    struct AlphaTable (16) { num_blocks: U32, block_size: U32, original_size: U64 }
}

pub(crate) const HEAD_LEN: u64 = size_of::<Head>() as u64;

/// In 4.0 the upper four bits of an offset are the codec of the block.
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
