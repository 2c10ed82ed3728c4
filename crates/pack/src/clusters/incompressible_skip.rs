//! Decides when to try the encoder again after data did not shrink.
//!
//! Otherwise each block of an incompressible run would be encoded as the start of a cluster of its
//! own, sixteen times the work with clusters of 64 KiB. Blocks are stored plain until one looks
//! compressible. That test cannot see repetitions, so the encoder is also tried at intervals.

use crate::noise::values_are_even;

/// The encoder is tried at least once in this many clusters of input.
const STRIDE_CLUSTERS: usize = 8;

/// Positions are bytes from the start of the input.
pub(super) struct IncompressibleSkip {
    block_len: usize,
    cluster_len: usize,
    failed: bool,
    /// Position from which the encoder is tried in any case, and its distance after a failure.
    try_at: usize,
    stride: usize,
    /// Position from which it is tried if the block looks compressible, and its distance after a
    /// failure.
    look_at: usize,
    patience: usize,
}

impl IncompressibleSkip {
    pub(super) fn new(block_len: usize, cluster_len: usize) -> Self {
        let (stride, patience) = (cluster_len, block_len);
        IncompressibleSkip { block_len, cluster_len, failed: false, try_at: 0, stride, look_at: 0, patience }
    }

    pub(super) fn failed(&self) -> bool {
        self.failed
    }

    /// Returns true if the block at `at`, where `rest` starts, is to be stored plain without a try.
    pub(super) fn stores_plain(&self, at: usize, rest: &[u8]) -> bool {
        let block = &rest[..rest.len().min(self.block_len)];
        self.failed && at < self.try_at && (at < self.look_at || values_are_even(block))
    }

    pub(super) fn fail(&mut self, at: usize, rest: &[u8]) {
        if self.failed {
            self.stride = (self.stride * 2).min(STRIDE_CLUSTERS * self.cluster_len);
            // The test is used again at once if it predicted the failure.
            if !values_are_even(&rest[..rest.len().min(self.block_len)]) {
                self.patience = (self.patience * 2).min(self.cluster_len);
            }
        }
        self.failed = true;
        self.try_at = at + self.stride;
        self.look_at = at + self.patience;
    }

    pub(super) fn succeed(&mut self) {
        *self = IncompressibleSkip::new(self.block_len, self.cluster_len);
    }
}

/// Judged by four blocks spread over the beginning.
pub(super) fn all_looks_incompressible(bytes: &[u8], block_len: usize) -> bool {
    let block_count = bytes.len() / block_len;
    block_count > 0
        && (0..4).all(|i| {
            let start = block_count * i / 4 * block_len;
            values_are_even(&bytes[start..start + block_len])
        })
}
