//! Allocation groups: headers, and the trees of free space, inodes, owners, and shared blocks.

use crate::corruption::Corruption;
use crate::disk::{Checksum, be16, be32, be64, part, uuid};
use crate::super_block::{CHECKSUM_AT, SECTOR, SuperBlock};
use crate::volume::XfsVolume;
use packfs_core::{Result, usize_of};
use packfs_format::FaultPlace;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Most levels of a tree of a group (`XFS_BTREE_MAXLEVELS`).
const LEVELS_MAX: u32 = 9;

/// Headers of a group: each fills a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// Roots of the trees of free space (AGF).
    Free,
    /// Roots of the trees of inodes (AGI).
    Inodes,
    /// Blocks that are kept for the trees (AGFL).
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
            Header::Free => (0x5841_4746, "XAGF"),
            Header::Inodes => (0x5841_4749, "XAGI"),
            Header::List => (0x5841_464c, "XAFL"),
        }
    }

    /// Returns the offsets of checksum, identifier, and number of the group.
    fn offsets(self) -> (usize, usize, usize) {
        match self {
            Header::Free => (216, 64, 8),
            Header::Inodes => (312, 296, 8),
            Header::List => (32, 8, 4),
        }
    }
}

/// Trees of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    FreeByPlace,
    FreeByLength,
    Inodes,
    FreeInodes,
    Owners,
    Shared,
}

/// Figures of a tree.
pub(crate) struct TreeRow {
    pub(crate) tree: Tree,
    pub(crate) word: &'static str,
    /// Magics of versions 5 and 4.
    magics: [u32; 2],
    pub(crate) record_len: usize,
    key_len: usize,
    /// Header with its root and its levels, and their offsets there.
    header: Header,
    root_at: usize,
    levels_at: usize,
    /// Bit of `ro_compat` that it needs.
    feature: u32,
}

/// Every tree of a group.
pub(crate) const TREES: [TreeRow; 6] = [
    TreeRow {
        tree: Tree::FreeByPlace,
        word: "free space tree (by place)",
        magics: [0x4142_3342, 0x4142_5442],
        record_len: 8,
        key_len: 8,
        header: Header::Free,
        root_at: 16,
        levels_at: 28,
        feature: 0,
    },
    TreeRow {
        tree: Tree::FreeByLength,
        word: "free space tree (by length)",
        magics: [0x4142_3343, 0x4142_5443],
        record_len: 8,
        key_len: 8,
        header: Header::Free,
        root_at: 20,
        levels_at: 32,
        feature: 0,
    },
    TreeRow {
        tree: Tree::Inodes,
        word: "inode tree",
        magics: [0x4941_4233, 0x4941_4254],
        record_len: 16,
        key_len: 4,
        header: Header::Inodes,
        root_at: 20,
        levels_at: 24,
        feature: 0,
    },
    TreeRow {
        tree: Tree::FreeInodes,
        word: "free inode tree",
        magics: [0x4649_4233, 0x4649_4254],
        record_len: 16,
        key_len: 4,
        header: Header::Inodes,
        root_at: 328,
        levels_at: 332,
        feature: 1,
    },
    TreeRow {
        tree: Tree::Owners,
        word: "reverse mapping tree",
        magics: [0x524d_4233, 0],
        record_len: 24,
        key_len: 40,
        header: Header::Free,
        root_at: 24,
        levels_at: 36,
        feature: 2,
    },
    TreeRow {
        tree: Tree::Shared,
        word: "reference count tree",
        magics: [0x5233_4643, 0],
        record_len: 12,
        key_len: 4,
        header: Header::Free,
        root_at: 88,
        levels_at: 92,
        feature: 4,
    },
];

/// Takes blocks of a tree (`None`), and records.
pub(crate) type VisitTree<'a> = dyn FnMut(u64, Option<&[u8]>) -> Result<ControlFlow<()>> + 'a;

/// 64 inodes that were allocated together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// Number of the first inode within the group.
    pub(crate) first: u64,
    /// Bit of four inodes each: without a place.
    holes: u16,
    /// Bit of an inode: not in use.
    free: u64,
}

