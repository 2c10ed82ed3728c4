//! Inodes on disk: compact if possible, else extended.

use super::times::Times;
use crate::disk;
use crate::disk::{InodeCompact, InodeExtended, i_format};
use packfs_core::{DeviceNumber, FileType, Meta};
use zerocopy::IntoBytes;

pub(super) const COMPACT_LEN: u64 = size_of::<InodeCompact>() as u64;
pub(super) const EXTENDED_LEN: u64 = size_of::<InodeExtended>() as u64;

/// Fields of an inode except the position of its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct InodeFacts {
    pub file_type: FileType,
    pub meta: Meta,
    pub links: u32,
    pub size: u64,
    /// Number shown as `i_ino`; readers use positions.
    pub number: u32,
    pub xattr_icount: u16,
    /// Directories: `.` is omitted.
    pub dot_omitted: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataWords {
    pub layout: u16,
    /// 48 bits of `i_u`.
    pub word: u64,
}

/// True if a node with this `i_u` needs the extended form.
pub(super) fn is_extended(facts: &InodeFacts, times: &Times, word: u64) -> bool {
    let small = |value: u32| value <= u32::from(u16::MAX);
    let far = word > u64::from(u32::MAX);
    let links_fit =
        if far { facts.links == 1 && facts.file_type != FileType::Directory } else { small(facts.links) };
    !(facts.size <= u64::from(u32::MAX)
        && small(facts.meta.owner.uid)
        && small(facts.meta.owner.gid)
        && links_fit
        && times.compact(facts.meta.mtime).is_some())
}

pub(super) fn write(out: &mut Vec<u8>, facts: &InodeFacts, times: &Times, data: DataWords, extended: bool) {
    let mode = facts.file_type.mode_bits() as u16 | facts.meta.mode & 0o7777;
    let (low, high) = (data.word as u32, (data.word >> 32) as u16);
    if extended {
        let mtime = times.stored(facts.meta.mtime);
        let inode = InodeExtended {
            i_format: i_format(disk::EROFS_INODE_LAYOUT_EXTENDED, data.layout, facts.dot_omitted),
            i_xattr_icount: facts.xattr_icount.into(),
            i_mode: mode.into(),
            i_nb: high.into(),
            i_size: facts.size.into(),
            i_u: low.into(),
            i_ino: facts.number.into(),
            i_uid: facts.meta.owner.uid.into(),
            i_gid: facts.meta.owner.gid.into(),
            i_mtime: (mtime.seconds as u64).into(),
            i_mtime_nsec: mtime.nanos.into(),
            i_nlink: facts.links.into(),
            i_reserved2: [0; 16],
        };
        out.extend_from_slice(inode.as_bytes());
    } else {
        let inode = InodeCompact {
            i_format: i_format(disk::EROFS_INODE_LAYOUT_COMPACT, data.layout, facts.dot_omitted || high > 0),
            i_xattr_icount: facts.xattr_icount.into(),
            i_mode: mode.into(),
            i_nb: if high > 0 { high } else { facts.links as u16 }.into(),
            i_size: (facts.size as u32).into(),
            i_mtime: times.compact(facts.meta.mtime).unwrap_or(0).into(),
            i_u: low.into(),
            i_ino: facts.number.into(),
            i_uid: (facts.meta.owner.uid as u16).into(),
            i_gid: (facts.meta.owner.gid as u16).into(),
            i_reserved: 0.into(),
        };
        out.extend_from_slice(inode.as_bytes());
    }
}

/// Device number in `i_u`.
pub(super) fn device_word(number: DeviceNumber) -> u64 {
    number.encode().into()
}
