//! Inodes: fields, times, devices.

use crate::bytes::{field, joined, le16, le32};
use crate::disk::{INODE_LEN_MIN, SuperBlock};
use crate::features::{BITS_64, HUGE_FILE, LARGE_DIR};
use packfs_core::{DeviceNumber, FileType, Owner, Timestamp};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the field that holds block numbers, extents or data.
pub(crate) const BLOCK_FIELD_LEN: usize = 60;
/// Offset of that field.
pub(crate) const BLOCK_FIELD_AT: usize = 0x28;
const NANOS_MAX: u32 = 999_999_999;

pub(crate) const ENCRYPTED: u32 = 0x800;
pub(crate) const INDEXED: u32 = 0x1000;
pub(crate) const HUGE: u32 = 0x4_0000;
pub(crate) const EXTENTS: u32 = 0x8_0000;
pub(crate) const XATTR_VALUE: u32 = 0x20_0000;
pub(crate) const INLINE: u32 = 0x1000_0000;

/// An inode as stored, whose checksum is right.
#[derive(Clone)]
pub(crate) struct RawInode {
    pub(crate) number: u32,
    /// Offset in the image.
    pub(crate) offset: u64,
    /// Part of the inode table.
    window: Arc<Box<[u8]>>,
    range: Range<usize>,
}

impl RawInode {
    pub(crate) fn new(number: u32, offset: u64, window: Arc<Box<[u8]>>, range: Range<usize>) -> Self {
        RawInode { number, offset, window, range }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.window.get(self.range.clone()).unwrap_or_default()
    }

    pub(crate) fn mode(&self) -> u16 {
        le16(self.bytes(), 0x00)
    }

    pub(crate) fn links(&self) -> u16 {
        le16(self.bytes(), 0x1a)
    }

    pub(crate) fn flags(&self) -> u32 {
        le32(self.bytes(), 0x20)
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags() & flag != 0
    }

    pub(crate) fn generation(&self) -> u32 {
        le32(self.bytes(), 0x64)
    }

    /// Returns the field with block numbers, extents or data.
    pub(crate) fn block_field(&self) -> &[u8] {
        field(self.bytes(), BLOCK_FIELD_AT, BLOCK_FIELD_LEN)
    }

    /// Returns the block of extended attributes; 0 means none.
    pub(crate) fn xattr_block(&self, super_block: &SuperBlock) -> u64 {
        // The Hurd has other figures where the high half would be.
        let high = if super_block.features.needs(BITS_64) { le16(self.bytes(), 0x76) } else { 0 };
        joined(le32(self.bytes(), 0x68), u32::from(high))
    }

    /// Returns the type; `None` if the mode names none.
    pub(crate) fn file_type(&self) -> Option<FileType> {
        FileType::from_mode_bits(u32::from(self.mode()))
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.file_type() == Some(FileType::Directory)
    }

    /// Returns the end of the fields that are valid.
    pub(crate) fn fields_end(&self) -> usize {
        match self.bytes().len() {
            0..=INODE_LEN_MIN => INODE_LEN_MIN,
            len => INODE_LEN_MIN.saturating_add(usize::from(le16(self.bytes(), 0x80))).min(len),
        }
    }

    /// Returns an extra field, if the inode has it.
    fn extra(&self, at: usize) -> Option<u32> {
        (at.saturating_add(4) <= self.fields_end()).then(|| le32(self.bytes(), at))
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self, super_block: &SuperBlock) -> u64 {
        let is_long = self.file_type() == Some(FileType::File) || super_block.features.needs(LARGE_DIR);
        joined(le32(self.bytes(), 0x04), if is_long { le32(self.bytes(), 0x6c) } else { 0 })
    }

    /// Returns the time of last change of the contents.
    pub(crate) fn mtime(&self) -> Timestamp {
        let low = i64::from(le32(self.bytes(), 0x10).cast_signed());
        let extra = self.extra(0x88).unwrap_or(0);
        let seconds = low.saturating_add(i64::from(extra & 3) << 32);
        Timestamp { seconds, nanos: (extra >> 2).min(NANOS_MAX) }
    }

    /// Returns true if a time has more nanoseconds than a second.
    pub(crate) fn has_odd_time(&self) -> bool {
        [0x84, 0x88, 0x8c].iter().any(|at| self.extra(*at).is_some_and(|extra| extra >> 2 > NANOS_MAX))
    }

    /// Returns the hash of its value, for the holder of an extended attribute.
    pub(crate) fn value_hash(&self) -> u32 {
        le32(self.bytes(), 0x08)
    }

    /// Returns the inode whose attribute it holds, as Lustre stores it.
    pub(crate) fn value_parent(&self) -> u32 {
        le32(self.bytes(), 0x10)
    }

    pub(crate) fn owner(&self) -> Owner {
        let id = |low: usize, high: usize| {
            u32::from(le16(self.bytes(), low)) | u32::from(le16(self.bytes(), high)) << 16
        };
        Owner { uid: id(0x02, 0x78), gid: id(0x18, 0x7a) }
    }

    /// Returns the number of a device: the old form of 16 bits, or the new one of 32.
    pub(crate) fn device(&self) -> DeviceNumber {
        match le32(self.block_field(), 0) {
            0 => DeviceNumber::decode(le32(self.block_field(), 4)),
            old => DeviceNumber { major: old >> 8 & 0xff, minor: old & 0xff },
        }
    }

    /// Returns true if the target of a link is in the inode: it has no blocks but those of
    /// attributes, whatever its flags say (`ext4_inode_is_fast_symlink`). Values of attributes may
    /// count as blocks, too.
    pub(crate) fn has_target(&self, super_block: &SuperBlock) -> bool {
        let len = packfs_core::usize_of(self.len(super_block));
        let Some(text) = self.block_field().get(..len).filter(|text| text.len() < BLOCK_FIELD_LEN) else {
            return false;
        };
        let unit = super_block.block_len.checked_shl(super_block.cluster_bits).unwrap_or(0) / 512;
        let of_attributes = if self.xattr_block(super_block) == 0 { 0 } else { unit };
        let has_text = !self.has(EXTENTS) && !text.contains(&0);
        !self.has(INLINE) && (self.sectors(super_block) <= of_attributes || has_text)
    }

    /// Returns the units of 512 bytes that it takes on disk.
    pub(crate) fn sectors(&self, super_block: &SuperBlock) -> u64 {
        let low = le32(self.bytes(), 0x1c);
        if !super_block.features.forbids(HUGE_FILE) {
            return u64::from(low);
        }
        let count = joined(low, u32::from(le16(self.bytes(), 0x74)));
        let unit = if self.has(HUGE) { super_block.block_len / 512 } else { 1 };
        count.saturating_mul(unit)
    }
}
