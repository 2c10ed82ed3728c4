//! Inodes (`struct xfs_dinode`): the core, and two forks after it.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::super_block::{SECTOR, SuperBlock};
use packfs_core::{DeviceNumber, FileType, Result, Timestamp, u32_of};
use packfs_format::{structure, units::*};
use std::mem::offset_of;
use std::sync::Arc;
use zerocopy::big_endian::U32;

/// Seconds before 1970 at which 64-bit times start.
const BIGTIME_EPOCH: i64 = 1 << 31;
const NANOS: u32 = 1_000_000_000;
const NANOS_LONG: u64 = NANOS as u64;
const EXTENT_LEN: u64 = 16;

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

#[derive(Clone, Debug)]
pub(crate) struct DiskInode {
    pub(crate) ino: u64,
    pub(crate) file_type: FileType,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u32,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) mtime: Timestamp,
    pub(crate) has_time_fault: bool,
    pub(crate) is_realtime: bool,
    /// Set if its blocks may be shared with other files, or used several times.
    is_shared: bool,
    pub(crate) form: Form,
    pub(crate) attr_form: Form,
    extents: u64,
    attr_extents: u64,
    /// Cluster that contains the inode, and offsets there of its literal area and of the attribute
    /// fork, which may be the end.
    cluster: Arc<Vec<u8>>,
    data_at: usize,
    attr_at: usize,
    end: usize,
}

impl DiskInode {
    pub(crate) fn fork(&self, fork: Fork) -> &[u8] {
        let range = match fork {
            Fork::Data => self.data_at..self.attr_at,
            Fork::Attr => self.attr_at..self.end,
        };
        self.cluster.within(range)
    }

    pub(crate) fn fork_form(&self, fork: Fork) -> Form {
        match fork {
            Fork::Data => self.form,
            Fork::Attr => self.attr_form,
        }
    }

    pub(crate) fn extent_count(&self, fork: Fork) -> u64 {
        match fork {
            Fork::Data => self.extents,
            Fork::Attr => self.attr_extents,
        }
    }

    pub(crate) fn has_attr_fork(&self) -> bool {
        self.attr_at < self.end && (self.attr_form != Form::Extents || self.attr_extents > 0)
    }

    /// Returns the device number in XFS's own encoding.
    pub(crate) fn device(&self) -> Result<DeviceNumber> {
        let (ino, stored) = (self.ino, structure(self.fork(Fork::Data), 0));
        let stored = stored.map(U32::get).ok_or(Corruption::ShortForm { ino, what: "device", at: 0 })?;
        Ok(DeviceNumber { major: stored >> 18, minor: stored & 0x3_ffff })
    }

