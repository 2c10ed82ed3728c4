//! What lets others tell that a tree or an image is what it was: digests, hash trees, signatures, recovery data.
//!
//! Works on trees with their contents and on the bytes of files, and knows no format. Everything is read once, hashed on
//! all processors, and held in bounded memory; results do not depend on the number of threads.
#![forbid(unsafe_code)]

mod digest;
mod hex;
mod ordered;

pub use digest::{DigestFacts, TreeDigest, TreeDigests, digest_tree};
pub use hex::{from_hex, to_hex};
