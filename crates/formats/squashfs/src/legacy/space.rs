//! Owners of an image's bytes: maps structures to ranges, for every image that can be walked.

use crate::SpaceClaims;
use crate::legacy::volume::LegacyVolume;
use packfs_core::Result;
use packfs_format::SpaceOwner;

impl packfs_format::Space for LegacyVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let mut claims = SpaceClaims::default();
        claims.add(0..geometry.layout.data.start, "superblock");
        claims.add(geometry.uids.start..geometry.uids.end(), "owners");
        claims.add(geometry.gids.start..geometry.gids.end(), "owners");
        claims.add(geometry.bytes_used..geometry.image_len, "padding");
        claims.owners(self, geometry.image_len)
    }
}
