//! Owners of the bytes of an image.

use crate::block_use::BlockUse;
use crate::features::{HAS_JOURNAL, META_BG, ORPHAN_FILE, PROJECT, QUOTA};
use crate::inode::{INLINE, RawInode, XATTR_VALUE};
use crate::reader::Reader;
use crate::run::Piece;
use crate::super_block::{Group, SUPER_AT, SUPER_LEN, SuperBlock};
use crate::volume::ExtVolume;
use packfs_core::{FileType, Result, range_at};
use packfs_format::{Space, SpaceOwner, space_owners, units::*};
use std::ops::{ControlFlow, Range};

type Claim = (Range<u64>, &'static str);

/// Inode of bad blocks (`EXT4_BAD_INO`).
pub(crate) const BAD_BLOCKS: u32 = 1;
/// Inode of blocks reserved for descriptors (`EXT4_RESIZE_INO`).
pub(crate) const RESIZE: u32 = 7;

impl Reader {
    pub(crate) fn system_blocks(&self, group: u32) -> Vec<Claim> {
        let super_block = &self.super_block;
        let mut found = Vec::new();
        let start = super_block.group_range(group).start;
        let per_meta = super_block.descriptors_per_block();
        let plain = super_block.plain_descriptor_blocks();
        let is_meta = super_block.features.needs(META_BG);
        let index = u64::from(group).quotient(per_meta);
        if super_block.has_super_block(group) {
            // Group 0 may start before the superblock's block.
            let place = if group == 0 { super_block.super_block_number() } else { start };
            found.push((place..place.plus(1), "superblock"));
            // Only groups with a superblock copy have copies of the plain descriptors.
            if index < plain {
                let descriptors = range_at(place.plus(1), plain);
                let count = if is_meta { 0 } else { super_block.raw.s_reserved_gdt_blocks.get().into() };
                let reserved = range_at(descriptors.end, count);
                found.push((descriptors, "group descriptors"));
                found.push((reserved, "reserved descriptors"));
            }
        }
        if group == 0
            && let Some(block) = super_block.mmp_block()
        {
            found.push((range_at(block, 1), "multiple mount protection"));
        }
        let slot = u64::from(group).remainder(per_meta);
        let has_copy = matches!(slot, 0 | 1) || slot == per_meta.minus(1);
        if is_meta && index >= plain && has_copy {
            let block = super_block.meta_descriptors(group);
            found.push((range_at(block, 1), "group descriptors"));
        }
        if let Ok(descriptor) = self.group(group) {
            found.push((range_at(descriptor.block_bitmap, 1), "block bitmaps"));
            found.push((range_at(descriptor.inode_bitmap, 1), "inode bitmaps"));
            found.push((range_at(descriptor.inode_table, self.table_blocks()), "inode tables"));
        }
        found
    }

    /// Number of inodes of a group that were ever used: the rest of the table is not written.
    pub(crate) fn written_inodes(&self, descriptor: &Group) -> u32 {
        let count = self.super_block.group_inodes;
        if !self.sums.has_descriptor_sums() {
            return count;
        }
        match descriptor.flags & Group::INODES_UNUSED {
            // More than all are unused in a damaged descriptor: then no inode is left out.
            0 => count.checked_sub(descriptor.unused_inodes).unwrap_or(count),
            _ => 0,
        }
    }

    pub(crate) fn number_in(&self, group: u32, slot: u32) -> u32 {
        group.times(self.super_block.group_inodes).plus(slot).plus(1)
    }

    /// Returns inodes of the filesystem itself whose numbers are not reserved.
    pub(crate) fn own_inodes(&self) -> Vec<u32> {
        let (raw, features) = (&self.super_block.raw, self.super_block.features);
        let rows = [
            (features.has(HAS_JOURNAL), raw.s_journal_inum),
            (features.forbids(QUOTA), raw.s_usr_quota_inum),
            (features.forbids(QUOTA), raw.s_grp_quota_inum),
            (features.forbids(QUOTA) && features.forbids(PROJECT), raw.s_prj_quota_inum),
            (features.has(ORPHAN_FILE), raw.s_orphan_file_inum),
        ];
        rows.into_iter()
            .filter(|row| row.0)
            .map(|(_, inode)| inode.get())
            .filter(|inode| *inode != 0)
            .collect()
    }

    fn owner_of(&self, raw: &RawInode) -> &'static str {
        let number = raw.number;
        let is_journal = number == self.super_block.raw.s_journal_inum.get();
        if is_journal && self.super_block.features.has(HAS_JOURNAL) {
            return "journal";
        }
        if raw.has(XATTR_VALUE) {
            return "extended attributes";
        }
        match number {
            RESIZE => return "reserved descriptors",
            BAD_BLOCKS => return "bad blocks",
            3 | 4 => return "quotas",
            _ if self.own_inodes().contains(&number) => return "quotas and orphans",
            _ => {}
        }
        match raw.file_type() {
            Some(FileType::Directory) => "directories",
            Some(FileType::Symlink) => "link targets",
            _ => "file data",
        }
    }
}

