//! The opened image as a [`Volume`].

use crate::descriptors::{Anchor, Integrity, Logical};
use crate::disk::{FileSetDesc, PartitionDesc, PrimaryVolDesc};
use crate::entry::FileEntry;
use crate::maps::{Addr, Reader};
use crate::recognition::Recognition;
use packfs_core::{FileType, Result};
use packfs_format::{
    DirCursor, DirEntry, Directories, Extent, Extents, Facts, FormatInfo, Health, Inode, InodeId, NameIndex,
    Volume, units::*,
};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};

/// Things that were read and are not shown.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    hidden: AtomicBool,
    streams: AtomicBool,
}

pub(crate) struct UdfVolume {
    pub(crate) reader: Reader,
    pub(crate) recognition: Recognition,
    pub(crate) anchors: Vec<Anchor>,
    pub(crate) primary: PrimaryVolDesc,
    pub(crate) logical: Logical,
    pub(crate) partitions: Vec<PartitionDesc>,
    pub(crate) integrity: Integrity,
    pub(crate) file_set: FileSetDesc,
    pub(crate) file_set_at: u64,
    pub(crate) root: Addr,
    pub(crate) warnings: Vec<String>,
    pub(crate) seen: Seen,
    pub(crate) names: NameIndex,
}

impl UdfVolume {
    fn dir(&self, id: InodeId) -> Result<FileEntry> {
        self.reader.entry(Addr::of(id))?.wanted(FileType::Directory)
    }

    /// End of the last structure that descriptors refer to, in bytes.
    pub(crate) fn end(&self) -> u64 {
        let blocks = &self.reader.blocks;
        let partitions = self.reader.maps.iter().filter_map(|map| map.blocks());
        let ends = partitions.map(|range| blocks.at(range.end));
        let anchors = self.anchors.iter().map(|(at, _)| at.plus(blocks.block_len.into()));
        let sequences = self.anchors.iter().flat_map(|(_, anchor)| {
            [anchor.main_vol_desc_seq_ext, anchor.reserve_vol_desc_seq_ext].map(|extent| {
                blocks.at(extent.ext_location.get().into()).plus(extent.ext_length.get().into())
            })
        });
        ends.chain(anchors).chain(sequences).max().unwrap_or(0)
    }
}

impl Volume for UdfVolume {
    fn format(&self) -> &'static FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        self.root.id()
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let (inode, has_streams) = self.reader.inode(id)?;
        if has_streams {
            self.seen.streams.store(true, Ordering::Relaxed);
        }
        Ok(inode)
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.reader.link_target(self.reader.entry(Addr::of(id))?)
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let entry = self.reader.entry(Addr::of(id))?.wanted(FileType::File)?;
        let end = range.end.min(entry.len());
        if range.start >= end {
            return Ok(());
        }
        let mut extents = Extents::new(range.start..end, visit);
        let walked = self.reader.each_extent(&entry, &mut |_| {}, &mut |extent| {
            let is_over = extent.offset >= end || extents.push(extent).is_break();
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        extents.finish(walked)
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.end().min(self.reader.blocks.image.len()))
    }

    /// Counts of the integrity descriptor, or a bound by the size.
    fn inode_count_hint(&self) -> u64 {
        let counts = self.integrity.counts;
        let counts =
            counts.map(|counts| u64::from(counts.num_files.get()).plus(counts.num_dirs.get().into()));
        counts.unwrap_or(u64::MAX).min(self.reader.blocks.count())
    }

    fn made_at(&self) -> Option<i64> {
        Some(self.primary.recording_date_and_time.time().seconds)
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.image_facts())
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}

impl Directories for UdfVolume {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        self.names.find(dir, name, |put| {
            self.read_dir(dir, DirCursor(0), &mut |entry, _| {
                put(&entry.name, entry.id);
                ControlFlow::Continue(())
            })
        })
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        if self.reader.each_entry(&self.dir(dir)?, from, visit)? {
            self.seen.hidden.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Health for UdfVolume {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn remarks(&self) -> Vec<String> {
        let rows = [
            (&self.seen.hidden, "hidden files are not shown, as Linux does; check names them"),
            (&self.reader.has_used_mirror, "a damaged block of the metadata file was read from its mirror"),
            (&self.seen.streams, "named streams of files are not shown, as Linux does; check names them"),
        ];
        let seen = rows.iter().filter(|(seen, _)| seen.load(Ordering::Relaxed));
        seen.map(|(_, remark)| (*remark).to_owned()).collect()
    }
}
