//! Features in use: bits, codecs, and the longest cluster of each codec.

use super::index::Uses;
use crate::disk;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    pub compressed: bool,
    pub big_clusters: bool,
    pub chunks: bool,
    pub inline_clusters: bool,
    /// Tails in the packed inode.
    pub fragments: bool,
    /// Files that refer to a part of a cluster.
    pub parts: bool,
    pub prefixes: bool,
    pub wide: bool,
    pub metabox: bool,
    pub devices: bool,
    /// Indexes with clusters of two algorithms.
    pub second_codec: bool,
    pub shared_in_metabox: bool,
    /// Maximum blocks of a cluster by algorithm; 0 if unused.
    pub blocks_max: [u32; disk::Z_EROFS_COMPRESSION_MAX as usize],
}

impl Features {
    pub(super) fn add(&mut self, uses: &Uses, algorithms: [u8; 2]) {
        self.compressed = true;
        self.big_clusters |= uses.big_clusters;
        self.inline_clusters |= uses.inline;
        // Both came with the same kernel.
        self.fragments |= uses.fragments || uses.interlaced;
        self.parts |= uses.parts;
        self.wide |= uses.extents;
        self.second_codec |= uses.second;
        for (algorithm, most) in algorithms.into_iter().zip(uses.blocks_max) {
            if let Some(blocks_max) = self.blocks_max.get_mut(usize::from(algorithm)) {
                *blocks_max = most.max(*blocks_max);
            }
        }
    }

    /// Bit mask of the algorithms in use. A kernel that lacks one of them refuses the whole image.
    pub(super) fn algorithms(&self) -> u16 {
        (0u16..).zip(self.blocks_max).fold(0, |bits, (number, used)| bits | u16::from(used > 0) << number)
    }

    /// True if settings of codecs follow the superblock; LZ4 in clusters of one block needs none.
    pub(super) fn has_codec_settings(&self) -> bool {
        self.big_clusters || self.algorithms() & !(1 << disk::Z_EROFS_COMPRESSION_LZ4) != 0
    }

    pub(super) fn incompat(&self) -> u32 {
        let bits = [
            (self.compressed, disk::EROFS_FEATURE_INCOMPAT_LZ4_0PADDING),
            (self.has_codec_settings(), disk::EROFS_FEATURE_INCOMPAT_COMPR_CFGS),
            (self.chunks, disk::EROFS_FEATURE_INCOMPAT_CHUNKED_FILE),
            (self.devices || self.second_codec, disk::EROFS_FEATURE_INCOMPAT_DEVICE_TABLE),
            (self.inline_clusters, disk::EROFS_FEATURE_INCOMPAT_ZTAILPACKING),
            (self.fragments || self.parts, disk::EROFS_FEATURE_INCOMPAT_FRAGMENTS),
            (self.prefixes, disk::EROFS_FEATURE_INCOMPAT_XATTR_PREFIXES),
            (self.wide, disk::EROFS_FEATURE_INCOMPAT_48BIT),
            (self.metabox, disk::EROFS_FEATURE_INCOMPAT_METABOX),
        ];
        bits.iter().fold(0, |all, &(set, bit)| if set { all | bit } else { all })
    }
}
