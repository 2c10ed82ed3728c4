//! An extent of a file as its item describes it.

use crate::corruption::Corruption;
use crate::disk::{FileExtentHead, FileExtentItem};
use crate::tree::Item;
use packfs_codec::{Algorithm, BlockRef, DecodedLen};
use packfs_core::{Result, range_at, u32_of};
use packfs_format::{ExtentFrom, StoredExtent, units::*};
use std::ops::Range;

/// Offset of inline data in an item.
pub(crate) const INLINE_AT: usize = size_of::<FileExtentHead>();
/// Limit of a compressed extent, stored and decoded (`BTRFS_MAX_COMPRESSED`).
const COMPRESSED_LEN_MAX: u64 = 128 << 10;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In the item itself.
    Inline,
    /// In a data chunk, or a hole at address 0.
    Regular,
    /// Preallocated, not written: reads as zeros.
    Preallocated,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FileExtent {
    pub(crate) form: Form,
    pub(crate) algorithm: Option<Algorithm>,
    /// Offset in the file; `len` counts from it.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Logical address of the stored bytes; 0 for a hole.
    pub(crate) at: u64,
    pub(crate) stored_len: u64,
    /// Offset of the first byte within the decoded extent.
    pub(crate) start: u64,
    pub(crate) decoded_len: u64,
    /// Decoded length as stored, which old kernels wrote wrong.
    pub(crate) stated_len: u64,
}

impl FileExtent {
    pub(crate) fn read(item: &Item, sector_len: u64) -> Result<FileExtent> {
        let place = item.place();
        let head: FileExtentHead = item.head()?;
        let figure = |figure, found, allowed| {
            Err(packfs_core::Error::from(Corruption::Figure { place, figure, found, allowed }))
        };
        let algorithm = match head.compression {
            0 => None,
            1 => Some(Algorithm::BtrfsZlib),
            2 => Some(Algorithm::BtrfsLzo),
            3 => Some(Algorithm::BtrfsZstd),
            found => return figure("compression", found.into(), "0 to 3"),
        };
        if head.encryption != 0 || head.other_encoding.get() != 0 {
            return figure("encryption", head.encryption.into(), "0");
        }
        let ram_len = head.ram_bytes.get();
        let form = match head.extent_type {
            0 => return FileExtent::inline(item, algorithm, ram_len, sector_len),
            1 => Form::Regular,
            2 => Form::Preallocated,
            found => return figure("type", found.into(), "0 to 2"),
        };
        let raw: FileExtentItem = item.head()?;
        let extent = FileExtent {
            form,
            algorithm,
            offset: item.key.offset,
            len: raw.num_bytes.get(),
            at: raw.disk_bytenr.get(),
            stored_len: raw.disk_num_bytes.get(),
            start: raw.offset.get(),
            decoded_len: if algorithm.is_some() { ram_len } else { raw.disk_num_bytes.get() },
            stated_len: ram_len,
        };
        let is_aligned = |value: u64| value.is_multiple_of(sector_len);
        if !is_aligned(extent.offset) || extent.offset.checked_add(extent.len).is_none() {
            return figure("position", extent.offset, "multiples of the sector size");
        }
        if extent.len == 0 || !is_aligned(extent.len) {
            return figure("length", extent.len, "multiples of the sector size");
        }
        if extent.at == 0 {
            return Ok(extent);
        }
        if !is_aligned(extent.at) || !is_aligned(extent.stored_len) || extent.stored_len == 0 {
            return figure("address", extent.at, "multiples of the sector size");
        }
        if extent.start.checked_add(extent.len).is_none_or(|end| end > extent.decoded_len) {
            return figure("start in the extent", extent.start, "such that it ends in it");
        }
        if algorithm.is_some() && extent.stored_len.max(extent.decoded_len) > COMPRESSED_LEN_MAX {
            let longer = extent.stored_len.max(extent.decoded_len);
            return figure("length of a compressed extent", longer, "up to 131072");
        }
        Ok(extent)
    }

    fn inline(
        item: &Item,
        algorithm: Option<Algorithm>,
        ram_len: u64,
        sector_len: u64,
    ) -> Result<FileExtent> {
        let place = item.place();
        let stored_len = item.bytes().len().minus(INLINE_AT) as u64;
        // Old kernels wrote wrong lengths of uncompressed inline data.
        let decoded_len = if algorithm.is_some() { ram_len } else { stored_len };
        if item.key.offset != 0 {
            let figure = "position of inline data";
            let found = item.key.offset;
            return Err(Corruption::Figure { place, figure, found, allowed: "0" }.into());
        }
        if algorithm.is_some() && decoded_len > sector_len {
            let figure = "length of inline data";
            let found = decoded_len;
            return Err(Corruption::Figure { place, figure, found, allowed: "up to a sector" }.into());
        }
        Ok(FileExtent {
            form: Form::Inline,
            algorithm,
            offset: 0,
            len: decoded_len,
            at: item.origin().map_or(0, |origin| origin.at).plus(INLINE_AT as u64),
            stored_len,
            start: 0,
            decoded_len,
            stated_len: ram_len,
        })
    }

    pub(crate) fn range(&self) -> Range<u64> {
        range_at(self.offset, self.len)
    }

    /// Returns its lengths as `compsize` counts them; `None` for a hole.
    pub(crate) fn stored(&self) -> Option<StoredExtent> {
        let codec = match (self.form, self.algorithm) {
            (Form::Preallocated, _) => "prealloc",
            (_, None) => "none",
            (_, Some(Algorithm::BtrfsZlib)) => "zlib",
            (_, Some(Algorithm::BtrfsLzo)) => "lzo",
            (_, Some(_)) => "zstd",
        };
        let is_inline = self.form == Form::Inline;
        (self.at != 0).then(|| StoredExtent {
            codec,
            place: (!is_inline).then_some(self.at),
            stored_len: self.stored_len,
            decoded_len: self.stated_len,
            used_len: if is_inline { self.stated_len } else { self.len },
        })
    }

    /// Returns the addresses of the stored bytes of a part; empty for inline data and holes.
    pub(crate) fn stored_range(&self, part: &Range<u64>) -> Range<u64> {
        if self.at == 0 || self.form != Form::Regular {
            return 0..0;
        }
        if self.algorithm.is_some() {
            return range_at(self.at, self.stored_len);
        }
        let part = part.start.max(self.offset)..part.end.min(self.range().end);
        let skipped = end_of(self.start, left(part.start, self.offset));
        range_at(end_of(self.at, skipped), left(part.end, part.start))
    }

    pub(crate) fn from(&self) -> ExtentFrom {
        match (self.form, self.algorithm) {
            (Form::Preallocated, _) => ExtentFrom::Hole,
            _ if self.at == 0 => ExtentFrom::Hole,
            (_, None) => ExtentFrom::Stored(end_of(self.at, self.start)),
            (_, Some(algorithm)) => ExtentFrom::Block {
                block: BlockRef {
                    offset: self.at,
                    stored_len: u32_of(self.stored_len),
                    decoded_len: u32_of(self.decoded_len),
                    decodes_to: DecodedLen::Exactly,
                    zero_padded: false,
                    algorithm: Some(algorithm),
                },
                start: u32_of(self.start),
            },
        }
    }
}
