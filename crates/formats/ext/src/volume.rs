//! The opened filesystem as a [`Volume`].

use crate::corruption::Corruption;
use crate::dir::{blocks_within, encrypted};
use crate::inode::{BLOCK_FIELD_AT, BLOCK_FIELD_LEN, ENCRYPTED, INLINE, RawInode};
use crate::reader::Reader;
use packfs_core::{Error, FileType, Image, Result, Xattrs, range_at, usize_of};
use packfs_format::{
    BlockCache, DirCursor, DirEntry, Extent, ExtentFrom, Extents, Facts, Finding, FormatInfo, Inode, InodeId,
    NameIndex, SpaceOwner, Volume,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Longest target of a symbolic link that Linux reads, in bytes.
const TARGET_LEN_MAX: u64 = 4095;
/// Bytes of answers about damaged directories that are kept.
const DAMAGE_MAX: usize = 1 << 20;

/// An opened ext2, ext3 or ext4 filesystem.
pub(crate) struct ExtVolume {
    pub(crate) reader: Reader,
    /// The image with the changes of its journal, if there are any.
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

    /// Reads the inode of a file or a link that is not encrypted.
    fn readable(&self, id: InodeId, file_type: FileType, wanted: &'static str) -> Result<RawInode> {
        let raw = self.reader.named_inode(id.0)?;
        if raw.file_type() != Some(file_type) {
            return Err(Corruption::Kind { inode: raw.number, wanted }.into());
        }
        match raw.has(ENCRYPTED) {
            true => Err(encrypted(raw.number, &format!("{wanted}, its contents"))),
            false => Ok(raw),
        }
    }

    /// Returns the places of inline data of `len` bytes: in the inode, and in an attribute of it.
    fn inline_places(&self, raw: &RawInode, len: u64) -> Result<Vec<Range<u64>>> {
        let field = range_at(raw.offset.saturating_add(BLOCK_FIELD_AT as u64), BLOCK_FIELD_LEN as u64);
        let value = self.reader.inline_value(raw)?.unwrap_or_default();
        let value = range_at(raw.offset.saturating_add(value.start as u64), value.len() as u64);
        let behind = len.saturating_sub(BLOCK_FIELD_LEN as u64);
        let stored = value.end.saturating_sub(value.start);
        if behind > stored {
            let max = stored.saturating_add(BLOCK_FIELD_LEN as u64);
            return Err(Corruption::Inline { inode: raw.number, found: len, max }.into());
        }
        let head = field.start..field.end.min(field.start.saturating_add(len));
        let tail = value.start..value.start.saturating_add(behind);
        Ok(vec![head, tail])
    }

    fn inline_extents(&self, raw: &RawInode, len: u64, extents: &mut Extents<'_>) -> Result<()> {
        let mut offset = 0_u64;
        for place in self.inline_places(raw, len)? {
            let len = place.end.saturating_sub(place.start);
            if len > 0
                && extents.push(Extent { offset, len, from: ExtentFrom::Stored(place.start) }).is_break()
            {
                break;
            }
            offset = offset.saturating_add(len);
        }
        Ok(())
    }

    fn mapped_extents(&self, raw: &RawInode, len: u64, extents: &mut Extents<'_>) -> Result<()> {
        let block_len = self.reader.super_block.block_len;
        let wanted = extents.range();
        let blocks = packfs_core::blocks_of(&wanted, block_len);
        let mut at = wanted.start;
        let mut is_over = false;
        self.reader.runs(raw, blocks, &mut |run| {
            let range = range_at(run.first.saturating_mul(block_len), run.count.saturating_mul(block_len));
            let range = range.start..range.end.min(len);
            if range.is_empty() {
                return ControlFlow::Continue(());
            }
            is_over = extents.push(hole(at..range.start)).is_break();
            let from = match run.is_written {
                true => ExtentFrom::Stored(self.reader.super_block.offset(run.block)),
                false => ExtentFrom::Hole,
            };
            let extent = Extent { offset: range.start, len: packfs_core::len_of(&range), from };
            at = at.max(range.end);
            is_over = is_over || extents.push(extent).is_break();
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !is_over {
            let _ = extents.push(hole(at..wanted.end));
        }
        Ok(())
    }

    /// Reads a link target from blocks.
    fn target_in_blocks(&self, raw: &RawInode, len: u64) -> Result<Vec<u8>> {
        let block_len = self.reader.super_block.block_len;
        let end = len.div_ceil(block_len);
        let mut places = Vec::new();
        self.reader.runs(raw, 0..end, &mut |run| {
            places.extend(blocks_within(run, 0, end));
            ControlFlow::Continue(())
        })?;
        let mut target = vec![0; usize_of(end.saturating_mul(block_len))];
        for (number, block) in places {
            let at = usize_of(number.saturating_mul(block_len));
            let part = target.get_mut(at..).unwrap_or_default();
            let part = part.get_mut(..usize_of(block_len)).unwrap_or_default();
            self.reader.image.read_exact_at(self.reader.super_block.offset(block), part)?;
        }
        target.truncate(usize_of(len));
        Ok(target)
    }

    /// Reads the target of a link.
    pub(crate) fn target(&self, raw: &RawInode) -> Result<Vec<u8>> {
        let inode = raw.number;
        let len = raw.len(&self.reader.super_block);
        if !(1..=TARGET_LEN_MAX).contains(&len) {
            return Err(Corruption::TargetLength { inode, found: len, max: TARGET_LEN_MAX }.into());
        }
        let target = if raw.has(INLINE) {
            let mut target = vec![0; usize_of(len)];
            let mut rest = &mut *target;
            for place in self.inline_places(raw, len)? {
                let (part, behind) =
                    rest.split_at_mut_checked(usize_of(packfs_core::len_of(&place))).unwrap_or_default();
                self.reader.image.read_exact_at(place.start, part)?;
                rest = behind;
            }
            target
        } else if raw.has_target(&self.reader.super_block) {
            raw.block_field().get(..usize_of(len)).unwrap_or_default().to_vec()
        } else {
            self.target_in_blocks(raw, len)?
        };
        if target.contains(&0) { Err(Corruption::TargetNul { inode }.into()) } else { Ok(target) }
    }
}

/// A hole, or nothing where the range is empty.
fn hole(range: Range<u64>) -> Extent {
    Extent { offset: range.start, len: packfs_core::len_of(&range), from: ExtentFrom::Hole }
}

impl Volume for ExtVolume {
    fn format(&self) -> &'static FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        InodeId(u64::from(crate::disk::ROOT))
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        self.reader.inode_of(&self.reader.named_inode(id.0)?)
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        let raw = self.reader.dir(dir.0)?;
        let found = self.names.find(dir, name, |put| {
            let listed = self.reader.each_entry(&raw, DirCursor(0), &mut |entry, _| {
                put(&entry.name, entry.id);
                ControlFlow::Continue(())
            });
            // Entries beside the damage are found; a name that is missed is an error.
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

    /// Linux refuses such an image.
    fn fault(&self) -> Option<Error> {
        let sum = self.reader.sums.super_block(&self.reader.super_block.raw)?;
        let error = Error::from(Corruption::SuperSum { found: sum.found, wanted: sum.wanted });
        Some(error.hint("--ignore-checksum reads it anyway"))
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
        match raw.has(INLINE) {
            true => self.inline_extents(&raw, len, &mut extents)?,
            false => self.mapped_extents(&raw, len, &mut extents)?,
        }
        extents.finish();
        Ok(())
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.replayed.clone()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn image_len(&self) -> Option<u64> {
        let super_block = &self.reader.super_block;
        Some(super_block.offset(super_block.block_count).min(self.reader.image.len()))
    }

    fn inode_count_hint(&self) -> u64 {
        let free = crate::bytes::le32(&self.reader.super_block.raw, 0x10);
        u64::from(self.reader.super_block.inode_count.saturating_sub(free))
    }

    fn made_at(&self) -> Option<i64> {
        self.time_made()
    }

    fn facts(&self) -> Result<Facts> {
        Ok(self.all_facts())
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        self.space_map()
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.check_all(found)
    }
}
