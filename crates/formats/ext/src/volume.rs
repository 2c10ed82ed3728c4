//! The opened filesystem as a [`Volume`].

use crate::corruption::Corruption;
use crate::dir::{blocks_within, encrypted};
use crate::inode::{BLOCK_FIELD_AT, BLOCK_FIELD_LEN, ENCRYPTED, INLINE, RawInode};
use crate::reader::Reader;
use packfs_core::{Error, FileType, Image, Result, Xattrs, range_at, usize_of};
use packfs_format::{
    BlockCache, DirCursor, DirEntry, Directories, Extent, Extents, Facts, FormatInfo, Health, Inode, InodeId,
    NameIndex, Volume, units::*,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Longest target of a symbolic link that Linux reads.
const TARGET_LEN_MAX: u64 = 4095;
/// Memory of the cache of errors of directories.
const DAMAGE_MAX: usize = 1 << 20;

pub(crate) struct ExtVolume {
    pub(crate) reader: Reader,
    /// The image with the changes of its journal, if it has any.
    pub(crate) replayed: Option<Arc<dyn Image>>,
    pub(crate) warnings: Vec<String>,
    pub(crate) names: NameIndex,
    /// Errors of directories in which a name was not found.
    pub(crate) damage: BlockCache<Option<Error>>,
}

impl ExtVolume {
    pub(crate) fn new(reader: Reader, replayed: Option<Arc<dyn Image>>, warnings: Vec<String>) -> Self {
        let (names, damage) = (NameIndex::new(), BlockCache::new(DAMAGE_MAX));
        ExtVolume { reader, replayed, warnings, names, damage }
    }

    fn readable(&self, id: InodeId, file_type: FileType, wanted: &'static str) -> Result<RawInode> {
        let raw = self.reader.named_inode(id.0)?;
        if raw.file_type() != Some(file_type) {
            return Err(Corruption::Kind { inode: raw.number, wanted }.into());
        }
        if raw.has(ENCRYPTED) {
            Err(encrypted(raw.number, &format!("{wanted}, its contents")))
        } else {
            Ok(raw)
        }
    }

    /// Returns the image ranges of inline data: in the inode, and in one of its attributes.
    fn inline_places(&self, raw: &RawInode, len: u64) -> Result<Vec<Range<u64>>> {
        let field = range_at(raw.offset.plus(BLOCK_FIELD_AT as u64), BLOCK_FIELD_LEN as u64);
        let value = self.reader.inline_value(raw)?.unwrap_or_default();
        let value = range_at(raw.offset.plus(value.start as u64), value.len() as u64);
        let behind = left(len, BLOCK_FIELD_LEN as u64);
        let stored = value.end.minus(value.start);
        if behind > stored {
            let max = stored.plus(BLOCK_FIELD_LEN as u64);
            return Err(Corruption::Inline { inode: raw.number, found: len, max }.into());
        }
        let head = range_at(field.start, len.min(BLOCK_FIELD_LEN as u64));
        let tail = range_at(value.start, behind);
        Ok(vec![head, tail])
    }

    fn inline_extents(&self, raw: &RawInode, len: u64, extents: &mut Extents<'_>) -> Result<()> {
        let mut offset = 0_u64;
        for place in self.inline_places(raw, len)? {
            let end = offset.plus(packfs_core::len_of(&place));
            if extents.stored(offset..end, place.start).is_break() {
                break;
            }
            offset = end;
        }
        Ok(())
    }

    fn mapped_extents(&self, raw: &RawInode, len: u64, extents: &mut Extents<'_>) -> Result<()> {
        let block_len = self.reader.super_block.block_len;
        let wanted = extents.range();
        let blocks = packfs_core::blocks_of(&wanted, block_len);
        self.reader.runs(raw, blocks, &mut |run| {
            let range = range_at(run.first.times(block_len), run.count.times(block_len));
            let range = range.start..range.end.min(len);
            if range.is_empty() {
                return ControlFlow::Continue(());
            }
            extents.fill_to(range.start)?;
            if run.is_written {
                extents.stored(range, self.reader.super_block.offset(run.block))
            } else {
                extents.hole(range)
            }
        })?;
        let _ = extents.fill_to(wanted.end);
        Ok(())
    }

    fn target_in_blocks(&self, raw: &RawInode, len: u64) -> Result<Vec<u8>> {
        let block_len = self.reader.super_block.block_len;
        let end = len.div_ceil(block_len);
        let mut places = Vec::new();
        self.reader.runs(raw, 0..end, &mut |run| {
            places.extend(blocks_within(run, 0, end));
            ControlFlow::Continue(())
        })?;
        let mut target = vec![0; usize_of(end.times(block_len))];
        for (number, block) in places {
            let at = usize_of(number.times(block_len));
            let part = target.within_mut(at..at.plus(usize_of(block_len)));
            self.reader.image.read_exact_at(self.reader.super_block.offset(block), part)?;
        }
        target.truncate(usize_of(len));
        Ok(target)
    }

    pub(crate) fn target(&self, raw: &RawInode) -> Result<Vec<u8>> {
        let inode = raw.number;
        let len = raw.len(&self.reader.super_block);
        if !(1..=TARGET_LEN_MAX).contains(&len) {
            return Err(Corruption::TargetLength { inode, found: len, max: TARGET_LEN_MAX }.into());
        }
        let target = if raw.has(INLINE) {
            let mut target = Vec::new();
            for place in self.inline_places(raw, len)? {
                let mut part = vec![0; usize_of(packfs_core::len_of(&place))];
                self.reader.image.read_exact_at(place.start, &mut part)?;
                target.extend(part);
            }
            target
        } else if raw.has_target(&self.reader.super_block) {
            raw.block_field().within(..usize_of(len)).to_vec()
        } else {
            self.target_in_blocks(raw, len)?
        };
        if target.contains(&0) { Err(Corruption::TargetNul { inode }.into()) } else { Ok(target) }
    }
}

impl Volume for ExtVolume {
    fn format(&self) -> &'static FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        InodeId(u64::from(crate::super_block::ROOT))
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        self.reader.inode_of(&self.reader.named_inode(id.0)?)
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.target(&self.readable(id, FileType::Symlink, "symbolic link")?)
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        self.reader.all_xattrs(&self.reader.named_inode(id.0)?)
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let raw = self.readable(id, FileType::File, "regular file")?;
        let len = raw.len(&self.reader.super_block);
        let range = range.start..range.end.min(len);
        if range.is_empty() {
            return Ok(());
        }
        let mut extents = Extents::new(range, visit);
        let walked = if raw.has(INLINE) {
            self.inline_extents(&raw, len, &mut extents)
        } else {
            self.mapped_extents(&raw, len, &mut extents)
        };
        extents.finish(walked)
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.replayed.clone()
    }

    fn image_len(&self) -> Option<u64> {
        let super_block = &self.reader.super_block;
        Some(super_block.offset(super_block.block_count).min(self.reader.image.len()))
    }

    fn inode_count_hint(&self) -> u64 {
        let free = self.reader.super_block.raw.s_free_inodes_count.get();
        u64::from(left(self.reader.super_block.inode_count, free))
    }

    fn made_at(&self) -> Option<i64> {
        self.time_made()
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.all_facts())
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}

