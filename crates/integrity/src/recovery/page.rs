//! One page of the index of a recovery file: all parameters, some checksums, and a hash of the
//! page.
//!
//! Every page contains everything but the checksums of other pages, so any intact one is enough to
//! start from.

use super::params::{HASH_LEN, HEAD_LEN, PAGE_LEN, RecoveryParams};
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"PFSREC\0\x01";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Pages with checksums come first, then their recovery pages.
    pub(super) number: u32,
    pub(super) params: RecoveryParams,
    /// Hash of the parameters and of all checksums, which distinguishes pages of different files.
    pub(super) set: [u8; 32],
    pub(super) payload: Vec<u8>,
}

impl Page {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PAGE_LEN as usize);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&figures(&self.params));
        bytes.resize(32, 0);
        bytes.extend_from_slice(&self.set);
        bytes.resize(HEAD_LEN, 0);
        bytes.extend_from_slice(&self.payload);
        bytes.resize(PAGE_LEN as usize - HASH_LEN, 0);
        let hash = Sha256::digest(&bytes);
        bytes.extend_from_slice(&hash);
        bytes
    }

    /// `None` if the page is invalid, damaged, or at the wrong position.
    pub(super) fn decode(bytes: &[u8], at: u64) -> Option<Self> {
        let (body, hash) = bytes.split_at_checked(PAGE_LEN as usize - HASH_LEN)?;
        if !body.starts_with(MAGIC) || Sha256::digest(body)[..] != *hash {
            return None;
        }
        let u32_at = |at: usize| body[at..].first_chunk().copied().map_or(0, u32::from_le_bytes);
        let params = RecoveryParams {
            image_len: body[12..].first_chunk().copied().map_or(0, u64::from_le_bytes),
            block_len: u32_at(20),
            data_count: u32_at(24),
            recovery_count: u32_at(28),
        };
        let number = u32_at(8);
        let is_page =
            params.are_possible() && number < 2 * params.page_count() && params.page_at(number) == at;
        let set = body[32..].first_chunk().copied()?;
        is_page.then(|| Page { number, params, set, payload: body[HEAD_LEN..].to_vec() })
    }
}

pub(super) fn figures(params: &RecoveryParams) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&params.image_len.to_le_bytes());
    bytes[8..12].copy_from_slice(&params.block_len.to_le_bytes());
    bytes[12..16].copy_from_slice(&params.data_count.to_le_bytes());
    bytes[16..].copy_from_slice(&params.recovery_count.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::params::PAYLOAD_LEN;
    use super::*;

    #[test]
    fn a_page_is_only_read_where_it_belongs_and_whole() {
        let params = RecoveryParams::new(1 << 20, 10).unwrap();
        let page = Page { number: 1, params, set: [7; 32], payload: vec![9; PAYLOAD_LEN] };
        let bytes = page.encode();
        assert_eq!((bytes.len() as u64, PAYLOAD_LEN % 64), (PAGE_LEN, 0));
        assert_eq!(Page::decode(&bytes, PAGE_LEN), Some(page));
        assert_eq!(Page::decode(&bytes, 0), None);
        assert_eq!(Page::decode(&bytes[1..], PAGE_LEN), None);
        for at in [0, 9, 25, 40, 95, 96, 4063, 4064, 4095] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Page::decode(&damaged, PAGE_LEN), None, "{at}");
        }
    }
}
