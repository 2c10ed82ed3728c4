//! Groups: descriptors, copies of the superblock, bitmaps, inode tables.

use super::Walk;
use crate::bytes::{field, le16, le32};
use crate::disk::{Group, SUPER_LEN};
use crate::inode::{RawInode, XATTR_VALUE};
use crate::sums::Mismatch;
use packfs_core::{Result, usize_of};
use packfs_format::check::Tally;

/// Fields of the superblock that copies repeat: offset and length.
const COPIED: [(usize, usize); 8] =
    [(0x00, 8), (0x14, 8), (0x20, 4), (0x28, 4), (0x4c, 4), (0x58, 2), (0x68, 16), (0xfe, 2)];

impl Walk<'_, '_> {
    /// Checks descriptors, and claims the blocks of the filesystem itself.
    pub(super) fn groups(&mut self) -> Result<()> {
        let super_block = &self.reader.super_block;
        let mut copies = Tally::default();
        // A block that holds a boot sector belongs to the filesystem, too.
        if super_block.super_block_number() > super_block.first_block {
            self.used.claim(super_block.first_block, 1);
        }
        for group in 0..super_block.group_count {
            let start = super_block.offset(super_block.group_range(group).start);
            if self.report.is_full() || start >= self.reader.image.len() {
                break;
            }
            let place = format_args!("group {group}").to_string();
            let descriptor = self.reader.group(group);
            let Some(descriptor) = self.refused(&place, descriptor)? else { continue };
            for (what, block, count) in [
                ("block bitmap", descriptor.block_bitmap, 1),
                ("inode bitmap", descriptor.inode_bitmap, 1),
                ("inode table", descriptor.inode_table, self.reader.table_blocks()),
            ] {
                if self.reader.check_blocks(0, block, count).is_err() {
                    let end = super_block.block_count;
                    self.report.error(&place, format_args!("{what} at block {block}, up to {end} allowed"));
                    self.is_damaged = true;
                }
            }
            for (range, owner) in self.reader.system_blocks(group) {
                let again = self.used.claim(range.start, range.end.saturating_sub(range.start));
                if let Some(first) = again.first {
                    self.report.error(&place, format_args!("{owner} over something else at block {first}"));
                }
            }
            if group > 0 && super_block.has_super_block(group) && !self.is_copy(group)? {
                copies.add(|| format!("in group {group}"));
            }
        }
        if let Some(fault) = copies.one_line("copies of the superblock that differ from it") {
            self.report.warn("superblock", fault);
        }
        Ok(())
    }

    /// Compares a copy of the superblock.
    fn is_copy(&self, group: u32) -> Result<bool> {
        let super_block = &self.reader.super_block;
        let mut copy = vec![0; SUPER_LEN];
        let at = super_block.offset(super_block.group_range(group).start);
        if at.saturating_add(SUPER_LEN as u64) > self.reader.image.len() {
            return Ok(true);
        }
        self.reader.image.read_exact_at(at, &mut copy)?;
        Ok(COPIED.iter().all(|(at, len)| field(&copy, *at, *len) == field(&super_block.raw, *at, *len)))
    }

    /// Looks at the inodes that no directory leads to, and compares bitmaps with what is used.
    pub(super) fn tables(&mut self) -> Result<()> {
        let super_block = &self.reader.super_block;
        let own = self.reader.own_inodes();
        let mut lost = Tally::default();
        let (mut wrong_inodes, mut counts) = (Tally::default(), Tally::default());
        for group in 0..super_block.group_count {
            if self.report.is_full() {
                return Ok(());
            }
            let Ok(descriptor) = self.reader.group(group) else { continue };
            let bitmap = self.inode_bitmap(group, &descriptor)?;
            let written = self.reader.written_inodes(&descriptor);
            let mut used = 0_u32;
            for slot in 0..super_block.group_inodes {
                let number = self.reader.number_in(group, slot);
                let is_marked = bitmap.as_ref().map(|bits| is_set(bits, slot));
                let is_met = self.met.contains(&number);
                if slot >= written {
                    if is_met || is_marked == Some(true) {
                        wrong_inodes.add(|| format!("inode {number}, in a part of the table that is unused"));
                    }
                    continue;
                }
                let is_reserved = number < super_block.first_inode;
                let is_used = is_met || self.unnamed(number, is_reserved, &own, is_marked, &mut lost)?;
                used = used.saturating_add(u32::from(is_used));
                if is_marked.is_some_and(|is_marked| is_marked != is_used) {
                    wrong_inodes.add(|| format!("inode {number}"));
                }
            }
            let (found, free) = (descriptor.free_inodes, super_block.group_inodes.saturating_sub(used));
            if found != free {
                counts.add(|| format!("group {group}: {found}, {free} counted"));
            }
        }
        if let Some(fault) = lost.one_line("inodes in use that no entry leads to") {
            self.report.error("inodes", fault);
        }
        // What could not be read is not held against bitmaps, nor what only the journal knows.
        if self.is_damaged || !self.reader.patches.is_empty() {
            return Ok(());
        }
        if let Some(fault) = wrong_inodes.one_line("bitmaps that are not true of inodes") {
            self.report.error("inodes", fault);
        }
        if let Some(fault) = counts.one_line("wrong numbers of free inodes") {
            self.report.error("inodes", fault);
        }
        self.block_bitmaps()
    }

