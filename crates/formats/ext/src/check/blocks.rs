//! Blocks of inodes: owners, and counts.

use super::Walk;
use crate::block_use::{Again, BlockUse};
use crate::features::EA_INODE;
use crate::inode::RawInode;
use crate::run::Piece;
use crate::space::{RESIZE, has_blocks};
use crate::super_block::ROOT;
use packfs_core::Result;
use packfs_format::check::Tally;
use packfs_format::units::*;
use std::fmt::Display;
use std::ops::ControlFlow;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct References {
    found: u32,
    /// Stored number of references; `None` if the block cannot be read.
    stored: Option<u32>,
}

#[derive(Default)]
struct Claimed {
    count: u64,
    again: Again,
}

impl Claimed {
    fn claim(&mut self, used: &mut BlockUse, block: u64, count: u64, is_shared: bool) -> bool {
        let found = used.claim(block, count);
        self.count = self.count.plus(count);
        if is_shared {
            return false;
        }
        self.again.count = self.again.count.plus(found.count);
        self.again.first = self.again.first.or(found.first);
        found.count > 0
    }
}

impl Walk<'_, '_> {
    pub(super) fn blocks(&mut self, raw: &RawInode, path: &dyn Display) -> Result<()> {
        let mut claimed = Claimed::default();
        let is_shared = self.used.is_shared && !raw.is_dir();
        let xattrs = raw.xattr_block(&self.reader.super_block);
        if xattrs != 0 {
            let stored = || self.reader.xattr_references(raw);
            let references =
                self.xattr_blocks.entry(xattrs).or_insert_with(|| References { found: 0, stored: stored() });
            references.found = references.found.plus(1);
            match references.found {
                1 => _ = claimed.claim(&mut self.used, xattrs, 1, is_shared),
                _ => claimed.count = 1,
            }
        }
        let mut is_whole = true;
        if has_blocks(raw, &self.reader.super_block) {
            let used = &mut self.used;
            let walked = self.reader.pieces(raw, 0..u64::MAX, &mut |piece| match piece {
                // An inode also lists the blocks that are reserved for descriptors.
                Piece::Node(block) if claimed.claim(used, block, 1, raw.number == RESIZE) => {
                    // A shared map leads to blocks that were already claimed.
                    is_whole = false;
                    ControlFlow::Break(())
                }
                Piece::Node(_) => ControlFlow::Continue(()),
                Piece::Run(run) => {
                    claimed.claim(used, run.block, run.count, is_shared);
                    ControlFlow::Continue(())
                }
            });
            is_whole &= self.refused(path, walked)?.is_some();
        }
        self.is_damaged |= !is_whole;
        let Again { count, first } = claimed.again;
        if let Some(first) = first.filter(|_| raw.number != RESIZE) {
            let fault = format_args!("{count} blocks that belong to something else, the first is {first}");
            self.report.error(path, fault);
            if raw.is_dir() {
                self.overlapping.insert(raw.number);
            }
        } else if is_whole {
            self.count_of(raw, claimed.count, path);
        }
        Ok(())
    }

    fn count_of(&mut self, raw: &RawInode, count: u64, path: &dyn Display) {
        let super_block = &self.reader.super_block;
        let is_named = raw.number == ROOT || raw.number >= super_block.first_inode;
        // Clusters count as a whole, and values in inodes also count for the owner.
        let is_uncounted = super_block.cluster_bits > 0 || super_block.features.needs(EA_INODE);
        if !is_named || is_uncounted || !self.reader.patches.is_empty() {
            return;
        }
        let found = raw.sectors(super_block);
        let wanted = count.times(super_block.block_len / 512);
        if found != wanted {
            let fault = format_args!("{found} sectors of 512 bytes, but its blocks are {wanted}");
            self.report.error(path, fault);
        }
    }

    pub(super) fn references(&mut self) {
        let mut wrong = Tally::default();
        for (block, References { found, stored }) in &self.xattr_blocks {
            if let Some(stored) = stored.filter(|stored| stored != found) {
                wrong.add(|| format!("block {block}: {stored}, {found} counted"));
            }
        }
        wrong.error(self.report, "blocks", "wrong numbers of inodes that share attributes");
    }
}
