//! Text of the codec's options, and the kernel that they need.
//!
//! Owns the decoding of the options block. Options are informative, so an unreadable block is
//! reported, not refused: kernels need only those of LZ4, and no decoder of packfs needs any.

use crate::SQUASHFS_METADATA_SIZE;
use crate::v4::disk::*;
use crate::v4::volume::SquashfsVolume;
use packfs_codec::{Algorithm, BranchFilter};
use packfs_core::Result;
use packfs_format::split_structure;

/// Contents of the options block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodecWords {
    /// `key=value`, or the fault of the block.
    pub(crate) words: Vec<String>,
    pub(crate) filters: Vec<BranchFilter>,
    pub(crate) fault: Option<String>,
}

/// Strategies of gzip, by bit.
const STRATEGIES: [&str; 5] = ["default", "filtered", "huffman", "rle", "fixed"];
const VARIANTS: [&str; 5] = ["1", "1_11", "1_12", "1_15", "999"];

impl SquashfsVolume {
    /// Describes the options block; without one, the codec's defaults apply.
    pub(crate) fn codec_words(&self) -> Result<CodecWords> {
        let Some(options) = self.geometry.options else { return Ok(CodecWords::default()) };
        let mut bytes = vec![0; usize::from(options.len)];
        self.metadata.image().read_exact_at(options.at, &mut bytes)?;
        if options.compressed {
            return Ok(CodecWords {
                fault: Some("codec options are compressed".into()),
                ..CodecWords::default()
            });
        }
        Ok(decode(self.geometry.layout.algorithm, &bytes))
    }
}

pub(crate) fn decode(algorithm: Algorithm, bytes: &[u8]) -> CodecWords {
    let decoded = match algorithm {
        Algorithm::Zlib => gzip(bytes),
        Algorithm::Lzo => split_structure::<LzoOptions>(bytes).map(|(options, rest)| lzo(&options, rest)),
        Algorithm::Xz => split_structure::<XzOptions>(bytes).map(|(options, rest)| xz(&options, rest)),
        Algorithm::Lz4 => split_structure::<Lz4Options>(bytes).map(|(options, rest)| lz4(&options, rest)),
        Algorithm::Zstd => split_structure::<ZstdOptions>(bytes).map(|(options, rest)| CodecWords {
            words: vec![format!("level={}", options.compression_level)],
            fault: left_over(rest),
            ..CodecWords::default()
        }),
        _ => None,
    };
    decoded.unwrap_or_else(|| CodecWords {
        fault: Some(format!("codec options of {} bytes, which {algorithm} does not have", bytes.len())),
        ..CodecWords::default()
    })
}

fn left_over(rest: &[u8]) -> Option<String> {
    (!rest.is_empty()).then(|| format!("codec options with {} unknown bytes at their end", rest.len()))
}

fn gzip(bytes: &[u8]) -> Option<CodecWords> {
    if let Some((options, rest)) = split_structure::<GzipOptions>(bytes) {
        let strategies = options.strategy.get();
        return Some(gzip_words(
            options.compression_level.get(),
            options.window_size.get(),
            strategies,
            left_over(rest),
        ));
    }
    // backhand stores the window in one byte.
    let &[a, b, c, d, window, low, high] = bytes else { return None };
    let fault = Some("codec options of 7 bytes, 8 allowed; unsquashfs -stat will refuse them".into());
    Some(gzip_words(
        u32::from_le_bytes([a, b, c, d]),
        u16::from(window),
        u16::from_le_bytes([low, high]),
        fault,
    ))
}

fn gzip_words(level: u32, window: u16, strategies: u16, fault: Option<String>) -> CodecWords {
    let mut words = vec![format!("level={level}"), format!("window={window}")];
    let chosen: Vec<_> = (0..STRATEGIES.len())
        .filter(|bit| strategies >> bit & 1 != 0)
        .filter_map(|bit| STRATEGIES.get(bit).copied())
        .collect();
    if !chosen.is_empty() {
        words.push(format!("strategy={}", chosen.join("+")));
    }
    let in_range = (1..=9).contains(&level) && (8..=15).contains(&window);
    let fault = fault.or_else(|| {
        (!in_range).then(|| {
            format!("gzip level {level} and window {window}, levels 1 to 9 and windows 8 to 15 allowed")
        })
    });
    CodecWords { words, fault, ..CodecWords::default() }
}

fn lzo(options: &LzoOptions, rest: &[u8]) -> CodecWords {
    let variant = options.algorithm.get();
    let Some(name) = VARIANTS.get(variant as usize) else {
        let fault = Some(format!("lzo variant {variant}, 0 to 4 allowed"));
        return CodecWords { fault, ..CodecWords::default() };
    };
    let mut words = vec![format!("variant={name}")];
    if *name == "999" {
        words.push(format!("level={}", options.compression_level));
    }
    CodecWords { words, fault: left_over(rest), ..CodecWords::default() }
}

