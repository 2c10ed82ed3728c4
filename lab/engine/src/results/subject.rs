//! Subjects of measurements: trees in forms that can be read.

use serde::{Deserialize, Serialize};

/// An image, or a file system that a tree was copied to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Unique within the document: `packfs squashfs zstd:15 128K`.
    pub id: String,
    /// The `id` of its tree.
    pub tree: String,
    /// The recipe.
    pub recipe: Recipe,
    /// The command that made it, as one would type it.
    pub command: String,
    /// Length of the image; of a writable file system, what it has taken of its device.
    pub stored_len: Option<u64>,
    /// Bytes of each codec, as compsize counts for btrfs; empty where they are not counted.
    pub usage: Vec<CodecUsage>,
}

/// Recipe that makes a subject of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The program: `packfs`, `mksquashfs`, `tar2sqfs`, `mkfs.erofs`, `mkdwarfs`, `mkfs.btrfs`,
    /// `mkfs.ext4`, `mkfs.xfs`.
    pub maker: String,
    /// `squashfs`, `erofs`, `dwarfs`, `btrfs`, `ext4`, `xfs`, ...
    pub format: String,
    /// packfs's name of the codec; `none` for data that is stored plain.
    pub codec: String,
    /// None for the maker's default.
    pub level: Option<i32>,
    /// Block, or cluster, in bytes; none for the maker's default.
    pub block_len: Option<u32>,
    /// Further words for the maker, in its own spelling.
    pub options: Vec<String>,
    /// True if the device is encrypted by LUKS below it.
    pub luks: bool,
}

impl Recipe {
    /// Returns the codec with its level: `zstd:15`.
    pub fn codec_and_level(&self) -> String {
        self.level.map_or_else(|| self.codec.clone(), |level| format!("{}:{level}", self.codec))
    }
}

/// The length of a block as one types it: `4K`, `128K`, `1M`, or bytes.
pub fn spelled_len(bytes: u32) -> String {
    match bytes {
        0 => "0".into(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// One row of disk usage, as compsize prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodecUsage {
    /// `none`, `zstd`, `lzo`, `zlib`, or `total`.
    pub codec: String,
    /// Bytes on the disk.
    pub disk: u64,
    /// Bytes these are once decoded.
    pub uncompressed: u64,
    /// Bytes of files that refer to them.
    pub referenced: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_spelled_as_one_types_them() {
        let typed = ["0", "512", "1000", "4K", "128K", "1M"];
        assert_eq!([0, 512, 1000, 4096, 128 << 10, 1 << 20].map(spelled_len), typed);
    }
}
