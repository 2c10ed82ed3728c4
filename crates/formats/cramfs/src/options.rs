//! The options of cramfs images, with their defaults.

use crate::disk::{ByteOrder, PAD_LEN, PAGE_LEN};
use packfs_codec::{Algorithm, CodecSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Goal, ImagePath, Result};
use packfs_format::{PackSettings, SWITCH, Values, one_of, options};

options! {
    pub(crate) struct Options for "cramfs" {
        codec_name: String,
        /// `None`: blocks are stored uncompressed, which requires extended pointers.
        codec: Option<CodecSettings>,
    }

    order: ByteOrder = "endian", one_of!["little" => ByteOrder::Little, "big" => ByteOrder::Big], "little",
        "Set the byte order; a kernel mounts only its own";

    extended: bool = "pointers", one_of!["plain" => false, "extended" => true], "plain",
        "Allow uncompressed blocks (extended, Linux 4.15)";

    in_place: Vec<ImagePath> = "in-place", Values::tried("PATH-IN-TREE", path), "none",
        "Store this file uncompressed at a multiple of the page, for execution in place; needs pointers=extended; may \
        be given several times";

    holes: bool = "holes", SWITCH, "off",
        "Store blocks of zeros as holes; every kernel reads them, few other programs do";

    share: bool = "duplicates", one_of!["share" => true, "keep" => false], "share",
        "Store equal files once (share) or repeatedly (keep)";

    super_block_at: u64 = "pad", one_of!["512" => PAD_LEN, "none" | "0" => 0], "none",
        "Reserve bytes before the superblock, for boot code";

    name: [u8; 16] = "name", Values::new("TEXT of at most 16 bytes", name), "Compressed",
        "Set the name of the image";

    edition: u32 = "edition", Values::new("0..4294967295", |text| text.parse::<u32>().ok()), "0",
        "Set the edition of the image";
}

const CODEC_DEFAULT: &str = "gzip";

impl Options {
    /// Checks the given options.
    ///
    /// Errors: `Usage` with the value and the permitted ones.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let block_len = settings.block_size.unwrap_or(PAGE_LEN);
        if block_len != PAGE_LEN {
            let message = format!("cramfs block size {block_len}: 4096 is allowed, the page of the machine");
            return Err(Error::usage(message));
        }
        let typed = settings.codec.as_deref().unwrap_or(codec_for(settings.optimize));
        let typed = &*packfs_codec::codec_for_goal(typed, settings.optimize);
        let spec: CodecSpec = typed.parse().map_err(Error::usage)?;
        let codec = spec
            .resolve(&[Algorithm::Zlib], DictLens::of_block(block_len))
            .map_err(|fault| Error::usage(fault).hint("cramfs holds zlib streams, which are called gzip"))?;
        let options = Options::read(spec.to_string(), codec, settings.typed_options())?;
        if options.codec.is_none() && !options.extended {
            return Err(Error::usage(
                "cramfs holds zlib streams only: codec none needs the option pointers=extended",
            ));
        }
        if !options.in_place.is_empty() && !options.extended {
            return Err(Error::usage("cramfs locates uncompressed files by extended pointers only")
                .hint("-O pointers=extended, for Linux 4.15"));
        }
        Ok(options)
    }
}

fn path(value: &str) -> Result<ImagePath> {
    match ImagePath::parse(value.as_bytes())? {
        path if path.is_root() => Err(Error::usage("a file for execution in place has to be in the tree")),
        path => Ok(path),
    }
}

/// Encodes a name; `None` if it is too long.
fn name(text: &str) -> Option<[u8; 16]> {
    let mut name = [0; 16];
    name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    Some(name)
}

/// Returns the default codec, the only one; its level does not affect reading.
fn codec_for(goal: Goal) -> &'static str {
    match goal {
        Goal::Size => "gzip:12",
        Goal::Balanced | Goal::Read => CODEC_DEFAULT,
        Goal::Build => "gzip:1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_len: Option<u32>, codec: Option<&str>, set: &[(&str, &str)]) -> Result<Options> {
        Options::new(&packfs_testkit::settings(codec, block_len, set))
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
    fn storing_everything_needs_extended_pointers() {
        let error = options(None, Some("none"), &[]).unwrap_err().to_string();
        assert!(error.contains("pointers=extended"), "{error}");
        assert!(options(None, Some("none"), &[("pointers", "extended")]).unwrap().codec.is_none());
        assert!(options(None, None, &[("in-place", "bin/sh")]).is_err());
        assert!(options(None, None, &[("in-place", "bin/sh"), ("pointers", "extended")]).is_ok());
    }
}
