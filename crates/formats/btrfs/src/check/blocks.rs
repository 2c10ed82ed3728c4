//! Blocks of all trees, each in all of its copies.
//!
//! Invariant: each block is visited once, so a check ends however often trees share blocks.

use super::{roots, taken, tree_name};
use crate::disk::tree;
use crate::fs::Fs;
use crate::store::Pointer;
use packfs_core::{ErrorKind, Result};
use packfs_format::check::{Report, Tally};
use packfs_format::units::*;
use std::collections::HashSet;

pub(super) fn check(fs: &Fs, report: &mut Report<'_>) -> Result<()> {
    let block = fs.store.super_block();
    let mut walk = Walk { fs, seen: HashSet::new(), damaged: Tally::default(), absent: Tally::default() };
    walk.tree(Pointer::root(tree::CHUNK, block.chunks), report)?;
    walk.tree(Pointer::root(tree::ROOT, block.root), report)?;
    for root in roots(fs, report)? {
        if report.is_full() {
            return Ok(());
        }
        walk.tree(Pointer::root(root.tree.id, root.tree.root), report)?;
    }
    walk.damaged.warn(report, "metadata", "copies of tree blocks are damaged, others are intact");
    walk.absent.note(report, "metadata", "copies of tree blocks are on devices that are not given");
    Ok(())
}

struct Walk<'f> {
    fs: &'f Fs,
    seen: HashSet<u64>,
    damaged: Tally,
    absent: Tally,
}

impl Walk<'_> {
    fn tree(&mut self, root: Pointer, report: &mut Report<'_>) -> Result<()> {
        let mut open = vec![root];
        while let Some(pointer) = open.pop() {
            if report.is_full() {
                return Ok(());
            }
            if !self.seen.insert(pointer.at) {
                continue;
            }
            let node = taken(report, tree_name(pointer.tree), self.fs.store.node(&pointer))?;
            let Some(node) = node else { continue };
            self.copies(&pointer)?;
            if node.level == 0 {
                continue;
            }
            for slot in 0..node.count {
                let next = slot.plus(1);
                let (at, generation) = node.pointer(slot);
                open.push(Pointer {
                    at,
                    level: node.level.minus(1),
                    generation,
                    tree: pointer.tree,
                    first: Some(node.key(slot)),
                    end: if next < node.count { Some(node.key(next)) } else { pointer.end },
                });
            }
        }
        Ok(())
    }

    /// Reads all copies of a block that has an intact one.
    fn copies(&mut self, pointer: &Pointer) -> Result<()> {
        let at = pointer.at;
        for copy in 0..self.fs.store.chunks.of(at)?.copies() {
            match self.fs.store.load_copy(at, copy) {
                Ok(node) if node.generation == pointer.generation => {}
                Ok(_) => self.damaged.add(|| format!("copy {copy} at {at:#x}, of another generation")),
                Err(error) if error.kind() == ErrorKind::Failed => {
                    self.absent.add(|| format!("copy {copy} at {at:#x}"));
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    self.damaged.add(|| format!("copy {copy} at {at:#x}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
