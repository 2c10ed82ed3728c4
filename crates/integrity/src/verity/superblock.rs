//! The superblock of a dm-verity hash tree, version 1, compatible with cryptsetup.
//!
//! | offset | bytes | name | meaning |
//! |---|---|---|---|
//! | 0 | 8 | signature | `verity\0\0` |
//! | 8 | 4 | version | 1 |
//! | 12 | 4 | hash_type | 1: the salt comes first, hashes are aligned to powers of two |
//! | 16 | 16 | uuid | |
//! | 32 | 32 | algorithm | name, NUL-terminated |
//! | 64 | 4 | data_block_size | |
//! | 68 | 4 | hash_block_size | |
//! | 72 | 8 | data_blocks | |
//! | 80 | 2 | salt_size | |
//! | 82 | 6 | | zeros |
//! | 88 | 256 | salt | |
//! | 344 | 168 | | zeros |

use crate::algorithm::HashAlgorithm;
use crate::hash_tree::Shape;
use packfs_core::{Error, Image, Result};

const SIGNATURE: &[u8; 8] = b"verity\0\0";
/// Bytes of the superblock.
pub(super) const LEN: usize = 512;
/// Longest salt.
pub(super) const SALT_LEN_MAX: usize = 256;

/// Parameters of a hash tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerityParams {
    /// The hash function.
    pub algorithm: HashAlgorithm,
    /// Length of a block of data: a power of two from 512 to 65,536.
    pub data_block_len: u32,
    /// Length of a block of hashes, with the same limits.
    pub hash_block_len: u32,
    /// Number of data blocks covered.
    pub data_blocks: u64,
    /// Salt of up to 256 bytes.
    pub salt: Vec<u8>,
    /// Identifies the tree, like the UUID of a filesystem.
    pub uuid: [u8; 16],
}

pub(super) fn is_block_len(len: u32) -> bool {
    len.is_power_of_two() && (512..=65_536).contains(&len)
}

impl VerityParams {
    pub(super) fn shape(&self) -> Shape {
        let hashes_a_block = u64::from(self.hash_block_len) / self.algorithm.digest_len() as u64;
        Shape::new(self.data_blocks, hashes_a_block)
    }

    /// Returns the number of bytes covered.
    pub fn data_len(&self) -> u64 {
        self.data_blocks.saturating_mul(self.data_block_len.into())
    }

    /// Returns the length of superblock and tree in bytes.
    pub fn hash_len(&self) -> u64 {
        let blocks = self.shape().block_count().saturating_mul(self.hash_block_len.into());
        blocks.saturating_add(self.head_len())
    }

    pub(super) fn head_len(&self) -> u64 {
        u64::from(self.hash_block_len.max(LEN as u32))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend_from_slice(SIGNATURE);
        bytes.extend_from_slice(&1_u32.to_le_bytes());
        bytes.extend_from_slice(&1_u32.to_le_bytes());
        bytes.extend_from_slice(&self.uuid);
        bytes.extend_from_slice(self.algorithm.name().as_bytes());
        bytes.resize(64, 0);
        bytes.extend_from_slice(&self.data_block_len.to_le_bytes());
        bytes.extend_from_slice(&self.hash_block_len.to_le_bytes());
        bytes.extend_from_slice(&self.data_blocks.to_le_bytes());
        bytes.extend_from_slice(&(self.salt.len() as u16).to_le_bytes());
        bytes.resize(88, 0);
        bytes.extend_from_slice(&self.salt);
        bytes.resize(LEN, 0);
        bytes
    }

    /// `None` without a signature.
    ///
    /// Errors: `Corrupt` for invalid values, `Unsupported` for other versions and functions.
    pub(super) fn read(image: &dyn Image, offset: u64) -> Result<Option<Self>> {
        let mut bytes = [0; LEN];
        if image.read_at(offset, &mut bytes)? < LEN || !bytes.starts_with(SIGNATURE) {
            return Ok(None);
        }
        let place = || format!("dm-verity superblock at {offset:#x} of {}", image.name());
        let u32_at = |at: usize| bytes[at..].first_chunk().copied().map_or(0, u32::from_le_bytes);
        let (version, hash_type) = (u32_at(8), u32_at(12));
        if (version, hash_type) != (1, 1) {
            let fault = format!("version {version}, hash type {hash_type}; only 1 and 1 are supported");
            return Err(Error::unsupported(place(), fault));
        }
        let name = bytes[32..64].split(|&byte| byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        let Some(algorithm) = HashAlgorithm::by_name(&name) else {
            return Err(Error::unsupported(
                place(),
                format!("hash function {name:?}; known are sha256 and sha512"),
            ));
        };
        let (data_block_len, hash_block_len) = (u32_at(64), u32_at(68));
        for (what, len) in [("data", data_block_len), ("hash", hash_block_len)] {
            if !is_block_len(len) {
                let fault =
                    format!("{what} blocks of {len} bytes, a power of two from 512 to 65536 is allowed");
                return Err(Error::corrupt(place(), fault));
            }
        }
        let salt_len = usize::from(u16::from_le_bytes([bytes[80], bytes[81]]));
        let Some(salt) = bytes[88..88 + SALT_LEN_MAX].get(..salt_len) else {
            return Err(Error::corrupt(
                place(),
                format!("salt of {salt_len} bytes, at most {SALT_LEN_MAX} allowed"),
            ));
        };
        let data_blocks = bytes[72..].first_chunk().copied().map_or(0, u64::from_le_bytes);
        if data_blocks == 0
            || data_blocks.checked_mul(data_block_len.into()).is_none_or(|len| len > i64::MAX as u64)
        {
            return Err(Error::corrupt(place(), format!("{data_blocks} data blocks")));
        }
        let uuid = bytes[16..].first_chunk().copied().unwrap_or_default();
        Ok(Some(VerityParams {
            algorithm,
            data_block_len,
            hash_block_len,
            data_blocks,
            salt: salt.to_vec(),
            uuid,
        }))
    }
}
