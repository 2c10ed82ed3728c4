//! Contents of files and targets: block pointers converted to blocks and extents.
//!
//! Owns the reading of block pointers, plain and extended. Invariant: every returned range is in
//! the image after its superblock. Never keeps more pointers than a few pages, and reads no data.

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::inode::{RawInode, not_a};
use crate::open::Pointers;
use crate::volume::CramfsVolume;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{FileType, Result, blocks_of, len_of, parts_of, range_at, u32_of, usize_of};
use packfs_format::{Extent, ExtentFrom, Extents, InodeId, units::*};
use std::ops::{ControlFlow, Range};

const POINTERS_PART: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredAs {
    /// Not stored: zeros.
    Hole,
    /// Uncompressed; missing bytes are zeros.
    Plain,
    Compressed(Algorithm),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) index: u64,
    pub(crate) at: u64,
    pub(crate) len: u32,
    /// Number of the file's bytes in it.
    pub(crate) decoded_len: u32,
    pub(crate) stored_as: StoredAs,
    /// Set if its pointer contains its start.
    pub(crate) is_direct: bool,
}

impl Block {
    pub(crate) fn stored(&self) -> Range<u64> {
        range_at(self.at, self.len.into())
    }
}

impl CramfsVolume {
    pub(crate) fn file_extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let inode = self.raw_inode(id)?;
        if inode.file_type != FileType::File {
            return Err(not_a("file", &inode));
        }
        let range = range.start..range.end.min(inode.raw.size.into());
        if range.is_empty() {
            return Ok(());
        }
        let block_len = u64::from(self.geometry.block_len);
        let blocks = blocks_of(&range, block_len);
        let mut extents = Extents::new(range, visit);
        let walked = self.each_block(&inode, blocks, &mut |block| push(&mut extents, &block, block_len));
        extents.finish(walked.map(drop))
    }

    /// Calls `visit` for blocks of a file or a target.
    pub(crate) fn each_block(
        &self,
        inode: &RawInode,
        blocks: Range<u64>,
        visit: &mut dyn FnMut(Block) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let geometry = &self.geometry;
        // The previous pointer contains the start of a block.
        let first = left(blocks.start, 1);
        let mut start = inode.pointers(geometry).end;
        for part in parts_of(first..blocks.end.min(inode.block_count(geometry)), POINTERS_PART) {
            let mut pointers = vec![[0; POINTER_LEN as usize]; usize_of(len_of(&part))];
            self.image.read_exact_at(inode.pointer_at(part.start), pointers.as_flattened_mut())?;
            for (index, pointer) in part.zip(pointers) {
                let pointer = geometry.order.word(pointer);
                let place = Place { what: "block pointer", at: inode.pointer_at(index) };
                if index >= blocks.start {
                    let passed = index.times(geometry.block_len.into());
                    let left = u64::from(inode.raw.size).minus(passed);
                    let decoded_len = u32_of(left).min(geometry.block_len);
                    let block = self.block(Wanted { index, decoded_len, place, start }, pointer)?;
                    if visit(block).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                start = self.end_of(pointer, place)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the end of a pointer's block, where the next block starts unless its own pointer is
    /// direct.
    fn end_of(&self, pointer: u32, place: Place) -> Result<u64> {
        if self.geometry.pointers == Pointers::Plain {
            return Ok(pointer.into());
        }
        if pointer & CRAMFS_BLK_FLAG_DIRECT_PTR == 0 {
            return Ok((pointer & POINTER_MASK).into());
        }
        let start = direct_start(pointer);
        if pointer & CRAMFS_BLK_FLAG_UNCOMPRESSED != 0 {
            return Ok(start.plus(self.geometry.block_len.into()));
        }
        let len = self.direct_len(start, place)?;
        Ok(start.plus(DIRECT_HEADER_LEN).plus(len.into()))
    }

    /// Reads the length before a compressed block with a direct pointer.
    fn direct_len(&self, at: u64, place: Place) -> Result<u16> {
        self.check_data(at, DIRECT_HEADER_LEN, place)?;
        let mut bytes = [0; usize_of(DIRECT_HEADER_LEN)];
        self.image.read_exact_at(at, &mut bytes)?;
        Ok(self.geometry.order.half(bytes))
    }

    fn block(&self, wanted: Wanted, pointer: u32) -> Result<Block> {
        let geometry = &self.geometry;
        let Wanted { index, decoded_len, place, start } = wanted;
        let block_len = u64::from(geometry.block_len);
        let extended = geometry.pointers == Pointers::Extended;
        let is_direct = extended && pointer & CRAMFS_BLK_FLAG_DIRECT_PTR != 0;
        let is_plain =
            geometry.algorithm.is_none() || extended && pointer & CRAMFS_BLK_FLAG_UNCOMPRESSED != 0;
        let (at, len) = if is_direct {
            let start = direct_start(pointer);
            // Linux treats a last block that fills a page as a hole; its bytes are stored.
            if is_plain {
                (start, u64::from(decoded_len))
            } else {
                (start.plus(DIRECT_HEADER_LEN), u64::from(self.direct_len(start, place)?))
            }
        } else {
            let end = u64::from(if extended { pointer & POINTER_MASK } else { pointer });
            let len = end.checked_sub(start).ok_or(Corruption::PointerOrder { place, found: end, start })?;
            (start, len)
        };
        let max = if is_plain { block_len } else { 2 * block_len };
        let Some(len) = u32::try_from(len).ok().filter(|_| len <= max) else {
            return Err(Corruption::BlockLength { place, found: len, max }.into());
        };
        let stored_as = match geometry.algorithm {
            _ if len == 0 => StoredAs::Hole,
            Some(algorithm) if !is_plain => StoredAs::Compressed(algorithm),
            _ => StoredAs::Plain,
        };
        if stored_as != StoredAs::Hole {
            self.check_data(at, len.into(), place)?;
        }
        Ok(Block { index, at, len, decoded_len, stored_as, is_direct })
    }

    /// Errors: data outside the data area.
    fn check_data(&self, start: u64, len: u64, place: Place) -> Result<()> {
        let (min, end) = (self.geometry.start(), self.geometry.end);
        if start < min || range_at(start, len).end > end {
            return Err(Corruption::DataRange { place, start, len, min, end }.into());
        }
        Ok(())
    }
}

/// A block whose pointer was read.
struct Wanted {
    index: u64,
    decoded_len: u32,
    place: Place,
    /// Start of the block unless its pointer is direct.
    start: u64,
}

fn direct_start(pointer: u32) -> u64 {
    u64::from(pointer & POINTER_MASK) << CRAMFS_BLK_DIRECT_PTR_SHIFT
}

fn push(extents: &mut Extents<'_>, block: &Block, block_len: u64) -> ControlFlow<()> {
    let offset = block.index.times(block_len);
    let len = u64::from(block.decoded_len);
    match block.stored_as {
        StoredAs::Hole => extents.hole(range_at(offset, len)),
        StoredAs::Plain => {
            extents.stored(range_at(offset, u64::from(block.len).min(len)), block.at)?;
            extents.fill_to(offset.plus(len))
        }
        StoredAs::Compressed(algorithm) => {
            let block = BlockRef {
                offset: block.at,
                stored_len: block.len,
                decoded_len: block.decoded_len,
                decodes_to: DecodedLen::Exactly,
                zero_padded: false,
                algorithm: Some(algorithm),
            };
            extents.push(Extent { offset, len, from: ExtentFrom::Block { block, start: 0 } })
        }
    }
}
