//! Reader of verified structures: descriptors, inodes, and metadata blocks.

use crate::corruption::Corruption;
use crate::inode::RawInode;
use crate::patches::Patches;
use crate::sums::{Mismatch, Sums};
use crate::super_block::{Group, SuperBlock};
use packfs_core::{Image, range_at, usize_of};
use packfs_format::{BlockCache, units::*};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Result<T, E = packfs_core::Error> = std::result::Result<T, E>;

/// Bytes of one read of an inode table; a power of 2.
const WINDOW_LEN: u64 = 16 << 10;
/// The same for random access: names of large directories are not in the order of inodes.
const SMALL_WINDOW_LEN: u64 = 4 << 10;
const DESCRIPTORS_MAX: usize = 4 << 20;
/// Memory of the cache of inode tables.
const WINDOWS_MAX: usize = 16 << 20;
/// Memory of the cache of other metadata blocks.
const NODES_MAX: usize = 16 << 20;

/// An opened filesystem, without names and attributes.
pub(crate) struct Reader {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) super_block: SuperBlock,
    pub(crate) sums: Sums,
    /// Groups by descriptor block, with outcomes of their checksums.
    descriptors: BlockCache<Box<[Checked]>>,
    windows: BlockCache<Box<[u8]>>,
    /// End of the part of an inode table that was read last.
    last_window_end: AtomicU64,
    nodes: BlockCache<Node>,
    pub(crate) patches: Patches,
}

/// A group, and its checksum if it is wrong.
type Checked = (Group, Option<Mismatch<u16>>);

/// Kinds of metadata blocks of inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Part of a map; verified for one inode.
    Map,
    /// Extended attributes; may belong to several inodes.
    Xattrs,
}

/// A metadata block, and the inode for which it was verified.
pub(crate) struct Node {
    pub(crate) bytes: Box<[u8]>,
    owner: u32,
}

impl Reader {
    pub(crate) fn new(image: Arc<dyn Image>, super_block: SuperBlock) -> Reader {
        let sums = Sums::new(&super_block);
        Reader {
            image,
            super_block,
            sums,
            descriptors: BlockCache::new(DESCRIPTORS_MAX),
            windows: BlockCache::new(WINDOWS_MAX),
            last_window_end: AtomicU64::new(0),
            nodes: BlockCache::new(NODES_MAX),
            patches: Patches::default(),
        }
    }

