//! Codecs in EROFS: numbers, kernel versions, and settings for a length of clusters.

use crate::disk;
use crate::kernel::Need;
use packfs_codec::{Algorithm, CodecSettings, Lz4HcSettings, ZstdSettings};
use packfs_codec::{CodecSpec, DictLens};
use packfs_core::{Error, Result};
use packfs_format::units::*;

/// Algorithms by their number on disk.
pub(crate) const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Lz4, Algorithm::MicroLzma, Algorithm::Deflate, Algorithm::Zstd];

/// Assumed compression factor that sizes the dictionary of LZMA: larger ones hardly help.
const LZMA_DICT_FACTOR: u32 = 4;
const LZMA_DICT_LEN_MIN: u32 = 32 << 10;
/// The factor for zstd, whose windows cost readers less.
const ZSTD_WINDOW_FACTOR: u32 = 8;

/// Errors: `Unsupported` for an algorithm that EROFS does not have.
pub(crate) fn number(algorithm: Algorithm) -> Result<u8> {
    known_number(algorithm).ok_or_else(|| Error::unsupported("erofs codec", algorithm))
}

fn known_number(algorithm: Algorithm) -> Option<u8> {
    ALGORITHMS.iter().zip(0..).find(|(known, _)| **known == algorithm).map(|(_, number)| number)
}

fn row(algorithm: Algorithm) -> Option<&'static disk::KernelRow> {
    disk::ALGORITHM_ROWS.get(usize::from(known_number(algorithm)?))
}

pub(crate) fn name(algorithm: Algorithm) -> &'static str {
    row(algorithm).map_or(algorithm.name(), |row| row.1)
}

pub(crate) fn need(algorithm: Algorithm) -> Need {
    let since = row(algorithm).map_or((5, 4), |row| row.2);
    Need::new(format!("codec {}", name(algorithm)), since, "codec lz4hc")
}

/// Returns the recipe of clusters of two algorithms in a merged image.
pub(crate) fn recipe_of(first: u8, second: u8) -> u16 {
    u16::from(first).times(4).plus(second.into())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Codecs {
    pub first: CodecSettings,
    /// Used for each cluster that it hardly makes larger.
    pub second: Option<CodecSettings>,
}

impl Codecs {
    /// The first codec, and the second if there is one.
    pub(crate) fn both(&self) -> impl Iterator<Item = &CodecSettings> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// Compares codecs and levels; windows and dictionaries depend on the length of clusters.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.both().count() == other.both().count()
            && self.both().zip(other.both()).all(|(one, other)| is_same(one, other))
    }
}

/// Parses `CODEC[+CODEC]`, each as [`parse_one`] does; `None` for `none`. Also returns the full
/// spelling.
///
/// Errors: `Usage`.
pub(crate) fn parse(text: &str, cluster_len: u32) -> Result<(String, Option<Codecs>)> {
    let Some((first, second)) = text.split_once('+') else {
        let (name, first) = parse_one(text, cluster_len)?;
        return Ok((name, first.map(|first| Codecs { first, second: None })));
    };
    let (first_name, first) = parse_one(first, cluster_len)?;
    let (second_name, second) = parse_one(second, cluster_len)?;
    match (first, second) {
        (Some(first), Some(second)) if first.algorithm() != second.algorithm() => {
            let codecs = Codecs { first, second: Some(second) };
            Ok((format!("{first_name}+{second_name}"), Some(codecs)))
        }
        _ => Err(Error::usage(format!("codecs {text}: two different ones are allowed, such as zstd:15+lz4"))),
    }
}

/// Parses `NAME[:LEVEL][,KEY=VALUE...]` for clusters of `cluster_len` stored bytes; `None` for
/// `none`. Also returns the full spelling.
///
/// Errors: `Usage`.
fn parse_one(text: &str, cluster_len: u32) -> Result<(String, Option<CodecSettings>)> {
    let spec: CodecSpec = text.parse().map_err(Error::usage)?;
    let usual = nth_at(0, cluster_len, LZMA_DICT_FACTOR);
    let max = disk::Z_EROFS_LZMA_MAX_DICT_SIZE;
    let dict_lens = DictLens { usual: usual.clamp(LZMA_DICT_LEN_MIN, max), max };
    let settings = spec.resolve(&ALGORITHMS, dict_lens).map_err(Error::usage)?;
    let settings = settings.map(|settings| match settings {
        CodecSettings::Zstd(zstd) => zstd_of_clusters(zstd.level, cluster_len),
        settings => settings,
    });
    if let Some(CodecSettings::Zstd(ZstdSettings { level: level @ ..1, .. })) = settings {
        return Err(Error::usage(format!("zstd level {level}: 1 to 22 is allowed")));
    }
    Ok((spec.to_string(), settings))
}

fn zstd_of_clusters(level: i32, cluster_len: u32) -> CodecSettings {
    CodecSettings::Zstd(ZstdSettings { level, window_log_max: Some(zstd_window_log(cluster_len)) })
}

/// Logarithm of the longest window that the superblock announces to kernels.
fn zstd_window_log(cluster_len: u32) -> u8 {
    let len = cluster_len.times(ZSTD_WINDOW_FACTOR).next_power_of_two();
    let (min, max) = (
        disk::ZSTD_WINDOWLOG_ABSOLUTEMIN,
        disk::ZSTD_WINDOWLOG_ABSOLUTEMIN + disk::ZSTD_WINDOWLOG_STORED_MAX,
    );
    u8::try_from(len.trailing_zeros()).unwrap_or(max).clamp(min, max)
}

/// Returns the codec of metadata: that of files, or LZ4 if files are not compressed.
pub(crate) fn of_metadata(codecs: Option<&Codecs>, cluster_len: u32) -> CodecSettings {
    match codecs.map(|codecs| &codecs.first) {
        Some(CodecSettings::Zstd(zstd)) => zstd_of_clusters(zstd.level, cluster_len),
        Some(codec) => codec.clone(),
        None => CodecSettings::Lz4Hc(Lz4HcSettings { level: 12 }),
    }
}

fn is_same(one: &CodecSettings, other: &CodecSettings) -> bool {
    match (one, other) {
        (CodecSettings::Zstd(one), CodecSettings::Zstd(other)) => one.level == other.level,
        (CodecSettings::Lzma(one), CodecSettings::Lzma(other)) => {
            (one.preset, one.extreme) == (other.preset, other.extreme)
        }
        _ => one == other,
    }
}
