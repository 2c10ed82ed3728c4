//! The options of ISO 9660 images, with their defaults.

use packfs_codec::{Algorithm, CodecSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Goal, ImagePath, Result};
use packfs_format::{PackSettings, Values, one_of, options};

options! {
    pub(crate) struct Options for "iso9660" {
        codec_name: String,
        /// `None`: files are stored uncompressed.
        codec: Option<CodecSettings>,
        block_len: u32,
        made_at: i64,
    }

    zisofs: Zisofs = "zisofs",
        one_of!["1" => Zisofs::Version1, "2" => Zisofs::Version2, "as-needed" => Zisofs::AsNeeded], "as-needed",
        "Set the zisofs version: Linux reads 1; files from 4 GiB need 2 and make as-needed choose it";

    /// Longest name of a Joliet tree in UTF-16 units; `None` without the tree.
    joliet: Option<usize> = "joliet",
        one_of!["on" => Some(JOLIET_NAME_MAX), "off" => None, "long" => Some(JOLIET_LONG_NAME_MAX)], "off",
        "Add a Joliet tree for Windows, with names of up to 64 or 103 (long) characters; compressed files stay compressed in it";

    volume_id: String = "volume-id", Values::new("TEXT of up to 32 characters", volume_id), "PACKFS",
        "Set the volume name";

    boot: Option<ImagePath> = "boot", Values::tried("PATH-IN-TREE", boot_path), "none",
        "Set the BIOS boot image (El Torito, no emulation), stored uncompressed";

    boot_sectors: BootSectors = "boot-sectors", Values::new("1 to 65535, or all", boot_sectors), "4",
        "Set the number of 512-byte sectors that the BIOS loads";

    efi_boot: Option<ImagePath> = "efi-boot", Values::tried("PATH-IN-TREE", boot_path), "none",
        "Set the EFI boot image, a FAT filesystem, stored uncompressed";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zisofs {
    Version1,
    Version2,
    /// Version 1, unless a file is too long for it.
    AsNeeded,
}

/// Number of 512-byte sectors of a boot image that firmware loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BootSectors {
    Count(u16),
    All,
}

const BLOCK_LEN_MIN: u32 = 32 << 10;
const BLOCK_LEN_MAX_1: u32 = 128 << 10;
const BLOCK_LEN_MAX_2: u32 = 1 << 20;
const CODEC_DEFAULT: &str = "gzip";
const VOLUME_ID_MAX: usize = 32;
const JOLIET_NAME_MAX: usize = 64;
const JOLIET_LONG_NAME_MAX: usize = 103;

impl Options {
    /// Checks the given options.
    ///
    /// Errors: `Usage` with the value and the permitted ones.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let typed = settings.codec.as_deref().unwrap_or(CODEC_DEFAULT);
        let typed = &*packfs_codec::codec_for_goal(typed, settings.optimize);
        let spec: CodecSpec = typed.parse().map_err(Error::usage)?;
        let block_len = settings.block_size.unwrap_or(block_len_for(settings.optimize));
        let codec = spec.resolve(&[Algorithm::Zlib], DictLens::of_block(block_len)).map_err(|fault| {
            Error::usage(fault)
                .hint("zisofs knows deflate in zlib streams (gzip), and none for uncompressed files")
        })?;
        let name = spec.to_string();
        let options = Options::read(name, codec, block_len, settings.made_at, settings.typed_options())?;
        options.check_block_len()?;
        Ok(options)
    }

    fn check_block_len(&self) -> Result<()> {
        let (max, words) = match self.zisofs {
            Zisofs::Version2 => (BLOCK_LEN_MAX_2, "32K to 1M"),
            Zisofs::Version1 | Zisofs::AsNeeded => (BLOCK_LEN_MAX_1, "32K to 128K"),
        };
        if self.block_len.is_power_of_two() && (BLOCK_LEN_MIN..=max).contains(&self.block_len) {
            return Ok(());
        }
        let message =
            format!("iso9660 block size {}: a power of two from {words} is allowed", self.block_len);
        let error = Error::usage(message);
        let is_for_2 = self.block_len > max && max == BLOCK_LEN_MAX_1;
        Err(if is_for_2 { error.hint("-O zisofs=2 allows blocks up to 1M") } else { error })
    }
}

fn volume_id(text: &str) -> Option<String> {
    let is_text = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (is_text && (1..=VOLUME_ID_MAX).contains(&text.len())).then(|| text.into())
}

fn boot_sectors(text: &str) -> Option<BootSectors> {
    match text {
        "all" => Some(BootSectors::All),
        _ => text.parse().ok().filter(|&count| count > 0).map(BootSectors::Count),
    }
}

fn boot_path(value: &str) -> Result<ImagePath> {
    let path = ImagePath::parse(value.as_bytes())?;
    if path.is_root() { Err(Error::usage("a boot image has to be a file in the tree")) } else { Ok(path) }
}

/// Returns the default block size. Linux decodes a block for each page that is not in its cache.
fn block_len_for(goal: Goal) -> u32 {
    match goal {
        Goal::Size | Goal::Balanced | Goal::Build => BLOCK_LEN_MAX_1,
        Goal::Read => BLOCK_LEN_MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_len: Option<u32>, codec: &str, set: &[(&str, &str)]) -> Result<Options> {
        Options::new(&packfs_testkit::settings(Some(codec), block_len, set))
    }

    #[test]
    fn block_sizes_are_those_of_the_version() {
        for (len, version, allowed) in [
            (16 << 10, "1", false),
            (32 << 10, "1", true),
            (128 << 10, "1", true),
            (256 << 10, "1", false),
            (256 << 10, "as-needed", false),
            (1 << 20, "2", true),
            (2 << 20, "2", false),
            (40_000, "2", false),
        ] {
            let made = options(Some(len), "gzip", &[("zisofs", version)]);
            assert_eq!(made.is_ok(), allowed, "{len} {version}");
        }
    }

    #[test]
    fn lists_the_values_of_an_option() {
        for (name, value, says) in [
            ("zisofs", "3", "1|2|as-needed"),
            ("joliet", "maybe", "on|off|long"),
            ("volume-id", "", "up to 32"),
            ("volume-id", "caf\u{e9}", "up to 32"),
            ("boot-sectors", "0", "1 to 65535"),
            ("boot", "/", "has to be a file"),
            ("bot", "x", "it has zisofs"),
        ] {
            let error = options(None, "gzip", &[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn only_deflate_is_known() {
        assert!(options(None, "none", &[]).unwrap().codec.is_none());
        assert!(options(None, "gzip:9", &[]).unwrap().codec.is_some());
        assert!(options(None, "zstd", &[]).is_err());
    }
}
