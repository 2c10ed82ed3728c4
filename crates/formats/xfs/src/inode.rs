//! Inodes (`struct xfs_dinode`): the core, and the two forks behind it.

use crate::corruption::Corruption;
use crate::disk::{Checksum, be16, be32, be64, byte, part, uuid};
use crate::super_block::SuperBlock;
use packfs_core::{DeviceNumber, FileType, Result, Timestamp, u32_of};
use std::sync::Arc;

/// First bytes of an inode.
const MAGIC: u16 = 0x494e;
/// Offset of the checksum of version 3.
pub(crate) const CHECKSUM_AT: usize = 100;
/// Bytes of a core before version 3, and of version 3.
const CORE_LEN: usize = 100;
const CORE_LEN_V3: usize = 176;
/// Flag: data extents are in the realtime section.
const REALTIME: u16 = 1;
/// Bits of the second flags: shared blocks, times of 64 bits, counts of extents of 48 bits.
const REFLINK: u64 = 1 << 1;
const BIGTIME: u64 = 1 << 3;
const NREXT64: u64 = 1 << 4;
/// Seconds before 1970 that times of 64 bits begin at.
const BIGTIME_EPOCH: i64 = 1 << 31;
const NANOS: u32 = 1_000_000_000;
const NANOS_LONG: u64 = NANOS as u64;
/// Bytes of an extent in a fork.
const EXTENT_LEN: u64 = 16;

/// Form of a fork (`enum xfs_dinode_fmt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Device,
    Local,
    Extents,
    Tree,
}

impl Form {
    fn of(found: u8) -> Option<Form> {
        Some(match found {
            0 => Form::Device,
            1 => Form::Local,
            2 => Form::Extents,
            3 => Form::Tree,
            _ => return None,
        })
    }
}

/// One of the two forks of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fork {
    Data,
    Attr,
}

impl Fork {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Fork::Data => "data",
            Fork::Attr => "attribute",
        }
    }
}

/// Inode, checked.
#[derive(Clone, Debug)]
pub(crate) struct DiskInode {
    pub(crate) ino: u64,
    pub(crate) file_type: FileType,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u32,
    pub(crate) size: u64,
    /// Blocks of data and metadata.
    pub(crate) blocks: u64,
    pub(crate) mtime: Timestamp,
    pub(crate) has_time_fault: bool,
    pub(crate) is_realtime: bool,
    /// Set when it may share blocks with other files, or with itself.
    is_shared: bool,
    pub(crate) form: Form,
    pub(crate) attr_form: Form,
    extents: u64,
    attr_extents: u64,
    /// Bytes of the cluster that it lies in, the place of its literal area there, and that of the
    /// attribute fork, which may be the end.
    cluster: Arc<Vec<u8>>,
    data_at: usize,
    attr_at: usize,
    end: usize,
}

impl DiskInode {
    /// Returns the bytes of a fork.
    pub(crate) fn fork(&self, fork: Fork) -> &[u8] {
        let range = match fork {
            Fork::Data => self.data_at..self.attr_at,
            Fork::Attr => self.attr_at..self.end,
        };
        self.cluster.get(range).unwrap_or_default()
    }

    pub(crate) fn fork_form(&self, fork: Fork) -> Form {
        match fork {
            Fork::Data => self.form,
            Fork::Attr => self.attr_form,
        }
    }

    /// Returns the number of extents that the inode claims for a fork.
    pub(crate) fn extent_count(&self, fork: Fork) -> u64 {
        match fork {
            Fork::Data => self.extents,
            Fork::Attr => self.attr_extents,
        }
    }

    /// Returns true if it has an attribute fork.
    pub(crate) fn has_attr_fork(&self) -> bool {
        self.attr_at < self.end && (self.attr_form != Form::Extents || self.attr_extents > 0)
    }

    /// Returns the number of a device, as XFS stores it.
    pub(crate) fn device(&self) -> DeviceNumber {
        let stored = be32(self.fork(Fork::Data), 0);
        DeviceNumber { major: stored >> 18, minor: stored & 0x3_ffff }
    }

    /// Parses and checks the inode at `at` of a cluster.
    pub(crate) fn parse(
        super_block: &SuperBlock,
        ino: u64,
        cluster: Arc<Vec<u8>>,
        at: usize,
    ) -> Result<DiskInode> {
        let Some(bytes) = part(&cluster, at, super_block.inode_len) else {
            return Err(Corruption::InodePlace { ino }.into());
        };
        verify(super_block, ino, bytes)?;
        let (version, mode) = (byte(bytes, 4), be16(bytes, 2));
        let Some(file_type) = FileType::from_mode_bits(mode.into()) else {
            return Err(match mode {
                0 => Corruption::InodeFree { ino },
                found => Corruption::InodeMode { ino, found },
            }
            .into());
        };
        let flags2 = if version == 3 { be64(bytes, 120) } else { 0 };
        let (extents, attr_extents) = match flags2 & NREXT64 != 0 {
            true => (be64(bytes, 24), be32(bytes, 76).into()),
            false => (be32(bytes, 76).into(), be16(bytes, 80).into()),
        };
        let data_at = if version == 3 { CORE_LEN_V3 } else { CORE_LEN };
        let fork_offset = usize::from(byte(bytes, 82)).saturating_mul(8);
        let len = super_block.inode_len.saturating_sub(data_at);
        if fork_offset >= len {
            return Err(Corruption::ForkOffset { ino, found: fork_offset as u64, max: len as u64 }.into());
        }
        let (mtime, has_time_fault) = time(be64(bytes, 40), flags2 & BIGTIME != 0);
        let data_at = at.saturating_add(data_at);
        let end = at.saturating_add(super_block.inode_len);
        let inode = DiskInode {
            ino,
            file_type,
            mode: mode & 0o7777,
            uid: be32(bytes, 8),
            gid: be32(bytes, 12),
            links: if version == 1 { be16(bytes, 6).into() } else { be32(bytes, 16) },
            size: be64(bytes, 56),
            blocks: be64(bytes, 64),
            mtime,
            has_time_fault,
            is_realtime: file_type == FileType::File && be16(bytes, 90) & REALTIME != 0,
            is_shared: file_type == FileType::File && flags2 & REFLINK != 0,
            form: fork_form(ino, byte(bytes, 5), Fork::Data)?,
            attr_form: if fork_offset == 0 {
                Form::Extents
            } else {
                fork_form(ino, byte(bytes, 83), Fork::Attr)?
            },
            extents,
            attr_extents: if fork_offset == 0 { 0 } else { attr_extents },
            data_at,
            attr_at: if fork_offset == 0 { end } else { data_at.saturating_add(fork_offset) },
            end,
            cluster,
        };
        inode.check(super_block)?;
        Ok(inode)
    }

