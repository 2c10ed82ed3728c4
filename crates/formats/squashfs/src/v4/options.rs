//! The options of SquashFS images: what may be asked for, and what holds otherwise.

use crate::pack::{Duplicates, Fragments, padding_named, switch_named};
use packfs_codec::{Algorithm, CodecSettings, Lz4HcSettings, Lz4Settings, XzSettings, ZlibSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Goal, Result};
use packfs_format::{OptionRow, PackSettings};

/// What `--help` prints.
pub(crate) const ROWS: &[OptionRow] = &[
    Fragments::ROW,
    OptionRow {
        name: "uncompressed",
        values: "LIST of inodes,data,fragments,xattrs,ids,all",
        default: "none",
        help: "store these as they are",
    },
    Duplicates::ROW,
    OptionRow { name: "holes", values: "on|off", default: "on", help: "store blocks of zeros as holes" },
    OptionRow {
        name: "exports",
        values: "on|off",
        default: "on",
        help: "write the table that NFS export and file handles need",
    },
    OptionRow {
        name: "padding",
        values: "4K|none",
        default: "4K",
        help: "pad the image; unpadded ones may not mount through loop devices",
    },
];

/// What is stored as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncompressed {
    pub inodes: bool,
    pub data: bool,
    pub fragments: bool,
    pub xattrs: bool,
    pub ids: bool,
}

/// Everything that shapes an image, checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub codec_name: String,
    /// Never `None`: an image without compression still names a codec.
    pub codec: CodecSettings,
    /// How blocks that one file has to itself are compressed: the same, or a level below.
    pub own_codec: CodecSettings,
    pub block_len: u32,
    pub made_at: u32,
    pub fragments: Fragments,
    pub uncompressed: Uncompressed,
    pub duplicates: Duplicates,
    pub holes: bool,
    pub exports: bool,
    pub padding: u64,
}

pub(crate) const BLOCK_LEN_MIN: u32 = 4 << 10;
pub(crate) const BLOCK_LEN_MAX: u32 = 1 << 20;
const CODEC_DEFAULT: &str = "gzip";

/// The algorithms that SquashFS has, in the order of their numbers.
const ALGORITHMS: [Algorithm; 6] =
    [Algorithm::Zlib, Algorithm::LzmaAlone, Algorithm::Lzo, Algorithm::Xz, Algorithm::Lz4, Algorithm::Zstd];

