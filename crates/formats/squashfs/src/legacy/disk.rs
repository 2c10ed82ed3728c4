//! Raw structures of Squashfs 1.0 to 3.1: numbers, lengths, and fields, named as in their
//! `squashfs_fs.h`.
//!
//! Owns layout, numbers, and bits; the reader checks which values are allowed. Fields are listed
//! where they are decoded, in the order of the C structs; [`crate::legacy::bits`] explains the
//! order of bits.

use crate::Endian;
use crate::legacy::bits::{Fields, Record};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V1_0,
    V2_0,
    V2_1,
    V3_0,
    V3_1,
}

impl Version {
    pub(crate) const ALL: [Version; 5] =
        [Version::V1_0, Version::V2_0, Version::V2_1, Version::V3_0, Version::V3_1];

    pub(crate) fn of(major: u16, minor: u16) -> Option<Version> {
        Version::ALL.into_iter().find(|version| (version.major(), version.minor()) == (major, minor))
    }

    pub(crate) fn major(self) -> u16 {
        match self {
            Version::V1_0 => 1,
            Version::V2_0 | Version::V2_1 => 2,
            Version::V3_0 | Version::V3_1 => 3,
        }
    }

    pub(crate) fn minor(self) -> u16 {
        u16::from(matches!(self, Version::V2_1 | Version::V3_1))
    }

    pub(crate) fn super_block_len(self) -> usize {
        match self.major() {
            1 => 51,
            2 => 63,
            _ => 119,
        }
    }

    /// True if inodes of all types have numbers, link counts, and times.
    pub(crate) fn has_numbers(self) -> bool {
        self.major() == 3
    }

    pub(crate) fn is_sorted(self) -> bool {
        self >= Version::V2_1
    }

    pub(crate) fn inode_len_min(self) -> u64 {
        if self.has_numbers() { 16 } else { 4 }
    }

    pub(crate) fn block_word_len(self) -> u64 {
        if self.major() == 1 { 2 } else { 4 }
    }

    pub(crate) fn dir_header_len(self) -> u32 {
        if self.has_numbers() { 9 } else { 4 }
    }

    pub(crate) fn dir_entry_len(self) -> u32 {
        if self.has_numbers() { 5 } else { 3 }
    }

    pub(crate) fn dir_index_len(self) -> u32 {
        if self.has_numbers() { 9 } else { 8 }
    }

    /// Difference between a directory's size and its listing's length, for `.` and `..`.
    pub(crate) fn dir_size_extra(self) -> u32 {
        if self.has_numbers() { 3 } else { 0 }
    }

    pub(crate) fn fragment_len(self) -> usize {
        if self.has_numbers() { 16 } else { 8 }
    }

    pub(crate) fn position_len(self) -> usize {
        if self.has_numbers() { 8 } else { 4 }
    }

    /// Index of a group whose number equals that of the user.
    pub(crate) fn gid_of_uid(self) -> u16 {
        if self.major() == 1 { 15 } else { 255 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}

/// Start of an image, which identifies its writer and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Magic {
    pub(crate) bytes: [u8; 4],
    pub(crate) endian: Endian,
    pub(crate) writer: Writer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The original; some vendors use it with LZMA.
    Plain,
    /// sqlzma, and vendors whose blocks are LZMA.
    Sqlzma,
    /// DD-WRT.
    DdWrt,
}

pub(crate) const MAGICS: [Magic; 6] = [
    Magic { bytes: *b"hsqs", endian: Endian::Little, writer: Writer::Plain },
    Magic { bytes: *b"sqsh", endian: Endian::Big, writer: Writer::Plain },
    Magic { bytes: *b"shsq", endian: Endian::Little, writer: Writer::Sqlzma },
    Magic { bytes: *b"qshs", endian: Endian::Big, writer: Writer::Sqlzma },
    Magic { bytes: *b"hsqt", endian: Endian::Little, writer: Writer::DdWrt },
    Magic { bytes: *b"tqsh", endian: Endian::Big, writer: Writer::DdWrt },
];

/// Largest block of any version.
pub(crate) const SQUASHFS_FILE_MAX_SIZE: u32 = 1 << 20;
/// Start of a missing table.
pub(crate) const SQUASHFS_INVALID_BLK: u64 = u64::MAX;
/// In version 1, types with a user of the second bank of 16 follow those of the first, and so on.
pub(crate) const SQUASHFS_TYPES: u16 = 5;

// Flags of the superblock, by bit number.
pub(crate) const SQUASHFS_NOI: u8 = 0;
pub(crate) const SQUASHFS_NOD: u8 = 1;
pub(crate) const SQUASHFS_CHECK: u8 = 2;
pub(crate) const SQUASHFS_NOF: u8 = 3;
pub(crate) const SQUASHFS_NO_FRAG: u8 = 4;
pub(crate) const SQUASHFS_ALWAYS_FRAG: u8 = 5;
pub(crate) const SQUASHFS_DUPLICATE: u8 = 6;
pub(crate) const SQUASHFS_EXPORT: u8 = 7;

// Extended inode types. Directory entries only use the basic ones.
pub(crate) const SQUASHFS_LDIR_TYPE: u16 = 8;
pub(crate) const SQUASHFS_LREG_TYPE: u16 = 9;

pub(crate) const SUPER_BLOCK_LEN_MAX: usize = 119;
/// Offset of the version, two words of 16 bits.
const VERSION_AT: usize = 28;

/// The superblock; fields that a version lacks are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SuperBlock {
    pub(crate) magic: Magic,
    pub(crate) version: Version,
    pub(crate) inodes: u32,
    pub(crate) bytes_used: u64,
    pub(crate) uid_start: u64,
    pub(crate) gid_start: u64,
    pub(crate) inode_table_start: u64,
    pub(crate) directory_table_start: u64,
    pub(crate) block_size: u32,
    pub(crate) block_log: u16,
    pub(crate) flags: u8,
    /// Number of users; 256 wraps to 0.
    pub(crate) no_uids: u8,
    pub(crate) no_gids: u8,
    pub(crate) mkfs_time: u32,
    /// An [`crate::InodeRef`].
    pub(crate) root_inode: u64,
    pub(crate) fragments: u32,
    pub(crate) fragment_table_start: u64,
    pub(crate) lookup_table_start: u64,
}

