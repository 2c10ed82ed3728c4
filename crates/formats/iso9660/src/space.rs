//! Owners of an image's bytes: maps structures to ranges, for every image that can be walked.

use crate::data::taken;
use crate::disk::*;
use crate::open::Described;
use crate::volume::Iso9660Volume;
use packfs_core::{Result, range_at};
use packfs_format::{Space, SpaceOwner, space_owners};
use std::ops::Range;

/// Claims on the image; of claims with the same start, the first prevails.
#[derive(Default)]
struct Claims {
    rows: Vec<(Range<u64>, &'static str)>,
}

impl Claims {
    fn add(&mut self, range: Range<u64>, owner: &'static str) {
        if !range.is_empty() {
            self.rows.push((range, owner));
        }
    }
}

impl Iso9660Volume {
    /// Claims path tables, directories, and files of a tree.
    fn claim_tree(&self, tree: &Described, claims: &mut Claims) -> Result<()> {
        let descriptor = &tree.descriptor;
        let len = u64::from(descriptor.path_table_len.get());
        for block in [
            descriptor.path_table_le.get(),
            descriptor.path_table_le_again.get(),
            descriptor.path_table_be.get(),
            descriptor.path_table_be_again.get(),
        ] {
            if block != 0 {
                claims.add(range_at(block_at(block.into(), self.geometry.block_len), len), "path tables");
            }
        }
        self.each_record(tree.root_at(), |record, rock_ridge| {
            for &(at, len) in &rock_ridge.areas {
                claims.add(range_at(at, len), "continuation areas");
            }
            if record.has(FLAG_DIRECTORY) {
                let at = record.data_at(self.geometry.block_len);
                // Each directory is visited by its parent's record, the root by its own.
                if !record.is_self_or_parent() || record.at == tree.root_at() {
                    claims.add(range_at(at, record.data_len()), "directories");
                }
                return Ok(());
            }
            for section in self.sections(record)? {
                if section.len > 0 {
                    claims.add(taken(&section), "file data");
                }
            }
            Ok(())
        })
    }
}

impl Space for Iso9660Volume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let mut claims = Claims::default();
        claims.add(0..DESCRIPTORS_AT, "system area");
        claims.add(DESCRIPTORS_AT..geometry.descriptors_end, "volume descriptors");
        self.claim_tree(&geometry.primary, &mut claims)?;
        if let Some((joliet, _)) = &geometry.joliet {
            self.claim_tree(joliet, &mut claims)?;
        }
        if let Some((_, block)) = geometry.catalog {
            let at = u64::from(block) * SECTOR_LEN;
            claims.add(range_at(at, SECTOR_LEN), "boot catalog");
        }
        for image in self.boot_catalog()?.images {
            claims.add(range_at(image.start(), image.loaded_len()), "boot image");
        }
        claims.add(geometry.volume_end()..geometry.image_len, "after the volume");
        claims.rows.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims.rows, geometry.image_len))
    }
}