impl Chunk {
    pub(crate) fn parse(record: &[u8], super_block: &SuperBlock) -> Chunk {
        let is_sparse = super_block.has(2);
        let holes = if is_sparse { be16(record, 4) } else { 0 };
        Chunk { first: be32(record, 0).into(), holes, free: be64(record, 8) }
    }

    /// Returns the inodes that have a place, by their index, and true for those in use.
    pub(crate) fn inodes(self) -> impl Iterator<Item = (u64, bool)> {
        (0..64_u32)
            .filter(move |index| self.holes >> (index / 4) & 1 == 0)
            .map(move |index| (self.first.saturating_add(index.into()), self.free >> index & 1 == 0))
    }
}

impl XfsVolume {
    /// Reads and verifies a header of a group.
    pub(crate) fn group_header(&self, group: u64, header: Header) -> Result<Vec<u8>> {
        let super_block = &self.super_block;
        let sector_at = header.sector().saturating_mul(super_block.sector_len);
        let at = super_block.ag_block_at(group, 0).saturating_add(sector_at);
        let place = FaultPlace::at(header.word(), at);
        let mut bytes = vec![0; usize_of(super_block.sector_len)];
        self.image.read_exact_at(at, &mut bytes)?;
        let is_v5 = super_block.is_v5();
        if header == Header::List && !is_v5 {
            return Ok(bytes);
        }
        let ((magic, wanted), found) = (header.magic(), be32(&bytes, 0));
        if found != magic {
            return Err(Corruption::BlockMagic { place, found, wanted }.into());
        }
        let (sum_at, uuid_at, number_at) = header.offsets();
        if is_v5 {
            let sum = Checksum::of(&bytes, sum_at);
            if !sum.is_right() {
                return Err(Corruption::Checksum { place, sum }.into());
            }
            if uuid(&bytes, uuid_at) != super_block.meta_uuid {
                return Err(Corruption::BlockUuid { place }.into());
            }
        }
        let found = be32(&bytes, number_at);
        if u64::from(found) != group {
            return Err(Corruption::GroupNumber { place, found: found.into(), wanted: group }.into());
        }
        Ok(bytes)
    }

