//! The options of SquashFS images, with their defaults.

use super::kernel::{self, Kernel};
use crate::pack::{Duplicates, Fragments, PADDING, Uncompressed, typed_options};
use packfs_codec::{CodecSettings, Lz4HcSettings, Lz4Settings, XzSettings, ZlibSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Goal, Result};
use packfs_format::{PackSettings, SWITCH, Values, options, units::*};

options! {
    pub(crate) struct Options for "squashfs" {
        codec_name: String,
        /// Never `None`: an image without compression still names a codec.
        codec: CodecSettings,
        /// Codec of blocks that only one file uses: the same, or one level below.
        own_codec: CodecSettings,
        block_len: u32,
        made_at: u32,
    }

    fragments: Fragments = "fragments", Fragments::VALUES, "on", Fragments::HELP;

    uncompressed: Uncompressed = "uncompressed", Uncompressed::VALUES, "none", "Store these structures uncompressed";

    duplicates: Duplicates = "duplicates", Duplicates::VALUES, "share", Duplicates::HELP;

    holes: bool = "holes", SWITCH, "on", "Store blocks of zeros as holes";

    exports: bool = "exports", SWITCH, "on", "Write the export table, for NFS and file handles";

    kernel: Option<Kernel> = "kernel", Values::tried(kernel::WORDS, Kernel::parse), "any", "Refuse what this Linux version does not read";

    padding: u64 = "padding", PADDING, "4K", "Pad the image; loop devices may reject unpadded images";
}

pub(crate) const BLOCK_LEN_MIN: u32 = 4 << 10;
pub(crate) const BLOCK_LEN_MAX: u32 = 1 << 20;
const CODEC_DEFAULT: &str = "gzip";

impl Options {
    /// Checks the given options.
    ///
    /// Errors: `Usage` with the value and the permitted ones.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let block_len = settings.block_size.unwrap_or(block_len_for(settings.optimize));
        if !block_len.is_power_of_two() || !(BLOCK_LEN_MIN..=BLOCK_LEN_MAX).contains(&block_len) {
            let message = format!("squashfs block size {block_len}: a power of two from 4K to 1M is allowed");
            return Err(Error::usage(message));
        }
        let named = settings.codec.as_deref().unwrap_or(codec_for(settings.optimize));
        let typed = &*packfs_codec::codec_for_goal(named, settings.optimize);
        let spec: CodecSpec = typed.parse().map_err(|fault| unknown_codec(typed, fault))?;
        let resolved = spec
            .resolve(&kernel::algorithms(), DictLens::of_block(block_len))
            .map_err(|fault| unknown_codec(typed, fault))?;
        let options = typed_options(settings, resolved.is_none());
        let codec = resolved.unwrap_or(CodecSettings::Zlib(ZlibSettings::default()));
        let own_codec = own_codec(&codec, typed != named);
        let made_at = crate::mkfs_time(settings.made_at);
        let options = Options::read(spec.to_string(), codec, own_codec, block_len, made_at, options)?;
        // An image without compression names a codec, too, which the kernel must have.
        options.kernel.map_or(Ok(()), |kernel| kernel.check(options.codec.algorithm()))?;
        Ok(options)
    }

    /// Returns the codec of metadata blocks: that of data, without settings that only suit data.
    /// Metadata is so small that a slow level of LZ4 is affordable, except if build speed is the
    /// goal.
    pub(crate) fn metadata_codec(&self) -> CodecSettings {
        match self.codec.clone() {
            CodecSettings::Zlib(zlib) => CodecSettings::Zlib(ZlibSettings { strategies: Vec::new(), ..zlib }),
            CodecSettings::Xz(xz) => CodecSettings::Xz(XzSettings { filters: Vec::new(), ..xz }),
            CodecSettings::Lz4(Lz4Settings { acceleration: 1 }) => {
                CodecSettings::Lz4Hc(Lz4HcSettings { level: METADATA_LZ4HC_LEVEL })
            }
            codec => codec,
        }
    }
}

