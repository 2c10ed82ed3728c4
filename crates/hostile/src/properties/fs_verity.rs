//! Properties of the fs-verity digest of any file.

use crate::Breach;
use packfs::MemoryImage;
use packfs::integrity::{FsVerityOptions, HashAlgorithm, fs_verity_digest};
use packfs::{ErrorKind, Silent};
use sha2::{Digest, Sha256, Sha512};

/// Longest input that is tried.
const INPUT_LEN_MAX: usize = 1 << 20;

/// The digest is the one that Documentation/filesystems/fsverity.rst tells, worked out here as
/// plainly as can be, however many threads hash; settings that Linux does not know are refused. The
/// first byte is the logarithm of the block length, the second the function, the third the length
/// of the salt, which follows.
///
/// # Errors
/// A [`Breach`].
pub fn fs_verity(input: &[u8]) -> Result<(), Breach> {
    let [shift, function, salt_len, rest @ ..] = input else { return Ok(()) };
    if input.len() > INPUT_LEN_MAX {
        return Ok(());
    }
    let (salt, data) = rest.split_at(rest.len().min(usize::from(*salt_len) % 40));
    let algorithm = HashAlgorithm::ALL[usize::from(*function) % HashAlgorithm::ALL.len()];
    let block_len = 1_u32 << (shift % 20);
    let options = FsVerityOptions { algorithm, block_len, salt: salt.to_vec() };
    let image = MemoryImage::new("measured file", data.to_vec());
    let digests = [1, 2].map(|jobs| fs_verity_digest(&image, &options, jobs, &Silent));
    let is_known = (10..=16).contains(&(shift % 20)) && salt.len() <= 32;
    match digests {
        [Err(a), Err(b)] if !is_known && [a.kind(), b.kind()] == [ErrorKind::Usage; 2] => Ok(()),
        [Ok(one), Ok(two)] if is_known && one == two && one == plainly(data, &options) => Ok(()),
        other => Err(Breach::Integrity(format!("fs-verity of {} bytes, {options:?}: {other:?}", data.len()))),
    }
}

fn hash(algorithm: HashAlgorithm, bytes: &[u8]) -> Vec<u8> {
    match algorithm {
        HashAlgorithm::Sha256 => Sha256::digest(bytes).to_vec(),
        _ => Sha512::digest(bytes).to_vec(),
    }
}

fn plainly(data: &[u8], options: &FsVerityOptions) -> Vec<u8> {
    let (algorithm, block_len) = (options.algorithm, options.block_len as usize);
    let (number, input_len, digest_len) = match algorithm {
        HashAlgorithm::Sha256 => (1, 64, 32),
        _ => (2, 128, 64),
    };
    let mut salt = options.salt.clone();
    salt.resize(salt.len().next_multiple_of(input_len), 0);
    let hashes = |bytes: &[u8]| -> Vec<u8> {
        let salted = |block: &[u8]| {
            let mut block = block.to_vec();
            block.resize(block_len, 0);
            hash(algorithm, &[&salt[..], &block].concat())
        };
        bytes.chunks(block_len).flat_map(salted).collect()
    };
    let mut level = if data.is_empty() { vec![0; digest_len] } else { hashes(data) };
    while level.len() > digest_len {
        level = hashes(&level);
    }
    level.resize(64, 0);
    let mut descriptor = vec![1, number, options.block_len.trailing_zeros() as u8, options.salt.len() as u8];
    descriptor.extend([0; 4]);
    descriptor.extend((data.len() as u64).to_le_bytes());
    descriptor.extend(level);
    descriptor.extend(&options.salt);
    descriptor.resize(256, 0);
    hash(algorithm, &descriptor)
}
