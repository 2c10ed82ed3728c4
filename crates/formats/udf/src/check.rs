//! Check of every structure: tags, volume descriptors and their copies, directories, link counts,
//! and positions of data.
//!
//! Invariant: ends for every image, as each file is visited once.

use crate::blocks::verified;
use crate::corruption::{Corruption, Place};
use crate::descriptors::{Sequence, anchor_blocks, text_of};
use crate::dir::Identifier;
use crate::disk::*;
use crate::entry::{FileEntry, extent_addr};
use crate::maps::{Addr, Map, Run, in_runs, sparing_table};
use crate::volume::UdfVolume;
use packfs_core::{FileType, Result, range_at};
use packfs_format::check::{DataPlaces, Hierarchy, Report, Tally};
use packfs_format::{Check, Finding, InodeId, Volume, structure, units::*};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Findings about files that Linux does not show.
#[derive(Default)]
struct Unshown {
    hidden: Tally,
    streams: Tally,
}

struct Walk<'a, 'r> {
    volume: &'a UdfVolume,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<InodeId, InodeId>,
    data: DataPlaces,
    unshown: Unshown,
    streams: Vec<Addr>,
}

impl UdfVolume {
    fn check_tree(&self, report: &mut Report<'_>) -> Result<()> {
        let (hierarchy, data) = (Hierarchy::default(), DataPlaces::default());
        let streams = extent_addr(self.file_set.stream_directory_icb).into_iter().collect();
        let mut walk = Walk { volume: self, report, hierarchy, data, unshown: Unshown::default(), streams };
        walk.root()?;
        for index in 0.. {
            let Some(dir) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
            walk.directory(index, dir)?;
        }
        walk.streams()?;
        let Walk { report, hierarchy, data, unshown, .. } = walk;
        hierarchy.check_links(report);
        data.note_overlaps(report);
        unshown.hidden.note(report, "directories", "hidden files, which are not shown");
        unshown.streams.note(report, "directories", "files have named streams, which are not shown");
        Ok(())
    }

    /// Two of the three anchors must exist (OSTA UDF 2.2.3).
    fn check_anchors(&self, report: &mut Report<'_>) -> Result<()> {
        let blocks = &self.reader.blocks;
        let Some((_, first)) = self.anchors.first() else { return Ok(()) };
        for (at, anchor) in &self.anchors {
            let same = anchor.main_vol_desc_seq_ext == first.main_vol_desc_seq_ext
                && anchor.reserve_vol_desc_seq_ext == first.reserve_vol_desc_seq_ext;
            if !same {
                report.error(Place::at("anchor", *at), "leads to other volume descriptors than the first");
            }
        }
        for block in anchor_blocks(blocks) {
            let place = Place::at("anchor", blocks.at(block));
            let location = packfs_core::u32_of(block);
            if blocks.check_range(place, blocks.block_len.into()).is_err() {
                continue;
            }
            if blocks.tag(place)?.has_left(&[AVDP], location) {
                report.refused(place, blocks.tagged(place, location, &[]))?;
            }
        }
        if !self.anchors.iter().any(|(at, _)| *at == blocks.at(256)) && !self.is_written_once() {
            report.error(Place::at("anchor", blocks.at(256)), "missing");
        }
        Ok(())
    }

    /// Discs that were not closed have an anchor at block 512 only.
    fn is_written_once(&self) -> bool {
        self.reader.maps.iter().any(|map| matches!(map, Map::Virtual { .. }))
    }

    /// Compares the main and the reserve sequence of volume descriptors.
    fn check_sequences(&self, report: &mut Report<'_>) -> Result<()> {
        let Some((_, anchor)) = self.anchors.first() else { return Ok(()) };
        let blocks = &self.reader.blocks;
        for (name, extent) in [
            ("main volume descriptors", anchor.main_vol_desc_seq_ext),
            ("reserve volume descriptors", anchor.reserve_vol_desc_seq_ext),
        ] {
            let place = Place::at(name, blocks.at(extent.ext_location.get().into()));
            let sequence = Sequence::read(blocks, extent)?;
            match (sequence.fault.as_ref(), sequence.whole()) {
                (Some(fault), _) => report.error(place, text_of(fault)),
                (None, Err(fault)) => report.error(place, text_of(&fault)),
                (None, Ok((_, logical))) => {
                    if !self.is_same(logical) {
                        report.error(place, "the logical volume is another than that of the sequence in use");
                    }
                }
            }
        }
        Ok(())
    }

