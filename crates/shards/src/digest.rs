//! SHA-256 of files: of all bytes, and of both ends.

use packfs_core::to_hex;
use packfs_core::{Error, Image, Progress, Result, Stage};
use sha2::{Digest, Sha256};

/// Bytes read at a time.
const PART_LEN: u64 = 1 << 20;

/// Bytes of each end that [`ends_of`] reads. They hold the superblock, and the tables of most
/// images.
const END_LEN: u64 = 64 << 10;

/// Length of a file, and SHA-256 of its first and last 64 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Length of the file in bytes.
    pub size: u64,
    /// SHA-256 of both ends, in hexadecimal.
    pub sha256: String,
}

/// Returns the SHA-256 of bytes, in hexadecimal.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// Returns the SHA-256 of a file, in hexadecimal.
///
/// Errors: `Io`, `Cancelled`.
pub fn digest_of(file: &dyn Image, progress: &dyn Progress) -> Result<String> {
    let len = file.len();
    progress.begin(Stage::Hash, 0, len);
    let mut hash = Sha256::new();
    let mut at = 0;
    while at < len {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let read = add(&mut hash, file, at, (len - at).min(PART_LEN))?;
        at += read;
        progress.advance(0, read, 0);
    }
    Ok(to_hex(&hash.finalize()))
}

/// Returns the length of a file, and the SHA-256 of its ends.
///
/// Errors: `Io`.
pub fn ends_of(file: &dyn Image) -> Result<Ends> {
    let size = file.len();
    let mut hash = Sha256::new();
    add(&mut hash, file, 0, size.min(END_LEN))?;
    let last = size.saturating_sub(END_LEN).max(size.min(END_LEN));
    add(&mut hash, file, last, size - last)?;
    Ok(Ends { size, sha256: to_hex(&hash.finalize()) })
}

fn add(hash: &mut Sha256, file: &dyn Image, at: u64, len: u64) -> Result<u64> {
    let mut buffer = vec![0; usize::try_from(len.min(PART_LEN)).unwrap_or_default()];
    file.read_exact_at(at, &mut buffer)?;
    hash.update(&buffer);
    Ok(buffer.len() as u64)
}
