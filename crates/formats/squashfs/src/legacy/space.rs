//! Owners of an image's bytes.
//!
//! Owns the map from structures to ranges, for every image that can be walked.

use crate::SpaceClaims;
use crate::legacy::volume::LegacyVolume;
use packfs_core::Result;
use packfs_format::SpaceOwner;

impl LegacyVolume {
    /// See [`packfs_format::Volume::space`].
    pub(crate) fn space_owners(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let mut claims = SpaceClaims::default();
        claims.add(0..geometry.layout.data.start, "superblock");
        claims.add(geometry.uids.start..geometry.uids.end(), "owners");
        claims.add(geometry.gids.start..geometry.gids.end(), "owners");
        claims.add(geometry.bytes_used..geometry.image_len, "padding");
        claims.owners(self, geometry.image_len)
    }
}