fn xz(options: &XzOptions, rest: &[u8]) -> CodecWords {
    let (dict_len, flags) = (options.dictionary_size.get(), options.flags.get());
    let mut words = vec![format!("dict={dict_len}")];
    let filters: Vec<_> = BranchFilter::ALL
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| flags >> bit & 1 != 0)
        .map(|(_, filter)| filter)
        .collect();
    if !filters.is_empty() {
        let names: Vec<_> = filters.iter().map(|filter| filter.name()).collect();
        words.push(format!("bcj={}", names.join("+")));
    }
    // The kernel accepts 2^n and 2^n + 2^(n+1).
    let odd = dict_len >> dict_len.trailing_zeros().min(31);
    let fault = if (dict_len as usize) < SQUASHFS_METADATA_SIZE || (odd != 1 && odd != 3) {
        Some(format!("xz dictionary of {dict_len} bytes, 2^n and 2^n + 2^(n+1) from 8192 allowed"))
    } else {
        left_over(rest)
    };
    CodecWords { words, filters, fault }
}

fn lz4(options: &Lz4Options, rest: &[u8]) -> CodecWords {
    let (version, flags) = (options.version.get(), options.flags.get());
    let high = flags & LZ4_HC != 0;
    let mut words = vec![if high { "hc".to_owned() } else { "fast".to_owned() }];
    let mut rest = rest;
    if flags & LZ4_NON_DEFAULT != 0
        && let Some((word, left)) = rest.split_first_chunk::<4>()
    {
        let key = if high { "level" } else { "acceleration" };
        words.push(format!("{key}={}", u32::from_le_bytes(*word)));
        rest = left;
    }
    let fault = match version {
        LZ4_LEGACY => left_over(rest),
        other => Some(format!("lz4 version {other}, 1 allowed")),
    };
    CodecWords { words, fault, ..CodecWords::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_the_settings_of_each_codec() {
        let cases: [(Algorithm, &[u8], &[&str]); 8] = [
            (Algorithm::Zlib, &[9, 0, 0, 0, 15, 0, 0, 0], &["level=9", "window=15"]),
            (
                Algorithm::Zlib,
                &[6, 0, 0, 0, 9, 0, 3, 0],
                &["level=6", "window=9", "strategy=default+filtered"],
            ),
            (Algorithm::Lzo, &[4, 0, 0, 0, 8, 0, 0, 0], &["variant=999", "level=8"]),
            (Algorithm::Lzo, &[1, 0, 0, 0, 0, 0, 0, 0], &["variant=1_11"]),
            (Algorithm::Xz, &[0, 0, 2, 0, 0x41, 0, 0, 0], &["dict=131072", "bcj=x86+arm64"]),
            (Algorithm::Lz4, &[1, 0, 0, 0, 1, 0, 0, 0], &["hc"]),
            (Algorithm::Lz4, &[1, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0], &["fast", "acceleration=7"]),
            (Algorithm::Zstd, &[0xfb, 0xff, 0xff, 0xff], &["level=-5"]),
        ];
        for (algorithm, bytes, words) in cases {
            let decoded = decode(algorithm, bytes);
            assert_eq!(decoded.words, words, "{algorithm}");
            assert_eq!(decoded.fault, None, "{algorithm}");
        }
    }

    #[test]
    fn names_what_is_odd_without_refusing_it() {
        let cases: [(Algorithm, &[u8]); 9] = [
            (Algorithm::Zlib, &[9, 0, 0, 0, 15, 0, 0]),
            (Algorithm::Zlib, &[12, 0, 0, 0, 15, 0, 0, 0]),
            (Algorithm::Zlib, &[9]),
            (Algorithm::Lzo, &[5, 0, 0, 0, 0, 0, 0, 0]),
            (Algorithm::Xz, &[0, 0x20, 1, 0, 0, 0, 0, 0]),
            (Algorithm::Xz, &[0, 0, 2, 0, 0, 0, 0, 0, 1, 2, 3, 4]),
            (Algorithm::Lz4, &[2, 0, 0, 0, 0, 0, 0, 0]),
            (Algorithm::Zstd, &[1, 0]),
            (Algorithm::LzmaAlone, &[1, 0, 0, 0]),
        ];
        for (algorithm, bytes) in cases {
            assert!(decode(algorithm, bytes).fault.is_some(), "{algorithm} {bytes:?}");
        }
    }
}
