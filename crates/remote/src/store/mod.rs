//! Cache on disk: a sparse file for each version of an object, shared by processes.
//!
//! A file has a header, a table with a word for each block, and the blocks at their places. The
//! word holds the checksum of the block; a block counts only if it matches. So nothing depends on
//! the order in which writes reach the disk: after kill -9, a full disk, or a power failure, what
//! is torn is missing. Processes write the same bytes to the same places and need no lock. A file
//! is created under another name and renamed; what is evicted stays readable for those that have it
//! open.

mod blocks;
mod entry;
mod header;
mod list;

pub(crate) use entry::Entry;
pub use list::{Store, Stored, Verified};

use packfs_core::to_hex;
use sha2::{Digest, Sha256};

/// Returns the name of a file: the object, and its version.
fn file_name(identity: &str, validator: &str) -> String {
    format!("{}{}", prefix(identity), short_hash(validator))
}

/// Returns the start of the names of all versions of an object.
fn prefix(identity: &str) -> String {
    format!("{}-", short_hash(identity))
}

/// Half of a SHA-256 digest in hexadecimal; the header has all of it.
fn short_hash(text: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    to_hex(&digest[..16])
}
