//! Extents of files: inline, regular, and preallocated ones, and the holes between them.

use crate::corruption::Corruption;
use crate::disk::kind;
use crate::extent::{FileExtent, Form, INLINE_AT};
use crate::inode::InodeItem;
use crate::key::Key;
use crate::tree::Item;
use crate::volume::{BtrfsVolume, Node};
use packfs_core::{FileType, Result, len_of, usize_of};
use packfs_format::{Extent, ExtentFrom, Extents, StoredExtent};
use std::ops::{ControlFlow, Range};

/// Longest target of a symbolic link that kernels read, in bytes.
const TARGET_LEN_MAX: usize = 4095;

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
        for item in node.tree.items_around(store, node.inode, kind::EXTENT_DATA, from)? {
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
            self.before_reading(&inode, item, &extent, &range)?;
            let own = Extent { offset: extent.offset, len: extent.len, from: extent.from() };
            is_over = extents.push(hole_in(hole)).is_break() || extents.push(own).is_break();
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if !is_over && extents.push(hole_in(end.unwrap_or(range.start)..range.end)).is_continue() {
            extents.finish();
        }
        Ok(())
    }

    /// Refuses data without checksums as Linux does, unless the inode says that it has none.
    /// Remembers the block of inline data.
    fn before_reading(
        &self,
        inode: &InodeItem,
        item: &Item,
        extent: &FileExtent,
        range: &Range<u64>,
    ) -> Result<()> {
        if let (Form::Inline, Some(origin)) = (extent.form, item.origin()) {
            self.fs.store.expect_inline(origin.block, origin.generation);
        }
        match self.unsummed(inode, extent, range)? {
            None => Ok(()),
            Some(at) => Err(Corruption::NoSum { place: item.place(), at }.into()),
        }
    }

    /// Returns the first address in a part of an extent that lacks a checksum that it should have.
    pub(crate) fn unsummed(
        &self,
        inode: &InodeItem,
        extent: &FileExtent,
        part: &Range<u64>,
    ) -> Result<Option<u64>> {
        let stored = extent.stored_range(part);
        match inode.is_unsummed || self.fs.sums.is_none() || stored.is_empty() {
            true => Ok(None),
            false => self.fs.unverified(stored),
        }
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
        let link = self.inode_item(node)?;
        link.wanted(FileType::Symlink)?;
        let (tree, inode) = (node.tree.id, node.inode);
        let item = node.tree.get(&self.fs.store, &Key::new(inode, kind::EXTENT_DATA, 0))?;
        let item = item.ok_or(Corruption::NoInode { tree, inode })?;
        let place = item.place();
        let extent = FileExtent::read(&item, self.fs.store.super_block().sector_len.into())?;
        if extent.form != Form::Inline || extent.algorithm.is_some() {
            return Err(Corruption::Wanted { tree, inode, wanted: "symbolic link with inline data" }.into());
        }
        // mkfs.btrfs --rootdir once stored a NUL behind the target.
        let stored = item.bytes().get(INLINE_AT..).unwrap_or_default();
        let target = stored.get(..usize_of(link.len)).unwrap_or(stored);
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
