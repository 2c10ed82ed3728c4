//! Inodes: fields, times, devices.

use crate::bytes::joined;
use crate::disk::{Ext4Inode, Ext4InodeExtra};
use crate::features::{BITS_64, HUGE_FILE, LARGE_DIR};
use crate::super_block::SuperBlock;
use packfs_core::{DeviceNumber, FileType, Owner, Timestamp};
use packfs_format::{structure, units::*};
use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

pub(crate) const BLOCK_FIELD_LEN: usize = 60;
pub(crate) const BLOCK_FIELD_AT: usize = offset_of!(Ext4Inode, i_block);
pub(crate) const BLOCK_FIELD: std::ops::Range<usize> = BLOCK_FIELD_AT..BLOCK_FIELD_AT + BLOCK_FIELD_LEN;
/// Offset of the optional fields.
pub(crate) const EXTRA_AT: usize = size_of::<Ext4Inode>();
const NANOS_MAX: u32 = 999_999_999;

pub(crate) const ENCRYPTED: u32 = 0x800;
pub(crate) const INDEXED: u32 = 0x1000;
pub(crate) const HUGE: u32 = 0x4_0000;
pub(crate) const EXTENTS: u32 = 0x8_0000;
pub(crate) const XATTR_VALUE: u32 = 0x20_0000;
pub(crate) const INLINE: u32 = 0x1000_0000;

/// A stored inode with a verified checksum.
#[derive(Clone)]
pub(crate) struct RawInode {
    pub(crate) number: u32,
    pub(crate) offset: u64,
    pub(crate) fields: Ext4Inode,
    window: Arc<Box<[u8]>>,
    range: Range<usize>,
}

impl RawInode {
    /// Parses the inode at a range of its table; `None` if it is too short for the mandatory
    /// fields.
    pub(crate) fn new(number: u32, offset: u64, window: Arc<Box<[u8]>>, range: Range<usize>) -> Option<Self> {
        let fields = structure(window.get(range.clone())?, 0)?;
        Some(RawInode { number, offset, fields, window, range })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.window.within(self.range.clone())
    }

    pub(crate) fn mode(&self) -> u16 {
        self.fields.i_mode.get()
    }

    pub(crate) fn links(&self) -> u16 {
        self.fields.i_links_count.get()
    }

    pub(crate) fn flags(&self) -> u32 {
        self.fields.i_flags.get()
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags() & flag != 0
    }

    pub(crate) fn generation(&self) -> u32 {
        self.fields.i_generation.get()
    }

    pub(crate) fn block_field(&self) -> &[u8] {
        self.fields.i_block.as_bytes()
    }

    /// Returns the block of extended attributes; 0 if the inode has none.
    pub(crate) fn xattr_block(&self, super_block: &SuperBlock) -> u64 {
        // The Hurd stores other values in the high half.
        let high = if super_block.features.needs(BITS_64) { self.fields.l_i_file_acl_high.get() } else { 0 };
        joined(self.fields.i_file_acl_lo, high)
    }

    /// `None` if the mode contains no valid type.
    pub(crate) fn file_type(&self) -> Option<FileType> {
        FileType::from_mode_bits(u32::from(self.mode()))
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.file_type() == Some(FileType::Directory)
    }

    pub(crate) fn fields_end(&self) -> usize {
        EXTRA_AT.plus(self.extra_len().into()).min(self.bytes().len())
    }

    /// Returns `i_extra_isize`; 0 for an inode without room for extra fields.
    pub(crate) fn extra_len(&self) -> u16 {
        structure(self.bytes(), EXTRA_AT).map_or(0, U16::get)
    }

    fn extra(&self, at: usize) -> Option<u32> {
        let fields = self.bytes().get(EXTRA_AT..self.fields_end())?;
        structure(fields, at).map(U32::get)
    }

    pub(crate) fn len(&self, super_block: &SuperBlock) -> u64 {
        let is_long = self.file_type() == Some(FileType::File) || super_block.features.needs(LARGE_DIR);
        joined(self.fields.i_size_lo, if is_long { self.fields.i_size_high } else { U32::ZERO })
    }

    /// Time of the last change of the contents.
    pub(crate) fn mtime(&self) -> Timestamp {
        let low = i64::from(self.fields.i_mtime.get().cast_signed());
        let extra = self.extra(offset_of!(Ext4InodeExtra, i_mtime_extra)).unwrap_or(0);
        let seconds = low.plus(i64::from(extra & 3) << 32);
        Timestamp { seconds, nanos: (extra >> 2).min(NANOS_MAX) }
    }

    /// True if the nanoseconds of a time are out of range.
    pub(crate) fn has_odd_time(&self) -> bool {
        let times = [
            offset_of!(Ext4InodeExtra, i_ctime_extra),
            offset_of!(Ext4InodeExtra, i_mtime_extra),
            offset_of!(Ext4InodeExtra, i_atime_extra),
        ];
        times.iter().any(|at| self.extra(*at).is_some_and(|extra| extra >> 2 > NANOS_MAX))
    }

    /// Hash of the attribute value that the inode contains.
    pub(crate) fn value_hash(&self) -> u32 {
        self.fields.i_atime.get()
    }

    /// Owner of the attribute value that the inode contains, as Lustre stores it.
    pub(crate) fn value_parent(&self) -> u32 {
        self.fields.i_mtime.get()
    }

    pub(crate) fn owner(&self) -> Owner {
        let id = |low: U16, high: U16| u32::from(low.get()) | u32::from(high.get()) << 16;
        let fields = &self.fields;
        Owner { uid: id(fields.i_uid, fields.l_i_uid_high), gid: id(fields.i_gid, fields.l_i_gid_high) }
    }

    /// Returns the device number in the 16-bit or 32-bit encoding.
    pub(crate) fn device(&self) -> DeviceNumber {
        let [old, new, ..] = self.fields.i_block.map(U32::get);
        match old {
            0 => DeviceNumber::decode(new),
            old => DeviceNumber { major: old >> 8 & 0xff, minor: old & 0xff },
        }
    }

    /// True if a link target is in the inode: it has no blocks except those of attributes, whatever
    /// its flags are (`ext4_inode_is_fast_symlink`). Blocks of attribute values may count, too.
    pub(crate) fn has_target(&self, super_block: &SuperBlock) -> bool {
        let len = packfs_core::usize_of(self.len(super_block));
        let Some(text) = self.block_field().get(..len).filter(|text| text.len() < BLOCK_FIELD_LEN) else {
            return false;
        };
        let unit = (super_block.block_len << super_block.cluster_bits) / 512;
        let of_attributes = if self.xattr_block(super_block) == 0 { 0 } else { unit };
        let has_text = !self.has(EXTENTS) && !text.contains(&0);
        !self.has(INLINE) && (self.sectors(super_block) <= of_attributes || has_text)
    }

    /// Returns the stored block count in units of 512 bytes.
    pub(crate) fn sectors(&self, super_block: &SuperBlock) -> u64 {
        let low = self.fields.i_blocks_lo.get();
        if !super_block.features.forbids(HUGE_FILE) {
            return u64::from(low);
        }
        let count = joined(low, self.fields.l_i_blocks_high.get());
        let unit = if self.has(HUGE) { super_block.block_len / 512 } else { 1 };
        count.times(unit)
    }
}
