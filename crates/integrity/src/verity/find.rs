//! Finds a hash tree that was appended to an image, without being told where.
//!
//! How long data, superblock and tree are together rises with the length of the data, so for each
//! pair of block lengths only one place can be the right one; the superblock there has to agree.

use super::superblock::VerityParams;
use crate::algorithm::HashAlgorithm;
use packfs_core::{Image, Result};

/// Where the superblock of a tree stands that covers all before it and ends with the file; and what
/// it says.
///
/// Errors: `Io`.
pub fn find_appended(image: &dyn Image) -> Result<Option<(u64, VerityParams)>> {
    let lens = (9..=16).map(|shift| 1_u32 << shift);
    for algorithm in HashAlgorithm::ALL {
        for data_block_len in lens.clone() {
            for hash_block_len in lens.clone() {
                let params = VerityParams {
                    algorithm,
                    data_block_len,
                    hash_block_len,
                    data_blocks: 0,
                    salt: vec![],
                    uuid: [0; 16],
                };
                let Some(found) = place(image.len(), params) else { continue };
                // What is broken there is no tree as far as this is concerned.
                let Ok(Some(read)) = VerityParams::read(image, found.data_len()) else { continue };
                if read.data_len() == found.data_len() && read.hash_len() == found.hash_len() {
                    return Ok(Some((read.data_len(), read)));
                }
            }
        }
    }
    Ok(None)
}

/// With how many blocks data and tree are `len` bytes long together, if there is such a number.
fn place(len: u64, mut params: VerityParams) -> Option<VerityParams> {
    // Both kinds of blocks begin where the data ends.
    let step = u64::from(params.data_block_len.max(params.hash_block_len) / params.data_block_len);
    let total = |params: &VerityParams| params.data_len().saturating_add(params.hash_len());
    let (mut low, mut high) = (1, len / u64::from(params.data_block_len) / step + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        params.data_blocks = middle * step;
        if total(&params) < len { low = middle + 1 } else { high = middle }
    }
    params.data_blocks = low * step;
    (total(&params) == len).then_some(params)
}
