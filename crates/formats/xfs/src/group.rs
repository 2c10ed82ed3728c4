//! Allocation groups: headers, and the trees of free space, inodes, owners, and shared blocks.

use crate::corruption::{Corruption, read};
use crate::disk::*;
use crate::super_block::{CHECKSUM_AT, SECTOR, SuperBlock};
use crate::volume::XfsVolume;
use packfs_core::{Result, usize_of};
use packfs_format::{FaultPlace, structures, units::*};
use std::collections::HashSet;
use std::mem::offset_of;
use std::ops::ControlFlow;
use zerocopy::big_endian::U32;

/// `XFS_BTREE_MAXLEVELS`.
const LEVELS_MAX: u32 = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// Roots of the trees of free space (AGF).
    Free,
    /// Roots of the trees of inodes (AGI).
    Inodes,
    /// Blocks reserved for the trees (AGFL).
    List,
}

impl Header {
    fn word(self) -> &'static str {
        match self {
            Header::Free => "AGF",
            Header::Inodes => "AGI",
            Header::List => "AGFL",
        }
    }

    fn sector(self) -> u64 {
        match self {
            Header::Free => 1,
            Header::Inodes => 2,
            Header::List => 3,
        }
    }

    fn magic(self) -> (u32, &'static str) {
        match self {
            Header::Free => (XFS_AGF_MAGIC, "XAGF"),
            Header::Inodes => (XFS_AGI_MAGIC, "XAGI"),
            Header::List => (XFS_AGFL_MAGIC, "XAFL"),
        }
    }

    fn number_at(self) -> usize {
        match self {
            Header::Free => offset_of!(Agf, agf_seqno),
            Header::Inodes => offset_of!(Agi, agi_seqno),
            Header::List => offset_of!(Agfl, agfl_seqno),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    FreeByPlace,
    FreeByLength,
    Inodes,
    FreeInodes,
    Owners,
    Shared,
}

pub(crate) struct TreeRow {
    pub(crate) tree: Tree,
    pub(crate) word: &'static str,
    magics: [u32; 2],
    pub(crate) record_len: usize,
    key_len: usize,
    /// Header that contains root and level, and their offsets there.
    header: Header,
    root_at: usize,
    levels_at: usize,
    /// Required bit of `ro_compat`.
    feature: u32,
}

pub(crate) const TREES: [TreeRow; 6] = [
    TreeRow {
        tree: Tree::FreeByPlace,
        word: "free space tree (by place)",
        magics: [XFS_ABTB_CRC_MAGIC, XFS_ABTB_MAGIC],
        record_len: 8,
        key_len: 8,
        header: Header::Free,
        root_at: offset_of!(Agf, agf_bno_root),
        levels_at: offset_of!(Agf, agf_bno_level),
        feature: 0,
    },
    TreeRow {
        tree: Tree::FreeByLength,
        word: "free space tree (by length)",
        magics: [XFS_ABTC_CRC_MAGIC, XFS_ABTC_MAGIC],
        record_len: 8,
        key_len: 8,
        header: Header::Free,
        root_at: offset_of!(Agf, agf_cnt_root),
        levels_at: offset_of!(Agf, agf_cnt_level),
        feature: 0,
    },
    TreeRow {
        tree: Tree::Inodes,
        word: "inode tree",
        magics: [XFS_IBT_CRC_MAGIC, XFS_IBT_MAGIC],
        record_len: 16,
        key_len: 4,
        header: Header::Inodes,
        root_at: offset_of!(Agi, agi_root),
        levels_at: offset_of!(Agi, agi_level),
        feature: 0,
    },
    TreeRow {
        tree: Tree::FreeInodes,
        word: "free inode tree",
        magics: [XFS_FIBT_CRC_MAGIC, XFS_FIBT_MAGIC],
        record_len: 16,
        key_len: 4,
        header: Header::Inodes,
        root_at: offset_of!(Agi, agi_free_root),
        levels_at: offset_of!(Agi, agi_free_level),
        feature: 1,
    },
    TreeRow {
        tree: Tree::Owners,
        word: "reverse mapping tree",
        magics: [XFS_RMAP_CRC_MAGIC, 0],
        record_len: 24,
        key_len: 40,
        header: Header::Free,
        root_at: offset_of!(Agf, agf_rmap_root),
        levels_at: offset_of!(Agf, agf_rmap_level),
        feature: 2,
    },
    TreeRow {
        tree: Tree::Shared,
        word: "reference count tree",
        magics: [XFS_REFC_CRC_MAGIC, 0],
        record_len: 12,
        key_len: 4,
        header: Header::Free,
        root_at: offset_of!(Agf, agf_refcount_root),
        levels_at: offset_of!(Agf, agf_refcount_level),
        feature: 4,
    },
];

/// Arguments: block of a tree with `None`, or with a record.
pub(crate) type VisitTree<'a> = dyn FnMut(u64, Option<&[u8]>) -> Result<ControlFlow<()>> + 'a;

/// 64 inodes that were allocated together (`struct xfs_inobt_rec`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) first: u64,
    /// One bit for four inodes that are not allocated.
    holes: u16,
    /// One bit for each free inode.
    free: u64,
}

