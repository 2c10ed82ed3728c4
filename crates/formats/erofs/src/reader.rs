//! The opened image: common state of all modules that read, and the address space of blocks.
//!
//! The metabox, if present, follows all files in the address space: reading there decodes it.
//! Invariant: the metabox's own inode and the packed inode are never in the metabox, so reading
//! does not recurse endlessly.

use crate::address::Joined;
use crate::corruption::{Corruption, Place};
use crate::decoded::DecodedBlocks;
use crate::disk::{EROFS_FEATURE_COMPAT_SB_CHKSUM, EROFS_SUPER_OFFSET};
use crate::open::Geometry;
use crate::raw::{LongPrefix, RawInode};
use crate::windows::Windows;
use packfs_codec::BlockRef;
use packfs_core::{Fetched, FileType, Image, Result, range_at, usize_of};
use packfs_format::{Extent, ExtentFrom, SortedDirs, crc32c, units::*};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug)]
pub(crate) struct Metabox {
    pub(crate) start: u64,
    pub(crate) inode: RawInode,
}

pub(crate) struct Reader {
    pub(crate) geometry: Geometry,
    pub(crate) joined: Joined,
    pub(crate) metabox: Option<Metabox>,
    pub(crate) packed: Option<RawInode>,
    pub(crate) prefixes: Vec<LongPrefix>,
    pub(crate) windows: Windows,
    pub(crate) decoded_blocks: DecodedBlocks,
    /// End of the last walk over short extent records: inode, index of the record, and data
    /// address.
    pub(crate) last_record: Mutex<(u64, u64, u64)>,
    pub(crate) sorted_dirs: SortedDirs,
    /// Reason why the superblock's checksum is not valid.
    pub(crate) checksum_fault: Option<Corruption>,
}

impl Reader {
    pub(crate) fn open(image: Arc<dyn Image>, devices: Vec<Arc<dyn Image>>) -> Result<Reader> {
        let geometry = Geometry::read(&*image)?;
        let joined = Joined::new(&geometry, image, devices)?;
        let mut reader = Reader {
            geometry,
            joined,
            metabox: None,
            packed: None,
            prefixes: Vec::new(),
            windows: Windows::default(),
            decoded_blocks: DecodedBlocks::default(),
            last_record: Mutex::default(),
            sorted_dirs: SortedDirs::default(),
            checksum_fault: None,
        };
        if reader.geometry.has_compat(EROFS_FEATURE_COMPAT_SB_CHKSUM) {
            reader.checksum_fault = reader.wrong_checksum()?;
        }
        if let Some(nid) = reader.geometry.packed_nid {
            reader.packed = Some(reader.special_inode(nid, "packed inode")?);
        }
        if let Some(nid) = reader.geometry.metabox_nid {
            let inode = reader.special_inode(nid, "metabox inode")?;
            let start = reader.joined.end();
            if start.checked_add(inode.size).is_none_or(|end| end > i64::MAX as u64) {
                return Err(inode.place.outside("the metabox", 0, inode.size, inode.size));
            }
            reader.metabox = Some(Metabox { start, inode });
        }
        reader.prefixes = reader.read_prefixes()?;
        Ok(reader)
    }

    /// The checksum covers the superblock's block from the superblock on, or the whole block if the
    /// first block ends before the superblock.
    fn wrong_checksum(&self) -> Result<Option<Corruption>> {
        let block_len = self.geometry.block_len();
        let after = block_len.checked_sub(EROFS_SUPER_OFFSET).filter(|&len| len > 0);
        let len = after.unwrap_or(block_len);
        let mut bytes = vec![0; usize_of(len)];
        let there = self.joined.read_at(EROFS_SUPER_OFFSET, &mut bytes)?;
        bytes.truncate(there);
        if let Some(checksum) = bytes.get_mut(4..8) {
            checksum.fill(0);
        }
        let found = self.geometry.super_block.checksum.get();
        let wanted = crc32c(!0, &bytes);
        Ok((found != wanted).then_some(Corruption::Checksum { found, wanted }))
    }