/// Returns the version numbers; `None` if the superblock is too short.
pub(crate) fn version_numbers(bytes: &[u8], endian: Endian) -> Option<(u16, u16)> {
    let word = |at: usize| Some(endian.u16(*bytes.get(at..)?.first_chunk()?));
    Some((word(VERSION_AT)?, word(VERSION_AT + 2)?))
}

impl SuperBlock {
    /// Decodes a superblock; fields at its end that `version` lacks may be missing.
    pub(crate) fn parse(bytes: [u8; SUPER_BLOCK_LEN_MAX], magic: Magic, version: Version) -> SuperBlock {
        let mut fields = Fields::new(bytes, magic.endian);
        fields.take(32);
        let inodes = fields.word(32);
        let short = [(); 5].map(|()| fields.take(32));
        fields.take(32);
        let block_size16 = fields.word(16);
        let block_log = fields.half(16);
        let [flags, no_uids, no_gids] = [(); 3].map(|()| (fields.take(8) & 0xff) as u8);
        let mkfs_time = fields.word(32);
        let root_inode = fields.take(64);
        let mut super_block = SuperBlock {
            magic,
            version,
            inodes,
            bytes_used: short[0],
            uid_start: short[1],
            gid_start: short[2],
            inode_table_start: short[3],
            directory_table_start: short[4],
            block_size: block_size16,
            block_log,
            flags,
            no_uids,
            no_gids,
            mkfs_time,
            root_inode,
            fragments: 0,
            fragment_table_start: 0,
            lookup_table_start: SQUASHFS_INVALID_BLK,
        };
        if version.major() > 1 {
            super_block.block_size = fields.word(32);
            super_block.fragments = fields.word(32);
            super_block.fragment_table_start = fields.take(32);
        }
        if version.major() > 2 {
            let long = [(); 7].map(|()| fields.take(64));
            super_block.bytes_used = long[0];
            super_block.uid_start = long[1];
            super_block.gid_start = long[2];
            super_block.inode_table_start = long[3];
            super_block.directory_table_start = long[4];
            super_block.fragment_table_start = long[5];
            super_block.lookup_table_start = long[6];
        }
        super_block
    }

    /// Encodes a superblock of version 2 or 3.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let long = self.version.has_numbers();
        let short = |value: u64| if long { 0 } else { value };
        let mut record = Record::new(&mut bytes, self.magic.endian);
        let magic = self.magic.endian.u32(self.magic.bytes);
        record.put(32, magic).put(32, self.inodes);
        let starts = [
            self.bytes_used,
            self.uid_start,
            self.gid_start,
            self.inode_table_start,
            self.directory_table_start,
        ];
        for start in starts {
            record.put(32, short(start));
        }
        record.put(16, self.version.major()).put(16, self.version.minor());
        record.put(16, self.block_size & 0xffff).put(16, self.block_log);
        record.put(8, self.flags).put(8, self.no_uids).put(8, self.no_gids);
        record.put(32, self.mkfs_time).put(64, self.root_inode);
        record.put(32, self.block_size).put(32, self.fragments).put(32, short(self.fragment_table_start));
        if long {
            for start in starts.into_iter().chain([self.fragment_table_start, self.lookup_table_start]) {
                record.put(64, start);
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superblocks_survive_putting_together_and_taking_apart() {
        for (version, len) in
            [(Version::V2_0, 63), (Version::V2_1, 63), (Version::V3_0, 119), (Version::V3_1, 119)]
        {
            for magic in MAGICS {
                let long = if version.has_numbers() { 1 << 40 } else { 0 };
                let super_block = SuperBlock {
                    magic,
                    version,
                    inodes: 373,
                    bytes_used: long + 93_983,
                    uid_start: long + 93_947,
                    gid_start: long + 93_963,
                    inode_table_start: long + 89_328,
                    directory_table_start: long + 92_216,
                    block_size: 65_536,
                    block_log: 16,
                    flags: 0x40,
                    no_uids: 4,
                    no_gids: 5,
                    mkfs_time: 1_795_210_760,
                    root_inode: 0x938_0423,
                    fragments: 2,
                    fragment_table_start: long + 93_943,
                    lookup_table_start: SQUASHFS_INVALID_BLK,
                };
                let bytes = super_block.to_bytes();
                assert_eq!(bytes.len(), len);
                assert_eq!(bytes.len(), version.super_block_len());
                assert_eq!(bytes[..4], magic.bytes);
                assert_eq!(version_numbers(&bytes, magic.endian), Some((version.major(), version.minor())));
                let mut room = [0; SUPER_BLOCK_LEN_MAX];
                room[..len].copy_from_slice(&bytes);
                assert_eq!(SuperBlock::parse(room, magic, version), super_block);
            }
        }
    }

    #[test]
    fn only_versions_that_were_written_are_known() {
        for version in Version::ALL {
            assert_eq!(Version::of(version.major(), version.minor()), Some(version));
        }
        for (major, minor) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 0), (256, 0)] {
            assert_eq!(Version::of(major, minor), None);
        }
    }
}
