//! Extents of files: inline, regular, and reserved ones, and the holes between them.

use crate::bytes::Fields;
use crate::corruption::Corruption;
use crate::disk::kind;
use crate::key::Key;
use crate::tree::Item;
use crate::volume::{BtrfsVolume, Node};
use packfs_codec::{Algorithm, BlockRef, DecodedLen};
use packfs_core::{FileType, Result, len_of, range_at, u32_of};
use packfs_format::{Extent, ExtentFrom, Extents, StoredExtent};
use std::ops::{ControlFlow, Range};

/// Bytes of an extent before inline data.
pub(crate) const INLINE_AT: usize = 0x15;
/// Bytes of an extent elsewhere.
const EXTENT_LEN: usize = 0x35;
/// Most bytes of a compressed extent, stored and decoded.
const COMPRESSED_LEN_MAX: u64 = 128 << 10;
/// Longest target of a symbolic link that kernels read, in bytes.
const TARGET_LEN_MAX: usize = 4095;

/// Type of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In the item itself.
    Inline,
    /// In a data chunk, or a hole at address 0.
    Regular,
    /// Reserved, not written: reads as zeros.
    Reserved,
}

/// An extent of a file, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileExtent {
    pub(crate) form: Form,
    pub(crate) algorithm: Option<Algorithm>,
    /// Position in the file, and length there.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Logical address of the stored bytes; 0 for a hole.
    pub(crate) at: u64,
    pub(crate) stored_len: u64,
    /// First byte within the extent.
    pub(crate) start: u64,
    /// Bytes that the whole extent holds.
    pub(crate) decoded_len: u64,
    /// The same as it is stored, which kernels of old got wrong.
    pub(crate) stated_len: u64,
}

