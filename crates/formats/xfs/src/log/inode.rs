//! Changes of inodes (`struct xfs_inode_log_format`), with cores in the byte order of the machine,
//! and new inodes (`struct xfs_icreate_log`).

use super::state::Replay;
use super::transaction::Item;
use crate::corruption::Corruption;
use crate::disk::log::InodeLogFormat;
use crate::disk::*;
use crate::super_block::SECTOR;
use packfs_core::{Result, usize_of};
use packfs_format::{structure, units::*};
use std::mem::offset_of;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

const CUT: Corruption = Corruption::log_item("inode", 0, "cut off");
/// Flags of changed fields (`XFS_ILOG_*`).
const DATA_LOCAL: u32 = 0x2;
const DATA_EXTENTS: u32 = 0x4;
const DATA_ROOT: u32 = 0x8;
const DEVICE: u32 = 0x10;
const ATTR_LOCAL: u32 = 0x40;
const ATTR_EXTENTS: u32 = 0x80;
const ATTR_ROOT: u32 = 0x100;
const OWNERS: u32 = 0x200 | 0x400;
const DATA: u32 = DATA_LOCAL | DATA_EXTENTS | DATA_ROOT;
const ATTR: u32 = ATTR_LOCAL | ATTR_EXTENTS | ATTR_ROOT;
const CORE_LEN: usize = offset_of!(LogDinode, di_next_unlinked);
/// Maximum of `di_flushiter`.
const FLUSHES_MAX: u16 = 0xffff;
/// Length of a cluster of inodes of 256 bytes, the shortest.
const CLUSTER_LEN: u64 = 8 << 10;
const INODE_LEN_MIN: u64 = 256;

struct Format {
    regions: u16,
    fields: u32,
    number: u64,
    device: u32,
    /// First sector and number of sectors of its cluster, and offset of the inode there.
    first: u64,
    sectors: u16,
    offset: u64,
}

impl Format {
    fn parse(item: &Item) -> Result<Format> {
        let mut bytes = item.region(0).to_vec();
        let pad = offset_of!(InodeLogFormat, ilf_pad);
        if bytes.len() == size_of::<InodeLogFormat>().minus(size_of::<U32>()) {
            // 32-bit machines omit the padding.
            bytes.splice(pad..pad, [0; 4]);
        }
        let raw: InodeLogFormat = structure(&bytes, 0).ok_or(CUT)?;
        let number = raw.ilf_ino.get();
        let Ok(sectors) = u16::try_from(raw.ilf_len.get()) else {
            return Err(Corruption::log_item("inode", number, "its cluster is too long").into());
        };
        Ok(Format {
            regions: raw.ilf_size.get(),
            fields: raw.ilf_fields.get(),
            number,
            device: raw.ilfu_rdev.get(),
            first: raw.ilf_blkno.get(),
            sectors,
            offset: raw.ilf_boffset.get().into(),
        })
    }
}

