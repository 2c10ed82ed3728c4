//! Extents of a fork: in the inode, or in a tree whose root is in the inode.
//!
//! Invariant: offsets of extents rise, so every walk ends.

use crate::block::{Block, BlockKind};
use crate::corruption::{Corruption, read};
use crate::disk::{BMAP_HEADER_LEN, BMAP_HEADER_LEN_V4, BmbtRec, BmdrBlock, BtreeBlock};
use crate::inode::{DiskInode, Fork, Form};
use crate::mapping::Mapping;
use crate::volume::XfsVolume;
use packfs_core::{Result, usize_of};
use packfs_format::{structure, structures, units::*};
use std::ops::ControlFlow;
use zerocopy::big_endian::U64;

const EXTENT_LEN: usize = 16;
const KEY_LEN: usize = 8;
const ROOT_HEADER_LEN: usize = size_of::<BmdrBlock>();
/// `XFS_BTREE_MAXLEVELS`.
const LEVELS_MAX: u16 = 9;

struct Visitor<'a> {
    volume: &'a XfsVolume,
    inode: &'a DiskInode,
    fork: Fork,
    /// End of the previous mapping, in blocks.
    before: u64,
    /// Mappings that end before this block are skipped.
    from: u64,
    visit: &'a mut dyn FnMut(Mapping) -> Result<ControlFlow<()>>,
}

