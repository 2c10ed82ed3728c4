//! The figures of a recovery file: how an image is cut, and where everything stands. See
//! docs/formats/recovery.md.

use packfs_core::{Error, Result};

/// Pages of the index, blocks and everything else begin at multiples of this.
pub(super) const PAGE_LEN: u64 = 4096;
pub(super) const HEAD_LEN: usize = 96;
pub(super) const HASH_LEN: usize = 32;
/// Bytes of a page for checksums: a multiple of 64, as the code wants it.
pub(super) const PAYLOAD_LEN: usize = PAGE_LEN as usize - HEAD_LEN - HASH_LEN;
/// More blocks would make every code slower, fewer would make a lost one larger.
pub(super) const DATA_BLOCKS_MAX: u64 = 16_384;
/// Longest block; so the longest image has 16 TiB.
const BLOCK_LEN_MAX: u64 = 1 << 30;
/// Bytes of a checksum: the first of a SHA-256.
pub(super) const CHECKSUM_LEN: usize = 16;
/// Checksums of a page.
pub(super) const CHECKSUMS_A_PAGE: usize = PAYLOAD_LEN / CHECKSUM_LEN;

/// How an image is cut into blocks, and how many blocks of recovery data there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryParams {
    /// Length of the image.
    pub image_len: u64,
    /// Length of a block of both kinds, a multiple of 4,096; the image's last one is filled up with
    /// zeros.
    pub block_len: u32,
    /// Blocks of the image.
    pub data_count: u32,
    /// Blocks of recovery data: as many lost ones can be mended.
    pub recovery_count: u32,
}

impl RecoveryParams {
    /// Those of an image for so many percent of lost blocks.
    ///
    /// Errors: `Usage` for an empty image, one that is too long, and percentages not from 1 to 100.
    pub fn new(image_len: u64, percent: u32) -> Result<Self> {
        if !(1..=100).contains(&percent) {
            return Err(Error::usage(format!("{percent} percent of recovery data: 1 to 100 are possible")));
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

    /// Whether these figures can be those of an image. A block that is much longer than its image
    /// would have terabytes of zeros hashed for a few bytes.
    pub(super) fn are_possible(&self) -> bool {
        let block_len = u64::from(self.block_len);
        block_len.is_multiple_of(PAGE_LEN)
            && (PAGE_LEN..=BLOCK_LEN_MAX).contains(&block_len)
            && block_len - PAGE_LEN < self.image_len
            && (1..=DATA_BLOCKS_MAX).contains(&u64::from(self.data_count))
            && (1..=self.data_count).contains(&self.recovery_count)
            && self.image_len.div_ceil(block_len) == u64::from(self.data_count)
    }

    /// Blocks of both kinds.
    pub(super) fn block_count(&self) -> usize {
        self.data_count as usize + self.recovery_count as usize
    }

    /// Pages of the index; there are as many again to mend them.
    pub(super) fn page_count(&self) -> u32 {
        self.block_count().div_ceil(CHECKSUMS_A_PAGE) as u32
    }

    /// Where a block of recovery data stands in the recovery file.
    pub(super) fn recovery_at(&self, index: u32) -> u64 {
        u64::from(self.page_count()) * PAGE_LEN + u64::from(index) * u64::from(self.block_len)
    }

    /// Where a page stands: the index before the recovery data, what mends it behind.
    pub(super) fn page_at(&self, number: u32) -> u64 {
        match number.checked_sub(self.page_count()) {
            None => u64::from(number) * PAGE_LEN,
            Some(parity) => self.recovery_at(self.recovery_count) + u64::from(parity) * PAGE_LEN,
        }
    }

    /// Length of the recovery file.
    pub fn file_len(&self) -> u64 {
        self.page_at(2 * self.page_count())
    }

    /// Where a block of the image begins and how many bytes of it the image has.
    pub(super) fn data_range(&self, index: u32) -> (u64, u64) {
        let start = u64::from(index) * u64::from(self.block_len);
        (start, u64::from(self.block_len).min(self.image_len - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_fit_images_of_every_length() {
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
