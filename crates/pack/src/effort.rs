//! How much work a block is worth.

use packfs_codec::CodecSettings;
use packfs_codec::{Encoder, FitEncoder};
use packfs_core::{Error, Result};

/// How much work a block is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// What the codec's level means.
    #[default]
    Level,
    /// The codec's highest level, and several ways to use it of which the smallest result is kept.
    Max,
}

impl Effort {
    /// An encoder for blocks; none where they are stored.
    pub(crate) fn encoder(self, settings: Option<&CodecSettings>) -> Result<Option<Box<dyn Encoder>>> {
        let encoder = match self {
            Effort::Level => packfs_codec::encoder,
            Effort::Max => packfs_codec::thorough_encoder,
        };
        settings.map(|settings| encoder(settings).map_err(Error::usage)).transpose()
    }

    /// An encoder for clusters.
    pub(crate) fn fit_encoder(self, settings: &CodecSettings) -> Result<Box<dyn FitEncoder>> {
        let encoder = match self {
            Effort::Level => packfs_codec::fit_encoder,
            Effort::Max => packfs_codec::thorough_fit_encoder,
        };
        encoder(settings).map_err(Error::usage)
    }

    /// About what an encoder takes of memory, in bytes, for blocks or stretches of so many bytes.
    pub(crate) fn encoder_memory(self, settings: &CodecSettings, input_len: u64) -> u64 {
        match self {
            Effort::Level => packfs_codec::encoder_memory(settings, input_len),
            Effort::Max => packfs_codec::thorough_memory(settings, input_len),
        }
    }
}
