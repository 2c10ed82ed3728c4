//! Cached metadata blocks.

use std::sync::Arc;

/// Runs of filesystem blocks: start and count.
pub(crate) type Run = (u64, u64);

pub(crate) struct KeptBlock {
    /// Directory blocks may start with the same block and continue elsewhere.
    pub(crate) runs: Vec<Run>,
    pub(crate) bytes: Arc<Vec<u8>>,
}
