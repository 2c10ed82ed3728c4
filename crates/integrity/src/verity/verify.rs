//! Verification of an image and its hash tree against a root hash.

use super::superblock::VerityParams;
use crate::algorithm::Salted;
use crate::hash_tree::{self, Fold};
use packfs_core::{Image, Progress, Result, Stage};

/// Most damaged blocks that are reported by number.
const NAMED_MAX: usize = 100;

/// Result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerityReport {
    /// Root hash of the current data.
    pub root_hash: Vec<u8>,
    /// Root hash of the tree as stored.
    pub stored_root_hash: Vec<u8>,
    /// True if a block of the tree does not match the blocks below it.
    pub is_tree_damaged: bool,
    /// Number of data blocks that do not match the tree.
    pub damaged_blocks: u64,
    /// The first of them.
    pub first_damaged: Vec<u64>,
}

impl VerityReport {
    /// Returns true if data and tree are intact and have this root hash.
    pub fn is_sound(&self, root_hash: &[u8]) -> bool {
        !self.is_tree_damaged
            && self.damaged_blocks == 0
            && self.root_hash == root_hash
            && self.stored_root_hash == root_hash
    }
}

/// Hashes everything and compares it with the tree whose superblock is at `offset` of `hashes`.
///
/// Errors: `Corrupt` if either ends too early, `Io`, `Cancelled`.
pub fn verify_verity(
    image: &dyn Image,
    params: &VerityParams,
    hashes: &dyn Image,
    offset: u64,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<VerityReport> {
    progress.begin(Stage::Verify, 1, params.data_len());
    let (shape, digest_len) = (params.shape(), params.algorithm.digest_len());
    let block_len = params.hash_block_len as usize;
    let tree_at = offset.saturating_add(params.head_len());
    let stored = |level: usize, index: u64| -> Result<Vec<u8>> {
        let mut block = vec![0; block_len];
        let at = shape.position(level, index).saturating_mul(block_len as u64).saturating_add(tree_at);
        hashes.read_exact_at(at, &mut block)?;
        Ok(block)
    };
    let salted = Salted::new(params.algorithm, &params.salt);
    let mut is_tree_damaged = false;
    // The tree above its lowest level, recomputed from the stored lowest level.
    let mut compare = |level: usize, index: u64, block: &[u8]| {
        is_tree_damaged |= stored(level, index)? != block;
        Ok(())
    };
    let mut above = Fold::new(salted.clone(), block_len, &shape, &mut compare);
    let (mut damaged_blocks, mut first_damaged) = (0, Vec::new());
    let hashes_a_block = (block_len / digest_len) as u64;
    let mut is_padding_damaged = false;
    let mut lowest = |_: usize, index: u64, block: &[u8]| {
        let kept = stored(0, index)?;
        above.add(1, &salted.hash(&kept))?;
        for (slot, (kept, made)) in kept.chunks(digest_len).zip(block.chunks(digest_len)).enumerate() {
            if kept == made {
                continue;
            }
            let data_block = index * hashes_a_block + slot as u64;
            if data_block >= params.data_blocks {
                is_padding_damaged = true;
                continue;
            }
            damaged_blocks += 1;
            if first_damaged.len() < NAMED_MAX {
                first_damaged.push(data_block);
            }
        }
        Ok(())
    };
    let mut above_data = |level: usize, index: u64, block: &[u8]| {
        if level == 0 { lowest(level, index, block) } else { Ok(()) }
    };
    let mut fold = Fold::new(salted.clone(), block_len, &shape, &mut above_data);
    let data_block_len = params.data_block_len as usize;
    hash_tree::hash_blocks(
        image,
        params.data_len(),
        data_block_len,
        &salted,
        jobs,
        progress,
        &mut |hashes| hashes.chunks(digest_len).try_for_each(|hash| fold.add(0, hash)),
    )?;
    let root_hash = fold.finish()?;
    let stored_root_hash = if shape.block_count() == 0 { root_hash.clone() } else { above.finish()? };
    let is_tree_damaged = is_tree_damaged || is_padding_damaged;
    Ok(VerityReport { root_hash, stored_root_hash, is_tree_damaged, damaged_blocks, first_damaged })
}
