//! Changes of inodes (`struct xfs_inode_log_format`), whose cores are logged in the byte order of
//! the machine, and new inodes (`struct xfs_icreate_log`).

use super::format::put;
use super::state::Replay;
use super::transaction::Item;
use crate::corruption::Corruption;
use crate::disk::{be16, be32, be64, byte, le16, le32, le64, part};
use crate::super_block::SECTOR;
use packfs_core::{Result, usize_of};

/// First bytes of an inode.
const MAGIC: u16 = 0x494e;
/// Fields of an inode that were changed.
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
/// Bytes of the description, and of that of 32-bit machines.
const FORMAT_LEN: usize = 56;
const FORMAT_LEN_32: usize = 52;
/// Bytes of a core that are logged, before version 3 and in it.
const CORE_LEN: usize = 96;
const CORE_LEN_V3: usize = 176;
/// Bit of the second flags: times of 64 bits.
const BIGTIME: u64 = 1 << 3;
/// Bit of the second flags: 48-bit counts of extents.
const NREXT64: u64 = 1 << 4;
/// Bit of the second flags: metadata, with a type in place of the link count of version 1.
const METADATA: u64 = 1 << 5;
/// Highest counter of writes of an inode before version 3.
const FLUSHES_MAX: u16 = 0xffff;
/// Offset of the number of the record that changed an inode.
const LSN_AT: usize = 112;
/// Bytes of a cluster of inodes of 256 bytes, and of the shortest inode.
const CLUSTER_LEN: u64 = 8 << 10;
const INODE_LEN_MIN: u64 = 256;

/// Fields of a core: offset and width of those whose byte order is turned around.
const FIELDS: [(usize, usize); 17] = [
    (0, 2),
    (2, 2),
    (8, 4),
    (12, 4),
    (16, 4),
    (20, 2),
    (22, 2),
    (56, 8),
    (64, 8),
    (72, 4),
    (84, 4),
    (88, 2),
    (90, 2),
    (92, 4),
    (104, 8),
    (120, 8),
    (128, 4),
];
/// Fields from this offset on are those of version 3.
const V3_AT: usize = 104;
/// Offsets of times of all versions, and that of version 3.
const TIMES: [usize; 3] = [32, 40, 48];
const CREATED_AT: usize = 144;

/// Description of a changed inode.
struct Format {
    regions: u16,
    fields: u32,
    number: u64,
    device: u32,
    /// First sector and number of sectors of its cluster, and its offset there.
    first: u64,
    sectors: u16,
    offset: u64,
}

impl Format {
    fn parse(item: &Item) -> Result<Format> {
        let bytes = item.region(0);
        let number_at = match bytes.len() {
            FORMAT_LEN_32 => 12,
            len if len >= FORMAT_LEN => 16,
            _ => return Err(Corruption::LogItem { what: "inode", number: 0, fault: "cut off" }.into()),
        };
        let number = le64(bytes, number_at);
        let behind = |skip: usize| usize::saturating_add(number_at, skip);
        let sectors = u16::try_from(le32(bytes, behind(32)));
        let Ok(sectors) = sectors else {
            let fault = "its cluster is too long";
            return Err(Corruption::LogItem { what: "inode", number, fault }.into());
        };
        Ok(Format {
            regions: le16(bytes, 2),
            fields: le32(bytes, 4),
            number,
            device: le32(bytes, behind(8)),
            first: le64(bytes, behind(24)),
            sectors,
            offset: le32(bytes, behind(36)).into(),
        })
    }
}