impl Replay<'_> {
    /// Applies the change of an inode, unless its cluster is freed later, or it is newer on disk.
    pub(super) fn inode(&mut self, item: &Item, lsn: u64) -> Result<()> {
        let format = Format::parse(item)?;
        let fault = |fault| Corruption::log_item("inode", format.number, fault);
        if self.cancelled.has((format.first, format.sectors)) {
            return Ok(());
        }
        let at = nth_at(format.offset, format.first, SECTOR);
        let inode_len = self.target.super_block.inode_len;
        let is_outside = at.checked_rem(inode_len as u64) != Some(0);
        let Some(mut inode) = self.target.read(at, inode_len)?.filter(|_| !is_outside) else {
            return Err(fault("its address is not that of an inode").into());
        };
        let is_v5 = self.target.super_block.is_v5();
        let Some((raw, core)) = structure::<Dinode>(&inode, 0).zip(core_of(item.region(1), is_v5)) else {
            return Err(fault("its core is cut off, or of another version").into());
        };
        if raw.di_magic.get() != XFS_DINODE_MAGIC || core.di_magic.get() != XFS_DINODE_MAGIC {
            return Err(fault("no inode is at its address").into());
        }
        if format.fields & OWNERS != 0 {
            self.notes.new_owners.insert(format.number);
        }
        if is_newer(&raw, &core, lsn) {
            return Ok(());
        }
        let raw = with_core(raw, &core, lsn);
        put(&mut inode, 0, raw.as_bytes());
        if !self.put_forks(&mut inode, &raw, &format, item) {
            return Err(fault("a fork is longer than its room").into());
        }
        self.write_inode(at, inode)
    }

    /// Stores the logged parts of both forks; false if one does not fit.
    fn put_forks(&self, inode: &mut [u8], raw: &Dinode, format: &Format, item: &Item) -> bool {
        let data_at = raw.len();
        let attr_at = match raw.fork_offset() {
            0 => inode.len(),
            offset => data_at.plus(offset),
        };
        if attr_at > inode.len() {
            return false;
        }
        let (head, attr) = inode.split_at_mut(attr_at);
        let data = head.within_mut(data_at..);
        if format.fields & DEVICE != 0 {
            put(data, 0, &format.device.to_be_bytes());
        }
        if format.regions == 2 {
            return true;
        }
        let (data_field, attr_field) = (format.fields & DATA, format.fields & ATTR);
        let attr_index = if data_field == 0 { 2 } else { 3 };
        let forks = [(data, data_field, DATA_ROOT, 2), (attr, attr_field, ATTR_ROOT, attr_index)];
        forks.into_iter().filter(|(_, field, ..)| *field != 0).all(|(fork, field, root, index)| {
            let logged = item.region(index);
            if field == root {
                return self.put_root(fork, logged).is_some();
            }
            let fits = logged.len() <= fork.len();
            put(fork, 0, logged);
            fits
        })
    }

    /// Converts the root of an extent tree, which is logged as a block (`xfs_bmbt_to_bmdr`).
    fn put_root(&self, fork: &mut [u8], block: &[u8]) -> Option<()> {
        let header_len = if self.target.super_block.is_v5() { BMAP_HEADER_LEN } else { BMAP_HEADER_LEN_V4 };
        let head: BtreeBlock = structure(block, 0)?;
        // Other trees have roots in inodes without names.
        if !matches!(head.bb_magic.get(), XFS_BMAP_CRC_MAGIC | XFS_BMAP_MAGIC) {
            return Some(());
        }
        let count = usize::from(head.bb_numrecs.get());
        let keys_len = count.checked_mul(8)?;
        let block_max = block.len().checked_sub(header_len)? / 16;
        let keys = part(block, header_len, keys_len)?;
        let pointers_at = header_len.plus(block_max.times(8));
        let pointers = part(block, pointers_at, keys_len)?;
        let root_len = size_of::<BmdrBlock>();
        let max = fork.len().checked_sub(root_len)? / 16;
        if count > max {
            return None;
        }
        let root = BmdrBlock { bb_level: head.bb_level, bb_numrecs: head.bb_numrecs };
        put(fork, 0, root.as_bytes());
        put(fork, root_len, keys);
        put(fork, max.times(8).plus(root_len), pointers);
        Some(())
    }

    pub(super) fn new_inodes(&mut self, item: &Item) -> Result<()> {
        let raw: IcreateLog = item.head("new inodes")?;
        let super_block = self.target.super_block;
        let [group, block, count, len, blocks] =
            [raw.icl_ag, raw.icl_agbno, raw.icl_count, raw.icl_isize, raw.icl_length]
                .map(|figure| u64::from(figure.get()));
        let inode_len = super_block.inode_len as u64;
        let slots = super_block.block_len.quotient(inode_len);
        let is_sound = group < super_block.ag_count
            && block > 0
            && block.plus(blocks) <= super_block.ag_blocks
            && len == inode_len
            && (1..=64.max(slots)).contains(&count)
            && count.times(len) == blocks.times(super_block.block_len);
        if !is_sound {
            return Err(Corruption::log_item("new inodes", block, "not a chunk of inodes of a group").into());
        }
        let at = super_block.ag_block_at(group, block);
        let cluster = self.cluster_sectors();
        let sectors = blocks.times(super_block.block_len) / SECTOR;
        let mut first = at / SECTOR;
        let end = first.plus(sectors);
        while first < end {
            if u16::try_from(cluster).is_ok_and(|len| self.cancelled.has((first, len))) {
                return Ok(());
            }
            first = first.plus(cluster);
        }
        let number = block.times(slots);
        for index in 0..count {
            let mut inode = vec![0; usize_of(inode_len)];
            let new = Dinode {
                di_magic: XFS_DINODE_MAGIC.into(),
                di_version: 3,
                di_gen: raw.icl_gen,
                di_next_unlinked: u32::MAX.into(),
                di_ino: super_block.inode_of(group, number.plus(index)).into(),
                di_uuid: super_block.meta_uuid,
                ..Dinode::default()
            };
            put(&mut inode, 0, new.as_bytes());
            let place = at.plus(index.times(inode_len));
            if place.plus(inode_len) <= self.target_len() {
                self.write_inode(place, inode)?;
            }
        }
        Ok(())
    }

    /// Sectors of a cluster, the unit in which inodes are read and freed.
    fn cluster_sectors(&self) -> u64 {
        let super_block = self.target.super_block;
        let long = CLUSTER_LEN.times(super_block.inode_len as u64 / INODE_LEN_MIN);
        let alignment = super_block.inode_alignment.times(super_block.block_len);
        let len = if alignment >= long { long } else { CLUSTER_LEN };
        len.max(super_block.block_len) / SECTOR
    }
}

