//! Hash trees of images for dm-verity: creation, detection and verification, compatible with
//! `veritysetup` and Linux.
//!
//! Specified in Documentation/admin-guide/device-mapper/verity.rst, hash type 1. The tree follows
//! its superblock, levels in order, the one with a single block first. Salt and UUID are derived
//! from the image unless given, so the same image has the same root hash.

mod find;
mod superblock;
mod verified;
mod verify;

use crate::algorithm::{HashAlgorithm, Salted};
use crate::hash_tree::{self, Fold};
pub use find::find_appended;
use packfs_core::{Error, Image, Progress, Result, ResultExt, Stage};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::os::unix::fs::FileExt;
pub use superblock::VerityParams;
pub use verified::VerifiedImage;
pub use verify::{VerityReport, verify_verity};

/// Options of a hash tree.
#[derive(Clone, Debug)]
pub struct VerityOptions {
    /// The hash function.
    pub algorithm: HashAlgorithm,
    /// Length of a block of data.
    pub data_block_len: u32,
    /// Length of a block of hashes.
    pub hash_block_len: u32,
    /// Salt; `None` derives 32 bytes from the beginning and the length of the image.
    pub salt: Option<Vec<u8>>,
    /// UUID; `None` derives it likewise.
    pub uuid: Option<[u8; 16]>,
}

impl Default for VerityOptions {
    fn default() -> Self {
        VerityOptions {
            algorithm: HashAlgorithm::Sha256,
            data_block_len: 4096,
            hash_block_len: 4096,
            salt: None,
            uuid: None,
        }
    }
}

/// Bytes at the beginning of an image from which salt and UUID are derived: they contain
/// superblocks, with their UUIDs and times.
const BEGINNING_LEN: usize = 4096;

impl VerityOptions {
    /// Returns the parameters of a tree that covers the first `data_len` bytes of an image; zeros
    /// may still have to be appended up to there.
    ///
    /// Errors: `Usage` for invalid lengths, `Io`.
    pub fn params(&self, image: &dyn Image, data_len: u64) -> Result<VerityParams> {
        for (what, len) in [("data", self.data_block_len), ("hash", self.hash_block_len)] {
            if !superblock::is_block_len(len) {
                let fault =
                    format!("{what} blocks of {len} bytes: a power of two from 512 to 65536 is needed");
                return Err(Error::usage(fault));
            }
        }
        if self.salt.as_ref().is_some_and(|salt| salt.len() > superblock::SALT_LEN_MAX) {
            return Err(Error::usage("a salt of more than 256 bytes"));
        }
        let block_len = u64::from(self.data_block_len);
        if data_len == 0 || !data_len.is_multiple_of(block_len) {
            let fault =
                format!("{} has {data_len} bytes, no multiple of blocks of {block_len}", image.name());
            return Err(Error::usage(fault)
                .hint("smaller blocks may fit; a tree that is appended fills the image up"));
        }
        let mut beginning = vec![0; BEGINNING_LEN];
        let beginning_len = image.read_at(0, &mut beginning)?;
        let derived = |purpose: &str| -> [u8; 32] {
            let hasher = Sha256::new_with_prefix(purpose).chain_update(data_len.to_le_bytes());
            hasher.chain_update(&beginning[..beginning_len]).finalize().into()
        };
        let salt = self.salt.clone().unwrap_or_else(|| derived("packfs dm-verity salt").to_vec());
        let uuid = self.uuid.unwrap_or_else(|| {
            let mut uuid = [0; 16];
            uuid.copy_from_slice(&derived("packfs dm-verity uuid")[..16]);
            // Version 8 of RFC 9562: derived by a rule of our own.
            uuid[6] = 0x80 | uuid[6] & 0x0f;
            uuid[8] = 0x80 | uuid[8] & 0x3f;
            uuid
        });
        Ok(VerityParams {
            algorithm: self.algorithm,
            data_block_len: self.data_block_len,
            hash_block_len: self.hash_block_len,
            data_blocks: data_len / block_len,
            salt,
            uuid,
        })
    }
}

/// Hashes the data that `params` cover, writes superblock and tree at `offset` of `out`, and
/// returns the root hash. `out` may be the file of the image. The superblock is written last, so an
/// incomplete tree is not detected as one.
///
/// Errors: `Io`, `Cancelled`; the caller removes what was written.
pub fn write_verity(
    image: &dyn Image,
    params: &VerityParams,
    out: &File,
    offset: u64,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    progress.begin(Stage::Hash, 1, params.data_len());
    let cannot = || format!("cannot write the hash tree of {}", image.name());
    let (shape, hash_block_len) = (params.shape(), u64::from(params.hash_block_len));
    let tree_at = offset + params.head_len();
    out.write_all_at(&vec![0; params.head_len() as usize], offset).or_io(cannot)?;
    let mut write = |level: usize, index: u64, block: &[u8]| {
        out.write_all_at(block, tree_at + shape.position(level, index) * hash_block_len).or_io(cannot)
    };
    let salted = Salted::new(params.algorithm, &params.salt);
    let mut fold = Fold::new(salted.clone(), params.hash_block_len as usize, &shape, &mut write);
    let block_len = params.data_block_len as usize;
    hash_tree::hash_blocks(image, params.data_len(), block_len, &salted, jobs, progress, &mut |hashes| {
        hashes.chunks(params.algorithm.digest_len()).try_for_each(|hash| fold.add(0, hash))
    })?;
    let root = fold.finish()?;
    out.sync_data().or_io(cannot)?;
    out.write_all_at(&params.encode(), offset).or_io(cannot)?;
    out.sync_data().or_io(cannot)?;
    Ok(root)
}

/// Reads the superblock at `offset`.
///
/// Errors: `Failed` if it has no signature of a superblock, `Corrupt`, `Unsupported`, `Io`.
pub fn read_verity(image: &dyn Image, offset: u64) -> Result<VerityParams> {
    VerityParams::read(image, offset)?
        .ok_or_else(|| Error::failed(format!("{}: no dm-verity superblock at {offset:#x}", image.name())))
}