    /// Returns the fault of the copy of the superblock in a group. Linux does not read it to mount.
    pub(crate) fn copy_fault(&self, group: u64) -> Result<Option<&'static str>> {
        let len = usize_of(self.super_block.sector_len);
        let (mut copy, mut first) = (vec![0; len], vec![0; len]);
        let at = self.super_block.ag_block_at(group, 0);
        if at.saturating_add(len as u64) > self.image.len() {
            return Ok(None);
        }
        self.image.read_exact_at(at, &mut copy)?;
        self.image.read_exact_at(0, &mut first)?;
        // Magic, block size, length, identifier, and groups.
        let places = [(0, 16), (32, 16), (84, 8), (124, 1)];
        let is_same = places.iter().all(|(at, len)| part(&copy, *at, *len) == part(&first, *at, *len));
        let is_summed = !self.super_block.is_v5() || Checksum::of(&copy, CHECKSUM_AT).is_right();
        Ok(match (is_same, is_summed) {
            (false, _) => Some("its figures are others"),
            (_, false) => Some("wrong checksum"),
            _ => None,
        })
    }

    /// Calls `visit` for the blocks and the records of a tree of a group.
    pub(crate) fn each_record(&self, group: u64, row: &TreeRow, visit: &mut VisitTree<'_>) -> Result<()> {
        if row.feature != 0 && self.super_block.ro_compat & row.feature == 0 {
            return Ok(());
        }
        let header = self.group_header(group, row.header)?;
        let (root, levels) = (be32(&header, row.root_at), be32(&header, row.levels_at));
        if !(1..=LEVELS_MAX).contains(&levels) {
            let place = FaultPlace::at(row.word, self.super_block.ag_block_at(group, root.into()));
            return Err(Corruption::Records { place, found: levels.into(), max: LEVELS_MAX.into() }.into());
        }
        let mut met = HashSet::new();
        let mut left = vec![(u64::from(root), levels.saturating_sub(1))];
        while let Some((number, level)) = left.pop() {
            let place = FaultPlace::at(row.word, self.super_block.ag_block_at(group, number));
            if number >= self.super_block.ag_len(group) || !met.insert(number) {
                return Err(Corruption::TreeBlock { place }.into());
            }
            if visit(number, None)?.is_break() {
                return Ok(());
            }
            let bytes = self.tree_block(row, level, place)?;
            let count = usize::from(be16(&bytes, 6));
            let header_len = self.tree_header_len();
            if level == 0 {
                let records = bytes.get(header_len..).unwrap_or_default().chunks_exact(row.record_len);
                for record in records.take(count) {
                    if visit(number, Some(record))?.is_break() {
                        return Ok(());
                    }
                }
                continue;
            }
            let max = self.pointers_max(row);
            let pointers_at = header_len.saturating_add(max.saturating_mul(row.key_len));
            let pointers = part(&bytes, pointers_at, count.saturating_mul(4)).unwrap_or_default();
            left.extend(
                pointers
                    .chunks_exact(4)
                    .rev()
                    .map(|pointer| (u64::from(be32(pointer, 0)), level.saturating_sub(1))),
            );
        }
        Ok(())
    }

    /// Reads and verifies a block of a tree.
    fn tree_block(&self, row: &TreeRow, level: u32, place: FaultPlace) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize_of(self.super_block.block_len)];
        self.image.read_exact_at(place.at, &mut bytes)?;
        let is_v5 = self.super_block.is_v5();
        let [v5, v4] = row.magics;
        let found = be32(&bytes, 0);
        if found != if is_v5 { v5 } else { v4 } {
            return Err(Corruption::BlockMagic { place, found, wanted: "the magic of its tree" }.into());
        }
        if is_v5 {
            let sum = Checksum::of(&bytes, 52);
            if !sum.is_right() {
                return Err(Corruption::Checksum { place, sum }.into());
            }
            self.verify_place(&bytes, 16, 32, place)?;
        }
        let found = u64::from(be16(&bytes, 4));
        if found != u64::from(level) {
            return Err(Corruption::Level { place, found, wanted: level.into() }.into());
        }
        let max = match level {
            0 => {
                let room = usize_of(self.super_block.block_len).saturating_sub(self.tree_header_len());
                room.checked_div(row.record_len).unwrap_or(0)
            }
            _ => self.pointers_max(row),
        };
        let count = be16(&bytes, 6);
        if usize::from(count) > max {
            return Err(Corruption::Records { place, found: count.into(), max: max as u64 }.into());
        }
        Ok(bytes)
    }

    fn tree_header_len(&self) -> usize {
        if self.super_block.is_v5() { 56 } else { 16 }
    }

    fn pointers_max(&self, row: &TreeRow) -> usize {
        let room = usize_of(self.super_block.block_len).saturating_sub(self.tree_header_len());
        room.checked_div(row.key_len.saturating_add(4)).unwrap_or(0)
    }

    /// Returns the blocks of a group that are kept for its trees.
    pub(crate) fn reserved_blocks(&self, group: u64) -> Result<Vec<u64>> {
        let header = self.group_header(group, Header::Free)?;
        let list = self.group_header(group, Header::List)?;
        let blocks = list.get(if self.super_block.is_v5() { 36 } else { 0 }..).unwrap_or_default();
        let size = (blocks.len() / 4) as u64;
        let (first, count) = (u64::from(be32(&header, 40)), u64::from(be32(&header, 48)).min(size));
        let index = |step: u64| usize_of(first.saturating_add(step).checked_rem(size).unwrap_or(0));
        Ok((0..count).map(|step| be32(blocks, index(step).saturating_mul(4)).into()).collect())
    }

    /// Calls `visit` for the chunks of inodes of a group.
    pub(crate) fn each_chunk(
        &self,
        group: u64,
        visit: &mut dyn FnMut(Chunk) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let Some(row) = TREES.iter().find(|row| row.tree == Tree::Inodes) else { return Ok(()) };
        self.each_record(group, row, &mut |_, record| match record {
            Some(record) => visit(Chunk::parse(record, &self.super_block)),
            None => Ok(ControlFlow::Continue(())),
        })
    }
}

/// Returns the sectors before the first block that a group may use, in bytes.
pub(crate) fn headers_len(super_block: &SuperBlock) -> u64 {
    super_block.sector_len.saturating_mul(4).max(4_u64.saturating_mul(SECTOR))
}