impl Replay<'_> {
    /// Applies the change of an inode, unless its cluster was freed later, or it is newer on disk.
    pub(super) fn inode(&mut self, item: &Item, lsn: u64) -> Result<()> {
        let format = Format::parse(item)?;
        let fault = |fault| Corruption::LogItem { what: "inode", number: format.number, fault };
        if self.cancelled.has((format.first, format.sectors)) {
            return Ok(());
        }
        let at = format.first.saturating_mul(SECTOR).saturating_add(format.offset);
        let inode_len = self.target.super_block.inode_len;
        let is_outside = at.checked_rem(inode_len as u64) != Some(0);
        let Some(mut inode) = self.target.read(at, inode_len)?.filter(|_| !is_outside) else {
            return Err(fault("its place is not one of an inode").into());
        };
        let core = item.region(1);
        let is_v5 = self.target.super_block.is_v5();
        let len = if is_v5 { CORE_LEN_V3 } else { CORE_LEN };
        if be16(&inode, 0) != MAGIC || le16(core, 0) != MAGIC {
            return Err(fault("no inode is at its place").into());
        }
        if core.len() < len || (byte(core, 4) == 3) != is_v5 {
            return Err(fault("its core is cut off, or of another version").into());
        }
        if format.fields & OWNERS != 0 {
            self.notes.new_owners.insert(format.number);
        }
        if is_newer(&inode, core, lsn) {
            return Ok(());
        }
        put_core(&mut inode, core, lsn);
        if !self.put_forks(&mut inode, &format, item) {
            return Err(fault("a fork is longer than its room").into());
        }
        self.write_inode(at, inode)
    }

    /// Puts the logged parts of both forks into an inode. Returns false if one does not fit.
    fn put_forks(&self, inode: &mut [u8], format: &Format, item: &Item) -> bool {
        let data_at: usize = if byte(inode, 4) == 3 { 176 } else { 100 };
        let offset = usize::from(byte(inode, 82)).saturating_mul(8);
        let attr_at = match offset {
            0 => inode.len(),
            offset => data_at.saturating_add(offset),
        };
        if attr_at > inode.len() {
            return false;
        }
        let (head, attr) = inode.split_at_mut(attr_at);
        let data = head.get_mut(data_at..).unwrap_or_default();
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

    /// Puts the root of a tree of extents, which is logged as a block, into a fork
    /// (`xfs_bmbt_to_bmdr`).
    fn put_root(&self, fork: &mut [u8], block: &[u8]) -> Option<()> {
        let header_len = if self.target.super_block.is_v5() { 72 } else { 24 };
        // Roots of other trees are those of files without names.
        if !matches!(be32(block, 0), 0x424d_4133 | 0x424d_4150) {
            return Some(());
        }
        let count = usize::from(be16(block, 6));
        let keys_len = count.checked_mul(8)?;
        let block_max = block.len().checked_sub(header_len)? / 16;
        let keys = part(block, header_len, keys_len)?;
        let pointers_at = header_len.saturating_add(block_max.saturating_mul(8));
        let pointers = part(block, pointers_at, keys_len)?;
        let max = fork.len().checked_sub(4)? / 16;
        if count > max {
            return None;
        }
        put(fork, 0, part(block, 4, 4)?);
        put(fork, 4, keys);
        put(fork, max.saturating_mul(8).saturating_add(4), pointers);
        Some(())
    }

    /// Writes new inodes, unless their cluster was freed later.
    pub(super) fn new_inodes(&mut self, item: &Item) -> Result<()> {
        let bytes = item.region(0);
        let super_block = self.target.super_block;
        let (group, block) = (u64::from(be32(bytes, 4)), u64::from(be32(bytes, 8)));
        let [count, len, blocks] = [12, 16, 20].map(|at| u64::from(be32(bytes, at)));
        let inode_len = super_block.inode_len as u64;
        let slots = super_block.block_len.checked_div(inode_len).unwrap_or(0);
        let is_sound = group < super_block.ag_count
            && block > 0
            && block.saturating_add(blocks) <= super_block.ag_blocks
            && len == inode_len
            && (1..=64.max(slots)).contains(&count)
            && count.saturating_mul(len) == blocks.saturating_mul(super_block.block_len);
        if !is_sound {
            let (what, fault) = ("new inodes", "not a chunk of inodes of a group");
            return Err(Corruption::LogItem { what, number: block, fault }.into());
        }
        let at = super_block.ag_block_at(group, block);
        let cluster = self.cluster_sectors();
        let sectors = blocks.saturating_mul(super_block.block_len) / SECTOR;
        let mut first = at / SECTOR;
        let end = first.saturating_add(sectors);
        while first < end {
            if u16::try_from(cluster).is_ok_and(|len| self.cancelled.has((first, len))) {
                return Ok(());
            }
            first = first.saturating_add(cluster);
        }
        let number = block.saturating_mul(slots);
        for index in 0..count {
            let mut inode = vec![0; usize_of(inode_len)];
            put(&mut inode, 0, &MAGIC.to_be_bytes());
            put(&mut inode, 4, &[3]);
            put(&mut inode, 92, part(bytes, 24, 4).unwrap_or_default());
            put(&mut inode, 96, &[0xff; 4]);
            let ino = super_block.inode_of(group, number.saturating_add(index));
            put(&mut inode, 152, &ino.to_be_bytes());
            put(&mut inode, 160, &super_block.meta_uuid);
            let place = at.saturating_add(index.saturating_mul(inode_len));
            if place.saturating_add(inode_len) <= self.target_len() {
                self.write_inode(place, inode)?;
            }
        }
        Ok(())
    }

    /// Returns the sectors of a cluster, the unit in which inodes are read and freed.
    fn cluster_sectors(&self) -> u64 {
        let super_block = self.target.super_block;
        let long = CLUSTER_LEN.saturating_mul(super_block.inode_len as u64 / INODE_LEN_MIN);
        let alignment = super_block.inode_alignment.saturating_mul(super_block.block_len);
        let len = if alignment >= long { long } else { CLUSTER_LEN };
        len.max(super_block.block_len) / SECTOR
    }
}