impl FileExtent {
    /// Reads and checks an item.
    pub(crate) fn read(item: &Item, sector_len: u64) -> Result<FileExtent> {
        let place = item.place();
        let bytes = item.bytes_of(INLINE_AT)?;
        let fields = Fields(bytes);
        let figure = |figure, found, allowed| {
            Err(packfs_core::Error::from(Corruption::Figure { place, figure, found, allowed }))
        };
        let algorithm = match fields.u8(0x10) {
            0 => None,
            1 => Some(Algorithm::BtrfsZlib),
            2 => Some(Algorithm::BtrfsLzo),
            3 => Some(Algorithm::BtrfsZstd),
            found => return figure("compression", found.into(), "0 to 3"),
        };
        if fields.u8(0x11) != 0 || fields.u16(0x12) != 0 {
            return figure("encryption", fields.u8(0x11).into(), "0");
        }
        let ram_len = fields.u64(8);
        let form = match fields.u8(0x14) {
            0 => return FileExtent::inline(item, algorithm, ram_len, sector_len),
            1 => Form::Regular,
            2 => Form::Reserved,
            found => return figure("type", found.into(), "0 to 2"),
        };
        item.bytes_of(EXTENT_LEN)?;
        let extent = FileExtent {
            form,
            algorithm,
            offset: item.key.offset,
            len: fields.u64(0x2d),
            at: fields.u64(0x15),
            stored_len: fields.u64(0x1d),
            start: fields.u64(0x25),
            decoded_len: if algorithm.is_some() { ram_len } else { fields.u64(0x1d) },
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
        let stored_len = item.bytes().len().saturating_sub(INLINE_AT) as u64;
        // Kernels of old wrote wrong lengths of inline data that is not compressed.
        let decoded_len = if algorithm.is_some() { ram_len } else { stored_len };
        if item.key.offset != 0 {
            let (figure, found) = ("position of inline data", item.key.offset);
            return Err(Corruption::Figure { place, figure, found, allowed: "0" }.into());
        }
        if algorithm.is_some() && decoded_len > sector_len {
            let (figure, found) = ("length of inline data", decoded_len);
            return Err(Corruption::Figure { place, figure, found, allowed: "up to a sector" }.into());
        }
        Ok(FileExtent {
            form: Form::Inline,
            algorithm,
            offset: 0,
            len: decoded_len,
            at: item.at().saturating_add(INLINE_AT as u64),
            stored_len,
            start: 0,
            decoded_len,
            stated_len: ram_len,
        })
    }

    /// Returns the bytes of the file that it covers.
    pub(crate) fn range(&self) -> Range<u64> {
        range_at(self.offset, self.len)
    }

    /// Returns its figures as `compsize` counts them; `None` for a hole.
    fn stored(&self) -> Option<StoredExtent> {
        let codec = match (self.form, self.algorithm) {
            (Form::Reserved, _) => "prealloc",
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

    /// Returns the source of its bytes.
    fn from(&self) -> ExtentFrom {
        match (self.form, self.algorithm) {
            (Form::Reserved, _) => ExtentFrom::Hole,
            _ if self.at == 0 => ExtentFrom::Hole,
            (_, None) => ExtentFrom::Stored(self.at.saturating_add(self.start)),
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

impl BtrfsVolume {
    /// Calls `visit` for the extents of a file from the one that holds `from` on.
    pub(crate) fn each_extent(
        &self,
        node: &Node,
        from: u64,
        visit: &mut dyn FnMut(&Item, FileExtent) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let store = &self.fs.store;
        let sector_len = u64::from(store.super_block().sector_len);
        let key = Key::new(node.inode, kind::EXTENT_DATA, from);
        let before = node.tree.last_to(store, &key)?.map(|item| item.key);
        let before = before.filter(|before| (before.object, before.kind) == (key.object, key.kind));
        let start = before.map_or(from, |before| before.offset);
        for item in node.tree.items_of(store, node.inode, kind::EXTENT_DATA, start) {
            let item = item?;
            let extent = FileExtent::read(&item, sector_len)?;
            if visit(&item, extent)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Implements [`packfs_format::Volume::extents`].
    pub(crate) fn file_extents(
        &self,
        node: &Node,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let inode = self.inode_item(node)?;
        inode.wanted(FileType::File)?;
        let range = range.start..range.end.min(inode.len);
        if range.is_empty() {
            return Ok(());
        }
        let mut extents = Extents::new(range.clone(), visit);
        let (mut end, mut is_over) = (None, false);
        self.each_extent(node, range.start, &mut |item, extent| {
            if extent.offset >= range.end {
                return Ok(ControlFlow::Break(()));
            }
            if end.is_some_and(|end| extent.offset < end) {
                return Err(Corruption::Overlap { place: item.place() }.into());
            }
            let hole = end.unwrap_or(range.start)..extent.offset;
            end = Some(extent.range().end);
            let own = Extent { offset: extent.offset, len: extent.len, from: extent.from() };
            is_over = extents.push(hole_in(hole)).is_break() || extents.push(own).is_break();
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if !is_over && extents.push(hole_in(end.unwrap_or(range.start)..range.end)).is_continue() {
            extents.finish();
        }
        Ok(())
    }

    /// Implements [`packfs_format::Volume::stored_extents`]: all extents, also behind the end.
    pub(crate) fn each_stored(
        &self,
        node: &Node,
        visit: &mut dyn FnMut(StoredExtent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.inode_item(node)?.wanted(FileType::File)?;
        self.each_extent(node, 0, &mut |_, extent| {
            Ok(extent.stored().map_or(ControlFlow::Continue(()), &mut *visit))
        })
    }

    /// Implements [`packfs_format::Volume::read_link`].
    pub(crate) fn target_of(&self, node: &Node) -> Result<Vec<u8>> {
        self.inode_item(node)?.wanted(FileType::Symlink)?;
        let (tree, inode) = (node.tree.id, node.inode);
        let item = node.tree.get(&self.fs.store, &Key::new(inode, kind::EXTENT_DATA, 0))?;
        let item = item.ok_or(Corruption::NoInode { tree, inode })?;
        let place = item.place();
        let extent = FileExtent::read(&item, self.fs.store.super_block().sector_len.into())?;
        if extent.form != Form::Inline || extent.algorithm.is_some() {
            return Err(Corruption::Wanted { tree, inode, wanted: "symbolic link with inline data" }.into());
        }
        let target = item.bytes().get(INLINE_AT..).unwrap_or_default();
        if target.is_empty() || target.len() > TARGET_LEN_MAX || target.contains(&0) {
            let (figure, found) = ("length of the target", target.len() as u64);
            return Err(Corruption::Figure { place, figure, found, allowed: "1 to 4095 without NUL" }.into());
        }
        Ok(target.to_vec())
    }
}

fn hole_in(range: Range<u64>) -> Extent {
    Extent { offset: range.start, len: len_of(&range), from: ExtentFrom::Hole }
}