    pub(crate) fn block(&self, block: u64) -> Result<Box<[u8]>> {
        let mut bytes = vec![0; self.super_block.block_size()].into_boxed_slice();
        self.image.read_exact_at(self.super_block.offset(block), &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a descriptor. A wrong checksum is ignored, as by Linux when it mounts read-only:
    /// addresses outside the filesystem are refused where they are used.
    pub(crate) fn group(&self, group: u32) -> Result<Group> {
        Ok(self.checked_group(group)?.0)
    }

    pub(crate) fn group_fault(&self, group: u32) -> Result<Option<Corruption>> {
        let fault = self.checked_group(group)?.1.map(|Mismatch { found, wanted }| Corruption::GroupSum {
            group: u64::from(group),
            found,
            wanted,
        });
        Ok(fault)
    }

    fn checked_group(&self, group: u32) -> Result<Checked> {
        let per_block = self.super_block.descriptors_per_block();
        let index = u64::from(group).quotient(per_block);
        let groups = self.descriptors.get_or(index, || {
            let groups = self.groups(index.times(per_block), per_block)?;
            let len = size_of_val(&*groups);
            Ok((groups, len))
        })?;
        let slot = usize_of(u64::from(group).remainder(per_block));
        let none = Corruption::NoGroup { found: group, max: self.super_block.group_count };
        Ok(*groups.get(slot).ok_or(none)?)
    }

    fn groups(&self, first: u64, count: u64) -> Result<Box<[Checked]>> {
        let end = first.plus(count).min(u64::from(self.super_block.group_count));
        let numbers = packfs_core::u32_of(first)..packfs_core::u32_of(end);
        let (block, _) = self.super_block.descriptor_place(numbers.start);
        let bytes = self.block(block)?;
        let max = self.super_block.group_count;
        let rows = numbers.map(|group| {
            let (_, at) = self.super_block.descriptor_place(group);
            let raw = bytes.within(at..at.plus(self.super_block.descriptor_len));
            let found = Group::parse(raw).ok_or(Corruption::NoGroup { found: group, max })?;
            Ok((found, self.sums.descriptor(group, raw, self.super_block.uuid())))
        });
        rows.collect()
    }

    pub(crate) fn table_blocks(&self) -> u64 {
        self.super_block.table_blocks()
    }

    /// Returns the first block of a group's inode table, which is within the filesystem.
    pub(crate) fn table_of(&self, group: u32) -> Result<u64> {
        let found = self.group(group)?.inode_table;
        let (blocks, end) = (self.super_block.blocks(), self.super_block.block_count);
        if blocks.contains(&found) && found.plus(self.table_blocks()) <= end {
            return Ok(found);
        }
        Err(Corruption::GroupPlace { group: u64::from(group), what: "inode table", found, end }.into())
    }

    /// Returns a range of slots: from the first at or after `slot` that may be stored, to the one
    /// at which to call again. Slots before it are zeros.
    pub(crate) fn stored_slots(&self, table: u64, slot: u32) -> Result<Range<u32>> {
        let len = self.super_block.inode_len as u64;
        let start = self.super_block.offset(table);
        let end = self.super_block.group_inodes;
        let at = start.plus(u64::from(slot).times(len));
        let Some(data) = self.image.next_data(at)? else { return Ok(end..end) };
        let slot_of = |offset: u64| {
            let slot = left(offset, start).quotient(len);
            packfs_core::u32_of(slot.min(u64::from(end)))
        };
        let first = slot_of(data.start).max(slot);
        Ok(first..slot_of(data.end.plus(len)).max(first.plus(1)))
    }

    /// Reads and verifies an inode, in use or not.
    pub(crate) fn raw_inode(&self, number: u64) -> Result<RawInode> {
        let raw = self.stored_inode(number)?;
        let inode = raw.number;
        match self.sums.inode_mismatch(inode, raw.bytes()) {
            Some(Mismatch { found, wanted }) => Err(Corruption::InodeSum { inode, found, wanted }.into()),
            None => Ok(raw),
        }
    }

    /// Reads an inode without verifying it. Entries may contain any number.
    pub(crate) fn stored_inode(&self, number: u64) -> Result<RawInode> {
        let max = self.super_block.inode_count;
        let inode = u32::try_from(number).ok().filter(|number| (1..=max).contains(number));
        let out_of_range = Corruption::Number { found: number, max };
        let inode = inode.ok_or(out_of_range)?;
        let (group, slot) = self.super_block.inode_place(inode);
        if group >= self.super_block.group_count {
            return Err(out_of_range.into());
        }
        let table = self.super_block.offset(self.table_of(group)?);
        let inode_len = self.super_block.inode_len;
        let at = u64::from(slot).times(inode_len as u64);
        let (start, window) = self.window(table, at)?;
        let within = usize_of(at.minus(start));
        let range = within..within.plus(inode_len);
        RawInode::new(inode, table.plus(at), window, range).ok_or(out_of_range.into())
    }

    fn window(&self, table: u64, at: u64) -> Result<(u64, Arc<Box<[u8]>>)> {
        let inode_len = self.super_block.inode_len as u64;
        let table_len = u64::from(self.super_block.group_inodes).times(inode_len);
        let range = |len: u64| {
            let start = at & !len.minus(1);
            start..start.plus(len).min(table_len)
        };
        let large = range(WINDOW_LEN.max(inode_len));
        let small = range(SMALL_WINDOW_LEN.max(inode_len));
        let offset = |range: &Range<u64>| table.plus(range.start);
        // Tables start at a block, so the other keys are odd.
        if let Some(found) = self.windows.get(offset(&large)) {
            return Ok((large.start, found));
        }
        let last_end = self.last_window_end.load(Ordering::Relaxed);
        let follows = last_end == offset(&small) || last_end == offset(&large);
        let (range, is_small) = if follows { (large, 0) } else { (small, 1) };
        let found = self.windows.get_or(offset(&range) | is_small, || {
            let len = usize_of(packfs_core::len_of(&range));
            let mut bytes = vec![0; len].into_boxed_slice();
            self.image.read_exact_at(offset(&range), &mut bytes)?;
            self.last_window_end.store(table.plus(range.end), Ordering::Relaxed);
            Ok((bytes, len))
        })?;
        Ok((range.start, found))
    }

    /// Errors: blocks of an inode outside the filesystem.
    pub(crate) fn check_blocks(&self, inode: u32, block: u64, count: u64) -> Result<()> {
        let allowed = self.super_block.blocks();
        let range = range_at(block, count);
        if range.start > allowed.start && range.end <= allowed.end && range.start < range.end {
            return Ok(());
        }
        let start = allowed.start.plus(1);
        let end = allowed.end.minus(1);
        Err(Corruption::Block { inode, found: block, start, end }.into())
    }

    /// Reads a metadata block of an inode; `verify` is called when it is not cached.
    pub(crate) fn node(
        &self,
        inode: u32,
        block: u64,
        kind: NodeKind,
        verify: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<Arc<Node>> {
        self.check_blocks(inode, block, 1)?;
        let read = || {
            let bytes = self.block(block)?;
            verify(&bytes)?;
            let len = bytes.len();
            Ok((Node { bytes, owner: inode }, len))
        };
        let key = block.rotate_left(1) | u64::from(kind == NodeKind::Xattrs);
        let node = self.nodes.get_or(key, read)?;
        // The block may have been verified for another inode.
        if node.owner != inode && kind == NodeKind::Map {
            verify(&node.bytes)?;
        }
        Ok(node)
    }
}