    fn special_inode(&self, nid: u64, what: &'static str) -> Result<RawInode> {
        let inode = self.raw_inode(nid)?;
        if inode.file_type != FileType::File {
            return Err(inode.place.of(what).fault("is no regular file"));
        }
        Ok(inode)
    }

    pub(crate) fn space_end(&self) -> u64 {
        match &self.metabox {
            Some(metabox) => end_of(metabox.start, metabox.inode.size),
            None => self.joined.end(),
        }
    }

    /// Reads from the address space; fewer bytes only at the end of files or the metabox.
    pub(crate) fn read_space(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let Some(metabox) = self.metabox.as_ref().filter(|metabox| offset >= metabox.start) else {
            return self.joined.read_at(offset, buf);
        };
        let from = offset.minus(metabox.start);
        let len = left(metabox.inode.size, from).min(buf.len() as u64);
        let buf = buf.within_mut(..usize_of(len));
        self.read_content(&metabox.inode, from, buf)?;
        Ok(buf.len())
    }

    pub(crate) fn decoded(&self, block: &BlockRef) -> Result<Arc<[u8]>> {
        self.decoded_blocks.decoded(block, |stored| self.read_space(block.offset, stored))
    }

    pub(crate) fn place(&self, what: &'static str, at: u64) -> Place {
        match self.metabox.as_ref().filter(|metabox| at >= metabox.start) {
            Some(metabox) => Place { what, at: at.minus(metabox.start), metabox: true },
            None => Place::at(what, at),
        }
    }

    /// Fills `out` from the contents of an inode, which is long enough: names, targets, other
    /// metadata, but no file data.
    pub(crate) fn read_content(&self, raw: &RawInode, offset: u64, out: &mut [u8]) -> Result<()> {
        let range = range_at(offset, out.len() as u64);
        let mut outcome = Ok(());
        let mut filled = 0;
        self.content(raw, range, &mut |extent| {
            let len = usize::try_from(extent.len).unwrap_or(usize::MAX);
            let part = out.get_mut(filled..).and_then(|rest| rest.get_mut(..len));
            filled = filled.plus(len);
            if let Some(part) = part {
                outcome = self.fill(&extent, part, raw.place);
            }
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if outcome.is_ok() && filled < out.len() {
            return Err(raw.place.outside("its contents", offset, out.len() as u64, raw.size));
        }
        outcome
    }

    fn fill(&self, extent: &Extent, part: &mut [u8], place: Place) -> Result<()> {
        match extent.from {
            ExtentFrom::Hole => part.fill(0),
            ExtentFrom::Stored(at) => return self.read_metadata(at, part, place),
            ExtentFrom::Block { block, start } => {
                let bytes = self.decoded(&block)?;
                let wanted = bytes.get(start as usize..).and_then(|rest| rest.get(..part.len()));
                part.copy_from_slice(
                    wanted.ok_or_else(|| place.fault("a block that is shorter than its contents"))?,
                );
            }
        }
        Ok(())
    }

    pub(crate) fn cut(raw: &RawInode, range: Range<u64>) -> Range<u64> {
        range.start.min(raw.size)..range.end.min(raw.size)
    }
}

/// The address space as an image; offsets of extents refer to it.
impl Image for Reader {
    fn len(&self) -> u64 {
        self.space_end()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        match &self.metabox {
            // A read that starts in the files may end in the metabox.
            Some(metabox) if offset < metabox.start && end_of(offset, buf.len() as u64) > metabox.start => {
                let len = usize_of(metabox.start.minus(offset));
                let (files, rest) = buf.split_at_mut(len.min(buf.len()));
                files.fill(0);
                self.joined.read_at(offset, files)?;
                Ok(files.len().plus(self.read_space(metabox.start, rest)?))
            }
            _ => self.read_space(offset, buf),
        }
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        self.joined.will_read(ranges);
    }

    fn fetched(&self) -> Option<Fetched> {
        self.joined.fetched()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.joined.check_unchanged()
    }

    fn name(&self) -> String {
        self.joined.name()
    }
}
