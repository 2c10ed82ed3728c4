//! The table of codecs, the only place that lists them.

use crate::codec::{Codec, Settings};
use crate::options::Options;
use crate::{Algorithm, SettingsError, deflate, lz4, lzma, lzo, xz, zstd};

/// Parses the options of a codec. The caller checks the settings, and refuses remaining options.
pub(crate) type ParseOptions = fn(&mut Options<'_>) -> Result<CodecSettings, SettingsError>;

/// Declares [`CODECS`] and [`CodecSettings`] from one row per codec: variant, settings, and
/// [`Codec`].
macro_rules! codecs {
    ($($(#[$doc:meta])* $variant:ident($settings:ty) = $codec:path,)*) => {
        /// Every codec that users can name, in the order of help.
        pub static CODECS: &[&Codec] = &[$(&$codec),*];

        /// Settings of an encoder. Decoders need only the [`Algorithm`].
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum CodecSettings {
            $($(#[$doc])* $variant($settings),)*
        }

        impl CodecSettings {
            pub(crate) fn get(&self) -> &dyn Settings {
                match self {
                    $(CodecSettings::$variant(settings) => settings,)*
                }
            }

            pub(crate) fn get_mut(&mut self) -> &mut dyn Settings {
                match self {
                    $(CodecSettings::$variant(settings) => settings,)*
                }
            }
        }

        /// By index of [`CODECS`].
        static PARSERS: &[ParseOptions] =
            &[$(|options| <$settings>::parse(options).map(CodecSettings::$variant)),*];
    };
}

codecs! {
    /// zlib streams.
    Zlib(deflate::ZlibSettings) = deflate::ZLIB,
    /// Raw DEFLATE.
    Deflate(deflate::DeflateSettings) = deflate::DEFLATE,
    /// LZO1X.
    Lzo(lzo::LzoSettings) = lzo::LZO,
    /// LZ4, fast encoder.
    Lz4(lz4::Lz4Settings) = lz4::LZ4,
    /// LZ4, high compression encoder.
    Lz4Hc(lz4::Lz4HcSettings) = lz4::LZ4HC,
    /// XZ.
    Xz(xz::XzSettings) = xz::XZ,
    /// LZMA1.
    Lzma(lzma::LzmaSettings) = lzma::LZMA,
    /// Zstandard.
    Zstd(zstd::ZstdSettings) = zstd::ZSTD,
}

impl CodecSettings {
    /// Settings of the fast encoder whose result predicts whether a [slow](CodecSettings::is_slow)
    /// one gains anything.
    pub const PROBE: CodecSettings =
        CodecSettings::Zstd(zstd::ZstdSettings { level: 1, window_log_max: None });

    /// Algorithm that decodes the output.
    pub fn algorithm(&self) -> Algorithm {
        self.get().algorithm()
    }

    /// Distance in bytes within which the encoder finds repetitions; `None` if blocks are never
    /// longer.
    pub fn reach(&self) -> Option<u32> {
        self.get().reach()
    }

    /// True if an encoder takes much longer for a block than that of [`CodecSettings::PROBE`].
    pub fn is_slow(&self) -> bool {
        self.get().is_slow()
    }
}

impl Codec {
    pub(crate) fn by_name(name: &str) -> Option<(&'static Codec, ParseOptions)> {
        let mut rows = CODECS.iter().copied().zip(PARSERS.iter().copied());
        rows.find(|(codec, _)| codec.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_level_is_in_its_range() {
        for codec in CODECS {
            match (&codec.levels, codec.default_level) {
                (Some(levels), Some(level)) => assert!(levels.contains(&level), "{}", codec.name),
                (None, None) => {}
                _ => panic!("{} has levels without a default, or the reverse", codec.name),
            }
        }
    }

    #[test]
    fn every_algorithm_has_one_decoder() {
        for algorithm in Algorithm::ALL {
            let rows = CODECS.iter().flat_map(|codec| codec.decoding);
            assert_eq!(rows.filter(|row| row.algorithm == algorithm).count(), 1, "{algorithm}");
        }
    }
}