impl Chunk {
    pub(crate) fn parse(record: InobtRec, super_block: &SuperBlock) -> Chunk {
        let holes = if super_block.has(2) { record.ir_holemask.get() } else { 0 };
        Chunk { first: record.ir_startino.get().into(), holes, free: record.ir_free.get() }
    }

    /// Returns the indexes of the allocated inodes, with true for those in use.
    pub(crate) fn inodes(self) -> impl Iterator<Item = (u64, bool)> {
        (0..64_u32)
            .filter(move |index| self.holes >> (index / 4) & 1 == 0)
            .map(move |index| (self.first.plus(index.into()), self.free >> index & 1 == 0))
    }
}

impl XfsVolume {
    pub(crate) fn group_header(&self, group: u64, header: Header) -> Result<Vec<u8>> {
        let super_block = &self.super_block;
        let sector_at = header.sector().times(super_block.sector_len);
        let at = super_block.ag_block_at(group, 0).plus(sector_at);
        let place = FaultPlace::at(header.word(), at);
        let mut bytes = vec![0; usize_of(super_block.sector_len)];
        self.image.read_exact_at(at, &mut bytes)?;
        let is_v5 = super_block.is_v5();
        if header == Header::List && !is_v5 {
            return Ok(bytes);
        }
        let ((magic, wanted), found) = (header.magic(), read::<U32>(&bytes, 0, place)?.get());
        if found != magic {
            return Err(Corruption::BlockMagic { place, found, wanted }.into());
        }
        if is_v5 {
            self.verify_stamp(&bytes, place, false)?;
        }
        let found = read::<U32>(&bytes, header.number_at(), place)?.get();
        if u64::from(found) != group {
            return Err(Corruption::GroupNumber { place, found: found.into(), wanted: group }.into());
        }
        Ok(bytes)
    }

