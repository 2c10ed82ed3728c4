//! The one table of codecs that users can name.

use std::ops::RangeInclusive;

use crate::Algorithm;

/// What a user can know of a codec before choosing it. `none` is no codec and has no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecRow {
    /// The name users type.
    pub name: &'static str,
    /// What decodes its blocks; lz4 and lz4hc share one. Several where formats frame the same codec differently.
    pub algorithms: &'static [Algorithm],
    /// The levels, lowest (fastest) to highest (smallest); None for a codec without levels.
    pub levels: Option<RangeInclusive<i32>>,
    /// The level when none is named; None for a codec without levels.
    pub default_level: Option<i32>,
    /// The options after the level, as help prints them; empty for none.
    pub options: &'static str,
    /// One line on what it is good for.
    pub description: &'static str,
}

/// Every codec, in the order in which help lists them.
pub static CODECS: &[CodecRow] = &[
    CodecRow {
        name: "gzip",
        algorithms: &[Algorithm::Zlib],
        levels: Some(1..=12),
        default_level: Some(9),
        options: "window=8..15, strategy=default+filtered+huffman+rle+fixed",
        description: "DEFLATE; every kernel and tool reads it; 10 to 12 search for near-optimal parses",
    },
    CodecRow {
        name: "deflate",
        algorithms: &[Algorithm::Deflate],
        levels: Some(0..=12),
        default_level: Some(9),
        options: "",
        description: "DEFLATE without a wrapper; 10 to 12 search for near-optimal parses",
    },
    CodecRow {
        name: "lzo",
        algorithms: &[Algorithm::Lzo],
        levels: Some(1..=9),
        default_level: Some(8),
        options: "variant=1|1_11|1_12|1_15|999 (levels are for 999)",
        description: "LZO1X; reads fast on slow processors",
    },
    CodecRow {
        name: "lz4",
        algorithms: &[Algorithm::Lz4],
        levels: None,
        default_level: None,
        options: "acceleration=1..65537",
        description: "LZ4, fast; packs and reads fastest of all",
    },
    CodecRow {
        name: "lz4hc",
        algorithms: &[Algorithm::Lz4],
        levels: Some(0..=12),
        default_level: Some(12),
        options: "",
        description: "LZ4, high compression; reads fastest of all",
    },
    CodecRow {
        name: "xz",
        algorithms: &[Algorithm::Xz],
        levels: Some(0..=9),
        default_level: Some(6),
        options: "extreme, dict=SIZE|PERCENT%, bcj=auto|x86+powerpc+ia64+arm+armthumb+sparc+arm64+riscv",
        description: "LZMA2; smallest images, slowest to read",
    },
    CodecRow {
        name: "lzma",
        algorithms: &[Algorithm::LzmaAlone, Algorithm::MicroLzma],
        levels: Some(0..=9),
        default_level: Some(5),
        options: "extreme, dict=SIZE|PERCENT%",
        description: "LZMA1; in erofs the smallest images, in squashfs for old vendor kernels only",
    },
    CodecRow {
        name: "zstd",
        algorithms: &[Algorithm::Zstd],
        levels: Some(ZSTD_LEVEL_MIN..=22),
        default_level: Some(15),
        options: "",
        description: "Zstandard; small and fast to read, the best of both for most images",
    },
];

/// `ZSTD_minCLevel()`.
const ZSTD_LEVEL_MIN: i32 = -131_072;

/// The row of a codec that this crate itself names.
pub(crate) fn row(name: &str) -> Option<&'static CodecRow> {
    CODECS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_level_is_in_its_range() {
        for row in CODECS {
            match (&row.levels, row.default_level) {
                (Some(levels), Some(level)) => assert!(levels.contains(&level), "{}", row.name),
                (None, None) => {}
                _ => panic!("{} has levels without a default, or the reverse", row.name),
            }
        }
    }

    #[test]
    fn zstd_levels_are_those_of_the_library() {
        let levels = row("zstd").unwrap().levels.clone().unwrap();
        assert_eq!(levels, zstd_safe::min_c_level()..=zstd_safe::max_c_level());
    }
}
