//! Owners of the bytes of an image.

use crate::descriptors::Sequence;
use crate::dir::Identifier;
use crate::disk::*;
use crate::entry::{FileEntry, extent_addr};
use crate::maps::{Addr, Map};
use crate::volume::UdfVolume;
use packfs_core::{FileType, Result, range_at};
use packfs_format::{Claims, Space, SpaceOwner, units::*};
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

impl UdfVolume {
    fn sequence_ranges(&self, anchor: &AnchorVolDescPtr) -> Result<Vec<Range<u64>>> {
        let mut ranges = Vec::new();
        for extent in [anchor.main_vol_desc_seq_ext, anchor.reserve_vol_desc_seq_ext] {
            ranges.extend(Sequence::read(&self.reader.blocks, extent)?.extents);
        }
        Ok(ranges)
    }

    /// Claims space bitmaps, tables of sparable partitions, and metadata and virtual files.
    fn claim_partitions(&self, claims: &mut Claims) -> Result<()> {
        let blocks = &self.reader.blocks;
        for partition in &self.partitions {
            let start = u64::from(partition.partition_starting_location.get());
            let uses = &partition.partition_contents_use;
            for ad in [uses.unalloc_space_bitmap, uses.freed_space_bitmap, uses.unalloc_space_table] {
                let at = blocks.at(start.plus(ad.ext_position.get().into()));
                claims.add(range_at(at, u64::from(ad.ext_length.get() & EXTENT_LEN_MASK)), "space tables");
            }
        }
        for map in &self.reader.maps {
            match map {
                Map::Sparable { tables, .. } => {
                    tables.iter().for_each(|table| claims.add(table.clone(), "sparing tables"));
                }
                Map::Metadata { of, files, .. } => {
                    for block in [
                        files.metadata_file_loc,
                        files.metadata_mirror_file_loc,
                        files.metadata_bitmap_file_loc,
                    ] {
                        // An unreadable file was reported, or does not exist.
                        let Ok(entry) = self.reader.metadata_entry(*of, block.get()) else { continue };
                        claims.add(range_at(entry.place.at, blocks.block_len.into()), "inodes");
                    }
                }
                Map::Virtual { places, .. } => {
                    places.iter().for_each(|place| claims.add(place.clone(), "virtual allocation table"));
                }
                Map::Physical(_) => {}
            }
        }
        Ok(())
    }

    fn claim_file(&self, entry: &FileEntry, owner: &'static str, claims: &mut Claims) -> Result<()> {
        let block_len = u64::from(self.reader.blocks.block_len);
        claims.add(range_at(entry.place.at, block_len), "inodes");
        let places = self.reader.places(entry)?;
        places.continued.into_iter().for_each(|range| claims.add(range, "allocation descriptors"));
        places.data.into_iter().for_each(|range| claims.add(range, owner));
        Ok(())
    }

    /// Calls `visit` once for each file reachable from `left`, hidden ones included, with the owner
    /// of its data. Pairs with true are named streams.
    pub(crate) fn each_file(
        &self,
        mut left: Vec<(Addr, bool)>,
        visit: &mut dyn FnMut(&FileEntry, &'static str) -> Result<()>,
    ) -> Result<()> {
        let mut seen = HashSet::new();
        while let Some((addr, is_stream)) = left.pop() {
            if !seen.insert(addr) {
                continue;
            }
            let entry = self.reader.entry(addr)?;
            left.extend(entry.streams.map(|streams| (streams, true)));
            let file_type = entry.file_type()?;
            visit(&entry, owner_of(file_type, is_stream))?;
            if file_type == FileType::Directory {
                self.reader.each_identifier(&entry, 0, &mut |identifier| {
                    left.extend(child(&identifier).map(|addr| (addr, is_stream)));
                    Ok(ControlFlow::Continue(()))
                })?;
            }
        }
        Ok(())
    }
}

impl Space for UdfVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let mut claims = Claims::new();
        let (blocks, len) = (&self.reader.blocks, self.reader.blocks.image.len());
        claims.add(0..RECOGNITION_AT, "system area");
        claims.add(self.recognition.range(), "volume recognition");
        for &(at, ref anchor) in &self.anchors {
            claims.add(range_at(at, blocks.block_len.into()), "anchors");
            for range in self.sequence_ranges(anchor)? {
                claims.add(range, "volume descriptors");
            }
        }
        for range in &self.integrity.extents {
            claims.add(range.clone(), "integrity descriptors");
        }
        claims.add(range_at(self.file_set_at, blocks.block_len.into()), "file set");
        self.claim_partitions(&mut claims)?;
        let streams = extent_addr(self.file_set.stream_directory_icb).map(|addr| (addr, true));
        let starts = [(self.root, false)].into_iter().chain(streams).collect();
        self.each_file(starts, &mut |entry, owner| self.claim_file(entry, owner, &mut claims))?;
        claims.add(self.end()..len, "after the volume");
        Ok(claims.owners(len))
    }
}

fn owner_of(file_type: FileType, is_stream: bool) -> &'static str {
    match file_type {
        FileType::Directory => "directories",
        _ if is_stream => "named streams",
        FileType::Symlink => "link targets",
        _ => "file data",
    }
}

/// Returns the file of an identifier, unless it is deleted or the parent.
fn child(identifier: &Identifier) -> Option<Addr> {
    identifier.addr.filter(|_| !identifier.has(DELETED | PARENT))
}
