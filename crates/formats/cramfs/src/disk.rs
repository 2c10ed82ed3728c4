//! Raw structures of cramfs, named as in the kernel.
//!
//! Owns layout, numbers, and bits of both byte orders. The reader checks which values are allowed.
//! Source: `include/uapi/linux/cramfs_fs.h` and `Documentation/filesystems/cramfs.rst` of Linux.

use packfs_core::usize_of;
use packfs_format::{Magic, units::*};

pub(crate) const CRAMFS_MAGIC: u32 = 0x28cd_3d45;
/// Signature of every image without [`CRAMFS_FLAG_WRONG_SIGNATURE`].
pub(crate) const CRAMFS_SIGNATURE: &[u8; 16] = b"Compressed ROMFS";

/// Length of a superblock, including the root's inode.
pub(crate) const SUPER_LEN: u64 = 76;
pub(crate) const ROOT_AT: u64 = 64;
pub(crate) const CRC_AT: u64 = 32;
/// Possible offsets of a superblock: 0, or after space for boot code.
pub(crate) const SUPER_STARTS: [u64; 2] = [0, PAD_LEN];
/// Space for boot code before a superblock.
pub(crate) const PAD_LEN: u64 = 512;

/// The magic in both byte orders at both offsets.
pub(crate) const MAGICS: [Magic; 4] = [
    Magic { bytes: &CRAMFS_MAGIC.to_le_bytes(), at: 0 },
    Magic { bytes: &CRAMFS_MAGIC.to_be_bytes(), at: 0 },
    Magic { bytes: &CRAMFS_MAGIC.to_le_bytes(), at: PAD_LEN },
    Magic { bytes: &CRAMFS_MAGIC.to_be_bytes(), at: PAD_LEN },
];

// Flags of the superblock. Kernels refuse unknown bits above 0xff.
/// Version 2: length, checksum, and counts of the superblock are valid.
pub(crate) const CRAMFS_FLAG_FSID_VERSION_2: u32 = 0x1;
pub(crate) const CRAMFS_FLAG_SORTED_DIRS: u32 = 0x2;
/// Blocks may be holes.
pub(crate) const CRAMFS_FLAG_HOLES: u32 = 0x100;
/// The signature may differ.
pub(crate) const CRAMFS_FLAG_WRONG_SIGNATURE: u32 = 0x200;
/// The root's entries need not follow the superblock.
pub(crate) const CRAMFS_FLAG_SHIFTED_ROOT_OFFSET: u32 = 0x400;
/// Block pointers have flags (since Linux 4.15).
pub(crate) const CRAMFS_FLAG_EXT_BLOCK_POINTERS: u32 = 0x800;
/// Bits with a meaning in any known image; those from 12 on only in OpenRG's.
pub(crate) const FLAGS_KNOWN: u32 = 0xffff;

/// Bits specific to OpenRG's images: a part of their block size, and the encoding of blocks.
pub(crate) const OPENRG_BITS: u32 = 0xf000;
/// OpenRG: base-2 logarithm of the block size, less 12.
pub(crate) const OPENRG_BLOCK_SHIFT: u32 = 11;
pub(crate) const OPENRG_BLOCK_MASK: u32 = 7;
/// OpenRG: 0 stored, 1 zlib, 2 LZMA.
pub(crate) const OPENRG_METHOD_SHIFT: u32 = 14;

/// Bytes of a file in each block but the last: the page size of nearly every machine, which
/// superblocks do not record.
pub(crate) const PAGE_LEN: u32 = 4096;

pub(crate) const INODE_LEN: u32 = 12;
pub(crate) const POINTER_LEN: u32 = 4;
/// Longest name: 63 units of four bytes.
pub(crate) const NAME_LEN_MAX: usize = 252;
/// Length from which files and directories exceed the 24 bits of an inode.
pub(crate) const SIZE_END: u64 = 1 << 24;
/// End of the offsets in an inode: 26 bits in units of four bytes.
pub(crate) const OFFSET_END: u64 = 1 << 28;

