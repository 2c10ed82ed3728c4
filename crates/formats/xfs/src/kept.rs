//! Blocks of metadata that are kept.

use std::sync::Arc;

/// Runs of filesystem blocks: start and count.
pub(crate) type Run = (u64, u64);

/// Block of metadata in the cache.
pub(crate) struct KeptBlock {
    /// Its place: directory blocks may begin with the same block and go on elsewhere.
    pub(crate) runs: Vec<Run>,
    pub(crate) bytes: Arc<Vec<u8>>,
}