/// Returns the default codec. Every kernel and tool decodes zlib.
fn codec_for(goal: Goal) -> &'static str {
    match goal {
        Goal::Size => "xz",
        Goal::Balanced => CODEC_DEFAULT,
        Goal::Read => "zstd",
        Goal::Build => "zstd",
    }
}

/// Returns the default block size. Larger blocks compress better; reading one page decodes a block.
fn block_len_for(goal: Goal) -> u32 {
    match goal {
        Goal::Size => BLOCK_LEN_MAX,
        Goal::Balanced | Goal::Read => 128 << 10,
        Goal::Build => 256 << 10,
    }
}

/// Returns the codec of blocks that only one file uses. If the goal chose a zlib level of 11 or
/// more, it is one level below: the highest levels save half as much on these blocks as on shared
/// ones, for the same time, which is better spent on the rest.
fn own_codec(codec: &CodecSettings, level_is_chosen: bool) -> CodecSettings {
    match codec.clone() {
        CodecSettings::Zlib(zlib) if level_is_chosen && zlib.level >= 11 => {
            CodecSettings::Zlib(ZlibSettings { level: zlib.level.minus(1), ..zlib })
        }
        codec => codec,
    }
}

/// Metadata of 100,000 small files is 7 % smaller than with the fast encoder.
const METADATA_LZ4HC_LEVEL: u8 = 9;

fn unknown_codec(typed: &str, fault: packfs_codec::SettingsError) -> Error {
    let error = Error::usage(fault);
    if typed.starts_with("deflate") {
        error.hint("squashfs knows deflate in zlib streams, and calls it gzip")
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_len: Option<u32>, codec: &str, set: &[(&str, &str)]) -> Result<Options> {
        Options::new(&packfs_testkit::settings(Some(codec), block_len, set))
    }

    #[test]
    fn refuses_block_sizes_that_no_kernel_takes() {
        for bad in [0, 2048, 5000, 2 << 20] {
            let error = options(Some(bad), "gzip", &[]).unwrap_err();
            assert!(error.to_string().contains("4K to 1M"), "{error}");
        }
        assert!(options(Some(4096), "gzip", &[]).is_ok());
    }

    #[test]
    fn searches_duplicates_as_requested() {
        let duplicates =
            |value| options(None, "gzip", &[("duplicates", value)]).map(|options| options.duplicates);
        assert_eq!(duplicates("share").unwrap(), Duplicates::Share);
        assert_eq!(duplicates("files").unwrap(), Duplicates::Files);
        assert_eq!(duplicates("keep").unwrap(), Duplicates::Keep);
        assert!(duplicates("most").is_err());
    }

    #[test]
    fn lists_the_values_of_an_option() {
        let error = options(None, "gzip", &[("fragments", "maybe")]).unwrap_err().to_string();
        assert!(error.contains("on|off|always"), "{error}");
        let error = options(None, "gzip", &[("fragment", "on")]).unwrap_err().to_string();
        assert!(error.contains("it has fragments"), "{error}");
    }

    #[test]
    fn blocks_of_one_file_have_the_level_that_was_named_or_one_below_the_chosen() {
        let levels = |codec: &str, goal| {
            let options = Options::new(&PackSettings {
                codec: Some(codec.into()),
                optimize: goal,
                ..PackSettings::default()
            });
            let options = options.unwrap();
            [options.codec, options.own_codec].map(|codec| match codec {
                CodecSettings::Zlib(zlib) => zlib.level,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(levels("gzip", Goal::Size), [11, 10]);
        assert_eq!(levels("gzip:11", Goal::Size), [11, 11]);
        assert_eq!(levels("gzip", Goal::Balanced), [9, 9]);
        assert_eq!(levels("gzip", Goal::Build), [5, 5]);
    }

    #[test]
    fn no_codec_means_that_everything_is_stored() {
        let stored = options(None, "none", &[]).unwrap();
        assert!(stored.uncompressed.data && stored.uncompressed.ids);
        assert!(!options(None, "zstd", &[]).unwrap().uncompressed.data);
    }
}