    fn check(&self, super_block: &SuperBlock) -> Result<()> {
        let (ino, size) = (self.ino, self.size);
        let allowed: &[Form] = match self.file_type {
            FileType::File => &[Form::Extents, Form::Tree],
            FileType::Directory | FileType::Symlink => &[Form::Local, Form::Extents, Form::Tree],
            _ => &[Form::Device],
        };
        let format =
            |found: Form, fork: Fork| Corruption::ForkFormat { ino, fork: fork.word(), found: found as u8 };
        if !allowed.contains(&self.form) {
            return Err(format(self.form, Fork::Data).into());
        }
        if self.attr_form == Form::Device {
            return Err(format(self.attr_form, Fork::Attr).into());
        }
        let max = match self.form {
            Form::Local => self.fork(Fork::Data).len() as u64,
            _ => i64::MAX as u64,
        };
        if size > max {
            return Err(Corruption::InodeSize { ino, found: size, max }.into());
        }
        let realtime = if self.is_realtime { super_block.rt_blocks } else { 0 };
        let blocks_max = super_block.blocks.saturating_add(realtime);
        // A file may map a shared block many times.
        if self.blocks > blocks_max && !self.is_shared {
            return Err(Corruption::InodeBlocks { ino, found: self.blocks, max: blocks_max }.into());
        }
        for fork in [Fork::Data, Fork::Attr] {
            let (found, max) = (self.extent_count(fork), self.fork(fork).len() as u64 / EXTENT_LEN);
            if self.fork_form(fork) == Form::Extents && found > max {
                return Err(Corruption::ForkExtents { ino, fork: fork.word(), found, max }.into());
            }
        }
        Ok(())
    }
}

/// Verifies magic, version, checksum, and identity of an inode.
fn verify(super_block: &SuperBlock, ino: u64, bytes: &[u8]) -> Result<()> {
    let found = be16(bytes, 0);
    if found != MAGIC {
        return Err(Corruption::InodeMagic { ino, found }.into());
    }
    let version = byte(bytes, 4);
    let is_right = if super_block.is_v5() { version == 3 } else { matches!(version, 1 | 2) };
    if !is_right {
        let wanted = if super_block.is_v5() { "3" } else { "1 and 2" };
        return Err(Corruption::InodeVersion { ino, found: version, wanted }.into());
    }
    if version < 3 {
        return Ok(());
    }
    let sum = Checksum::of(bytes, CHECKSUM_AT);
    if !sum.is_right() {
        return Err(Corruption::InodeChecksum { ino, sum }.into());
    }
    let found = be64(bytes, 152);
    if found != ino {
        return Err(Corruption::InodeNumber { ino, found }.into());
    }
    if uuid(bytes, 160) != super_block.meta_uuid {
        return Err(Corruption::InodeUuid { ino }.into());
    }
    Ok(())
}

fn fork_form(ino: u64, found: u8, fork: Fork) -> Result<Form, Corruption> {
    Form::of(found).ok_or(Corruption::ForkFormat { ino, fork: fork.word(), found })
}

/// Returns a time, and true if its nanoseconds are none.
fn time(stored: u64, is_big: bool) -> (Timestamp, bool) {
    if is_big {
        let (seconds, nanos) = (stored / NANOS_LONG, stored % NANOS_LONG);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_sub(BIGTIME_EPOCH);
        return (Timestamp { seconds, nanos: u32_of(nanos) }, false);
    }
    let [high, low] = [stored >> 32, stored & u64::from(u32::MAX)].map(u32_of);
    let seconds = i64::from(high.cast_signed());
    match low < NANOS {
        true => (Timestamp { seconds, nanos: low }, false),
        false => (Timestamp::from_seconds(seconds), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_forms_are_read() {
        let old = |seconds: i32, nanos: u32| {
            time(u64::from(seconds.cast_unsigned()) << 32 | u64::from(nanos), false)
        };
        assert_eq!(old(-5, 7), (Timestamp { seconds: -5, nanos: 7 }, false));
        assert_eq!(old(9, NANOS), (Timestamp::from_seconds(9), true));
        assert_eq!(time(0, true).0, Timestamp::from_seconds(-(1 << 31)));
        assert_eq!(time(u64::MAX, true).0, Timestamp { seconds: 16_299_260_425, nanos: 709_551_615 });
    }
}
