//! Contents of files and targets: block pointers turned into blocks and extents.
//!
//! Owns the reading of block pointers, plain and extended. Invariant: every range handed out lies
//! in the image after its superblock. Never holds more pointers than a few pages, and reads no
//! data.

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::inode::{RawInode, not_a};
use crate::open::Pointers;
use crate::volume::CramfsVolume;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{FileType, Result, usize_of};
use packfs_format::{Extent, ExtentFrom, Extents, InodeId};
use std::ops::{ControlFlow, Range};

/// Pointers that are read at once.
const POINTERS_PART: u32 = 4096;

/// Storage of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredAs {
    /// Not at all: zeros.
    Hole,
    /// Uncompressed; missing bytes are zeros.
    Plain,
    Compressed(Algorithm),
}

/// A block of a file or a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its number in the file.
    pub(crate) index: u32,
    /// Offset of its stored bytes.
    pub(crate) at: u64,
    /// Number of stored bytes.
    pub(crate) len: u32,
    /// Number of the file's bytes in it.
    pub(crate) decoded_len: u32,
    pub(crate) stored_as: StoredAs,
    /// Set if its pointer contains its start.
    pub(crate) is_direct: bool,
}

impl CramfsVolume {
    /// The extents of a file that cover `range`; see [`packfs_format::Volume::extents`].
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
        let index = |block: u64| u32::try_from(block).unwrap_or(u32::MAX);
        let blocks = index(range.start / block_len)..index(range.end.div_ceil(block_len));
        let mut extents = Extents::new(range, visit);
        let _ = self.each_block(&inode, blocks, &mut |block| push(&mut extents, &block, block_len))?;
        extents.finish();
        Ok(())
    }

    /// Calls `visit` for these blocks of a file or a target.
    pub(crate) fn each_block(
        &self,
        inode: &RawInode,
        blocks: Range<u32>,
        visit: &mut dyn FnMut(Block) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let geometry = &self.geometry;
        let first_at = u64::from(inode.raw.offset);
        let blocks = blocks.start..blocks.end.min(inode.block_count(geometry));
        // The pointer before says where a block starts.
        let mut next = blocks.start.saturating_sub(1);
        let mut start = first_at + inode.pointers_len(geometry);
        while next < blocks.end {
            let count = (blocks.end - next).min(POINTERS_PART);
            let mut bytes = vec![0; (count * POINTER_LEN) as usize];
            self.image.read_exact_at(first_at + u64::from(next * POINTER_LEN), &mut bytes)?;
            for (index, at) in (next..next + count).zip((0..).step_by(POINTER_LEN as usize)) {
                let pointer = word_at(geometry.order, &bytes, at);
                let place = Place { what: "block pointer", at: first_at + u64::from(index * POINTER_LEN) };
                if index >= blocks.start {
                    let left = inode.raw.size - index * geometry.block_len;
                    let decoded_len = left.min(geometry.block_len);
                    let block = self.block(Wanted { index, decoded_len, place, start }, pointer)?;
                    if visit(block).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                start = self.end_of(pointer, place)?;
            }
            next += count;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the end of a pointer's block, at which the next block starts unless its own pointer
    /// is direct.
    fn end_of(&self, pointer: u32, place: Place) -> Result<u64> {
        if self.geometry.pointers == Pointers::Plain {
            return Ok(pointer.into());
        }
        if pointer & CRAMFS_BLK_FLAG_DIRECT_PTR == 0 {
            return Ok((pointer & POINTER_MASK).into());
        }
        let start = direct_start(pointer);
        if pointer & CRAMFS_BLK_FLAG_UNCOMPRESSED != 0 {
            return Ok(start + u64::from(self.geometry.block_len));
        }
        let len = self.direct_len(start, place)?;
        Ok(start + DIRECT_HEADER_LEN + u64::from(len))
    }

    /// The length before a compressed block that is pointed to directly.
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
            // Linux takes a last block that fills a page for a hole; its bytes are there.
            if is_plain {
                (start, u64::from(decoded_len))
            } else {
                (start + DIRECT_HEADER_LEN, u64::from(self.direct_len(start, place)?))
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

    /// Checks that data lies where data may lie.
    fn check_data(&self, start: u64, len: u64, place: Place) -> Result<()> {
        let (min, end) = (self.geometry.start(), self.geometry.end);
        if start < min || start + len > end {
            return Err(Corruption::DataRange { place, start, len, min, end }.into());
        }
        Ok(())
    }
}

/// A block whose pointer was read.
struct Wanted {
    index: u32,
    decoded_len: u32,
    /// Place of the pointer.
    place: Place,
    /// Start of the block unless its pointer is direct.
    start: u64,
}

/// Returns the offset in a direct pointer.
fn direct_start(pointer: u32) -> u64 {
    u64::from(pointer & POINTER_MASK) << CRAMFS_BLK_DIRECT_PTR_SHIFT
}

/// Hands out a block as extents.
fn push(extents: &mut Extents<'_>, block: &Block, block_len: u64) -> ControlFlow<()> {
    let offset = u64::from(block.index) * block_len;
    let len = u64::from(block.decoded_len);
    match block.stored_as {
        StoredAs::Hole => extents.push(Extent { offset, len, from: ExtentFrom::Hole }),
        StoredAs::Plain => {
            let stored_len = u64::from(block.len).min(len);
            let stored = ExtentFrom::Stored(block.at);
            if extents.push(Extent { offset, len: stored_len, from: stored }).is_break() {
                return ControlFlow::Break(());
            }
            let (offset, len) = (offset + stored_len, len - stored_len);
            extents.push(Extent { offset, len, from: ExtentFrom::Hole })
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
