//! EROFS layers: media types and annotations of erofs-image-spec.

use super::digest::Digest;
use super::manifest::{CHUNK_INDEX, Descriptor};
use std::ops::Range;

/// Annotations of a layer about its chunk index, and that of an index about its layer.
pub(super) const INDEX_RANGE: &str = "org.erofs.chunk-index.range";
pub(super) const INDEX_DIGEST: &str = "org.erofs.chunk-index.digest";
pub(super) const INDEX_MEDIA: &str = "org.erofs.chunk-index.mediaType";
pub(super) const INDEX_TARGET: &str = "org.erofs.chunk-index.target";
/// Annotation of a layer with the digest of its decoded form.
pub(super) const DECODED_DIGEST: &str = "org.erofs.uncompressed-digest";

/// Media type of EROFS layers that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErofsMedia {
    /// `application/vnd.erofs.layer.v1`, which containerd 2.1 and newer mount.
    #[default]
    Containerd,
    /// `application/vnd.erofs`, of the draft of erofs-image-spec.
    Spec,
}

/// Parts of a layer that its annotations describe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErofsParts {
    /// Digest of the decoded layer, if it is compressed.
    pub decoded: Option<Digest>,
    /// Place of the dm-verity hash tree in the decoded layer, its block length, and its root hash.
    pub verity: Option<(u64, u32, Digest)>,
    /// Place of the chunk index at the end of the blob, and its digest.
    pub index: Option<(Range<u64>, Digest)>,
}

impl ErofsMedia {
    /// Returns the media type of layers that are not compressed.
    pub fn name(self) -> &'static str {
        match self {
            ErofsMedia::Spec => "application/vnd.erofs",
            ErofsMedia::Containerd => "application/vnd.erofs.layer.v1",
        }
    }

    /// Describes a layer.
    pub fn layer(self, digest: Digest, size: u64, parts: &ErofsParts) -> Descriptor {
        let suffix = if parts.decoded.is_some() { "+zstd" } else { "" };
        let mut layer = Descriptor::new(&format!("{}{suffix}", self.name()), digest, size);
        let mut annotate = |name: &str, value: String| layer.annotations.insert(name.into(), value);
        if let Some(decoded) = &parts.decoded {
            annotate(DECODED_DIGEST, decoded.to_string());
        }
        if let Some((offset, block_len, root)) = &parts.verity {
            annotate("org.erofs.dmverity.block_size", block_len.to_string());
            annotate("org.erofs.dmverity.hash_offset", offset.to_string());
            annotate("org.erofs.dmverity.root_digest", root.to_string());
        }
        if let Some((range, digest)) = &parts.index {
            annotate(INDEX_RANGE, format!("{}:{}", range.start, range.end));
            annotate(INDEX_DIGEST, digest.to_string());
            annotate(INDEX_MEDIA, CHUNK_INDEX.into());
        }
        layer
    }
}
