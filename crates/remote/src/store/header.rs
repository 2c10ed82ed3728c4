//! Header of a file of the cache.

use crate::plan::BLOCK_LEN;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Length of the header.
pub(crate) const HEADER_LEN: u64 = 4096;
/// Bytes of the table for each block: checksum and mark.
pub(crate) const WORD_LEN: u64 = 8;
const MAGIC: &[u8; 16] = b"packfs cache 1\n\0";
/// Longest URL that is kept for lists.
const URL_LEN_MAX: usize = 2048;
const VALIDATOR_LEN_MAX: usize = 1024;
/// Most blocks of a file: its table is then 512 MiB, sparse, and its blocks 4 TiB.
const BLOCKS_MAX: u64 = 64 << 20;

/// Identity of a file: which bytes it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// SHA-256 of the name of the object.
    pub(crate) object: [u8; 32],
    /// Length of the object in bytes.
    pub(crate) len: u64,
    /// Strong entity tag.
    pub(crate) validator: String,
    /// URL without secrets, for lists.
    pub(crate) url: String,
}

impl Header {
    /// Returns the header of a version; `None` if it cannot be stored.
    pub(crate) fn new(identity: &str, url: &str, len: u64, validator: &str) -> Option<Self> {
        let mut url = url.to_owned();
        while url.len() > URL_LEN_MAX {
            url.pop();
        }
        let is_fit = validator.len() <= VALIDATOR_LEN_MAX && len.div_ceil(BLOCK_LEN) <= BLOCKS_MAX;
        let object = Sha256::digest(identity.as_bytes()).into();
        is_fit.then(|| Header { object, len, validator: validator.into(), url })
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.len.div_ceil(BLOCK_LEN)
    }

    /// Returns the place of the first block.
    pub(crate) fn data_start(&self) -> u64 {
        let table = self.blocks().saturating_mul(WORD_LEN);
        HEADER_LEN.saturating_add(table).next_multiple_of(BLOCK_LEN)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(self.object);
        bytes.extend(self.len.to_le_bytes());
        bytes.extend(BLOCK_LEN.to_le_bytes());
        for text in [&self.validator, &self.url] {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.resize(usize::try_from(HEADER_LEN.saturating_sub(4)).unwrap_or(0), 0);
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// Reads a header. Errors: `InvalidData` if it is none.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        let mut bytes = vec![0; usize::try_from(HEADER_LEN).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        Header::parse(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (body, checksum) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let rest = body.strip_prefix(MAGIC)?;
        let (object, rest) = rest.split_first_chunk::<32>()?;
        let (len, rest) = number(rest)?;
        let (block_len, rest) = number(rest)?;
        let (validator, rest) = text(rest)?;
        let (url, _) = text(rest)?;
        let is_known = block_len == BLOCK_LEN && len.div_ceil(BLOCK_LEN) <= BLOCKS_MAX;
        is_known.then_some(Header { object: *object, len, validator, url })
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), rest))
}

fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (len, rest) = number(bytes)?;
    let (text, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    Some((String::from_utf8(text.into()).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_damage_is_found() {
        let header = Header::new("identity", "https://host/a", 1 << 33, "\"tag\"").unwrap();
        let bytes = header.bytes();
        assert_eq!(bytes.len() as u64, HEADER_LEN);
        assert_eq!(Header::parse(&bytes), Some(header));
        for place in [0, 20, 60, 100, 4095] {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert_eq!(Header::parse(&damaged), None, "{place}");
        }
        assert_eq!(Header::parse(&bytes[..100]), None);
    }

    #[test]
    fn objects_that_are_too_long_are_not_stored() {
        assert!(Header::new("a", "a", u64::MAX, "\"tag\"").is_none());
        assert!(Header::new("a", "a", 1, &"x".repeat(2000)).is_none());
        assert!(Header::new("a", &"x".repeat(9000), 1, "\"tag\"").unwrap().bytes().len() == 4096);
    }
}