    /// Looks at an inode that no entry leads to. Returns true if it is in use.
    fn unnamed(
        &mut self,
        number: u32,
        is_reserved: bool,
        own: &[u32],
        is_marked: Option<bool>,
        lost: &mut Tally,
    ) -> Result<bool> {
        let place = format!("inode {number}");
        let stored = self.reader.stored_inode(u64::from(number))?;
        let is_filled = stored.mode() != 0 || stored.links() != 0;
        if is_reserved {
            if is_filled || stored.number == crate::space::BAD_BLOCKS {
                self.blocks(&stored, &place)?;
            }
            return Ok(true);
        }
        // Files that were deleted while open are in a list until they are closed.
        let is_orphan =
            stored.links() == 0 && stored.mode() != 0 && is_marked == Some(true) && is_listed(&stored);
        if !is_filled || stored.links() == 0 && !is_orphan {
            return Ok(false);
        }
        let raw = self.reader.raw_inode(u64::from(number));
        let Some(raw) = self.refused(&place, raw)? else { return Ok(true) };
        let is_own = own.contains(&number) || raw.has(XATTR_VALUE);
        if is_orphan {
            self.report.note(&place, "deleted, but still open when the image was made");
        } else if !is_own && !self.is_damaged {
            lost.add(|| place.clone());
        }
        self.blocks(&raw, &place)?;
        Ok(true)
    }

    /// Reads the bitmap of a group's inodes; `None` if there is none.
    fn inode_bitmap(&mut self, group: u32, descriptor: &Group) -> Result<Option<Box<[u8]>>> {
        let len = usize_of(u64::from(self.reader.super_block.group_inodes.div_ceil(8)));
        if self.reader.sums.has_descriptor_sums() && descriptor.flags & Group::INODES_UNUSED != 0 {
            return Ok(None);
        }
        self.bitmap(group, "inode bitmap", descriptor.inode_bitmap, len, descriptor.inode_bitmap_sum)
    }

    /// Reads a bitmap, and compares its sum.
    fn bitmap(
        &mut self,
        group: u32,
        what: &'static str,
        block: u64,
        len: usize,
        (low, high): (u16, Option<u16>),
    ) -> Result<Option<Box<[u8]>>> {
        let place = format!("group {group}");
        if self.reader.check_blocks(0, block, 1).is_err() {
            return Ok(None);
        }
        let Some(bits) = self.refused(&place, self.reader.block(block))? else { return Ok(None) };
        let covered = bits.get(..len).unwrap_or(&bits);
        if let Some(Mismatch { found, wanted }) = self.reader.sums.bitmap(covered, low, high) {
            let fault = format_args!("{what}: checksum {found:#x}, {wanted:#x} computed");
            self.report.error(&place, fault);
        }
        Ok(Some(bits))
    }

    /// Compares the bitmaps of blocks with the blocks that are used.
    fn block_bitmaps(&mut self) -> Result<()> {
        let super_block = &self.reader.super_block;
        let cluster_len = 1_u64.checked_shl(super_block.cluster_bits).unwrap_or(1);
        let (mut unmarked, mut unused, mut counts) = (Tally::default(), Tally::default(), Tally::default());
        for group in 0..super_block.group_count {
            let Ok(descriptor) = self.reader.group(group) else { continue };
            let range = super_block.group_range(group);
            if self.report.is_full() || super_block.offset(range.end) > self.reader.image.len() {
                break;
            }
            let clusters = super_block.group_blocks.checked_div(cluster_len).unwrap_or(0);
            let is_unwritten =
                self.reader.sums.has_descriptor_sums() && descriptor.flags & Group::BLOCKS_UNUSED != 0;
            let len = usize_of(clusters.div_ceil(8));
            let bits = match is_unwritten {
                true => None,
                false => self.bitmap(
                    group,
                    "block bitmap",
                    descriptor.block_bitmap,
                    len,
                    descriptor.block_bitmap_sum,
                )?,
            };
            let (mut slot, mut free) = (0_u32, 0_u32);
            for block in range.clone().step_by(usize_of(cluster_len)) {
                let end = block.saturating_add(cluster_len).min(range.end);
                let may_be = self.used.may_be_used(block) || self.used.may_be_used(end.saturating_sub(1));
                let is_used = may_be && (block..end).any(|block| self.used.is_used(block));
                let is_marked = bits.as_ref().map_or(is_used, |bits| is_set(bits, slot));
                match (is_used, is_marked) {
                    (true, false) => unmarked.add(|| format!("block {block}")),
                    (false, true) => unused.add(|| format!("block {block}")),
                    _ => {}
                }
                free = free.saturating_add(u32::from(!is_used));
                slot = slot.saturating_add(1);
            }
            if free != descriptor.free_blocks {
                let stored = descriptor.free_blocks;
                counts.add(|| format!("group {group}: {stored}, {free} counted"));
            }
        }
        for (tally, what) in [
            (unmarked, "blocks in use that are marked free"),
            (unused, "blocks marked used that nothing refers to"),
            (counts, "wrong numbers of free blocks"),
        ] {
            if let Some(fault) = tally.one_line(what) {
                self.report.error("blocks", fault);
            }
        }
        Ok(())
    }
}

/// Returns true if a deleted inode is in the list of those that are open: a time of deletion would
/// be larger than any number of an inode.
fn is_listed(raw: &RawInode) -> bool {
    let next = le32(raw.bytes(), 0x14);
    next < 1 << 30 && le16(raw.bytes(), 0x1a) == 0
}

fn is_set(bits: &[u8], index: u32) -> bool {
    let byte = bits.get(usize_of(u64::from(index / 8))).copied().unwrap_or(0);
    byte & 1_u8.wrapping_shl(index % 8) != 0
}
