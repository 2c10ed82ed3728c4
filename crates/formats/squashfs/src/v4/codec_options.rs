//! The block after the superblock with the options of the codec, if they differ from the defaults.

use crate::v4::disk;
use crate::v4::options::Options;
use packfs_codec::{BranchFilter, CodecSettings, LzoSettings, LzoVariant, XzSettings, ZlibSettings};
use zerocopy::IntoBytes;

pub(crate) fn block(options: &Options) -> Vec<u8> {
    let Some(bytes) = bytes(&options.codec, options.block_len) else { return Vec::new() };
    // Stored uncompressed: a reader may need it to decompress.
    [disk::metadata_header(bytes.len() as u16, false).as_bytes(), &bytes[..]].concat()
}

/// Returns the options on disk; `None` for the defaults. LZ4 has no defaults, LZMA no options.
fn bytes(codec: &CodecSettings, block_len: u32) -> Option<Vec<u8>> {
    match codec {
        CodecSettings::Zlib(zlib) => gzip_bytes(zlib),
        CodecSettings::Lzo(lzo) => lzo_bytes(lzo),
        CodecSettings::Xz(xz) => xz_bytes(xz, block_len),
        CodecSettings::Lz4(_) => Some(lz4_bytes(0)),
        CodecSettings::Lz4Hc(_) => Some(lz4_bytes(disk::LZ4_HC)),
        CodecSettings::Zstd(zstd) => {
            let options = disk::ZstdOptions { compression_level: zstd.level.into() };
            (zstd.level != 15).then(|| options.as_bytes().to_vec())
        }
        _ => None,
    }
}

fn gzip_bytes(zlib: &ZlibSettings) -> Option<Vec<u8>> {
    if zlib.level >= 9 && zlib.window_log == 15 && zlib.strategies.is_empty() {
        return None;
    }
    let options = disk::GzipOptions {
        // Readers know zlib's nine levels; higher ones are specific to the encoder.
        compression_level: u32::from(zlib.level).min(9).into(),
        window_size: u16::from(zlib.window_log).into(),
        strategy: zlib.strategies.iter().fold(0, |bits, &strategy| bits | 1 << strategy as u16).into(),
    };
    Some(options.as_bytes().to_vec())
}

fn lzo_bytes(lzo: &LzoSettings) -> Option<Vec<u8>> {
    let (algorithm, level) = match lzo.variant {
        LzoVariant::X1 => (0, 0),
        LzoVariant::X1_11 => (1, 0),
        LzoVariant::X1_12 => (2, 0),
        LzoVariant::X1_15 => (3, 0),
        LzoVariant::X999 if lzo.level == 8 => return None,
        LzoVariant::X999 => (4, u32::from(lzo.level)),
    };
    let options = disk::LzoOptions { algorithm: algorithm.into(), compression_level: level.into() };
    Some(options.as_bytes().to_vec())
}

fn xz_bytes(xz: &XzSettings, block_len: u32) -> Option<Vec<u8>> {
    if xz.dict_len == block_len && xz.filters.is_empty() {
        return None;
    }
    let bit = |filter| BranchFilter::ALL.iter().position(|known| known == filter).unwrap_or(0);
    let flags: u32 = xz.filters.iter().fold(0, |bits, filter| bits | 1 << bit(filter));
    let options = disk::XzOptions { dictionary_size: xz.dict_len.into(), flags: flags.into() };
    Some(options.as_bytes().to_vec())
}

fn lz4_bytes(flags: u32) -> Vec<u8> {
    disk::Lz4Options { version: disk::LZ4_LEGACY.into(), flags: flags.into() }.as_bytes().to_vec()
}
