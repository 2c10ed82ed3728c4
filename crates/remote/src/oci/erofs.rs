//! EROFS layers: media types and annotations of erofs-image-spec.

use super::digest::Digest;
use super::manifest::Descriptor;
use std::collections::BTreeMap;

/// Media type of EROFS layers that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErofsMedia {
    /// `application/vnd.erofs.layer.v1`, which containerd 2.1 and newer mount.
    #[default]
    Containerd,
    /// `application/vnd.erofs`, of the draft of erofs-image-spec.
    Spec,
}

impl ErofsMedia {
    /// Returns the media type.
    pub fn name(self) -> &'static str {
        match self {
            ErofsMedia::Spec => "application/vnd.erofs",
            ErofsMedia::Containerd => "application/vnd.erofs.layer.v1",
        }
    }

    /// Describes a layer. `verity` is the place of the hash tree in it, the block length, and the
    /// root hash in hexadecimal.
    pub fn layer(self, digest: Digest, size: u64, verity: Option<(u64, u32, &str)>) -> Descriptor {
        let mut layer = Descriptor::new(self.name(), digest, size);
        if let Some((offset, block_len, root)) = verity {
            let name = |name: &str| format!("org.erofs.dmverity.{name}");
            layer.annotations = BTreeMap::from([
                (name("block_size"), block_len.to_string()),
                (name("hash_offset"), offset.to_string()),
                (name("root_digest"), root.to_owned()),
            ]);
        }
        layer
    }
}