/// Bit of an extended block pointer: the block is stored uncompressed.
pub(crate) const CRAMFS_BLK_FLAG_UNCOMPRESSED: u32 = 1 << 31;
/// Bit of an extended block pointer: it contains the start of the block, in units of four bytes,
/// not the end.
pub(crate) const CRAMFS_BLK_FLAG_DIRECT_PTR: u32 = 1 << 30;
pub(crate) const POINTER_MASK: u32 = CRAMFS_BLK_FLAG_DIRECT_PTR - 1;
/// Logarithm of the unit of direct pointers.
pub(crate) const CRAMFS_BLK_DIRECT_PTR_SHIFT: u32 = 2;
/// Length field of a compressed block with a direct pointer.
pub(crate) const DIRECT_HEADER_LEN: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Returns the order in which `bytes` are the magic; `None` otherwise.
    pub(crate) fn of_magic(bytes: [u8; 4]) -> Option<Self> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.word(bytes) == CRAMFS_MAGIC)
    }

    /// Byte order of the machine that packfs runs on.
    pub(crate) fn native() -> Self {
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little }
    }

    pub(crate) fn word(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(crate) fn word_bytes(self, word: u32) -> [u8; 4] {
        match self {
            ByteOrder::Little => word.to_le_bytes(),
            ByteOrder::Big => word.to_be_bytes(),
        }
    }

    pub(crate) fn half(self, bytes: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        }
    }

    /// Splits a word of two bit fields: C compilers fill it from its low bits on little-endian
    /// machines, and from its high bits on the others.
    fn split(self, word: u32, first_width: u32) -> (u32, u32) {
        match self {
            ByteOrder::Little => (low_bits(word, first_width), word.unbounded_shr(first_width)),
            ByteOrder::Big => {
                let second_width = u32::BITS.minus(first_width);
                (word.unbounded_shr(second_width), low_bits(word, second_width))
            }
        }
    }

    /// The inverse of [`ByteOrder::split`]; both fields must fit.
    fn join(self, first: u32, first_width: u32, second: u32) -> u32 {
        match self {
            ByteOrder::Little => first | second.unbounded_shl(first_width),
            ByteOrder::Big => first.unbounded_shl(u32::BITS.minus(first_width)) | second,
        }
    }
}

fn low_bits(word: u32, width: u32) -> u32 {
    word & !u32::MAX.unbounded_shl(width)
}

const MODE_WIDTH: u32 = 16;
const SIZE_WIDTH: u32 = 24;
const NAMELEN_WIDTH: u32 = 6;

/// An inode: in the superblock that of the root, in a listing followed by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CramfsInode {
    /// With type bits.
    pub(crate) mode: u16,
    pub(crate) uid: u16,
    /// Length of a file, a target, or a listing in bytes, or a device number; 24 bits.
    pub(crate) size: u32,
    pub(crate) gid: u8,
    /// Length of the name in bytes including its padding: a multiple of 4, at most 252.
    pub(crate) name_len: u32,
    /// Start of block pointers or of the listing, in bytes: a multiple of 4 below 2^28.
    pub(crate) offset: u32,
}

impl CramfsInode {
    pub(crate) fn parse(order: ByteOrder, bytes: &[u8; INODE_LEN as usize]) -> Self {
        let (mode, uid) = order.split(word_at(order, bytes, 0), MODE_WIDTH);
        let (size, gid) = order.split(word_at(order, bytes, 4), SIZE_WIDTH);
        let (name_units, offset_units) = order.split(word_at(order, bytes, 8), NAMELEN_WIDTH);
        CramfsInode {
            mode: (mode & 0xffff) as u16,
            uid: (uid & 0xffff) as u16,
            size,
            gid: (gid & 0xff) as u8,
            name_len: name_units << 2,
            offset: offset_units << 2,
        }
    }

    pub(crate) fn to_bytes(self, order: ByteOrder) -> [u8; INODE_LEN as usize] {
        let words = [
            order.join(self.mode.into(), MODE_WIDTH, self.uid.into()),
            order.join(self.size, SIZE_WIDTH, self.gid.into()),
            order.join(self.name_len >> 2, NAMELEN_WIDTH, self.offset >> 2),
        ];
        let mut bytes = [0; INODE_LEN as usize];
        for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&order.word_bytes(word));
        }
        bytes
    }
}

