//! Check of the hash tables of directories, which Linux uses for lookups.
//!
//! An entry of a table contains the hash of a name and the address of its entry, in units of 8
//! bytes; address 0 marks a removed entry.

use crate::block::{Block, BlockKind};
use crate::corruption::{Corruption, read};
use crate::dir::LEAF_OFFSET;
use crate::disk::*;
use crate::inode::{DiskInode, Form};
use crate::volume::XfsVolume;
use packfs_core::Result;
use packfs_format::{structures, units::*};
use std::ops::ControlFlow;

/// Directory offset of the free index; hash tables precede it (`XFS_DIR2_FREE_OFFSET`).
const FREE_OFFSET: u64 = 64 << 30;
const END: u64 = 96 << 30;
const ENTRY_LEN: usize = size_of::<Dir2LeafEntry>();
/// Bit of version 4: names are case-insensitive in ASCII (`XFS_SB_VERSION_BORGBIT`).
const ANY_CASE: u16 = 0x4000;

/// Hash and address of each name.
#[derive(Default)]
pub(crate) struct Hashes(Vec<(u32, u32)>);

impl Hashes {
    pub(crate) fn add(&mut self, name: &[u8], at: u64) {
        self.0.push((hash(name), u32::try_from(at / 8).unwrap_or(u32::MAX)));
    }
}

/// `xfs_da_hashname`.
fn hash(name: &[u8]) -> u32 {
    let (groups, rest) = name.as_chunks::<4>();
    let mut hash = 0_u32;
    for [a, b, c, d] in groups {
        let group = u32::from(*a) << 21 ^ u32::from(*b) << 14 ^ u32::from(*c) << 7 ^ u32::from(*d);
        hash = group ^ hash.rotate_left(28);
    }
    for byte in rest {
        hash = hash.rotate_left(7) ^ u32::from(*byte);
    }
    hash
}

impl XfsVolume {
    pub(crate) fn check_hashes(&self, inode: &DiskInode, names: Hashes) -> Result<()> {
        if inode.form == Form::Local {
            return Ok(());
        }
        let Hashes(mut wanted) = names;
        let mut found = Vec::new();
        if inode.size <= self.super_block.dir_block_len {
            self.each_dir_block(inode, 0..LEAF_OFFSET, &mut |_, runs| {
                let block = self.block(BlockKind::Dir, runs, inode.ino)?;
                if crate::dir_block::has_hash_table(&block.bytes) {
                    single_table(&block, &mut found)?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        self.each_dir_block(inode, LEAF_OFFSET..FREE_OFFSET, &mut |_, runs| {
            let block = self.block(BlockKind::Tree, runs, inode.ino)?;
            self.table(&block, &mut found)?;
            Ok(ControlFlow::Continue(()))
        })?;
        self.each_dir_block(inode, FREE_OFFSET..END, &mut |_, runs| {
            self.block(BlockKind::Free, runs, inode.ino)?;
            Ok(ControlFlow::Continue(()))
        })?;
        if self.super_block.version_bits & ANY_CASE != 0 {
            return Ok(());
        }
        wanted.sort_unstable();
        found.sort_unstable();
        if wanted == found {
            Ok(())
        } else {
            let (names, entries) = (wanted.len() as u64, found.len() as u64);
            Err(Corruption::DirHashes { ino: inode.ino, names, entries }.into())
        }
    }

    /// Collects the entries of a leaf, or checks the order of a node.
    fn table(&self, block: &Block, found: &mut Vec<(u32, u32)>) -> Result<()> {
        let (bytes, place) = (&block.bytes, block.place);
        let count = if self.super_block.is_v5() {
            read::<Da3NodeHdr>(bytes, 0, place)?.count
        } else {
            read::<DaNodeHdr>(bytes, 0, place)?.count
        };
        let (mut ignored, is_node) = (Vec::new(), block.is_node()?);
        let found = if is_node { &mut ignored } else { found };
        entries(block, self.node_header_len(), count.get().into(), found)
    }
}

fn single_table(block: &Block, found: &mut Vec<(u32, u32)>) -> Result<()> {
    let (start, count) = crate::dir_block::hash_table(block, 0)?;
    entries(block, start, count, found)
}

/// Collects entries, whose hashes must not decrease.
fn entries(block: &Block, at: usize, count: usize, found: &mut Vec<(u32, u32)>) -> Result<()> {
    let place = block.place;
    let Some(bytes) = part(&block.bytes, at, count.times(ENTRY_LEN)) else {
        let max = (block.bytes.len().minus(at) / ENTRY_LEN) as u64;
        return Err(Corruption::Records { place, found: count as u64, max }.into());
    };
    let mut before = 0;
    for entry in structures::<Dir2LeafEntry>(bytes) {
        let (hash, address) = (entry.hashval.get(), entry.address.get());
        if hash < before {
            return Err(Corruption::HashOrder { place, found: hash, before }.into());
        }
        before = hash;
        if address != 0 {
            found.push((hash, address));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn hashes_are_those_of_linux() {
        // Of the names that every directory has, as xfs_db shows them.
        assert_eq!((hash(b"."), hash(b"..")), (0x2e, 0x172e));
    }
}