pub(crate) fn has_blocks(raw: &RawInode, super_block: &SuperBlock) -> bool {
    match raw.file_type() {
        Some(FileType::File | FileType::Directory) => !raw.has(INLINE),
        // Short targets replace the block numbers.
        Some(FileType::Symlink) => !raw.has(INLINE) && !raw.has_target(super_block),
        _ => raw.number == BAD_BLOCKS,
    }
}

/// Blocks and their owners, without overlaps.
struct Claims {
    used: BlockUse,
    found: Vec<Claim>,
}

impl Claims {
    /// Claims blocks; true if some had no owner.
    fn push(&mut self, range: Range<u64>, owner: &'static str) -> bool {
        let count = packfs_core::len_of(&range);
        if self.used.claim(range.start, count).count >= count {
            return false;
        }
        match self.found.last_mut() {
            Some((last, other)) if last.end == range.start && *other == owner => last.end = range.end,
            _ => self.found.push((range, owner)),
        }
        true
    }
}

impl Space for ExtVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let reader = &self.reader;
        let mut claims = Claims { used: BlockUse::new(reader), found: Vec::new() };
        for group in 0..reader.super_block.group_count {
            if reader.super_block.offset(reader.super_block.group_range(group).start) >= reader.image.len() {
                break;
            }
            for (range, owner) in reader.system_blocks(group) {
                claims.push(range, owner);
            }
            let (Ok(descriptor), Ok(table)) = (reader.group(group), reader.table_of(group)) else { continue };
            let mut stored = 0..0;
            for slot in 0..reader.written_inodes(&descriptor) {
                if slot >= stored.end {
                    stored = reader.stored_slots(table, slot)?;
                }
                // Damaged inodes own nothing.
                if slot >= stored.start
                    && let Ok(raw) = reader.raw_inode(u64::from(reader.number_in(group, slot)))
                {
                    claim(reader, &raw, &mut claims);
                }
            }
        }
        let mut claims = claims.found;
        for (range, _) in &mut claims {
            *range = reader.super_block.offset(range.start)..reader.super_block.offset(range.end);
        }
        // In group 0, the superblock is in the middle of a block.
        if let Some(first) = claims.first_mut().filter(|claim| claim.1 == "superblock") {
            first.0 = range_at(SUPER_AT, SUPER_LEN as u64);
        }
        claims.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims, reader.image.len()))
    }
}

fn claim(reader: &Reader, raw: &RawInode, claims: &mut Claims) {
    let is_used = raw.links() > 0 || raw.number == BAD_BLOCKS;
    if !is_used || raw.mode() == 0 && raw.number != BAD_BLOCKS {
        return;
    }
    let xattrs = raw.xattr_block(&reader.super_block);
    if xattrs != 0 {
        claims.push(range_at(xattrs, 1), "extended attributes");
    }
    if !has_blocks(raw, &reader.super_block) {
        return;
    }
    let owner = reader.owner_of(raw);
    // Blocks before damage are owned.
    let _ = reader.pieces(raw, 0..u64::MAX, &mut |piece| match piece {
        // A shared map leads to nothing new.
        Piece::Node(block) if !claims.push(range_at(block, 1), "file maps") => ControlFlow::Break(()),
        Piece::Node(_) => ControlFlow::Continue(()),
        Piece::Run(run) => {
            claims.push(range_at(run.block, run.count), owner);
            ControlFlow::Continue(())
        }
    });
}
