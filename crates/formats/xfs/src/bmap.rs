//! Extents of a fork: in the inode, or in a tree whose root is there.
//!
//! Invariant: offsets of extents rise, so every walk ends.

use crate::block::{Block, BlockKind};
use crate::corruption::Corruption;
use crate::disk::{be16, be64, part};
use crate::inode::{DiskInode, Fork, Form};
use crate::mapping::Mapping;
use crate::volume::XfsVolume;
use packfs_core::{Result, usize_of};
use std::ops::ControlFlow;

/// Bytes of an extent.
const EXTENT_LEN: usize = 16;
/// Bytes of a key, and of a pointer.
const KEY_LEN: usize = 8;
/// Bytes before the records of the root in an inode.
const ROOT_HEADER_LEN: usize = 4;
/// Most levels of a tree (`XFS_BTREE_MAXLEVELS`).
const LEVELS_MAX: u16 = 9;

/// Takes mappings in their order.
struct Visitor<'a> {
    volume: &'a XfsVolume,
    inode: &'a DiskInode,
    fork: Fork,
    /// The block that those before end at.
    before: u64,
    /// Those that end before it are passed over.
    from: u64,
    visit: &'a mut dyn FnMut(Mapping) -> Result<ControlFlow<()>>,
}

impl Visitor<'_> {
    fn take(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>> {
        let mapping @ Mapping { offset, start, count, .. } = Mapping::parse(bytes);
        let ino = self.inode.ino;
        let before = std::mem::replace(&mut self.before, mapping.end());
        if offset < before {
            return Err(Corruption::ExtentOrder { ino, offset, before }.into());
        }
        let is_realtime = self.fork == Fork::Data && self.inode.is_realtime;
        let has_place = match is_realtime {
            true => self.volume.realtime.blocks_at(start, count).is_some(),
            false => self.volume.super_block.blocks_at(start, count).is_some(),
        };
        if count == 0 || !has_place {
            return Err(Corruption::ExtentPlace { ino, offset, start, count }.into());
        }
        if mapping.end() <= self.from {
            return Ok(ControlFlow::Continue(()));
        }
        (self.visit)(mapping)
    }

    /// Takes all extents of a list.
    fn take_all(&mut self, extents: &[u8]) -> Result<ControlFlow<()>> {
        for extent in extents.chunks_exact(EXTENT_LEN) {
            if self.take(extent)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Node on the way to a leaf: its keys, its pointers, and the next of them.
struct Node {
    block: Option<Block>,
    level: u16,
    count: usize,
    keys_at: usize,
    pointers_at: usize,
    next: usize,
}

impl Node {
    fn bytes<'a>(&'a self, root: &'a [u8]) -> &'a [u8] {
        self.block.as_ref().map_or(root, |block| &block.bytes)
    }

    fn pointer(&self, root: &[u8], index: usize) -> u64 {
        be64(self.bytes(root), self.pointers_at.saturating_add(index.saturating_mul(KEY_LEN)))
    }

    /// Sets the next pointer to the last whose key is at most `from`.
    fn seek(&mut self, root: &[u8], from: u64) {
        let keys = self.keys_at;
        let key = |index: usize| be64(self.bytes(root), keys.saturating_add(index.saturating_mul(KEY_LEN)));
        self.next = (1..self.count).take_while(|index| key(*index) <= from).last().unwrap_or(0);
    }
}

impl XfsVolume {
    /// Calls `visit` for the mappings of a fork that end behind block `from` of the file, in order.
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
                let len = usize_of(inode.extent_count(fork)).saturating_mul(EXTENT_LEN);
                visitor.take_all(part(inode.fork(fork), 0, len).unwrap_or_default()).map(drop)
            }
            Form::Tree => self.walk_tree(&mut visitor, &mut |_| {}),
            Form::Local | Form::Device => Ok(()),
        }
    }

    /// Calls `visit` for the filesystem blocks that the tree of a fork takes.
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
        let (inode, fork, from) = (visitor.inode, visitor.fork, visitor.from);
        let root = inode.fork(fork);
        let mut path = vec![root_node(inode, fork, from)?];
        while let Some(node) = path.last_mut() {
            if node.next >= node.count {
                path.pop();
                continue;
            }
            let pointer = node.pointer(root, node.next);
            node.next = node.next.saturating_add(1);
            let level = node.level.saturating_sub(1);
            met(pointer);
            let block = self.block(BlockKind::Map, &[(pointer, 1)], inode.ino)?;
            let count = self.tree_records(&block, level)?;
            let header = self.map_header_len();
            if level == 0 {
                let records =
                    part(&block.bytes, header, count.saturating_mul(EXTENT_LEN)).unwrap_or_default();
                if visitor.take_all(records)?.is_break() {
                    return Ok(());
                }
                continue;
            }
            let pointers_at = header.saturating_add(self.records_max().saturating_mul(KEY_LEN));
            let mut node = Node { block: Some(block), level, count, keys_at: header, pointers_at, next: 0 };
            node.seek(root, from);
            path.push(node);
        }
        Ok(())
    }

    fn map_header_len(&self) -> usize {
        if self.super_block.is_v5() { 72 } else { 24 }
    }

    /// Records that fit into a block of a tree; those of nodes are as long as those of leaves.
    fn records_max(&self) -> usize {
        usize_of(self.super_block.block_len).saturating_sub(self.map_header_len()) / EXTENT_LEN
    }

    /// Checks the level of a block of a tree, and returns the number of its records.
    fn tree_records(&self, block: &Block, level: u16) -> Result<usize> {
        let (found, count) = (be16(&block.bytes, 4), be16(&block.bytes, 6));
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
    let root = inode.fork(fork);
    let (level, count) = (be16(root, 0), be16(root, 2));
    let max = root.len().saturating_sub(ROOT_HEADER_LEN) / EXTENT_LEN;
    if !(1..LEVELS_MAX).contains(&level) || count == 0 || usize::from(count) > max {
        return Err(Corruption::ForkRoot { ino: inode.ino, fork: fork.word(), level, records: count });
    }
    let pointers_at = ROOT_HEADER_LEN.saturating_add(max.saturating_mul(KEY_LEN));
    let mut node =
        Node { block: None, level, count: count.into(), keys_at: ROOT_HEADER_LEN, pointers_at, next: 0 };
    node.seek(root, from);
    Ok(node)
}
