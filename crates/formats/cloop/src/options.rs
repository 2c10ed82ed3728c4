//! The options of cloop files, with their defaults.

use packfs_codec::{Algorithm, CodecSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Goal, Result};
use packfs_format::{PackSettings, SWITCH, Values, one_of, options};

options! {
    pub(crate) struct Options for "cloop" {
        codec_name: String,
        /// `None`: every block is stored uncompressed.
        codec: Option<CodecSettings>,
        block_len: u32,
    }

    typed_target: Option<Target> = "version", one_of!["2.0" | "2" => Target::V2, "4.0" | "4" => Target::V4],
        "2.0, or 4.0 for other codecs than gzip", "Set the version of the format; every tool reads 2.0";

    /// Stores incompressible blocks uncompressed.
    stored: bool = "stored", SWITCH, "off",
        "Store incompressible blocks uncompressed (4.0; the Linux module of 4.0 fails on them)";

    /// Format of an image to create inside; the facade resolves the name.
    inner: Option<String> = "inner",
        Values::new("FORMAT|none", |text| (!text.is_empty()).then(|| text.to_owned())),
        "iso9660, as far as it can be packed, else squashfs",
        "Pack directories, archives and manifests in this format first; none wraps any file unchanged";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// 64-bit offsets, zlib only.
    V2,
    /// A codec for each block, in the upper bits of its offset; with a header.
    V4,
}

impl Target {
    pub(crate) fn number(self) -> &'static [u8; 3] {
        match self {
            Target::V2 => b"2.0",
            Target::V4 => b"4.0",
        }
    }
}

const BLOCK_LEN_MIN: u32 = 4 << 10;
const BLOCK_LEN_MAX: u32 = 1 << 20;

/// Algorithms of 4.0, in the order of their numbers; 2.0 has only the first.
const ALGORITHMS: [Algorithm; 4] = [Algorithm::Zlib, Algorithm::Xz, Algorithm::Lz4, Algorithm::Lzo];

impl Options {
    /// Checks the given options.
    ///
    /// Errors: `Usage` with the value and the permitted ones.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let block_len = settings.block_size.unwrap_or(block_len_for(settings.optimize));
        if !block_len.is_power_of_two() || !(BLOCK_LEN_MIN..=BLOCK_LEN_MAX).contains(&block_len) {
            let message = format!("cloop block size {block_len}: a power of two from 4K to 1M is allowed");
            return Err(Error::usage(message).hint("modules of Linux take 128K at most"));
        }
        let typed = settings.codec.as_deref().unwrap_or(codec_for(settings.optimize));
        let typed = &*packfs_codec::codec_for_goal(typed, settings.optimize);
        let spec: CodecSpec = typed.parse().map_err(Error::usage)?;
        let codec = spec.resolve(&ALGORITHMS, DictLens::of_block(block_len)).map_err(Error::usage)?;
        let options = Options::read(spec.to_string(), codec, block_len, settings.typed_options())?;
        if options.target() == Target::V2 && !options.is_zlib() {
            let message = format!("cloop 2.0 has no codec {}, only gzip", options.codec_name);
            return Err(Error::usage(message).hint("-O version=4.0 has gzip, xz, lz4 and lzo"));
        }
        if options.target() == Target::V2 && options.stored {
            return Err(Error::usage("cloop 2.0 cannot store uncompressed blocks")
                .hint("-O version=4.0 can, but its module of Linux does not read them"));
        }
        Ok(options)
    }

    pub(crate) fn target(&self) -> Target {
        self.typed_target.unwrap_or(if self.is_zlib() { Target::V2 } else { Target::V4 })
    }

    fn is_zlib(&self) -> bool {
        self.codec.as_ref().is_some_and(|codec| codec.algorithm() == Algorithm::Zlib)
    }
}

/// Returns the default codec. All tools read 2.0, so it is zlib for every goal.
fn codec_for(goal: Goal) -> &'static str {
    match goal {
        Goal::Size => "gzip:12",
        Goal::Balanced | Goal::Read => "gzip",
        Goal::Build => "gzip:1",
    }
}

/// Returns the default block size. Linux's modules accept at most 128 KiB.
fn block_len_for(goal: Goal) -> u32 {
    match goal {
        Goal::Size => 128 << 10,
        Goal::Balanced | Goal::Read | Goal::Build => 64 << 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_len: Option<u32>, codec: &str, set: &[(&str, &str)]) -> Result<Options> {
        Options::new(&packfs_testkit::settings(Some(codec), block_len, set))
    }

    #[test]
    fn the_codec_chooses_the_version() {
        assert_eq!(options(None, "gzip", &[]).unwrap().target(), Target::V2);
        for codec in ["xz", "lz4", "lz4hc", "lzo", "none"] {
            assert_eq!(options(None, codec, &[]).unwrap().target(), Target::V4, "{codec}");
            let error = options(None, codec, &[("version", "2.0")]).unwrap_err().to_string();
            assert!(error.contains("only gzip"), "{error}");
        }
        assert_eq!(options(None, "gzip", &[("version", "4.0")]).unwrap().target(), Target::V4);
        assert!(options(None, "zstd", &[]).is_err());
    }

    #[test]
    fn refuses_what_the_format_cannot_hold() {
        assert!(options(None, "gzip", &[("stored", "on")]).is_err());
        assert!(options(None, "gzip", &[("stored", "on"), ("version", "4.0")]).unwrap().stored);
        for bad in [0, 512, 5000, 2 << 20] {
            let error = options(Some(bad), "gzip", &[]).unwrap_err();
            assert!(error.to_string().contains("4K to 1M"), "{error}");
        }
        let error = options(None, "gzip", &[("version", "3")]).unwrap_err().to_string();
        assert!(error.contains("2.0|4.0"), "{error}");
        let error = options(None, "gzip", &[("versions", "3")]).unwrap_err().to_string();
        assert!(error.contains("it has version"), "{error}");
    }
}
