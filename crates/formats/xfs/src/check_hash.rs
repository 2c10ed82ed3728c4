//! Check of the hash tables of directories, which Linux looks names up in.
//!
//! An entry of a table has the hash of a name and its place in the directory, in units of 8 bytes;
//! place 0 marks one that was removed.

use crate::block::{Block, BlockKind};
use crate::corruption::Corruption;
use crate::dir::LEAF_OFFSET;
use crate::disk::{be16, be32, part};
use crate::inode::{DiskInode, Form};
use crate::volume::XfsVolume;
use packfs_core::Result;
use std::ops::ControlFlow;

/// Place of the free index of a directory: hash tables lie before it.
const FREE_OFFSET: u64 = 64 << 30;
/// End of the free index.
const END: u64 = 96 << 30;
/// Bytes of an entry, and of the count behind the entries of a single block.
const ENTRY_LEN: usize = 8;
/// Bit of version 4: names that differ in the case of ASCII letters only are equal.
const ANY_CASE: u16 = 0x4000;

/// Hashes and places of the names of a directory.
#[derive(Default)]
pub(crate) struct Hashes(Vec<(u32, u32)>);

impl Hashes {
    /// Adds a name at a byte of the directory.
    pub(crate) fn add(&mut self, name: &[u8], at: u64) {
        self.0.push((hash(name), u32::try_from(at / 8).unwrap_or(u32::MAX)));
    }
}

/// Returns the hash of a name (`xfs_da_hashname`).
fn hash(name: &[u8]) -> u32 {
    let (groups, rest) = name.as_chunks::<4>();
    let mut hash = 0_u32;
    for [a, b, c, d] in groups {
        let group = u32::from(*a) << 21 ^ u32::from(*b) << 14 ^ u32::from(*c) << 7 ^ u32::from(*d);
        hash = group ^ hash.rotate_left(28);
    }
    let tail = rest.iter().fold(0, |tail: u32, byte| tail << 7 ^ u32::from(*byte));
    rest.iter().fold(hash, |hash, _| hash.rotate_left(7)) ^ tail
}

impl XfsVolume {
    /// Compares the hash tables of a directory with its names.
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
        match wanted == found {
            true => Ok(()),
            false => {
                let (names, entries) = (wanted.len() as u64, found.len() as u64);
                Err(Corruption::DirHashes { ino: inode.ino, names, entries }.into())
            }
        }
    }

    /// Takes the entries of a leaf, and checks the order of a node.
    fn table(&self, block: &Block, found: &mut Vec<(u32, u32)>) -> Result<()> {
        let is_v5 = self.super_block.is_v5();
        let (count_at, entries_at) = if is_v5 { (56, 64) } else { (12, 16) };
        let count = usize::from(be16(&block.bytes, count_at));
        let is_node = matches!(be16(&block.bytes, 8), 0x3ebe | 0xfebe);
        let mut ignored = Vec::new();
        entries(block, entries_at, count, if is_node { &mut ignored } else { found })
    }
}

/// Takes the entries of the table in the only block of a directory.
fn single_table(block: &Block, found: &mut Vec<(u32, u32)>) -> Result<()> {
    let end = block.bytes.len().saturating_sub(ENTRY_LEN);
    let count = usize::try_from(be32(&block.bytes, end)).unwrap_or(usize::MAX);
    entries(block, end.saturating_sub(count.saturating_mul(ENTRY_LEN)), count, found)
}

/// Takes entries, whose hashes must not fall.
fn entries(block: &Block, at: usize, count: usize, found: &mut Vec<(u32, u32)>) -> Result<()> {
    let place = block.place;
    let Some(bytes) = part(&block.bytes, at, count.saturating_mul(ENTRY_LEN)) else {
        let max = (block.bytes.len().saturating_sub(at) / ENTRY_LEN) as u64;
        return Err(Corruption::Records { place, found: count as u64, max }.into());
    };
    let mut before = 0;
    for entry in bytes.chunks_exact(ENTRY_LEN) {
        let (hash, address) = (be32(entry, 0), be32(entry, 4));
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