impl Visitor<'_> {
    fn take(&mut self, record: BmbtRec) -> Result<ControlFlow<()>> {
        let mapping @ Mapping { offset, start, count, .. } = Mapping::parse(record);
        let ino = self.inode.ino;
        let before = std::mem::replace(&mut self.before, mapping.end());
        if offset < before {
            return Err(Corruption::ExtentOrder { ino, offset, before }.into());
        }
        let is_realtime = self.fork == Fork::Data && self.inode.is_realtime;
        let has_place = if is_realtime {
            self.volume.realtime.blocks_at(start, count).is_some()
        } else {
            self.volume.super_block.blocks_at(start, count).is_some()
        };
        if count == 0 || !has_place {
            return Err(Corruption::ExtentPlace { ino, offset, start, count }.into());
        }
        if mapping.end() <= self.from {
            return Ok(ControlFlow::Continue(()));
        }
        (self.visit)(mapping)
    }

    fn take_all(&mut self, extents: &[u8]) -> Result<ControlFlow<()>> {
        for extent in structures(extents) {
            if self.take(extent)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Inner node on the path to a leaf: its level and remaining pointers.
struct Node {
    level: u16,
    pointers: std::vec::IntoIter<U64>,
}

impl Node {
    /// Takes `count` of the keys and pointers in `records`, which has room for `max` of each,
    /// beginning with the last whose key is at most `from`. `None` if the records are too short.
    fn new(level: u16, records: &[u8], (count, max): (usize, usize), from: u64) -> Option<Node> {
        let len = count.times(KEY_LEN);
        let keys = structures::<U64>(part(records, 0, len)?);
        let pointers = part(records, max.times(KEY_LEN), len)?;
        let passed = keys.skip(1).take_while(|key| key.get() <= from).count();
        Some(Node { level, pointers: structures(pointers).skip(passed).collect::<Vec<_>>().into_iter() })
    }
}

impl XfsVolume {
    /// Calls `visit` for the mappings of a fork that end after block `from` of the file, in order.
    pub(crate) fn each_mapping(
        &self,
        inode: &DiskInode,
        fork: Fork,
        from: u64,
        visit: &mut dyn FnMut(Mapping) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if let Some(mappings) = self.patches.mappings(inode.ino, fork) {
            for mapping in mappings.iter().filter(|mapping| mapping.end() > from) {
                if visit(*mapping)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let mut visitor = Visitor { volume: self, inode, fork, before: 0, from, visit };
        match inode.fork_form(fork) {
            Form::Extents => {
                let len = usize_of(inode.extent_count(fork)).times(EXTENT_LEN);
                let ino = inode.ino;
                let cut = Corruption::ShortForm { ino, what: "extents", at: len as u64 };
                visitor.take_all(part(inode.fork(fork), 0, len).ok_or(cut)?).map(drop)
            }
            Form::Tree => self.walk_tree(&mut visitor, &mut |_| {}),
            Form::Local | Form::Device => Ok(()),
        }
    }

    pub(crate) fn each_tree_block(
        &self,
        inode: &DiskInode,
        fork: Fork,
        visit: &mut dyn FnMut(u64),
    ) -> Result<()> {
        if inode.fork_form(fork) != Form::Tree {
            return Ok(());
        }
        let mut ignore = |_| Ok(ControlFlow::Continue(()));
        let mut visitor = Visitor { volume: self, inode, fork, before: 0, from: 0, visit: &mut ignore };
        self.walk_tree(&mut visitor, visit)
    }

    fn walk_tree(&self, visitor: &mut Visitor<'_>, met: &mut dyn FnMut(u64)) -> Result<()> {
        let inode = visitor.inode;
        let fork = visitor.fork;
        let from = visitor.from;
        let mut path = vec![root_node(inode, fork, from)?];
        while let Some(node) = path.last_mut() {
            let level = node.level.minus(1);
            let Some(pointer) = node.pointers.next().map(U64::get) else {
                path.pop();
                continue;
            };
            met(pointer);
            let block = self.block(BlockKind::Map, &[(pointer, 1)], inode.ino)?;
            let count = self.tree_records(&block, level)?;
            let records = block.bytes.within(self.map_header_len()..);
            let cut = Corruption::Cut { place: block.place, at: block.bytes.len() as u64 };
            if level > 0 {
                path.push(Node::new(level, records, (count, self.records_max()), from).ok_or(cut)?);
                continue;
            }
            let records = part(records, 0, count.times(EXTENT_LEN)).ok_or(cut)?;
            if visitor.take_all(records)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn map_header_len(&self) -> usize {
        if self.super_block.is_v5() { BMAP_HEADER_LEN } else { BMAP_HEADER_LEN_V4 }
    }

    /// Maximum records of a tree block; those of nodes are as long as those of leaves.
    fn records_max(&self) -> usize {
        usize_of(self.super_block.block_len).minus(self.map_header_len()) / EXTENT_LEN
    }

    /// Checks the level of a tree block, and returns its number of records.
    fn tree_records(&self, block: &Block, level: u16) -> Result<usize> {
        let head: BtreeBlock = read(&block.bytes, 0, block.place)?;
        let (found, count) = (head.bb_level.get(), head.bb_numrecs.get());
        if found != level {
            let (found, wanted) = (found.into(), level.into());
            return Err(Corruption::Level { place: block.place, found, wanted }.into());
        }
        let max = self.records_max();
        if count == 0 || usize::from(count) > max {
            return Err(
                Corruption::Records { place: block.place, found: count.into(), max: max as u64 }.into()
            );
        }
        Ok(count.into())
    }
}

fn root_node(inode: &DiskInode, fork: Fork, from: u64) -> Result<Node, Corruption> {
    let (ino, bytes) = (inode.ino, inode.fork(fork));
    let cut = Corruption::ShortForm { ino, what: "root of a tree of extents", at: 0 };
    let root: BmdrBlock = structure(bytes, 0).ok_or(cut)?;
    let (level, records) = (root.bb_level.get(), root.bb_numrecs.get());
    let max = bytes.len().minus(ROOT_HEADER_LEN) / EXTENT_LEN;
    if !(1..LEVELS_MAX).contains(&level) || records == 0 || usize::from(records) > max {
        return Err(Corruption::ForkRoot { ino, fork: fork.word(), level, records });
    }
    let behind = bytes.within(ROOT_HEADER_LEN..);
    Node::new(level, behind, (records.into(), max), from).ok_or(cut)
}
