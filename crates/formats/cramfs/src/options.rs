//! The options of cramfs images: what may be asked for, and what holds otherwise.

use crate::disk::{ByteOrder, PAD_LEN, PAGE_LEN};
use packfs_codec::{Algorithm, CodecSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Goal, Result};
use packfs_format::{OptionRow, PackSettings};

/// What `--help` prints.
pub(crate) const ROWS: &[OptionRow] = &[
    OptionRow {
        name: "endian",
        values: "little|big",
        default: "little",
        help: "byte order of the machines that mount the image; kernels read no other than their own",
    },
    OptionRow {
        name: "pointers",
        values: "plain|extended",
        default: "plain",
        help: "store blocks that do not shrink as they are (extended), which Linux reads from 4.15 on",
    },
    OptionRow {
        name: "holes",
        values: "on|off",
        default: "off",
        help: "store blocks of zeros as holes, which every kernel reads, but few other programs",
    },
    OptionRow {
        name: "duplicates",
        values: "share|keep",
        default: "share",
        help: "store the data of files with the same contents once (share), or as often as they occur (keep)",
    },
    OptionRow {
        name: "pad",
        values: "512|none",
        default: "none",
        help: "leave so many bytes in front of the superblock, for boot code",
    },
    OptionRow {
        name: "name",
        values: "TEXT of at most 16 bytes",
        default: "Compressed",
        help: "the image's name",
    },
    OptionRow { name: "edition", values: "0..4294967295", default: "0", help: "the image's edition" },
];

/// Everything that shapes an image, checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub codec_name: String,
    /// `None`: blocks are stored as they are, which only extended pointers can say.
    pub codec: Option<CodecSettings>,
    pub order: ByteOrder,
    pub extended: bool,
    pub holes: bool,
    pub share: bool,
    /// Where the superblock starts.
    pub super_block_at: u64,
    pub name: [u8; 16],
    pub edition: u32,
}

const CODEC_DEFAULT: &str = "gzip";
const NAME_DEFAULT: &str = "Compressed";

impl Options {
    /// Checks what the user asked for.
    ///
    /// Errors: `Usage`, naming what was found and what is allowed.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let block_len = settings.block_len.unwrap_or(PAGE_LEN);
        if block_len != PAGE_LEN {
            let message = format!("cramfs block size {block_len}: 4096 is allowed, the page of the machine");
            return Err(Error::usage(message));
        }
        let typed = settings.codec.as_deref().unwrap_or(codec_for(settings.goal));
        let typed = &*packfs_codec::codec_for_goal(typed, settings.goal);
        let spec: CodecSpec = typed.parse().map_err(Error::usage)?;
        let codec = spec
            .resolve(&[Algorithm::Zlib], DictLens::of_block(block_len))
            .map_err(|fault| Error::usage(fault).hint("cramfs holds zlib streams, which are called gzip"))?;
        let mut options = Options {
            codec_name: spec.to_string(),
            codec,
            order: ByteOrder::Little,
            extended: false,
            holes: false,
            share: true,
            super_block_at: 0,
            name: name(NAME_DEFAULT).unwrap_or_default(),
            edition: 0,
        };
        for (name, value) in &settings.options {
            options.set(name, value)?;
        }
        if options.codec.is_none() && !options.extended {
            let message = "cramfs holds zlib streams only: codec none needs the option pointers=extended";
            return Err(Error::usage(message));
        }
        Ok(options)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<()> {
        let known = match option {
            "endian" => one_of(value, &[("little", ByteOrder::Little), ("big", ByteOrder::Big)])
                .map(|order| self.order = order),
            "pointers" => one_of(value, &[("plain", false), ("extended", true)])
                .map(|extended| self.extended = extended),
            "holes" => one_of(value, &[("on", true), ("off", false)]).map(|holes| self.holes = holes),
            "duplicates" => {
                one_of(value, &[("share", true), ("keep", false)]).map(|share| self.share = share)
            }
            "pad" => one_of(value, &[("512", PAD_LEN), ("none", 0), ("0", 0)])
                .map(|pad_len| self.super_block_at = pad_len),
            "name" => name(value).map(|name| self.name = name),
            "edition" => value.parse().ok().map(|edition| self.edition = edition),
            _ => return Err(unknown_option(option)),
        };
        known.ok_or_else(|| {
            let allowed = ROWS.iter().find(|row| row.name == option).map_or("", |row| row.values);
            Error::usage(format!("cramfs option {option}={value}: {allowed} is allowed"))
        })
    }
}

fn one_of<T: Copy>(value: &str, rows: &[(&str, T)]) -> Option<T> {
    rows.iter().find(|row| row.0 == value).map(|row| row.1)
}

/// A name as it is stored; `None` if it is too long.
fn name(text: &str) -> Option<[u8; 16]> {
    let mut name = [0; 16];
    name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    Some(name)
}

/// The codec that holds if none is named: there is only one, and what is read is the same whatever its level.
fn codec_for(goal: Goal) -> &'static str {
    match goal {
        Goal::Size => "gzip:12",
        Goal::Balanced | Goal::Read => CODEC_DEFAULT,
        Goal::Build => "gzip:1",
    }
}

fn unknown_option(name: &str) -> Error {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    Error::usage(format!("cramfs has no option {name:?}; it has {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_len: Option<u32>, codec: Option<&str>, set: &[(&str, &str)]) -> Result<Options> {
        let options = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let codec = codec.map(Into::into);
        Options::new(&PackSettings { codec, block_len, options, ..PackSettings::default() })
    }

    #[test]
    fn only_zlib_in_pages_is_taken() {
        for codec in ["xz", "zstd", "lz4", "lzma", "lzo", "deflate"] {
            let error = options(None, Some(codec), &[]).unwrap_err();
            assert!(error.hints().iter().any(|hint| hint.contains("gzip")), "{codec}: {error}");
        }
        assert!(options(Some(4096), Some("gzip:12"), &[]).is_ok());
        assert!(options(Some(8192), None, &[]).unwrap_err().to_string().contains("4096 is allowed"));
    }

    #[test]
    fn storing_everything_needs_pointers_that_can_say_so() {
        let error = options(None, Some("none"), &[]).unwrap_err().to_string();
        assert!(error.contains("pointers=extended"), "{error}");
        assert!(options(None, Some("none"), &[("pointers", "extended")]).unwrap().codec.is_none());
    }

    #[test]
    fn says_which_values_an_option_takes() {
        for row in ROWS {
            let error = options(None, None, &[(row.name, "no such value, and much too long")]).unwrap_err();
            assert!(error.to_string().contains(row.values), "{error}");
        }
        let error = options(None, None, &[("ending", "big")]).unwrap_err().to_string();
        assert!(error.contains("it has endian"), "{error}");
    }

    #[test]
    fn defaults_are_those_of_the_table() {
        let set: Vec<(&str, &str)> = ROWS.iter().map(|row| (row.name, row.default)).collect();
        let (set, usual) = (options(None, None, &set).unwrap(), options(None, None, &[]).unwrap());
        assert_eq!(format!("{set:?}"), format!("{usual:?}"));
    }
}