    pub(crate) fn parse(
        super_block: &SuperBlock,
        ino: u64,
        cluster: Arc<Vec<u8>>,
        at: usize,
    ) -> Result<DiskInode> {
        let bytes = part(&cluster, at, super_block.inode_len).ok_or(Corruption::InodePlace { ino })?;
        let raw: Dinode = structure(bytes, 0).ok_or(Corruption::InodePlace { ino })?;
        verify(super_block, ino, &raw, bytes)?;
        let mode = raw.di_mode.get();
        let Some(file_type) = FileType::from_mode_bits(mode.into()) else {
            return Err(match mode {
                0 => Corruption::InodeFree { ino },
                found => Corruption::InodeMode { ino, found },
            }
            .into());
        };
        let flags2 = raw.flags2();
        let (extents, attr_extents) = if flags2 & XFS_DIFLAG2_NREXT64 != 0 {
            (raw.di_big_nextents.get(), raw.di_nextents.get().into())
        } else {
            (raw.di_nextents.get().into(), raw.di_anextents.get().into())
        };
        let data_at = raw.len();
        let fork_offset = raw.fork_offset();
        let len = super_block.inode_len.minus(data_at);
        if fork_offset >= len {
            return Err(Corruption::ForkOffset { ino, found: fork_offset as u64, max: len as u64 }.into());
        }
        let (mtime, has_time_fault) = time(raw.di_mtime.get(), flags2 & XFS_DIFLAG2_BIGTIME != 0);
        let data_at = at.plus(data_at);
        let end = at.plus(super_block.inode_len);
        let inode = DiskInode {
            ino,
            file_type,
            mode: mode & 0o7777,
            uid: raw.di_uid.get(),
            gid: raw.di_gid.get(),
            links: if raw.di_version == 1 { raw.di_metatype.get().into() } else { raw.di_nlink.get() },
            size: raw.di_size.get(),
            blocks: raw.di_nblocks.get(),
            mtime,
            has_time_fault,
            is_realtime: file_type == FileType::File && raw.di_flags.get() & XFS_DIFLAG_REALTIME != 0,
            is_shared: file_type == FileType::File && flags2 & XFS_DIFLAG2_REFLINK != 0,
            form: fork_form(ino, raw.di_format, Fork::Data)?,
            attr_form: if fork_offset == 0 {
                Form::Extents
            } else {
                fork_form(ino, raw.di_aformat, Fork::Attr)?
            },
            extents,
            attr_extents: if fork_offset == 0 { 0 } else { attr_extents },
            data_at,
            attr_at: if fork_offset == 0 { end } else { data_at.plus(fork_offset) },
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
        // A file may map a shared block many times.
        let blocks_max = if self.is_shared { u64::MAX } else { end_of(super_block.blocks, realtime) };
        let blocks_max = blocks_max.min(u64::MAX.quotient(super_block.block_len / SECTOR));
        if self.blocks > blocks_max {
            return Err(Corruption::InodeBlocks { ino, found: self.blocks, max: blocks_max }.into());
        }
        for fork in [Fork::Data, Fork::Attr] {
            let found = self.extent_count(fork);
            let max = self.fork(fork).len() as u64 / EXTENT_LEN;
            if self.fork_form(fork) == Form::Extents && found > max {
                return Err(Corruption::ForkExtents { ino, fork: fork.word(), found, max }.into());
            }
        }
        Ok(())
    }
}

impl Dinode {
    pub(crate) fn len(&self) -> usize {
        if self.di_version >= 3 { size_of::<Dinode>() } else { offset_of!(Dinode, di_crc) }
    }

    /// Length of the data fork; 0 without an attribute fork.
    pub(crate) fn fork_offset(&self) -> usize {
        usize::from(self.di_forkoff).times(8)
    }

    fn flags2(&self) -> u64 {
        if self.di_version >= 3 { self.di_flags2.get() } else { 0 }
    }
}

fn verify(super_block: &SuperBlock, ino: u64, raw: &Dinode, bytes: &[u8]) -> Result<()> {
    let found = raw.di_magic.get();
    if found != XFS_DINODE_MAGIC {
        return Err(Corruption::InodeMagic { ino, found }.into());
    }
    let version = raw.di_version;
    let is_right = if super_block.is_v5() { version == 3 } else { matches!(version, 1 | 2) };
    if !is_right {
        let wanted = if super_block.is_v5() { "3" } else { "1 and 2" };
        return Err(Corruption::InodeVersion { ino, found: version, wanted }.into());
    }
    if version < 3 {
        return Ok(());
    }
    let sum = Checksum::of(bytes, offset_of!(Dinode, di_crc));
    if !sum.is_right() {
        return Err(Corruption::InodeChecksum { ino, sum }.into());
    }
    let found = raw.di_ino.get();
    if found != ino {
        return Err(Corruption::InodeNumber { ino, found }.into());
    }
    if raw.di_uuid != super_block.meta_uuid {
        return Err(Corruption::InodeUuid { ino }.into());
    }
    Ok(())
}

fn fork_form(ino: u64, found: u8, fork: Fork) -> Result<Form, Corruption> {
    Form::of(found).ok_or(Corruption::ForkFormat { ino, fork: fork.word(), found })
}

/// Returns a time, and true if its nanoseconds are invalid.
fn time(stored: u64, is_big: bool) -> (Timestamp, bool) {
    if is_big {
        let (seconds, nanos) = (stored / NANOS_LONG, stored % NANOS_LONG);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).minus(BIGTIME_EPOCH);
        return (Timestamp { seconds, nanos: u32_of(nanos) }, false);
    }
    let [high, low] = [stored >> 32, stored & u64::from(u32::MAX)].map(u32_of);
    let seconds = i64::from(high.cast_signed());
    if low < NANOS {
        (Timestamp { seconds, nanos: low }, false)
    } else {
        (Timestamp::from_seconds(seconds), true)
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
