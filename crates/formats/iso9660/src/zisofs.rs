//! zisofs: files stored as separately compressed blocks, with a table of their starts.
//!
//! Owns the marks in records, the headers of files, and the block pointers (`zisofs_format.txt`,
//! `zisofs2_format.txt`). A block with the same start as the next one is all zeros. No block is
//! stored uncompressed: the rule for blocks of full length has been revoked.

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::sections::{Section, at_position, check_position, read_stored};
use crate::sectors::Sectors;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Error, Result, blocks_of, len_of, parts_of, usize_of};
use packfs_format::{Extent, ExtentFrom, Extents, filled, structure, units::*};
use std::mem::size_of;
use std::ops::ControlFlow;
use zerocopy::little_endian::{U32, U64};

/// Base-2 logarithms of block sizes. Linux accepts 15 to 17 of version 1, and libisofs up to 20 of
/// version 2.
pub(crate) const BLOCK_LOGS: std::ops::RangeInclusive<u8> = 15..=20;
const POINTERS_AT_ONCE: u64 = 1024;
/// Maximum excess of a stored block over twice its decoded length: enough for any encoder.
const GROWTH_MAX: u64 = 4096;

/// Description of a compressed file in its record (ZF, Z2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) version: u8,
    pub(crate) algorithm: [u8; 2],
    /// Length of the file's header in words of four bytes.
    pub(crate) header_words: u8,
    pub(crate) block_log: u8,
    pub(crate) len: u64,
}

impl Marked {
    /// `None` if the fields are too short.
    pub(crate) fn read(version: u8, fields: &[u8]) -> Option<Self> {
        let &[first, second, header_words, block_log, ref len @ ..] = fields.get(..12)? else { return None };
        let len = match version {
            ..=1 => u64::from(both32(len, 0)?),
            2.. => u64::from_le_bytes(*len.first_chunk()?),
        };
        Some(Marked { version, algorithm: [first, second], header_words, block_log, len })
    }

    /// Errors: `Unsupported` for unknown versions and codecs.
    pub(crate) fn algorithm(&self, place: Place) -> Result<Algorithm> {
        let unsupported = |what: &str| {
            Error::unsupported(
                "iso9660 image",
                format!("{place}: zisofs with {what}; zlib, xz and zstd are decoded"),
            )
        };
        Ok(match (self.version, &self.algorithm) {
            (1, b"pz") | (2, b"PZ") => Algorithm::Zlib,
            (2, b"XZ") => Algorithm::Xz,
            (2, b"ZD") => Algorithm::Zstd,
            (2, b"L4") => return Err(unsupported("frames of lz4")),
            (2, b"B2") => return Err(unsupported("bzip2")),
            (version, algorithm) => {
                let algorithm = packfs_core::escaped(algorithm);
                return Err(unsupported(&format!("version {version} and algorithm \"{algorithm}\"")));
            }
        })
    }

    fn block_len(&self, place: Place) -> Result<u32, Corruption> {
        if BLOCK_LOGS.contains(&self.block_log) {
            Ok(1 << self.block_log)
        } else {
            Err(Corruption::ZisofsLog { place, found: self.block_log })
        }
    }

    fn pointer_len(&self) -> u64 {
        if self.version == 1 { 4 } else { 8 }
    }

    fn header_len(&self) -> u64 {
        u64::from(self.header_words) * 4
    }
}

/// A compressed file with a verified header.
pub(crate) struct Compressed<'a> {
    sectors: &'a Sectors,
    sections: &'a [Section],
    marked: Marked,
    place: Place,
    algorithm: Algorithm,
    block_len: u32,
    /// Stored length, including header and pointers.
    stored_len: u64,
}

impl<'a> Compressed<'a> {
    /// Opens a file that its record, at `place`, marks as compressed.
    pub(crate) fn open(
        sectors: &'a Sectors,
        sections: &'a [Section],
        marked: Marked,
        place: Place,
    ) -> Result<Self> {
        let algorithm = marked.algorithm(place)?;
        let block_len = marked.block_len(place)?;
        let stored_len = sections.iter().map(|section| section.len).sum();
        let file = Compressed { sectors, sections, marked, place, algorithm, block_len, stored_len };
        file.check_header()?;
        let table_end = file.table_end();
        if table_end.is_none_or(|end| end > stored_len) {
            return Err(Corruption::Zisofs {
                place,
                fault: "zisofs: the table of block pointers is longer than the file",
            }
            .into());
        }
        Ok(file)
    }

    pub(crate) fn block_count(&self) -> u64 {
        self.marked.len.div_ceil(u64::from(self.block_len))
    }

    fn table_end(&self) -> Option<u64> {
        let pointers = self.block_count().checked_add(1)?;
        pointers.checked_mul(self.marked.pointer_len())?.checked_add(self.marked.header_len())
    }

