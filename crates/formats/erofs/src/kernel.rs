//! Target kernels of an image, and the version that each feature without a bit needs.
//!
//! Owns the list of kernels that users can name. `disk.rs` contains the versions of feature bits
//! and algorithms. Vendors' backports do not count.

use crate::disk;
use packfs_core::{Error, Result};
use packfs_format::lacks_in_kernel;

/// Kernel version: major, minor; at least 5.4.
pub(crate) type Version = (u16, u16);

/// Suggested kernels: those with long-term support since EROFS left staging.
pub(crate) const KERNELS: [(&str, Version); 7] = [
    ("5.4", (5, 4)),
    ("5.10", (5, 10)),
    ("5.15", (5, 15)),
    ("6.1", (6, 1)),
    ("6.6", (6, 6)),
    ("6.12", (6, 12)),
    ("6.18", (6, 18)),
];

/// Default target: at most the version of most systems in use, and the first that can share tails
/// between files, which saves most space.
pub(crate) const KERNEL_DEFAULT: Version = (6, 1);

/// Clusters of more than one block.
pub(crate) const BIG_CLUSTERS: Version = (5, 13);
/// Files of chunks, and holes in files that are not compressed.
pub(crate) const CHUNKS: Version = (5, 15);
/// Data on further devices.
pub(crate) const DEVICES: Version = (5, 16);
/// Two codecs in one file.
pub(crate) const SECOND_CODEC: Version = (5, 16);
/// Tails after the inode.
pub(crate) const INLINE_CLUSTERS: Version = (5, 17);
/// Data on further devices that are all in the image's file.
pub(crate) const FLAT_DEVICES: Version = (6, 4);
/// Shared tails, and ranges that files share.
pub(crate) const FRAGMENTS: Version = (6, 1);
/// Blocks shorter than a page, without compression.
pub(crate) const SMALL_BLOCKS: Version = (6, 4);
/// Prefixes of xattr names that the image defines.
pub(crate) const XATTR_PREFIXES: Version = (6, 4);
/// Blocks shorter than a page, with compression.
pub(crate) const SMALL_BLOCKS_COMPRESSED: Version = (6, 8);
/// Encoded extents, 48-bit block numbers, directories without `.`, individual times in compact
/// inodes.
pub(crate) const WIDE: Version = (6, 15);
/// Devices that start or end above 2^32 blocks; kernels 6.15 to 7.0 read the lower 32 bits.
pub(crate) const FAR_DEVICES: Version = (7, 1);
/// Compressed metadata.
pub(crate) const METABOX: Version = (6, 17);
/// Prefixes of xattr names outside of an existing packed inode.
pub(crate) const PLAIN_PREFIXES: Version = (6, 18);

/// Kernel version required by an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The option or feature, such as `codec zstd`.
    pub what: String,
    pub since: Version,
    /// Alternative for older kernels.
    pub instead: &'static str,
}

impl Need {
    pub(crate) fn new(what: impl Into<String>, since: Version, instead: &'static str) -> Self {
        Need { what: what.into(), since, instead }
    }
}

/// Errors: `Usage` for an invalid version, and for one before 5.4.
pub(crate) fn parse(text: &str) -> Result<Version> {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let version = text.split_once('.').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    version.filter(|version| *version >= KERNELS[0].1).ok_or_else(|| {
        let names = KERNELS.map(|(name, _)| name).join("|");
        let error = Error::usage(format!("erofs option kernel={text}: a version from 5.4 on is allowed"));
        error.hint(format!("kernels with long-term support are {names}"))
    })
}

/// Returns the target kernel: the named one, or else the oldest suggested one from the default on
/// that has all features.
///
/// Errors: `Usage` if the named kernel lacks a feature, with the kernel that has it, and an
/// alternative.
pub(crate) fn choose(named: Option<Version>, needs: &[Need]) -> Result<Version> {
    let newest = needs.iter().max_by_key(|need| need.since);
    let Some(named) = named else {
        let since = newest.map_or(KERNEL_DEFAULT, |need| need.since.max(KERNEL_DEFAULT));
        return Ok(listed_from(since));
    };
    match newest.filter(|need| need.since > named) {
        Some(need) => Err(lacks(named, need)),
        None => Ok(named),
    }
}

