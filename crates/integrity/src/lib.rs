//! Integrity of trees and images: digests, hash trees, signatures, recovery data.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Works on trees with their contents and on the bytes of files; no format is known here.
//! Everything is read once, hashed on all CPUs, and held in bounded memory; results do not depend
//! on the number of threads.

mod algorithm;
mod digest;
mod fs_verity;
mod hash_tree;
mod ordered;
mod paths;
mod reader;
mod recovery;
mod replace;
mod signature;
mod sys;
mod verity;

pub use algorithm::HashAlgorithm;
pub use digest::{DigestFacts, TreeDigest, TreeDigests, digest_tree};
pub use fs_verity::{FsVerityOptions, enable_fs_verity, fs_verity_digest};
pub use ordered::in_order;
pub use packfs_core::{from_hex, to_hex};
pub use paths::{public_key_path, recovery_path, root_hash_path, signature_path};
pub use recovery::{
    RecoveryIndex, RecoveryParams, RecoveryState, protect, repair, repair_copy, survey, survey_beside,
};
pub use replace::Replacement;
pub use signature::{NewKeys, SigningKey, VerifyingKey, new_signing_keys};
pub use verity::{
    VerifiedImage, VerityOptions, VerityParams, VerityReport, find_appended, read_verity, verify_verity,
    write_verity,
};