/// Returns true if an inode on disk is newer than its change in the log.
fn is_newer(inode: &[u8], core: &[u8], lsn: u64) -> bool {
    if byte(inode, 4) >= 3 {
        let found = be64(inode, LSN_AT);
        return found != 0 && found != u64::MAX && found > lsn;
    }
    // Writes are counted in 16 bits, from 0 again after the highest.
    let (found, logged) = (be16(inode, 30), le16(core, 30));
    logged < found && !(found == FLUSHES_MAX && logged < FLUSHES_MAX >> 1)
}

/// Puts a logged core into an inode, in its byte order.
fn put_core(inode: &mut [u8], core: &[u8], lsn: u64) {
    let is_v3 = byte(core, 4) == 3;
    let flags2 = if is_v3 { le64(core, 120) } else { 0 };
    let mut turn = |at: usize, width: usize| {
        let mut bytes = part(core, at, width).unwrap_or_default().to_vec();
        bytes.reverse();
        put(inode, at, &bytes);
    };
    for (at, width) in FIELDS {
        if is_v3 || at < V3_AT {
            turn(at, width);
        }
    }
    for at in TIMES.into_iter().chain(is_v3.then_some(CREATED_AT)) {
        if flags2 & BIGTIME != 0 {
            turn(at, 8);
        } else {
            turn(at, 4);
            turn(at.saturating_add(4), 4);
        }
    }
    if flags2 & NREXT64 != 0 {
        turn(24, 8);
    }
    turn(76, 4);
    turn(80, 2);
    if byte(core, 4) == 1 || flags2 & METADATA != 0 {
        turn(6, 2);
    } else {
        put(inode, 6, &[0; 2]);
    }
    if is_v3 {
        turn_number(inode, core);
        put(inode, LSN_AT, &lsn.to_be_bytes());
        put(inode, 132, &[0; 12]);
        put(inode, 160, part(core, 160, 16).unwrap_or_default());
    }
    if flags2 & NREXT64 == 0 {
        put(inode, 24, &[0; 8]);
    }
    put(inode, 4, part(core, 4, 2).unwrap_or_default());
    put(inode, 82, part(core, 82, 2).unwrap_or_default());
}

/// Puts the number of an inode there.
fn turn_number(inode: &mut [u8], core: &[u8]) {
    put(inode, 152, &le64(core, 152).to_be_bytes());
}
