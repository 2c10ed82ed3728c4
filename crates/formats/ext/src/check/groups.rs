//! Groups: descriptors, copies of the superblock, bitmaps, inode tables.

use super::Walk;
use crate::disk::Ext4SuperBlock;
use crate::features::RECOVER;
use crate::inode::{RawInode, XATTR_VALUE};
use crate::sums::Mismatch;
use crate::super_block::{Group, STATE_CLEAN, SUPER_LEN};
use packfs_core::{Result, usize_of};
use packfs_format::check::Tally;
use packfs_format::{read_structure, units::*};
use std::ops::Range;

#[derive(Default)]
struct Tables {
    /// Unnamed inodes of the filesystem itself.
    own: Vec<u32>,
    lost: Tally,
    wrong: Tally,
    counts: Tally,
    free: u64,
}

impl Walk<'_, '_> {
    /// Checks descriptors, and claims blocks of the filesystem's own structures.
    pub(super) fn groups(&mut self) -> Result<()> {
        let super_block = &self.reader.super_block;
        let mut copies = Tally::default();
        // A block with a boot sector belongs to the filesystem, too.
        if super_block.super_block_number() > super_block.first_block {
            self.used.claim(super_block.first_block, 1);
        }
        for group in 0..super_block.group_count {
            let start = super_block.offset(super_block.group_range(group).start);
            if self.report.is_full() || start >= self.reader.image.len() {
                break;
            }
            let place = format_args!("group {group}").to_string();
            let read =
                self.reader.group(group).and_then(|found| Ok((found, self.reader.group_fault(group)?)));
            let Some((descriptor, fault)) = self.refused(&place, read)? else { continue };
            if let Some(fault) = fault {
                self.report.error(&place, fault);
                self.is_damaged = true;
            }
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
                let again = self.used.claim(range.start, range.end.minus(range.start));
                if let Some(first) = again.first.filter(|_| !self.used.is_shared) {
                    self.report.error(&place, format_args!("{owner} over something else at block {first}"));
                }
            }
            if group > 0 && super_block.has_super_block(group) && !self.is_copy(group)? {
                copies.add(|| format!("in group {group}"));
            }
        }
        copies.warn(self.report, "superblock", "copies of the superblock that differ from it");
        Ok(())
    }

    fn is_copy(&self, group: u32) -> Result<bool> {
        let super_block = &self.reader.super_block;
        let at = super_block.offset(super_block.group_range(group).start);
        if at.plus(SUPER_LEN as u64) > self.reader.image.len() {
            return Ok(true);
        }
        let copy: Ext4SuperBlock = read_structure(&*self.reader.image, at)?;
        let figures = |raw: &Ext4SuperBlock| {
            let blocks = (raw.s_blocks_count_lo, raw.s_first_data_block, raw.s_log_block_size);
            let groups = (raw.s_blocks_per_group, raw.s_inodes_per_group, raw.s_desc_size);
            (raw.s_inodes_count, blocks, groups, raw.s_rev_level, raw.s_inode_size, raw.s_uuid)
        };
        Ok(figures(&copy) == figures(&super_block.raw))
    }

    /// Checks inodes without a name, and compares bitmaps with the blocks and inodes in use.
    pub(super) fn tables(&mut self) -> Result<()> {
        let super_block = &self.reader.super_block;
        let mut found = Tables { own: self.reader.own_inodes(), ..Tables::default() };
        for group in 0..super_block.group_count {
            let start = super_block.offset(super_block.group_range(group).start);
            if self.report.is_full() || start >= self.reader.image.len() {
                break;
            }
            if let (Ok(descriptor), Ok(table)) = (self.reader.group(group), self.reader.table_of(group)) {
                self.table(group, &descriptor, table, &mut found)?;
            }
        }
        found.lost.error(self.report, "inodes", "inodes in use that no entry leads to");
        // Bitmaps are not compared after damage, nor with changes that only the journal contains.
        if self.is_damaged || self.used.is_over() || !self.reader.patches.is_empty() {
            return Ok(());
        }
        found.wrong.error(self.report, "inodes", "bitmaps that are not true of inodes");
        found.counts.error(self.report, "inodes", "wrong numbers of free inodes");
        self.free_count("inodes", super_block.raw.s_free_inodes_count.get().into(), found.free);
        self.references();
        self.block_bitmaps()
    }

    /// Compares a count of the superblock, which is only valid after an unmount.
    fn free_count(&mut self, what: &str, stored: u64, counted: u64) {
        let super_block = &self.reader.super_block;
        let is_clean = super_block.raw.s_state.get() & STATE_CLEAN != 0;
        if is_clean && !super_block.features.needs(RECOVER) && stored != counted {
            self.report.error("superblock", format_args!("{stored} free {what}, {counted} counted"));
        }
    }

    fn table(&mut self, group: u32, descriptor: &Group, table: u64, found: &mut Tables) -> Result<()> {
        let bitmap = self.inode_bitmap(group, descriptor)?;
        let written = self.reader.written_inodes(descriptor);
        let (count, first_inode) =
            (self.reader.super_block.group_inodes, self.reader.super_block.first_inode);
        let unused = descriptor.unused_inodes;
        if unused > count {
            let fault = format_args!("{unused} unused inodes, up to {count} allowed");
            self.report.error(format_args!("group {group}"), fault);
        }
        let (mut used, mut stored) = (0_u32, 0..0);
        for slot in 0..count {
            let number = self.reader.number_in(group, slot);
            let is_marked = bitmap.as_ref().map(|bits| is_set(bits, slot));
            let is_met = self.met.contains(&number);
            if slot >= written {
                if is_met || is_marked == Some(true) {
                    found.wrong.add(|| format!("inode {number}, in a part of the table that is unused"));
                }
                continue;
            }
            if slot >= stored.end {
                stored = self.reader.stored_slots(table, slot)?;
            }
            let is_reserved = number < first_inode;
            let is_used = if is_met {
                true
            } else if is_reserved || slot >= stored.start {
                let Some(is_used) = self.unnamed(number, is_marked, found)? else { return Ok(()) };
                is_used
            } else {
                false
            };
            used = used.plus(u32::from(is_used));
            if is_marked.is_some_and(|is_marked| is_marked != is_used) {
                found.wrong.add(|| format!("inode {number}"));
            }
        }
        let (stored, free) = (descriptor.free_inodes, count.minus(used));
        found.free = found.free.plus(u64::from(free));
        if stored != free {
            found.counts.add(|| format!("group {group}: {stored}, {free} counted"));
        }
        Ok(())
    }

    /// Checks an inode without a name; true if it is in use, `None` if the table cannot be read.
    fn unnamed(&mut self, number: u32, is_marked: Option<bool>, found: &mut Tables) -> Result<Option<bool>> {
        let place = format_args!("inode {number}");
        let stored = self.reader.stored_inode(u64::from(number));
        let Some(stored) = self.refused(place, stored)? else { return Ok(None) };
        let is_filled = stored.mode() != 0 || stored.links() != 0;
        if number < self.reader.super_block.first_inode {
            if is_filled || stored.number == crate::space::BAD_BLOCKS {
                self.blocks(&stored, &place)?;
            }
            return Ok(Some(true));
        }
        // The orphan list contains files that were deleted while open.
        let is_orphan =
            stored.links() == 0 && stored.mode() != 0 && is_marked == Some(true) && is_listed(&stored);
        if !is_filled || stored.links() == 0 && !is_orphan {
            return Ok(Some(false));
        }
        let raw = self.reader.raw_inode(u64::from(number));
        let Some(raw) = self.refused(place, raw)? else { return Ok(Some(true)) };
        let is_own = found.own.contains(&number) || raw.has(XATTR_VALUE);
        if is_orphan {
            self.report.note(place, "deleted, but still open when the image was made");
        } else if !is_own && !self.is_damaged {
            found.lost.add(|| place.to_string());
        }
        self.blocks(&raw, &place)?;
        Ok(Some(true))
    }

    /// `None` if the bitmap is not written.
    fn inode_bitmap(&mut self, group: u32, descriptor: &Group) -> Result<Option<Box<[u8]>>> {
        let len = usize_of(u64::from(self.reader.super_block.group_inodes.div_ceil(8)));
        if self.reader.sums.has_descriptor_sums() && descriptor.flags & Group::INODES_UNUSED != 0 {
            return Ok(None);
        }
        self.bitmap(group, "inode bitmap", descriptor.inode_bitmap, len, descriptor.inode_bitmap_sum)
    }

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

    fn block_bitmaps(&mut self) -> Result<()> {
        let super_block = &self.reader.super_block;
        let mut found = Bitmaps::default();
        for group in 0..super_block.group_count {
            let range = super_block.group_range(group);
            if self.report.is_full() || super_block.offset(range.end) > self.reader.image.len() {
                return Ok(());
            }
            let Ok(descriptor) = self.reader.group(group) else { return Ok(()) };
            self.block_bitmap(group, &descriptor, range, &mut found)?;
        }
        found.unmarked.error(self.report, "blocks", "blocks in use that are marked free");
        found.unused.error(self.report, "blocks", "blocks marked used that nothing refers to");
        found.counts.error(self.report, "blocks", "wrong numbers of free blocks");
        let stored = super_block.free_blocks();
        let cluster_len = 1_u64.checked_shl(super_block.cluster_bits).unwrap_or(1);
        self.free_count("blocks", stored, found.free.times(cluster_len));
        Ok(())
    }

    fn block_bitmap(
        &mut self,
        group: u32,
        descriptor: &Group,
        range: Range<u64>,
        found: &mut Bitmaps,
    ) -> Result<()> {
        let super_block = &self.reader.super_block;
        let cluster_len = 1_u64.checked_shl(super_block.cluster_bits).unwrap_or(1);
        let clusters = super_block.group_blocks.quotient(cluster_len);
        let is_unwritten =
            self.reader.sums.has_descriptor_sums() && descriptor.flags & Group::BLOCKS_UNUSED != 0;
        let (len, sum) = (usize_of(clusters.div_ceil(8)), descriptor.block_bitmap_sum);
        let bits = if is_unwritten {
            None
        } else {
            self.bitmap(group, "block bitmap", descriptor.block_bitmap, len, sum)?
        };
        let (mut slot, mut free) = (0_u32, 0_u32);
        for part in packfs_core::parts_of(range, cluster_len.times(64)) {
            let is_any_used = self.used.is_any_used(part.clone());
            for cluster in packfs_core::parts_of(part, cluster_len) {
                let is_used = is_any_used && self.used.is_any_used(cluster.clone());
                let is_marked = bits.as_ref().map_or(is_used, |bits| is_set(bits, slot));
                match (is_used, is_marked) {
                    (true, false) => found.unmarked.add(|| format!("block {}", cluster.start)),
                    (false, true) => found.unused.add(|| format!("block {}", cluster.start)),
                    _ => {}
                }
                free = free.plus(u32::from(!is_used));
                slot = slot.plus(1);
            }
        }
        found.free = found.free.plus(u64::from(free));
        if free != descriptor.free_blocks {
            let stored = descriptor.free_blocks;
            found.counts.add(|| format!("group {group}: {stored}, {free} counted"));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Bitmaps {
    unmarked: Tally,
    unused: Tally,
    counts: Tally,
    free: u64,
}

/// True if a deleted inode is in the orphan list: `i_dtime` then contains an inode number, which is
/// smaller than any time.
fn is_listed(raw: &RawInode) -> bool {
    raw.fields.i_dtime.get() < 1 << 30 && raw.links() == 0
}

fn is_set(bits: &[u8], index: u32) -> bool {
    bits.get(index as usize / 8).is_some_and(|byte| byte & 1_u8.wrapping_shl(index % 8) != 0)
}