    /// Compares the header of the file with its record.
    fn check_header(&self) -> Result<()> {
        let (place, marked) = (self.place, &self.marked);
        let wrong = |fault| Err(Corruption::Zisofs { place, fault }.into());
        let (magic, header_words, block_log, len) = if marked.version == 1 {
            let header: ZisofsHeader1 =
                filled(|bytes| read_stored(self.sectors, self.sections, 0, bytes, place))?;
            (header.magic == ZISOFS_MAGIC_1, header.header_words, header.block_log, header.len.get().into())
        } else {
            let header: ZisofsHeader2 =
                filled(|bytes| read_stored(self.sectors, self.sections, 0, bytes, place))?;
            (header.magic == ZISOFS_MAGIC_2, header.header_words, header.block_log, header.len.get())
        };
        let header_len_min =
            if marked.version == 1 { size_of::<ZisofsHeader1>() } else { size_of::<ZisofsHeader2>() };
        if !magic {
            wrong("zisofs: the file does not begin with the magic of its version")
        } else if (header_words, block_log, len) != (marked.header_words, marked.block_log, marked.len) {
            wrong("zisofs: the file's header contradicts its record")
        } else if marked.header_len() < header_len_min as u64 {
            wrong("zisofs: the header is shorter than its fields")
        } else {
            Ok(())
        }
    }

    /// Calls `visit` for each block from `first` on, with its number and its range in the stored
    /// data, until it breaks.
    pub(crate) fn each_block(
        &self,
        first: u64,
        mut visit: impl FnMut(u64, std::ops::Range<u64>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let count = self.block_count();
        let max = u64::from(self.block_len).times(2).plus(GROWTH_MAX);
        let min = self.table_end().unwrap_or(0);
        let pointer_len = self.marked.pointer_len();
        // The pointer after that of a block is the block's end.
        let pointers = if first < count { first..count.plus(1) } else { 0..0 };
        let mut start: Option<u64> = None;
        let mut bytes = Vec::new();
        for part in parts_of(pointers, POINTERS_AT_ONCE) {
            bytes.resize(usize_of(len_of(&part).times(pointer_len)), 0);
            let position = self.marked.header_len().plus(part.start.times(pointer_len));
            read_stored(self.sectors, self.sections, position, &mut bytes, self.place)?;
            for (number, pointer) in part.zip(bytes.chunks_exact(usize_of(pointer_len))) {
                let wide = structure(pointer, 0).map(U64::get);
                let found =
                    wide.or(structure(pointer, 0).map(|narrow: U32| u64::from(narrow.get()))).unwrap_or(0);
                let (place, end) = (self.place, self.stored_len);
                let low = start.unwrap_or(min);
                if found < low || found > end {
                    let fault = Corruption::ZisofsPointer { place, index: number, found, min: low, end };
                    return Err(fault.into());
                }
                let Some(start) = start.replace(found) else { continue };
                let (index, stored) = (number.minus(1), start..found);
                let found = len_of(&stored);
                if found > max {
                    return Err(Corruption::ZisofsStored { place, index, found, max }.into());
                }
                if visit(index, stored)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes on the extents of the requested range.
    pub(crate) fn extents(&self, extents: &mut Extents<'_>) -> Result<()> {
        let block_len = u64::from(self.block_len);
        let range = extents.range();
        let _ = self.each_block(blocks_of(&range, block_len).start, |index, stored| {
            let offset = index.times(block_len);
            if offset >= range.end {
                return Ok(ControlFlow::Break(()));
            }
            let len = block_len.min(self.marked.len.minus(offset));
            let from = self.block_source(index, &stored, u32::try_from(len).unwrap_or(self.block_len))?;
            Ok(extents.push(Extent { offset, len, from }))
        })?;
        Ok(())
    }

    fn block_source(&self, index: u64, stored: &std::ops::Range<u64>, len: u32) -> Result<ExtentFrom> {
        if stored.is_empty() {
            return Ok(ExtentFrom::Hole);
        }
        let stored_len = len_of(stored);
        let Some((at, contiguous)) = at_position(self.sections, stored.start) else {
            return Err(check_position(self.place, stored.start, self.stored_len));
        };
        if contiguous < stored_len {
            let what =
                format!("{}: zisofs block {index} is in two extents that are not adjacent", self.place);
            return Err(Error::unsupported("iso9660 image", what));
        }
        let block = BlockRef {
            offset: at,
            stored_len: u32::try_from(stored_len).unwrap_or(u32::MAX),
            decoded_len: len,
            decodes_to: DecodedLen::Exactly,
            zero_padded: false,
            algorithm: Some(self.algorithm),
        };
        Ok(ExtentFrom::Block { block, start: 0 })
    }
}
