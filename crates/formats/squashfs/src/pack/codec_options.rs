//! The block behind the superblock that says how the codec was set, where that differs from its defaults.

use crate::disk;
use crate::options::Options;
use packfs_codec::{Algorithm, BranchFilter, CodecSettings, LzoVariant};
use zerocopy::IntoBytes;

/// The codec's number in the superblock.
pub(super) fn codec_id(algorithm: Algorithm) -> u16 {
    match algorithm {
        Algorithm::Zlib => disk::ZLIB_COMPRESSION,
        Algorithm::LzmaAlone => disk::LZMA_COMPRESSION,
        Algorithm::Lzo => disk::LZO_COMPRESSION,
        Algorithm::Xz => disk::XZ_COMPRESSION,
        Algorithm::Lz4 => disk::LZ4_COMPRESSION,
        Algorithm::Zstd => disk::ZSTD_COMPRESSION,
        // Options refuses all others.
        _ => 0,
    }
}

/// The block with its header; empty where the defaults hold. LZ4 has no defaults, LZMA no options.
pub(crate) fn block(options: &Options) -> Vec<u8> {
    let bytes = match &options.codec {
        CodecSettings::Zlib { level: 9.., window_log: 15, strategies } if strategies.is_empty() => {
            return Vec::new();
        }
        CodecSettings::Zlib { level, window_log, strategies } => disk::GzipOptions {
            // Readers know zlib's nine levels; higher ones are the encoder's own.
            compression_level: u32::from(*level).min(9).into(),
            window_size: u16::from(*window_log).into(),
            strategy: strategies.iter().fold(0, |bits, &strategy| bits | 1 << strategy as u16).into(),
        }
        .as_bytes()
        .to_vec(),
        CodecSettings::LzmaAlone { .. }
        | CodecSettings::Zstd { level: 15, .. }
        | CodecSettings::Deflate { .. }
        | CodecSettings::MicroLzma { .. } => return Vec::new(),
        CodecSettings::Lzo { variant: LzoVariant::X999, level: 8 } => return Vec::new(),
        CodecSettings::Lzo { variant, level } => {
            let (algorithm, level) = match variant {
                LzoVariant::X1 => (0, 0),
                LzoVariant::X1_11 => (1, 0),
                LzoVariant::X1_12 => (2, 0),
                LzoVariant::X1_15 => (3, 0),
                LzoVariant::X999 => (4, u32::from(*level)),
            };
            disk::LzoOptions { algorithm: algorithm.into(), compression_level: level.into() }
                .as_bytes()
                .to_vec()
        }
        CodecSettings::Xz { dict_len, filters, .. }
            if *dict_len == options.block_len && filters.is_empty() =>
        {
            return Vec::new();
        }
        CodecSettings::Xz { dict_len, filters, .. } => {
            let bit = |filter: &BranchFilter| {
                BranchFilter::ALL.iter().position(|known| known == filter).unwrap_or(0)
            };
            let flags: u32 = filters.iter().fold(0, |bits, filter| bits | 1 << bit(filter));
            disk::XzOptions { dictionary_size: (*dict_len).into(), flags: flags.into() }.as_bytes().to_vec()
        }
        CodecSettings::Lz4 { .. } => lz4(0),
        CodecSettings::Lz4Hc { .. } => lz4(disk::LZ4_HC),
        CodecSettings::Zstd { level, .. } => {
            disk::ZstdOptions { compression_level: (*level).into() }.as_bytes().to_vec()
        }
    };
    // Stored as it is: a reader may need it to decompress.
    [disk::metadata_header(bytes.len() as u16, false).as_bytes(), &bytes[..]].concat()
}

fn lz4(flags: u32) -> Vec<u8> {
    disk::Lz4Options { version: disk::LZ4_LEGACY.into(), flags: flags.into() }.as_bytes().to_vec()
}