    /// Compares the fields that locate files; tags differ in location.
    fn is_same(&self, other: &crate::descriptors::Logical) -> bool {
        let (own, other) = (&self.logical, other);
        own.descriptor.logical_vol_contents_use == other.descriptor.logical_vol_contents_use
            && own.descriptor.logical_block_size == other.descriptor.logical_block_size
            && own.descriptor.logical_vol_ident == other.descriptor.logical_vol_ident
            && own.maps == other.maps
    }

    fn check_partitions(&self, report: &mut Report<'_>) -> Result<()> {
        let blocks = &self.reader.blocks;
        for (index, map) in self.reader.maps.iter().enumerate() {
            let name = format!("partition {index}");
            if let Some(range) = map.blocks() {
                let (end, len) = (blocks.at(range.end), blocks.image.len());
                if end > len && !self.is_written_once() {
                    report.error(&name, format_args!("ends at {end:#x}, the image at {len:#x}"));
                }
            }
            match map {
                Map::Sparable { packet_len, tables, .. } => {
                    for table in tables {
                        let place = Place::at("sparing table", table.start);
                        report.refused(place, sparing_table(blocks, place, *packet_len))?;
                    }
                }
                Map::Metadata { of, files, main, mirror } => {
                    for (what, block) in [
                        ("metadata file", files.metadata_file_loc),
                        ("mirror of the metadata file", files.metadata_mirror_file_loc),
                    ] {
                        let entry = self.reader.metadata_entry(*of, block.get());
                        report.refused(format_args!("{name}: {what}"), entry)?;
                    }
                    let len = |runs: &[Run]| runs.last().map_or(0, |run| run.range.end);
                    if len(main) != len(mirror) {
                        report.warn(&name, "metadata file and mirror are of different lengths");
                    }
                    self.compare_mirror(&name, main, mirror, report)?;
                }
                Map::Physical(_) | Map::Virtual { .. } => {}
            }
        }
        Ok(())
    }
}

impl Check for UdfVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new(crate::INFO.name, found);
        self.check_anchors(&mut report)?;
        self.check_sequences(&mut report)?;
        self.check_partitions(&mut report)?;
        if let Some(fault) = &self.integrity.fault {
            report.error("integrity descriptor", fault);
        }
        if !self.is_closed() {
            report.note("integrity descriptor", "the volume was not unmounted");
        }
        self.check_tree(&mut report)
    }
}

impl UdfVolume {
    /// Compares the descriptors of a metadata file with its mirror. Free blocks may differ.
    fn compare_mirror(
        &self,
        name: &str,
        main: &[Run],
        mirror: &[Run],
        report: &mut Report<'_>,
    ) -> Result<()> {
        let blocks = &self.reader.blocks;
        for block in main.iter().flat_map(|run| run.range.clone()) {
            let places = [main, mirror].map(|runs| in_runs(runs, block, 1));
            let [Some((first, _)), Some((second, _))] = places else { continue };
            if first == second || report.is_full() {
                continue;
            }
            let mut copies = [Vec::new(), Vec::new()];
            for (copy, at) in copies.iter_mut().zip([first, second]) {
                copy.resize(packfs_core::usize_of(blocks.block_len.into()), 0);
                blocks.read(Place::at("metadata file", blocks.at(at)), copy)?;
            }
            let [main, mirror] = &copies;
            if main == mirror || !is_same_tag(main, mirror) {
                continue;
            }
            for (copy, at) in copies.iter().zip([first, second]) {
                let place = Place::at("metadata file", blocks.at(at));
                report.refused(name, verified(place, copy))?;
            }
        }
        Ok(())
    }
}

fn is_same_tag(first: &[u8], second: &[u8]) -> bool {
    let tags = (structure::<Tag>(first, 0), structure::<Tag>(second, 0));
    let (Some(first), Some(second)) = tags else { return false };
    let is_like = |one: Tag, other: Tag| {
        one.tag_ident.get() != 0
            && one.has_version()
            && other.has_left(&[one.tag_ident.get()], one.tag_location.get())
    };
    is_like(first, second) || is_like(second, first)
}

impl Walk<'_, '_> {
    fn root(&mut self) -> Result<()> {
        let volume = self.volume;
        self.hierarchy.meet_root(volume.root(), 1, volume.root());
        if let Some(entry) = self.report.refused("/", volume.reader.entry(volume.root))? {
            self.contents(&entry, 0, b"")?;
        }
        Ok(())
    }

