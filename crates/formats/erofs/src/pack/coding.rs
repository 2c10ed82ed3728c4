//! Encoding of the blocks of an image to pack, which decides if those of another one can be copied.

use super::superblock::{all_settings, lzma_dict_len, zstd_window_log};
use crate::disk;
use crate::options::Options;
use packfs_codec::Algorithm;
use packfs_format::Coding;

pub(super) fn of_options(options: &Options) -> Coding {
    let mut codecs: Vec<(Algorithm, Vec<u8>)> = Vec::new();
    for settings in all_settings(options) {
        let algorithm = settings.algorithm();
        let words = match algorithm {
            Algorithm::MicroLzma => format!("lzma dict_size={}", lzma_dict_len(options)),
            Algorithm::Deflate => format!("deflate windowbits={}", disk::DEFLATE_WINDOWBITS_MAX),
            Algorithm::Zstd => format!("zstd windowlog={}", zstd_window_log(options)),
            _ => String::new(),
        };
        let codec = (algorithm, words.into_bytes());
        if !codecs.contains(&codec) {
            codecs.push(codec);
        }
    }
    Coding {
        format: "erofs",
        block_len: options.block_len,
        codecs,
        spec: options.codec_name.clone(),
        typed_len: options.storage.codecs().map(|(_, cluster_len)| cluster_len),
    }
}
