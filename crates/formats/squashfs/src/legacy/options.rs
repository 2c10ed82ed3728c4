//! The options of old Squashfs images, with their defaults.

use crate::Endian;
use crate::legacy::disk::Version;
use crate::pack::{Duplicates, Fragments, PADDING, Uncompressed, typed_options};
use packfs_codec::{Algorithm, CodecSettings, ZlibSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Goal, Result};
use packfs_format::{PackSettings, SWITCH, one_of, options};

options! {
    pub(crate) struct Options for "squashfs-legacy" {
        codec_name: String,
        /// Always zlib, even if nothing is compressed.
        codec: CodecSettings,
        block_len: u32,
        made_at: u32,
    }

    version: Version = "version",
        one_of!["2.0" => Version::V2_0, "2.1" => Version::V2_1, "3.0" => Version::V3_0, "3.1" => Version::V3_1], "3.1",
        "Set the version: 2.1 adds directory indexes, 3.0 hard links and all mtimes, 3.1 holes and blocks above 64K";

    endian: Endian = "endian", one_of!["little" => Endian::Little, "big" => Endian::Big], "little",
        "Set the byte order of the reading machine";

    fragments: Fragments = "fragments", Fragments::VALUES, "on", Fragments::HELP;

    uncompressed: Uncompressed = "uncompressed", Uncompressed::OLD_VALUES, "none", "Store these structures uncompressed";

    duplicates: Duplicates = "duplicates", Duplicates::VALUES, "share", Duplicates::HELP;

    holes: bool = "holes", SWITCH, "on", "Store blocks of zeros as holes (3.1)";

    exports: bool = "exports", SWITCH, "on", "Write the export table, for NFS (3.0, 3.1)";

    padding: u64 = "padding", PADDING, "4K", "Pad the image";
}

const BLOCK_LEN_MIN: u32 = 4 << 10;

fn block_len_max(version: Version) -> u32 {
    if version == Version::V3_1 { 1 << 20 } else { 64 << 10 }
}

impl Options {
    /// Checks the given options.
    ///
    /// Errors: `Usage` with the value and the permitted ones.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let typed = settings.codec.as_deref().unwrap_or("gzip");
        let typed = &*packfs_codec::codec_for_goal(typed, settings.optimize);
        let spec: CodecSpec = typed.parse().map_err(Error::usage)?;
        let resolved = spec.resolve(&[Algorithm::Zlib], DictLens::of_block(64 << 10)).map_err(|fault| {
            Error::usage(fault).hint("squashfs knew no other codec before 4.0; format squashfs has more")
        })?;
        let typed = typed_options(settings, resolved.is_none());
        let codec = resolved.unwrap_or(CodecSettings::Zlib(ZlibSettings::default()));
        let made_at = crate::mkfs_time(settings.made_at);
        let mut options = Options::read(spec.to_string(), codec, 0, made_at, typed)?;
        options.holes &= options.version == Version::V3_1;
        options.exports &= options.version.has_numbers();
        options.block_len = options.checked_block_len(settings.block_size, settings.optimize)?;
        Ok(options)
    }

    fn checked_block_len(&self, asked: Option<u32>, goal: Goal) -> Result<u32> {
        let max = block_len_max(self.version);
        let usual = if goal == Goal::Size { max } else { max.min(128 << 10) };
        let found = asked.unwrap_or(usual);
        if !found.is_power_of_two() || !(BLOCK_LEN_MIN..=max).contains(&found) {
            let (version, max) = (self.version, max >> 10);
            let message =
                format!("squashfs {version} block size {found}: a power of two from 4K to {max}K is allowed");
            return Err(Error::usage(message));
        }
        Ok(found)
    }

    /// Returns the codec of metadata blocks: that of data, without settings that only suit data.
    pub(crate) fn metadata_codec(&self) -> CodecSettings {
        match self.codec.clone() {
            CodecSettings::Zlib(zlib) => CodecSettings::Zlib(ZlibSettings { strategies: Vec::new(), ..zlib }),
            codec => codec,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_len: Option<u32>, codec: Option<&str>, set: &[(&str, &str)]) -> Result<Options> {
        Options::new(&packfs_testkit::settings(codec, block_len, set))
    }

    #[test]
    fn each_version_has_its_block_sizes() {
        for (version, usual, max) in [
            ("2.0", 64 << 10, 64 << 10),
            ("2.1", 64 << 10, 64 << 10),
            ("3.0", 64 << 10, 64 << 10),
            ("3.1", 128 << 10, 1 << 20),
        ] {
            let of = |block_len| options(block_len, None, &[("version", version)]);
            assert_eq!(of(None).unwrap().block_len, usual, "{version}");
            assert_eq!(of(Some(max)).unwrap().block_len, max);
            assert!(of(Some(4096)).is_ok());
            for bad in [0, 2048, 5000, 2 * max] {
                let error = of(Some(bad)).unwrap_err().to_string();
                assert!(error.contains("4K to"), "{error}");
            }
        }
    }

    #[test]
    fn features_that_a_version_lacks_are_not_written() {
        for (version, holes, exports) in
            [("2.0", false, false), ("2.1", false, false), ("3.0", false, true), ("3.1", true, true)]
        {
            let options =
                options(None, None, &[("holes", "on"), ("exports", "on"), ("version", version)]).unwrap();
            assert_eq!((options.holes, options.exports), (holes, exports), "{version}");
        }
        let off = options(None, None, &[("holes", "off"), ("exports", "off")]).unwrap();
        assert!(!off.holes && !off.exports);
    }

    #[test]
    fn version_1_is_read_and_not_written() {
        let error = options(None, None, &[("version", "1.0")]).unwrap_err().to_string();
        assert!(error.contains("2.0|2.1|3.0|3.1"), "{error}");
    }

    #[test]
    fn zlib_is_the_only_codec() {
        let error = options(None, Some("xz"), &[]).unwrap_err();
        assert!(error.to_string().contains("gzip"), "{error}");
        let stored = options(None, Some("none"), &[]).unwrap();
        assert!(stored.uncompressed.inodes && stored.uncompressed.data && stored.uncompressed.fragments);
        assert_eq!(options(None, Some("gzip:6"), &[]).unwrap().uncompressed, Uncompressed::default());
    }

    #[test]
    fn lists_the_values_of_an_option() {
        let error = options(None, None, &[("endian", "middle")]).unwrap_err().to_string();
        assert!(error.contains("little|big"), "{error}");
        let error = options(None, None, &[("byteorder", "big")]).unwrap_err().to_string();
        assert!(error.contains("it has version, endian"), "{error}");
    }
}