impl Directories for ExtVolume {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        let raw = self.reader.dir(dir.0)?;
        let found = self.names.find(dir, name, |put| {
            let listed = self.reader.each_entry(&raw, DirCursor(0), &mut |entry, _| {
                put(&entry.name, entry.id);
                ControlFlow::Continue(())
            });
            // Entries in intact blocks are found; a missing name is an error.
            let error = listed.err();
            self.damage.get_or(dir.0, || Ok((error, 64)))?;
            Ok(())
        })?;
        if found.is_some() {
            return Ok(found);
        }
        let damage = self.damage.get_or(dir.0, || {
            let listed = self.reader.each_entry(&raw, DirCursor(0), &mut |_, _| ControlFlow::Continue(()));
            Ok((listed.err(), 64))
        })?;
        damage.as_ref().as_ref().map_or(Ok(None), |error| Err(error.clone()))
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        self.reader.each_entry(&self.reader.dir(dir.0)?, from, visit)
    }
}

impl Health for ExtVolume {
    /// Linux refuses such an image.
    fn fault(&self) -> Option<Error> {
        let sum = self.reader.sums.super_block(&self.reader.super_block.raw)?;
        let error = Error::from(Corruption::SuperSum { found: sum.found, wanted: sum.wanted });
        Some(error.hint("--ignore-checksum reads it anyway"))
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}
