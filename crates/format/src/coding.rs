//! Encoding of an image's data: two images must agree on it before blocks can be copied between
//! them.

use packfs_codec::Algorithm;

/// Encoding of an image's blocks, as far as the image itself records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coding {
    /// The format's name.
    pub format: &'static str,
    /// The unit in which data is addressed or cut, in bytes.
    pub block_len: u32,
    /// Algorithms, with their settings as stored in the image, which may be empty for defaults.
    /// Empty: data is uncompressed.
    pub codecs: Vec<(Algorithm, Vec<u8>)>,
    /// Codec in the syntax of the option.
    pub spec: String,
    /// Block size as an option, in bytes, if known.
    pub typed_len: Option<u32>,
}

impl Coding {
    /// True if blocks of an image with this encoding can be copied into one encoded as `other`.
    pub fn serves(&self, other: &Coding) -> bool {
        let known = |codec: &(Algorithm, Vec<u8>)| other.codecs.contains(codec);
        let agrees =
            self.format == other.format && self.block_len == other.block_len && !self.codecs.is_empty();
        agrees && self.codecs.iter().all(known)
    }

    /// Describes format, codec, and block size for messages.
    pub fn describe(&self) -> String {
        format!("{} {} with blocks of {} bytes", self.format, self.spec, self.block_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coding(block_len: u32, level: u8) -> Coding {
        let codecs = vec![(Algorithm::Zstd, vec![level])];
        Coding { format: "squashfs", block_len, codecs, spec: format!("zstd:{level}"), typed_len: None }
    }

    #[test]
    fn blocks_serve_where_format_block_size_and_settings_agree() {
        assert!(coding(4096, 1).serves(&Coding { spec: "other words".into(), ..coding(4096, 1) }));
        assert!(!coding(4096, 1).serves(&coding(8192, 1)));
        assert!(!coding(4096, 1).serves(&coding(4096, 2)));
        assert!(!Coding { codecs: Vec::new(), ..coding(4096, 1) }.serves(&coding(4096, 1)));
        assert!(!coding(4096, 1).serves(&Coding { format: "erofs", ..coding(4096, 1) }));
        let both = Coding {
            codecs: vec![(Algorithm::Lz4, Vec::new()), (Algorithm::Zstd, vec![1])],
            ..coding(4096, 1)
        };
        assert!(coding(4096, 1).serves(&both) && !both.serves(&coding(4096, 1)));
    }
}
