//! Finds a hash tree appended to an image, without knowing its position.
//!
//! The total length of data, superblock and tree grows with the length of the data, so for each
//! pair of block lengths there is only one possible position; the superblock there must agree.

use super::superblock::VerityParams;
use crate::algorithm::HashAlgorithm;
use packfs_core::{Image, Result};

/// Returns position and contents of the superblock of a tree that covers everything before it and
/// ends with the file.
///
/// Errors: `Io`.
pub fn find_appended(image: &dyn Image) -> Result<Option<(u64, VerityParams)>> {
    // The usual length first: an image may be remote.
    let lens = [4096].into_iter().chain((9..=16).map(|shift| 1_u32 << shift).filter(|&len| len != 4096));
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
                // An invalid superblock is not a tree.
                let Ok(Some(read)) = VerityParams::read(image, found.data_len()) else { continue };
                if read.data_len() == found.data_len() && read.hash_len() == found.hash_len() {
                    return Ok(Some((read.data_len(), read)));
                }
            }
        }
    }
    Ok(None)
}

fn place(len: u64, mut params: VerityParams) -> Option<VerityParams> {
    // Blocks of both kinds start at the end of the data.
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