    fn directory(&mut self, index: usize, dir: InodeId) -> Result<()> {
        let volume = self.volume;
        let mut names: HashSet<Vec<u8>> = HashSet::new();
        let (mut has_parent, mut dirs) = (false, 1_u64);
        let entry = volume.reader.entry(Addr::of(dir));
        let Some(entry) = self.report.refused(self.hierarchy.path(index), entry)? else { return Ok(()) };
        let listed = volume.reader.each_identifier(&entry, 0, &mut |identifier| {
            if identifier.has(PARENT) {
                has_parent = true;
                self.parent(index, dir, &identifier)?;
            } else if !identifier.has(DELETED) {
                dirs = dirs.plus(u64::from(identifier.has(DIRECTORY)));
                self.name(index, &identifier, &mut names)?;
            }
            Ok(if self.report.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        let path = self.hierarchy.path(index);
        if self.report.refused(&path, listed)?.is_none() {
            return Ok(());
        }
        if !has_parent {
            self.report.error(&path, "without an entry for its parent");
        }
        let found = u64::from(entry.head.file_link_count.get());
        if found != dirs {
            let fault = format_args!(
                "link count {found}, but it has {dirs} names, those in its directories among them"
            );
            self.report.note(&path, fault);
        }
        Ok(())
    }

    /// Reads named streams, which are hidden.
    fn streams(&mut self) -> Result<()> {
        let starts = std::mem::take(&mut self.streams).into_iter().map(|addr| (addr, true)).collect();
        let reader = &self.volume.reader;
        let read = self.volume.each_file(starts, &mut |entry, _| reader.places(entry).map(drop));
        self.report.refused("named streams", read).map(drop)
    }

    fn parent(&mut self, index: usize, dir: InodeId, identifier: &Identifier) -> Result<()> {
        let path = self.hierarchy.path(index);
        let wanted = self.hierarchy.parent(index).unwrap_or(dir);
        if let Some(found) = self.report.refused(&path, identifier.file())?
            && found.id() != wanted
        {
            let (found, wanted) = (found.block, Addr::of(wanted).block);
            self.report.error(&path, format_args!("its parent is at block {found}, {wanted} wanted"));
        }
        Ok(())
    }

    /// Checks an entry, and its file when it is met first.
    fn name(&mut self, index: usize, identifier: &Identifier, names: &mut HashSet<Vec<u8>>) -> Result<()> {
        let path = self.hierarchy.path(index);
        let Some(name) = self.report.refused(&path, identifier.shown())? else { return Ok(()) };
        let path = self.hierarchy.entry_path(index, &name);
        if !names.insert(name.clone()) {
            self.hierarchy.order_fault(index, &name, &name, self.report);
        }
        if identifier.has(HIDDEN) {
            self.unshown.hidden.add(|| path.to_string());
        }
        let Some(addr) = self.report.refused(&path, identifier.file())? else { return Ok(()) };
        let is_known = self.hierarchy.meet_again(addr.id(), index, &name, self.report).is_some();
        let entry = self.volume.reader.entry(addr);
        let Some(entry) = self.report.refused(&path, entry)? else { return Ok(()) };
        let Some(file_type) = self.report.refused(&path, entry.file_type())? else { return Ok(()) };
        let is_dir = file_type == FileType::Directory;
        // Every name has to say what the file is, not only the first.
        if is_dir != identifier.has(DIRECTORY) {
            self.report
                .error(&path, format_args!("is a {}, its directory entry says otherwise", file_type.word()));
        }
        if is_known {
            return Ok(());
        }
        let links = u32::from(entry.head.file_link_count.get());
        // Links of directories are counted by the listing.
        let links = if is_dir { 2 } else { links };
        self.hierarchy.meet(addr.id(), links, is_dir.then_some(addr.id()), index, &name);
        self.contents(&entry, index, &name)
    }

    fn contents(&mut self, entry: &FileEntry, index: usize, name: &[u8]) -> Result<()> {
        let path = self.hierarchy.entry_path(index, name);
        let block_len = u64::from(self.volume.reader.blocks.block_len);
        self.data.add(range_at(entry.place.at, block_len));
        if let Some(streams) = entry.streams {
            self.streams.push(streams);
            self.unshown.streams.add(|| path.to_string());
        }
        if entry.head.file_link_count.get() == 0 {
            self.report.error(&path, Corruption::Links { place: entry.place });
        }
        let file_type = entry.file_type()?;
        if file_type == FileType::Symlink {
            self.report.refused(&path, self.volume.reader.link_target(entry.clone()))?;
        }
        if let Some(places) = self.report.refused(&path, self.volume.reader.places(entry))? {
            self.data.extend(places.continued);
            self.data.extend(places.data);
        }
        Ok(())
    }
}
