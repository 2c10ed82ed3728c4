//! Hash trees of directories, by which Linux looks names up. Listings do not need them.
//!
//! Hashes of names are not computed, so a name in a wrong leaf is not noticed.

use super::Walk;
use crate::bytes::{le16, le32, u8_at};
use crate::features::{DIR_INDEX, LARGE_DIR};
use crate::inode::{INDEXED, INLINE, RawInode};
use crate::reader::Reader;
use std::collections::HashSet;
use std::fmt::Display;
use std::ops::ControlFlow;

/// Hash functions by their number on disk: legacy, half of MD4, TEA, SipHash.
const HASHES: [u8; 4] = [0, 1, 2, 6];
/// Bytes of the description of a tree in its root.
const INFO_LEN: u8 = 8;
/// Offset of the description.
const INFO_AT: usize = 0x18;
/// Bytes of a row: a hash and a block.
const ROW_LEN: usize = 8;

/// A tree that is walked; no block twice.
struct Tree<'t> {
    reader: &'t Reader,
    dir: &'t RawInode,
    /// Number of blocks of the directory.
    len: u64,
    met: HashSet<u64>,
}

impl Walk<'_, '_> {
    /// Checks the hash tree of a directory, if it has one.
    pub(super) fn hash_tree(&mut self, dir: &RawInode, path: &dyn Display) {
        let super_block = &self.reader.super_block;
        let is_tree = super_block.features.has(DIR_INDEX) && dir.has(INDEXED) && !dir.has(INLINE);
        if !is_tree || !self.reader.patches.is_empty() {
            return;
        }
        let len = dir.len(super_block).checked_div(super_block.block_len).unwrap_or(0);
        let mut tree = Tree { reader: self.reader, dir, len, met: HashSet::new() };
        if let Err(fault) = tree.root() {
            self.report.error(path, format_args!("hash tree: {fault}"));
        }
    }
}

impl Tree<'_> {
    fn root(&mut self) -> Result<(), &'static str> {
        // Damaged blocks are findings of the listing.
        let Some(bytes) = self.block(0) else { return Ok(()) };
        let info = bytes.get(INFO_AT..).unwrap_or_default();
        let [hash, info_len, levels, flags] = [4, 5, 6, 7].map(|at| u8_at(info, at));
        let is_large = self.reader.super_block.features.needs(LARGE_DIR);
        if !HASHES.contains(&hash) {
            return Err("an unknown hash function");
        }
        if info_len != INFO_LEN || le32(info, 0) != 0 || flags & 1 != 0 {
            return Err("a root without its description");
        }
        if levels > if is_large { 2 } else { 1 } {
            return Err("more levels than Linux reads");
        }
        let rows_at = INFO_AT.saturating_add(usize::from(INFO_LEN));
        self.node(&bytes, rows_at, levels)?;
        match (self.met.len() as u64).saturating_add(1) == self.len {
            true => Ok(()),
            false => Err("blocks that it does not lead to"),
        }
    }

    /// Checks the rows of a node, and the nodes below.
    fn node(&mut self, bytes: &[u8], rows_at: usize, levels: u8) -> Result<(), &'static str> {
        let rows = bytes.get(rows_at..).unwrap_or_default();
        let tail_len = if self.reader.sums.all { ROW_LEN } else { 0 };
        let max = rows.len().saturating_sub(tail_len) / ROW_LEN;
        let [limit, count] = [0, 2].map(|at| usize::from(le16(rows, at)));
        if limit != max || count == 0 || count > limit {
            return Err("a node with another number of rows than it has room for");
        }
        let mut last = 0;
        for (index, row) in rows.chunks_exact(ROW_LEN).take(count).enumerate() {
            // The first row has the numbers in place of a hash.
            let hash = if index == 0 { 0 } else { le32(row, 0) & !1 };
            if hash < last {
                return Err("hashes out of order");
            }
            last = hash;
            let block = u64::from(le32(row, 4)) & 0x0fff_ffff;
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

    /// Reads a block of the directory; `None` if it is damaged.
    fn block(&self, number: u64) -> Option<Box<[u8]>> {
        let mut place = None;
        let end = number.saturating_add(1);
        let walked = self.reader.runs(self.dir, number..end, &mut |run| {
            place = crate::dir::blocks_within(run, number, end).next();
            ControlFlow::Break(())
        });
        let (_, block) = walked.ok().and(place)?;
        self.reader.dir_block(self.dir, number, block).ok()
    }
}