/// Returns a logged core, with zeros for the version 3 fields if it is older.
fn core_of(bytes: &[u8], is_v5: bool) -> Option<LogDinode> {
    let len = if is_v5 { size_of::<LogDinode>() } else { CORE_LEN };
    let mut padded = part(bytes, 0, len)?.to_vec();
    padded.resize(size_of::<LogDinode>(), 0);
    structure(&padded, 0).filter(|core: &LogDinode| (core.di_version == 3) == is_v5)
}

fn is_newer(inode: &Dinode, core: &LogDinode, lsn: u64) -> bool {
    if inode.di_version >= 3 {
        let found = inode.di_lsn.get();
        return found != 0 && found != u64::MAX && found > lsn;
    }
    // `di_flushiter` wraps around at 16 bits.
    let [.., high, low] = inode.di_big_nextents.get().to_be_bytes();
    let [.., logged_low, logged_high] = core.di_big_nextents.get().to_le_bytes();
    let found = u16::from_be_bytes([high, low]);
    let logged = u16::from_le_bytes([logged_low, logged_high]);
    logged < found && !(found == FLUSHES_MAX && logged < FLUSHES_MAX >> 1)
}

/// Copies fields from a core of the log, in the byte order of the machine.
macro_rules! copy {
    ($from:ident => $to:ident: $($field:ident)+) => {
        $($to.$field = $from.$field.get().into();)+
    };
}

/// Converts a logged core (`xfs_log_dinode_to_disk`).
fn with_core(inode: Dinode, core: &LogDinode, lsn: u64) -> Dinode {
    let is_v3 = core.di_version == 3;
    let flags2 = if is_v3 { core.di_flags2.get() } else { 0 };
    let has = |flag: u64| flags2 & flag != 0;
    // Without bigtime, seconds and nanoseconds are one word each.
    let time = |stored: U64| stored.get().rotate_left(if has(XFS_DIFLAG2_BIGTIME) { 0 } else { 32 });
    let mut to = Dinode {
        di_version: core.di_version,
        di_format: core.di_format,
        di_metatype: if core.di_version == 1 || has(XFS_DIFLAG2_METADATA) {
            core.di_metatype.get().into()
        } else {
            0.into()
        },
        di_big_nextents: if has(XFS_DIFLAG2_NREXT64) { core.di_big_nextents.get() } else { 0 }.into(),
        di_atime: time(core.di_atime).into(),
        di_mtime: time(core.di_mtime).into(),
        di_ctime: time(core.di_ctime).into(),
        di_forkoff: core.di_forkoff,
        di_aformat: core.di_aformat,
        ..inode
    };
    copy!(core => to: di_magic di_mode di_uid di_gid di_nlink di_projid_lo di_projid_hi di_size di_nblocks
        di_extsize di_nextents di_anextents di_dmevmask di_dmstate di_flags di_gen);
    if is_v3 {
        copy!(core => to: di_changecount di_flags2 di_cowextsize di_ino);
        (to.di_lsn, to.di_crtime) = (lsn.into(), time(core.di_crtime).into());
        (to.di_pad2, to.di_uuid) = ([0; 12], core.di_uuid);
    }
    to
}
