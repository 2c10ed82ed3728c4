//! When to try the encoder again after data did not shrink.
//!
//! Each block of an incompressible run would otherwise be encoded as the beginning of a cluster of
//! its own: sixteen times the work with clusters of 64 KiB. Blocks are stored plain until one looks
//! compressible, and because looks are blind to repetitions, the encoder is tried now and then
//! anyway.

use crate::noise::values_are_even;

/// Encoder tries at least once in so many clusters of input.
const STRIDE_CLUSTERS: usize = 8;

/// See the module. Positions are bytes from the start of what is cut.
pub(super) struct Doubt {
    block_len: usize,
    cluster_len: usize,
    failed: bool,
    /// From here on the encoder is tried whatever the block looks like; how far after a failure.
    try_at: usize,
    stride: usize,
    /// From here on it is tried if the block looks compressible; how far after a failure.
    look_at: usize,
    patience: usize,
}

impl Doubt {
    pub(super) fn new(block_len: usize, cluster_len: usize) -> Self {
        let (stride, patience) = (cluster_len, block_len);
        Doubt { block_len, cluster_len, failed: false, try_at: 0, stride, look_at: 0, patience }
    }

    /// Whether the last try failed.
    pub(super) fn failed(&self) -> bool {
        self.failed
    }

    /// Whether the block at `at`, where `rest` starts, is to be stored plain without a try.
    pub(super) fn says_plain(&self, at: usize, rest: &[u8]) -> bool {
        let block = &rest[..rest.len().min(self.block_len)];
        self.failed && at < self.try_at && (at < self.look_at || values_are_even(block))
    }

    /// The cluster that would start at `at`, where `rest` starts, does not shrink.
    pub(super) fn fail(&mut self, at: usize, rest: &[u8]) {
        if self.failed {
            self.stride = (self.stride * 2).min(STRIDE_CLUSTERS * self.cluster_len);
            // Looks go on at once where they told the truth.
            if !values_are_even(&rest[..rest.len().min(self.block_len)]) {
                self.patience = (self.patience * 2).min(self.cluster_len);
            }
        }
        self.failed = true;
        self.try_at = at + self.stride;
        self.look_at = at + self.patience;
    }

    /// A cluster did shrink.
    pub(super) fn succeed(&mut self) {
        *self = Doubt::new(self.block_len, self.cluster_len);
    }
}

/// Whether a whole file looks incompressible: four blocks spread over its beginning.
pub(super) fn all_looks_incompressible(bytes: &[u8], block_len: usize) -> bool {
    let block_count = bytes.len() / block_len;
    block_count > 0
        && (0..4).all(|i| {
            let start = block_count * i / 4 * block_len;
            values_are_even(&bytes[start..start + block_len])
        })
}