    /// Returns the fault of the superblock copy in a group. Linux does not read it to mount.
    pub(crate) fn copy_fault(&self, group: u64) -> Result<Option<&'static str>> {
        let len = usize_of(self.super_block.sector_len);
        let (mut copy, mut first) = (vec![0; len], vec![0; len]);
        let at = self.super_block.ag_block_at(group, 0);
        if at.plus(len as u64) > self.image.len() {
            return Ok(None);
        }
        self.image.read_exact_at(at, &mut copy)?;
        self.image.read_exact_at(0, &mut first)?;
        let place = FaultPlace::at("superblock", at);
        let figures = |bytes| {
            let raw: Dsb = read(bytes, 0, place)?;
            let lens = (raw.sb_blocksize, raw.sb_dblocks, raw.sb_agblocks, raw.sb_agcount, raw.sb_agblklog);
            Ok::<_, Corruption>((raw.sb_magicnum, raw.sb_uuid, lens))
        };
        let is_same = figures(&copy)? == figures(&first)?;
        let is_summed = !self.super_block.is_v5() || Checksum::of(&copy, CHECKSUM_AT).is_right();
        Ok(match (is_same, is_summed) {
            (false, _) => Some("its figures are others"),
            (_, false) => Some("wrong checksum"),
            _ => None,
        })
    }

    pub(crate) fn each_record(&self, group: u64, row: &TreeRow, visit: &mut VisitTree<'_>) -> Result<()> {
        if row.feature != 0 && self.super_block.ro_compat & row.feature == 0 {
            return Ok(());
        }
        let header = self.group_header(group, row.header)?;
        let place = FaultPlace::at(row.header.word(), self.super_block.ag_block_at(group, 0));
        let figure = |at| Ok::<u32, Corruption>(read::<U32>(&header, at, place)?.get());
        let (root, levels) = (figure(row.root_at)?, figure(row.levels_at)?);
        if !(1..=LEVELS_MAX).contains(&levels) {
            let place = FaultPlace::at(row.word, self.super_block.ag_block_at(group, root.into()));
            return Err(Corruption::Records { place, found: levels.into(), max: LEVELS_MAX.into() }.into());
        }
        let mut met = HashSet::new();
        let mut left = vec![(u64::from(root), levels.minus(1))];
        while let Some((number, level)) = left.pop() {
            let place = FaultPlace::at(row.word, self.super_block.ag_block_at(group, number));
            if number >= self.super_block.ag_len(group) || !met.insert(number) {
                return Err(Corruption::TreeBlock { place }.into());
            }
            if visit(number, None)?.is_break() {
                return Ok(());
            }
            let (bytes, count) = self.tree_block(row, level, place)?;
            let header_len = self.tree_header_len();
            if level == 0 {
                let records = bytes.within(header_len..).chunks_exact(row.record_len);
                for record in records.take(count) {
                    if visit(number, Some(record))?.is_break() {
                        return Ok(());
                    }
                }
                continue;
            }
            let max = self.pointers_max(row);
            let pointers_at = header_len.plus(max.times(row.key_len));
            let pointers = part(&bytes, pointers_at, count.times(4));
            let pointers = pointers.ok_or(Corruption::Cut { place, at: pointers_at as u64 })?;
            let below = structures::<U32>(pointers).map(|pointer| (pointer.get().into(), level.minus(1)));
            let from = left.len();
            left.extend(below);
            left.within_mut(from..).reverse();
        }
        Ok(())
    }

    /// Reads and verifies a tree block; returns it with its number of records.
    fn tree_block(&self, row: &TreeRow, level: u32, place: FaultPlace) -> Result<(Vec<u8>, usize)> {
        let mut bytes = vec![0; usize_of(self.super_block.block_len)];
        self.image.read_exact_at(place.at, &mut bytes)?;
        let is_v5 = self.super_block.is_v5();
        let [v5, v4] = row.magics;
        let head: BtreeBlock = read(&bytes, 0, place)?;
        let found = head.bb_magic.get();
        if found != if is_v5 { v5 } else { v4 } {
            return Err(Corruption::BlockMagic { place, found, wanted: "the magic of its tree" }.into());
        }
        if is_v5 {
            self.verify_stamp(&bytes, place, false)?;
        }
        let found = u64::from(head.bb_level.get());
        if found != u64::from(level) {
            return Err(Corruption::Level { place, found, wanted: level.into() }.into());
        }
        let max = match level {
            0 => {
                let room = usize_of(self.super_block.block_len).minus(self.tree_header_len());
                room.quotient(row.record_len)
            }
            _ => self.pointers_max(row),
        };
        let count = head.bb_numrecs.get();
        if usize::from(count) > max {
            return Err(Corruption::Records { place, found: count.into(), max: max as u64 }.into());
        }
        Ok((bytes, count.into()))
    }

    fn tree_header_len(&self) -> usize {
        if self.super_block.is_v5() { size_of::<BtreeShort>() } else { offset_of!(BtreeShort, bb_blkno) }
    }

    fn pointers_max(&self, row: &TreeRow) -> usize {
        let room = usize_of(self.super_block.block_len).minus(self.tree_header_len());
        room.quotient(row.key_len.plus(4))
    }

    pub(crate) fn reserved_blocks(&self, group: u64) -> Result<Vec<u64>> {
        let header = self.group_header(group, Header::Free)?;
        let list = self.group_header(group, Header::List)?;
        let blocks = list.within(if self.super_block.is_v5() { size_of::<Agfl>() } else { 0 }..);
        let blocks: Vec<U32> = structures(blocks).collect();
        let place = FaultPlace::at("AGF", self.super_block.ag_block_at(group, 0));
        let agf: Agf = read(&header, 0, place)?;
        let first = usize_of(agf.agf_flfirst.get().into());
        let found = agf.agf_flcount.get().into();
        if first >= blocks.len() || found > blocks.len() as u64 {
            let (first, max) = (first as u64, blocks.len() as u64);
            return Err(Corruption::FreeList { place, first, found, max }.into());
        }
        let ring = blocks.iter().cycle().skip(first).take(usize_of(found));
        Ok(ring.map(|block| block.get().into()).collect())
    }

    pub(crate) fn each_chunk(
        &self,
        group: u64,
        visit: &mut dyn FnMut(Chunk) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let Some(row) = TREES.iter().find(|row| row.tree == Tree::Inodes) else { return Ok(()) };
        self.each_record(group, row, &mut |_, record| match record {
            Some(record) => {
                let record = read(record, 0, FaultPlace::at(row.word, 0))?;
                visit(Chunk::parse(record, &self.super_block))
            }
            None => Ok(ControlFlow::Continue(())),
        })
    }
}

pub(crate) fn headers_len(super_block: &SuperBlock) -> u64 {
    super_block.sector_len.times(4).max(4_u64.times(SECTOR))
}
