use packfs_codec::CodecSettings;
use packfs_codec::{Encoder, FitEncoder};
use packfs_core::{Error, Result};

/// Effort spent on compressing a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// The codec's level.
    #[default]
    Level,
    /// The codec's highest level, and several of its modes, of which the smallest result is kept.
    Max,
}

packfs_core::words!(Effort: "effort", { Level: "level", Max: "max" });

impl Effort {
    /// `None` if blocks are stored uncompressed.
    pub(crate) fn encoder(self, settings: Option<&CodecSettings>) -> Result<Option<Box<dyn Encoder>>> {
        let encoder = match self {
            Effort::Level => packfs_codec::encoder,
            Effort::Max => packfs_codec::thorough_encoder,
        };
        settings.map(|settings| encoder(settings).map_err(Error::usage)).transpose()
    }

    pub(crate) fn fit_encoder(self, settings: &CodecSettings) -> Result<Box<dyn FitEncoder>> {
        let encoder = match self {
            Effort::Level => packfs_codec::fit_encoder,
            Effort::Max => packfs_codec::thorough_fit_encoder,
        };
        encoder(settings).map_err(Error::usage)
    }

    /// Returns about how many bytes of memory an encoder takes for inputs of `input_len` bytes.
    pub(crate) fn encoder_memory(self, settings: &CodecSettings, input_len: u64) -> u64 {
        match self {
            Effort::Level => packfs_codec::encoder_memory(settings, input_len),
            Effort::Max => packfs_codec::thorough_memory(settings, input_len),
        }
    }
}
