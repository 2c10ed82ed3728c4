//! The digest of a file under fs-verity, as measured by Linux and printed by `fsverity digest`.
//!
//! Specified in Documentation/filesystems/fsverity.rst.

use crate::algorithm::{HashAlgorithm, Salted};
use crate::hash_tree::{self, Fold, Shape};
use crate::sys;
use packfs_core::{Error, Image, Progress, Result, Stage};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// Longest salt.
const SALT_LEN_MAX: usize = 32;
/// `struct fsverity_descriptor`.
const DESCRIPTOR_LEN: usize = 256;
const ROOT_HASH_LEN: usize = 64;

/// Parameters of an fs-verity digest.
#[derive(Clone, Debug)]
pub struct FsVerityOptions {
    /// The hash function.
    pub algorithm: HashAlgorithm,
    /// Length of a block: a power of two from 1,024 to 65,536.
    pub block_len: u32,
    /// Salt of up to 32 bytes.
    pub salt: Vec<u8>,
}

impl Default for FsVerityOptions {
    fn default() -> Self {
        FsVerityOptions { algorithm: HashAlgorithm::Sha256, block_len: 4096, salt: Vec::new() }
    }
}

/// Attempts to enable fs-verity on a file that a child process seems to have open.
const BUSY_MAX: u32 = 10;

/// Enables fs-verity on a file, with the default [`FsVerityOptions`]. The file must be open for
/// reading only. Returns false if the filesystem or the kernel lacks fs-verity; a file that already
/// has it is unchanged.
///
/// Errors: `Io`.
pub fn enable_fs_verity(file: &File, path: &Path) -> Result<bool> {
    let mut busy = 0;
    loop {
        match sys::enable_fs_verity(file) {
            Ok(()) | Err(Errno::EXIST) => return Ok(true),
            Err(Errno::NOTTY | Errno::OPNOTSUPP) => return Ok(false),
            Err(Errno::INTR) => {}
            // Between `fork` and `exec`, a child of another thread has all files of this process.
            Err(Errno::TXTBSY) if busy < BUSY_MAX => {
                busy += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => {
                return Err(Error::io(format!("cannot enable fs-verity on {path:?}"), error.into()));
            }
        }
    }
}

/// Returns the fs-verity digest of a file, computed by `jobs` threads; 0 means one per CPU.
///
/// Errors: `Usage` for a block length or a salt that Linux does not support; `Io`, `Cancelled`.
pub fn fs_verity_digest(
    image: &dyn Image,
    options: &FsVerityOptions,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    let FsVerityOptions { algorithm, block_len, salt } = options;
    if !block_len.is_power_of_two() || !(1024..=65_536).contains(block_len) {
        let fault =
            format!("fs-verity blocks of {block_len} bytes: a power of two from 1024 to 65536 is needed");
        return Err(Error::usage(fault));
    }
    if salt.len() > SALT_LEN_MAX {
        return Err(Error::usage(format!("fs-verity salt of {} bytes, at most 32 allowed", salt.len())));
    }
    progress.begin(Stage::Hash, 1, image.len());
    // The salt is padded to whole inputs of the function, so that it is hashed only once.
    let mut padded = salt.clone();
    padded.resize(salt.len().next_multiple_of(algorithm.input_len()), 0);
    let salted = Salted::new(*algorithm, &padded);
    let block_count = image.len().div_ceil(u64::from(*block_len));
    let digest_len = algorithm.digest_len();
    let shape = Shape::new(block_count, u64::from(*block_len) / digest_len as u64);
    let mut nobody = |_: usize, _: u64, _: &[u8]| Ok(());
    let mut fold = Fold::new(salted.clone(), *block_len as usize, &shape, &mut nobody);
    let block_len = *block_len as usize;
    hash_tree::hash_blocks(image, image.len(), block_len, &salted, jobs, progress, &mut |hashes| {
        hashes.chunks(digest_len).try_for_each(|hash| fold.add(0, hash))
    })?;
    let mut root = fold.finish()?;
    root.resize(ROOT_HASH_LEN, 0);

    let mut descriptor = Vec::with_capacity(DESCRIPTOR_LEN);
    let number = match algorithm {
        HashAlgorithm::Sha256 => 1,
        HashAlgorithm::Sha512 => 2,
    };
    // Version, function, block length, salt length; then the length of the signature, which is
    // absent.
    descriptor.extend_from_slice(&[
        1,
        number,
        block_len.trailing_zeros() as u8,
        salt.len() as u8,
        0,
        0,
        0,
        0,
    ]);
    descriptor.extend_from_slice(&image.len().to_le_bytes());
    descriptor.extend_from_slice(&root);
    descriptor.extend_from_slice(salt);
    descriptor.resize(DESCRIPTOR_LEN, 0);
    Ok(Salted::new(*algorithm, &[]).hash(&descriptor))
}
