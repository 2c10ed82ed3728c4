//! Owners of a disk's bytes, and its end.

use crate::volume::PartitionsVolume;
use packfs_format::{SpaceOwner, space_owners};

impl PartitionsVolume {
    /// See [`packfs_format::Space::space`].
    pub(crate) fn space_owners(&self) -> Vec<SpaceOwner> {
        let table = &self.table;
        let mut claims = table.structures.clone();
        claims.extend(table.partitions.iter().map(|it| (it.start..it.end(), "partition")));
        claims.sort_by_key(|(range, _)| range.start);
        space_owners(claims, self.image.len())
    }

    /// See [`packfs_format::Volume::image_len`]: the end of the last partition or structure.
    pub(crate) fn used_len(&self) -> u64 {
        let structures = self.table.structures.iter().map(|(range, _)| range.end);
        let ends = structures.chain(self.table.partitions.iter().map(|it| it.end()));
        ends.max().unwrap_or(0).min(self.image.len())
    }
}
