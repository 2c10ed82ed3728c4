//! Hash trees of directories, which Linux uses for lookups. Listings do not need them.
//!
//! Hashes of names are not computed, so a name in a wrong leaf is not noticed.

use super::Walk;
use crate::disk::{DxCountlimit, DxEntry, DxRootInfo};
use crate::features::{DIR_INDEX, LARGE_DIR};
use crate::inode::{INDEXED, INLINE, RawInode};
use crate::reader::Reader;
use packfs_format::{structure, structures, units::*};
use std::collections::HashSet;
use std::fmt::Display;
use std::ops::ControlFlow;

/// Supported hash functions: legacy, half of MD4, TEA, SipHash.
const HASHES: [u8; 4] = [0, 1, 2, 6];
const INFO_LEN: u8 = 8;
const INFO_AT: usize = 0x18;
const ROW_LEN: usize = 8;

/// Walk of a tree that visits no block twice.
struct Tree<'t> {
    reader: &'t Reader,
    dir: &'t RawInode,
    len: u64,
    met: HashSet<u64>,
}

impl Walk<'_, '_> {
    pub(super) fn hash_tree(&mut self, dir: &RawInode, path: &dyn Display) {
        let super_block = &self.reader.super_block;
        let is_tree = super_block.features.has(DIR_INDEX) && dir.has(INDEXED) && !dir.has(INLINE);
        if !is_tree || !self.reader.patches.is_empty() {
            return;
        }
        let len = dir.len(super_block).quotient(super_block.block_len);
        let mut tree = Tree { reader: self.reader, dir, len, met: HashSet::new() };
        if let Err(fault) = tree.root() {
            self.report.error(path, format_args!("hash tree: {fault}"));
        }
    }
}

impl Tree<'_> {
    fn root(&mut self) -> Result<(), &'static str> {
        // The listing reports damaged blocks.
        let Some(bytes) = self.block(0) else { return Ok(()) };
        let info: DxRootInfo = structure(&bytes, INFO_AT).ok_or("a root without its description")?;
        let is_large = self.reader.super_block.features.needs(LARGE_DIR);
        if !HASHES.contains(&info.hash_version) {
            return Err("an unknown hash function");
        }
        if info.info_length != INFO_LEN || info.reserved_zero.get() != 0 || info.unused_flags & 1 != 0 {
            return Err("a root without its description");
        }
        if info.indirect_levels > if is_large { 2 } else { 1 } {
            return Err("more levels than Linux reads");
        }
        let rows_at = INFO_AT.plus(usize::from(INFO_LEN));
        self.node(&bytes, rows_at, info.indirect_levels)?;
        if (self.met.len() as u64).plus(1) == self.len {
            Ok(())
        } else {
            Err("blocks that it does not lead to")
        }
    }

    fn node(&mut self, bytes: &[u8], rows_at: usize, levels: u8) -> Result<(), &'static str> {
        let rows = bytes.within(rows_at..);
        let tail_len = if self.reader.sums.all { ROW_LEN } else { 0 };
        let max = rows.len().minus(tail_len) / ROW_LEN;
        let limits: DxCountlimit = structure(rows, 0).ok_or("a node without its number of rows")?;
        let [limit, count] = [limits.limit, limits.count].map(|figure| usize::from(figure.get()));
        if limit != max || count == 0 || count > limit {
            return Err("a node with another number of rows than it has room for");
        }
        let mut last = 0;
        for (index, row) in structures::<DxEntry>(rows).take(count).enumerate() {
            // In the first row, counts replace the hash.
            let hash = if index == 0 { 0 } else { row.hash.get() & !1 };
            if hash < last {
                return Err("hashes out of order");
            }
            last = hash;
            let block = u64::from(row.block.get()) & 0x0fff_ffff;
            if block == 0 || block >= self.len {
                return Err("a block outside of the directory");
            }
            if !self.met.insert(block) {
                return Err("two ways to a block");
            }
            if let Some(levels) = levels.checked_sub(1)
                && let Some(bytes) = self.block(block)
            {
                self.node(&bytes, ROW_LEN, levels)?;
            }
        }
        Ok(())
    }

    fn block(&self, number: u64) -> Option<Box<[u8]>> {
        let mut place = None;
        let end = number.plus(1);
        let walked = self.reader.runs(self.dir, number..end, &mut |run| {
            place = crate::dir::blocks_within(run, number, end).next();
            ControlFlow::Break(())
        });
        let (_, block) = walked.ok().and(place)?;
        self.reader.dir_block(self.dir, number, block).ok()
    }
}
