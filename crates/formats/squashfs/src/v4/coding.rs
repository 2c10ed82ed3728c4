//! Encoding of an image's blocks, which decides if they can be copied into another image.
//!
//! Two images agree if their options blocks are equal: kernels size their decoders by it, and it
//! records the level. Settings that it does not record (gzip above level 9, presets of xz) are not
//! compared.

use crate::v4::codec_options;
use crate::v4::codec_words::CodecWords;
use crate::v4::disk::SQUASHFS_NOD;
use crate::v4::options::Options;
use crate::v4::volume::SquashfsVolume;
use packfs_codec::Algorithm;
use packfs_format::Coding;

/// Length of the header of a metadata block, which precedes the options.
const HEADER_LEN: usize = crate::v4::disk::METADATA_HEADER_LEN;

impl SquashfsVolume {
    /// See [`packfs_format::Volume::coding`].
    pub(crate) fn image_coding(&self) -> Option<Coding> {
        let geometry = &self.geometry;
        let mut settings = Vec::new();
        if let Some(options) = geometry.options {
            if options.compressed {
                return None;
            }
            settings.resize(usize::from(options.len), 0);
            self.metadata.image().read_exact_at(options.at, &mut settings).ok()?;
        }
        if Algorithm::VENDOR_LZMA.contains(&geometry.layout.algorithm) {
            return None;
        }
        let words = self.codec_words().ok()?;
        // Data stored without a trial may be compressible.
        let (codecs, spec) = if geometry.flag(SQUASHFS_NOD) {
            (Vec::new(), "none".to_owned())
        } else {
            let spec = spec(geometry.layout.algorithm, geometry.layout.block_len, &words);
            (vec![(geometry.layout.algorithm, settings)], spec)
        };
        let block_len = geometry.layout.block_len;
        Some(Coding { format: "squashfs", block_len, codecs, spec, typed_len: Some(block_len) })
    }
}

pub(crate) fn of_options(options: &Options) -> Coding {
    let block = codec_options::block(options);
    // Codecs without options have no block.
    let settings = block.get(HEADER_LEN..).unwrap_or(&[]).to_vec();
    Coding {
        format: "squashfs",
        block_len: options.block_len,
        codecs: vec![(options.codec.algorithm(), settings)],
        spec: options.codec_name.clone(),
        typed_len: Some(options.block_len),
    }
}

/// Returns the codec in the syntax of the option, as far as the image records it.
fn spec(algorithm: Algorithm, block_len: u32, words: &CodecWords) -> String {
    let value = |key: &str| words.words.iter().find_map(|word| word.strip_prefix(key));
    let level = |default: &str| value("level=").unwrap_or(default).to_owned();
    let more = |keys: &[&str]| -> String {
        keys.iter().filter_map(|key| Some(format!(",{key}{}", value(key)?))).collect()
    };
    match algorithm {
        Algorithm::Zlib => {
            let window = value("window=").filter(|&bits| bits != "15");
            let window = window.map_or(String::new(), |bits| format!(",window={bits}"));
            format!("gzip:{}{window}{}", level("9"), more(&["strategy="]))
        }
        Algorithm::Lzo if value("variant=").is_none_or(|name| name == "999") => {
            format!("lzo:{}", level("8"))
        }
        Algorithm::Lzo => format!("lzo{}", more(&["variant="])),
        Algorithm::Xz => {
            let dict = value("dict=").filter(|dict| **dict != block_len.to_string());
            let dict = dict.map_or(String::new(), |dict| format!(",dict={dict}"));
            format!("xz{dict}{}", more(&["bcj="]))
        }
        Algorithm::Lz4 if words.words.iter().any(|word| word == "hc") => "lz4hc".into(),
        Algorithm::Zstd => format!("zstd:{}", level("15")),
        _ => algorithm.name().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_format::PackSettings;

    #[test]
    fn a_spec_requests_the_same_options_again() {
        for codec in [
            "gzip:9",
            "gzip:6",
            "gzip:3,window=12",
            "gzip:6,strategy=default+rle",
            "lzo:8",
            "lzo:5",
            "lzo,variant=1_11",
            "xz",
            "xz,dict=8K",
            "xz,bcj=x86+arm",
            "lz4",
            "lz4hc",
            "zstd:15",
            "zstd:3",
            "zstd:-5",
            "lzma",
        ] {
            let options = |codec: &str| {
                let settings = PackSettings { codec: Some(codec.into()), ..PackSettings::default() };
                Options::new(&settings).unwrap_or_else(|error| panic!("{codec}: {error}"))
            };
            let wanted = of_options(&options(codec));
            let (algorithm, settings) = &wanted.codecs[0];
            let words = if settings.is_empty() {
                CodecWords::default()
            } else {
                crate::v4::codec_words::decode(*algorithm, settings)
            };
            let again = spec(*algorithm, wanted.block_len, &words);
            assert!(of_options(&options(&again)).serves(&wanted), "{codec}: {again}");
        }
    }
}
