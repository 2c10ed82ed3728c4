//! An encoder of clusters, with its cluster of zeros.

use packfs_codec::{CodecSettings, FitEncoder};
use packfs_core::{Error, Result};
use std::sync::Arc;

/// One encoder and what a thread knows of it.
pub(super) struct Coder {
    pub settings: CodecSettings,
    pub encoder: Box<dyn FitEncoder>,
    /// A run of zeros, if it fits into one block; unset until somebody asks.
    zeros: Option<Option<Arc<[u8]>>>,
}

impl Coder {
    pub(super) fn new(settings: CodecSettings, encoder: Box<dyn FitEncoder>) -> Self {
        Coder { settings, encoder, zeros: None }
    }

    /// The cluster that stands for `len` zeros; these figures are the same in every call.
    pub(super) fn zeros(&mut self, len: usize, block_len: usize) -> Result<Option<Arc<[u8]>>> {
        if self.zeros.is_none() {
            let mut block = vec![0; block_len];
            self.encoder.begin_segment();
            let fit = self.encoder.compress_to_fit(&vec![0; len], &mut block).map_err(Error::failed)?;
            self.zeros = Some((fit.consumed == len).then(|| block[..fit.written].into()));
        }
        Ok(self.zeros.clone().flatten())
    }
}