fn lacks(named: Version, need: &Need) -> Error {
    let words = |(major, minor): Version| format!("{major}.{minor}");
    let (major, minor) = listed_from(need.since);
    lacks_in_kernel(&need.what, &words(need.since), &words(named))
        .hint(format!("kernel={major}.{minor} can; for older ones use {}", need.instead))
}

fn listed_from(since: Version) -> Version {
    KERNELS.iter().map(|&(_, version)| version).find(|&version| version >= since).unwrap_or(KERNELS[6].1)
}

/// Returns the oldest kernel that mounts an image with these superblock fields.
pub(crate) fn needed(feature_incompat: u32, algorithms: u16, blkszbits: u8) -> Version {
    let of = |rows: &[disk::KernelRow], holds: &dyn Fn(u32) -> bool| {
        rows.iter().filter(|row| holds(row.0)).map(|row| row.2).max().unwrap_or((5, 4))
    };
    let features = of(&disk::INCOMPAT_ROWS, &|bit| feature_incompat & bit != 0);
    let codecs = of(&disk::ALGORITHM_ROWS, &|number| algorithms >> number & 1 != 0);
    let compressed = feature_incompat & disk::EROFS_FEATURE_INCOMPAT_LZ4_0PADDING != 0;
    let blocks = match (blkszbits < 12, compressed) {
        (true, true) => SMALL_BLOCKS_COMPRESSED,
        (true, false) => SMALL_BLOCKS,
        _ => (5, 4),
    };
    features.max(codecs).max(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zstd() -> Need {
        Need::new("codec zstd", (6, 10), "codec lz4hc")
    }

    #[test]
    fn a_kernel_that_lacks_something_is_refused_with_one_that_has_it() {
        let error = choose(Some((6, 6)), &[zstd()]).unwrap_err();
        assert_eq!(error.to_string(), "codec zstd needs Linux 6.10 or newer, this image is for Linux 6.6");
        assert_eq!(error.hints(), ["kernel=6.12 can; for older ones use codec lz4hc"]);
        assert_eq!(choose(Some((6, 12)), &[zstd()]).unwrap(), (6, 12));
    }

    #[test]
    fn without_a_name_the_kernel_is_as_new_as_needed_and_not_older_than_the_default() {
        assert_eq!(choose(None, &[]).unwrap(), KERNEL_DEFAULT);
        assert_eq!(choose(None, &[Need::new("chunks", CHUNKS, "none")]).unwrap(), KERNEL_DEFAULT);
        assert_eq!(choose(None, &[zstd()]).unwrap(), (6, 12));
        assert_eq!(choose(None, &[zstd(), Need::new("metabox", METABOX, "none")]).unwrap(), (6, 18));
    }

    #[test]
    fn names_that_are_no_kernel_are_refused() {
        for text in ["", "6", "6.", ".1", "5.3", "4.19", "6.1.2", "+6.1", "6.-1", "six.one", "99999.1"] {
            let error = parse(text).unwrap_err();
            assert!(error.hints()[0].contains("5.4|5.10|5.15|6.1|6.6|6.12|6.18"), "{text}: {error}");
        }
        assert_eq!(parse("5.10").unwrap(), (5, 10));
        assert_eq!(parse("6.8").unwrap(), (6, 8));
    }

    #[test]
    fn the_oldest_kernel_follows_from_features_codecs_and_blocks() {
        let bits = disk::EROFS_FEATURE_INCOMPAT_LZ4_0PADDING;
        assert_eq!(needed(0, 0, 12), (5, 4));
        assert_eq!(needed(bits, 0, 12), (5, 4));
        assert_eq!(needed(bits, 0, 9), SMALL_BLOCKS_COMPRESSED);
        assert_eq!(needed(0, 0, 9), SMALL_BLOCKS);
        assert_eq!(needed(bits | disk::EROFS_FEATURE_INCOMPAT_COMPR_CFGS, 0b1001, 12), (6, 10));
        assert_eq!(needed(bits | disk::EROFS_FEATURE_INCOMPAT_METABOX, 1, 12), (6, 17));
    }
}
