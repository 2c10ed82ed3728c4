//! Parameters of a recovery file: division of an image into blocks, and positions in the file. See
//! docs/formats/recovery.md.

use packfs_core::{Error, Result};

/// Alignment of pages of the index, blocks and everything else.
pub(super) const PAGE_LEN: u64 = 4096;
pub(super) const HEAD_LEN: usize = 96;
pub(super) const HASH_LEN: usize = 32;
/// Bytes of a page for checksums: a multiple of 64, as the code requires.
pub(super) const PAYLOAD_LEN: usize = PAGE_LEN as usize - HEAD_LEN - HASH_LEN;
/// More blocks would make every code slower, fewer would make a lost one larger.
pub(super) const DATA_BLOCKS_MAX: u64 = 16_384;
/// Longest block; so the longest image has 16 TiB.
const BLOCK_LEN_MAX: u64 = 1 << 30;
/// Length of a checksum: the first bytes of a SHA-256.
pub(super) const CHECKSUM_LEN: usize = 16;
/// Checksums of a page.
pub(super) const CHECKSUMS_A_PAGE: usize = PAYLOAD_LEN / CHECKSUM_LEN;

/// Division of an image into blocks, and number of recovery blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RecoveryParams {
    /// Length of the image.
    pub image_len: u64,
    /// Length of a block of both kinds, a multiple of 4,096; the image's last one is padded with
    /// zeros.
    pub block_len: u32,
    /// Blocks of the image.
    pub data_count: u32,
    /// Recovery blocks: the same number of lost blocks can be repaired.
    pub recovery_count: u32,
}

impl RecoveryParams {
    /// Computes the parameters of an image for a percentage of lost blocks.
    ///
    /// Errors: `Usage` for an empty image, one that is too long, and percentages outside 1 to 100.
    pub fn new(image_len: u64, percent: u32) -> Result<Self> {
        if !(1..=100).contains(&percent) {
            return Err(Error::usage(format!("{percent} percent of recovery data: 1 to 100 are allowed")));
        }
        let block_len = image_len.div_ceil(DATA_BLOCKS_MAX).max(1).next_multiple_of(PAGE_LEN);
        if image_len == 0 || block_len > BLOCK_LEN_MAX {
            return Err(Error::usage(format!(
                "recovery data for {image_len} bytes: 1 byte to 16 TiB are possible"
            )));
        }
        let data_count = image_len.div_ceil(block_len) as u32;
        let recovery_count = (data_count * percent).div_ceil(100);
        Ok(RecoveryParams { image_len, block_len: block_len as u32, data_count, recovery_count })
    }

    /// Blocks much longer than the image are refused, or terabytes of zeros would be hashed for a
    /// few bytes.
    pub(super) fn are_possible(&self) -> bool {
        let block_len = u64::from(self.block_len);
        block_len.is_multiple_of(PAGE_LEN)
            && (PAGE_LEN..=BLOCK_LEN_MAX).contains(&block_len)
            && block_len - PAGE_LEN < self.image_len
            && (1..=DATA_BLOCKS_MAX).contains(&u64::from(self.data_count))
            && (1..=self.data_count).contains(&self.recovery_count)
            && self.image_len.div_ceil(block_len) == u64::from(self.data_count)
    }

    pub(super) fn block_count(&self) -> usize {
        self.data_count as usize + self.recovery_count as usize
    }

    /// There are as many recovery pages.
    pub(super) fn page_count(&self) -> u32 {
        self.block_count().div_ceil(CHECKSUMS_A_PAGE) as u32
    }

    pub(super) fn recovery_at(&self, index: u32) -> u64 {
        u64::from(self.page_count()) * PAGE_LEN + u64::from(index) * u64::from(self.block_len)
    }

    /// The index precedes the recovery data; its recovery pages follow.
    pub(super) fn page_at(&self, number: u32) -> u64 {
        match number.checked_sub(self.page_count()) {
            None => u64::from(number) * PAGE_LEN,
            Some(parity) => self.recovery_at(self.recovery_count) + u64::from(parity) * PAGE_LEN,
        }
    }

    /// Returns the length of the recovery file.
    pub fn file_len(&self) -> u64 {
        self.page_at(2 * self.page_count())
    }

    /// Returns the start of a block, and the number of its bytes within the image.
    pub(super) fn data_range(&self, index: u32) -> (u64, u64) {
        let start = u64::from(index) * u64::from(self.block_len);
        (start, u64::from(self.block_len).min(self.image_len - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_suit_images_of_every_length() {
        for image_len in [1, 4095, 4096, 4097, 64 << 20, (64 << 20) + 1, 10 << 30, 16 << 40] {
            for percent in [1, 5, 33, 100] {
                let params = RecoveryParams::new(image_len, percent).unwrap();
                assert!(params.are_possible(), "{params:?}");
                assert!(params.recovery_count * 100 >= params.data_count * percent, "{params:?}");
                assert_eq!(params.page_at(params.page_count()), params.recovery_at(params.recovery_count));
            }
        }
        for (image_len, percent) in [(0, 5), (1, 0), (1, 101), ((16 << 40) + 1, 5), (u64::MAX, 5)] {
            assert!(RecoveryParams::new(image_len, percent).is_err(), "{image_len} {percent}");
        }
    }
}
