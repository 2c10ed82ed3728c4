//! The options of old Squashfs images: what may be asked for, and what holds otherwise.

use crate::Endian;
use crate::legacy::disk::Version;
use crate::pack::{Duplicates, Fragments, padding_named, switch_named};
use packfs_codec::{Algorithm, CodecSettings, ZlibSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Goal, Result};
use packfs_format::{OptionRow, PackSettings};

/// What `--help` prints.
pub(crate) const ROWS: &[OptionRow] = &[
    OptionRow {
        name: "version",
        values: "2.0|2.1|3.0|3.1",
        default: "3.1",
        help: "what readers know: 2.1 has indexes of directories, 3.0 hard links and times of everything, 3.1 holes and blocks above 64K",
    },
    OptionRow {
        name: "endian",
        values: "little|big",
        default: "little",
        help: "byte order of the machine that is to read it",
    },
    Fragments::ROW,
    OptionRow {
        name: "uncompressed",
        values: "LIST of inodes,data,fragments,all",
        default: "none",
        help: "store these as they are",
    },
    Duplicates::ROW,
    OptionRow {
        name: "holes",
        values: "on|off",
        default: "on",
        help: "store blocks of zeros as holes, which only 3.1 has",
    },
    OptionRow {
        name: "exports",
        values: "on|off",
        default: "on",
        help: "write the table that NFS export needs, which only 3.0 and 3.1 have",
    },
    OptionRow { name: "padding", values: "4K|none", default: "4K", help: "pad the image" },
];

/// What is stored as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncompressed {
    pub inodes: bool,
    pub data: bool,
    pub fragments: bool,
}

const EVERYTHING: Uncompressed = Uncompressed { inodes: true, data: true, fragments: true };

/// Everything that shapes an image, checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub version: Version,
    pub endian: Endian,
    pub codec_name: String,
    /// Of zlib, whether or not anything is compressed.
    pub codec: CodecSettings,
    pub block_len: u32,
    pub made_at: u32,
    pub fragments: Fragments,
    pub uncompressed: Uncompressed,
    pub duplicates: Duplicates,
    pub holes: bool,
    pub exports: bool,
    pub padding: u64,
}

const BLOCK_LEN_MIN: u32 = 4 << 10;

/// The largest block of a version.
fn block_len_max(version: Version) -> u32 {
    if version == Version::V3_1 { 1 << 20 } else { 64 << 10 }
}

impl Options {
    /// Checks what the user asked for.
    ///
    /// Errors: `Usage`, naming what was found and what is allowed.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let typed = settings.codec.as_deref().unwrap_or("gzip");
        let typed = &*packfs_codec::codec_for_goal(typed, settings.goal);
        let spec: CodecSpec = typed.parse().map_err(Error::usage)?;
        let resolved = spec.resolve(&[Algorithm::Zlib], DictLens::of_block(64 << 10)).map_err(|fault| {
            Error::usage(fault).hint("squashfs knew no other codec before 4.0; format squashfs has more")
        })?;
        let mut options = Options {
            version: Version::V3_1,
            endian: Endian::Little,
            codec_name: spec.to_string(),
            uncompressed: if resolved.is_none() { EVERYTHING } else { Uncompressed::default() },
            codec: resolved.unwrap_or(CodecSettings::Zlib(ZlibSettings::default())),
            block_len: 0,
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
        options.holes &= options.version == Version::V3_1;
        options.exports &= options.version.has_numbers();
        options.block_len = options.checked_block_len(settings.block_len, settings.goal)?;
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

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let known = match name {
            "version" => Version::ALL
                .into_iter()
                .find(|version| version.major() > 1 && version.to_string() == value)
                .map(|version| self.version = version),
            "endian" => match value {
                "little" => Some(Endian::Little),
                "big" => Some(Endian::Big),
                _ => None,
            }
            .map(|endian| self.endian = endian),
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
            Error::usage(format!("squashfs-legacy option {name}={value}: {allowed} is allowed"))
        })
    }

    fn set_uncompressed(&mut self, part: &str) -> Option<()> {
        let set = &mut self.uncompressed;
        match part {
            "inodes" => set.inodes = true,
            "data" => set.data = true,
            "fragments" => set.fragments = true,
            "all" => *set = EVERYTHING,
            "none" => *set = Uncompressed::default(),
            _ => return None,
        }
        Some(())
    }

    /// How blocks of metadata are compressed: like data, without what only suits data.
    pub(crate) fn metadata_codec(&self) -> CodecSettings {
        match self.codec.clone() {
            CodecSettings::Zlib(zlib) => CodecSettings::Zlib(ZlibSettings { strategies: Vec::new(), ..zlib }),
            codec => codec,
        }
    }
}

fn unknown_option(name: &str) -> Error {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    Error::usage(format!("squashfs-legacy has no option {name:?}; it has {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_len: Option<u32>, codec: Option<&str>, set: &[(&str, &str)]) -> Result<Options> {
        let options = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let codec = codec.map(str::to_owned);
        Options::new(&PackSettings { codec, block_len, made_at: 1, options, ..PackSettings::default() })
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
    fn what_a_version_lacks_is_not_written() {
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
        assert_eq!(stored.uncompressed, EVERYTHING);
        assert_eq!(options(None, Some("gzip:6"), &[]).unwrap().uncompressed, Uncompressed::default());
    }

    #[test]
    fn says_which_values_an_option_takes() {
        let error = options(None, None, &[("endian", "middle")]).unwrap_err().to_string();
        assert!(error.contains("little|big"), "{error}");
        let error = options(None, None, &[("byteorder", "big")]).unwrap_err().to_string();
        assert!(error.contains("it has version, endian"), "{error}");
    }
}