impl Options {
    /// Checks what the user asked for.
    ///
    /// Errors: `Usage`, naming what was found and what is allowed.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let block_len = settings.block_len.unwrap_or(block_len_for(settings.goal));
        if !block_len.is_power_of_two() || !(BLOCK_LEN_MIN..=BLOCK_LEN_MAX).contains(&block_len) {
            let message = format!("squashfs block size {block_len}: a power of two from 4K to 1M is allowed");
            return Err(Error::usage(message));
        }
        let named = settings.codec.as_deref().unwrap_or(codec_for(settings.goal));
        let typed = &*packfs_codec::codec_for_goal(named, settings.goal);
        let spec: CodecSpec = typed.parse().map_err(|fault| unknown_codec(typed, fault))?;
        let resolved = spec
            .resolve(&ALGORITHMS, DictLens::of_block(block_len))
            .map_err(|fault| unknown_codec(typed, fault))?;
        let everything = Uncompressed { inodes: true, data: true, fragments: true, xattrs: true, ids: true };
        let uncompressed = if resolved.is_none() { everything } else { Uncompressed::default() };
        let codec = resolved.unwrap_or(CodecSettings::Zlib(ZlibSettings::default()));
        let mut options = Options {
            codec_name: spec.to_string(),
            uncompressed,
            own_codec: own_codec(&codec, typed != named),
            codec,
            block_len,
            made_at: u32::try_from(settings.made_at.max(0)).unwrap_or(u32::MAX),
            fragments: Fragments::SmallFiles,
            duplicates: Duplicates::Share,
            holes: true,
            exports: true,
            padding: 4096,
        };
        for (name, value) in &settings.options {
            options.set(name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let known = match name {
            "fragments" => Fragments::named(value).map(|fragments| self.fragments = fragments),
            "uncompressed" => value.split(',').try_for_each(|part| self.set_uncompressed(part)),
            "duplicates" => Duplicates::named(value).map(|duplicates| self.duplicates = duplicates),
            "holes" => switch_named(value).map(|holes| self.holes = holes),
            "exports" => switch_named(value).map(|exports| self.exports = exports),
            "padding" => padding_named(value).map(|padding| self.padding = padding),
            _ => return Err(unknown_option(name)),
        };
        known.ok_or_else(|| {
            let allowed = ROWS.iter().find(|row| row.name == name).map_or("", |row| row.values);
            Error::usage(format!("squashfs option {name}={value}: {allowed} is allowed"))
        })
    }

    fn set_uncompressed(&mut self, part: &str) -> Option<()> {
        let set = &mut self.uncompressed;
        match part {
            "inodes" => set.inodes = true,
            "data" => set.data = true,
            "fragments" => set.fragments = true,
            "xattrs" => set.xattrs = true,
            "ids" => set.ids = true,
            "all" => {
                *set = Uncompressed { inodes: true, data: true, fragments: true, xattrs: true, ids: true }
            }
            "none" => *set = Uncompressed::default(),
            _ => return None,
        }
        Some(())
    }

    /// How blocks of metadata are compressed: like data, without what only suits data. There is so little of it that LZ4
    /// can take its time, except where speed was asked for.
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

/// The codec that holds if none is named. Every kernel and tool reads zlib streams.
fn codec_for(goal: Goal) -> &'static str {
    match goal {
        Goal::Size => "xz",
        Goal::Balanced => CODEC_DEFAULT,
        Goal::Read => "zstd",
        Goal::Build => "zstd",
    }
}

/// The block size that holds if none is named. Larger blocks see more of what occurs again; who wants a page decodes a block.
fn block_len_for(goal: Goal) -> u32 {
    match goal {
        Goal::Size => BLOCK_LEN_MAX,
        Goal::Balanced | Goal::Read => 128 << 10,
        Goal::Build => 256 << 10,
    }
}

/// How blocks that one file has to itself are compressed. Of a zlib level that the goal chose, they get the one below from 11 on: half of
/// what the highest levels take off shared blocks they take off these, for the same time, which is better spent on the rest.
fn own_codec(codec: &CodecSettings, level_is_chosen: bool) -> CodecSettings {
    match codec.clone() {
        CodecSettings::Zlib(zlib) if level_is_chosen && zlib.level >= 11 => {
            CodecSettings::Zlib(ZlibSettings { level: zlib.level - 1, ..zlib })
        }
        codec => codec,
    }
}

/// Metadata of 100,000 small files is 7 % smaller than with the fast encoder.
const METADATA_LZ4HC_LEVEL: u8 = 9;

fn unknown_codec(typed: &str, fault: packfs_codec::SettingsError) -> Error {
    let error = Error::usage(fault);
    match typed.starts_with("deflate") {
        true => error.hint("squashfs knows deflate in zlib streams, and calls it gzip"),
        false => error,
    }
}

fn unknown_option(name: &str) -> Error {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    Error::usage(format!("squashfs has no option {name:?}; it has {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_len: Option<u32>, codec: &str, set: &[(&str, &str)]) -> Result<Options> {
        let options = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let codec = Some(codec.into());
        Options::new(&PackSettings { codec, block_len, made_at: 1, options, ..PackSettings::default() })
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
    fn duplicates_are_looked_for_as_far_as_asked() {
        let duplicates =
            |value| options(None, "gzip", &[("duplicates", value)]).map(|options| options.duplicates);
        assert_eq!(duplicates("share").unwrap(), Duplicates::Share);
        assert_eq!(duplicates("files").unwrap(), Duplicates::Files);
        assert_eq!(duplicates("keep").unwrap(), Duplicates::Keep);
        assert!(duplicates("most").is_err());
    }

    #[test]
    fn says_which_values_an_option_takes() {
        let error = options(None, "gzip", &[("fragments", "maybe")]).unwrap_err().to_string();
        assert!(error.contains("on|off|always"), "{error}");
        let error = options(None, "gzip", &[("fragment", "on")]).unwrap_err().to_string();
        assert!(error.contains("it has fragments"), "{error}");
    }

    #[test]
    fn blocks_of_one_file_have_the_level_that_was_named_or_one_below_the_chosen() {
        let levels = |codec: &str, goal| {
            let options =
                Options::new(&PackSettings { codec: Some(codec.into()), goal, ..PackSettings::default() });
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
