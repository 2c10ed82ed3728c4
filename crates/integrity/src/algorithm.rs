//! The hash functions of hash trees, with a salt that is hashed once.

use sha2::{Digest, Sha256, Sha512};

/// The hash function of a hash tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashAlgorithm {
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-512.
    Sha512,
}

impl HashAlgorithm {
    /// All hash functions.
    pub const ALL: [HashAlgorithm; 2] = [HashAlgorithm::Sha256, HashAlgorithm::Sha512];

    /// Returns the name that Linux and superblocks use.
    pub fn name(self) -> &'static str {
        match self {
            HashAlgorithm::Sha256 => "sha256",
            HashAlgorithm::Sha512 => "sha512",
        }
    }

    /// Returns the function with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Returns the length of a digest in bytes, a power of two.
    pub fn digest_len(self) -> usize {
        match self {
            HashAlgorithm::Sha256 => 32,
            HashAlgorithm::Sha512 => 64,
        }
    }

    pub(crate) fn input_len(self) -> usize {
        match self {
            HashAlgorithm::Sha256 => 64,
            HashAlgorithm::Sha512 => 128,
        }
    }
}

#[derive(Clone)]
pub(crate) enum Salted {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Salted {
    pub(crate) fn new(algorithm: HashAlgorithm, salt: &[u8]) -> Self {
        match algorithm {
            HashAlgorithm::Sha256 => Salted::Sha256(Sha256::new_with_prefix(salt)),
            HashAlgorithm::Sha512 => Salted::Sha512(Sha512::new_with_prefix(salt)),
        }
    }

    pub(crate) fn hash_into(&self, bytes: &[u8], digests: &mut Vec<u8>) {
        match self {
            Salted::Sha256(hasher) => {
                digests.extend_from_slice(&hasher.clone().chain_update(bytes).finalize())
            }
            Salted::Sha512(hasher) => {
                digests.extend_from_slice(&hasher.clone().chain_update(bytes).finalize())
            }
        }
    }

    pub(crate) fn hash(&self, bytes: &[u8]) -> Vec<u8> {
        let mut digest = Vec::with_capacity(64);
        self.hash_into(bytes, &mut digest);
        digest
    }
}