/// A superblock without its magic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CramfsSuper {
    /// Length of the image in version 2; in version 1 always 0x10000.
    pub(crate) size: u32,
    pub(crate) flags: u32,
    pub(crate) future: u32,
    pub(crate) signature: [u8; 16],
    /// CRC-32 from the superblock to the end of the image, with zeros in this field. This and the
    /// three following words are undefined in version 1.
    pub(crate) crc: u32,
    pub(crate) edition: u32,
    /// Number of data blocks; shared ones count once.
    pub(crate) blocks: u32,
    /// Number of names, including the root.
    pub(crate) files: u32,
    pub(crate) name: [u8; 16],
    pub(crate) root: CramfsInode,
}

impl CramfsSuper {
    pub(crate) fn parse(order: ByteOrder, bytes: &[u8; usize_of(SUPER_LEN)]) -> Self {
        let word = |at| word_at(order, bytes, at);
        CramfsSuper {
            size: word(4),
            flags: word(8),
            future: word(12),
            signature: array_at(bytes, 16),
            crc: word(usize_of(CRC_AT)),
            edition: word(36),
            blocks: word(40),
            files: word(44),
            name: array_at(bytes, 48),
            root: CramfsInode::parse(order, &array_at(bytes, usize_of(ROOT_AT))),
        }
    }

    /// Encodes it with its magic.
    pub(crate) fn to_bytes(self, order: ByteOrder) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(usize_of(SUPER_LEN));
        for word in [CRAMFS_MAGIC, self.size, self.flags, self.future] {
            bytes.extend_from_slice(&order.word_bytes(word));
        }
        bytes.extend_from_slice(&self.signature);
        for word in [self.crc, self.edition, self.blocks, self.files] {
            bytes.extend_from_slice(&order.word_bytes(word));
        }
        bytes.extend_from_slice(&self.name);
        bytes.extend_from_slice(&self.root.to_bytes(order));
        bytes
    }
}

/// Returns a part of a structure; zeros after its end.
pub(crate) fn array_at<const LEN: usize>(bytes: &[u8], at: usize) -> [u8; LEN] {
    bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).unwrap_or([0; LEN])
}

pub(crate) fn word_at(order: ByteOrder, bytes: &[u8], at: usize) -> u32 {
    order.word(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INODE: CramfsInode = CramfsInode {
        mode: 0o100_644,
        uid: 1000,
        size: 0x12_3456,
        gid: 7,
        name_len: 12,
        offset: 0x0100_0ac0,
    };

    #[test]
    fn bit_fields_are_filled_in_byte_order() {
        let little = INODE.to_bytes(ByteOrder::Little);
        assert_eq!(little, [0xa4, 0x81, 0xe8, 0x03, 0x56, 0x34, 0x12, 0x07, 0x03, 0xac, 0x00, 0x10]);
        let big = INODE.to_bytes(ByteOrder::Big);
        assert_eq!(big, [0x81, 0xa4, 0x03, 0xe8, 0x12, 0x34, 0x56, 0x07, 0x0c, 0x40, 0x02, 0xb0]);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            assert_eq!(CramfsInode::parse(order, &INODE.to_bytes(order)), INODE);
        }
    }

    #[test]
    fn a_superblock_comes_back_as_it_was_written() {
        let super_block = CramfsSuper {
            size: 1,
            flags: 2,
            future: 3,
            signature: *CRAMFS_SIGNATURE,
            crc: 4,
            edition: 5,
            blocks: 6,
            files: 7,
            name: *b"a name of sixtee",
            root: INODE,
        };
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = super_block.to_bytes(order);
            assert_eq!(ByteOrder::of_magic(array_at(&bytes, 0)), Some(order));
            assert_eq!(CramfsSuper::parse(order, &array_at(&bytes, 0)), super_block);
        }
        assert_eq!(ByteOrder::of_magic([0; 4]), None);
    }
}
