//! Extents of files: inline, regular, and preallocated ones, and the holes between them.

use crate::corruption::Corruption;
use crate::disk::kind;
use crate::extent::{FileExtent, Form, INLINE_AT};
use crate::inode::InodeItem;
use crate::key::Key;
use crate::tree::Item;
use crate::volume::{BtrfsVolume, Node};
use packfs_core::{FileType, Result, usize_of};
use packfs_format::{Extent, Extents, StoredExtent, units::*};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

/// Longest target of a symbolic link that Linux reads.
const TARGET_LEN_MAX: usize = 4095;

impl BtrfsVolume {
    /// Calls `visit` for the extents of a file, beginning with the one that contains `from`.
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
        let mut end = None;
        let walked = self.each_extent(node, range.start, &mut |item, extent| {
            if extent.offset >= range.end {
                return Ok(ControlFlow::Break(()));
            }
            if end.is_some_and(|end| extent.offset < end) {
                return Err(Corruption::Overlap { place: item.place() }.into());
            }
            end = Some(extent.range().end);
            self.before_reading(&inode, item, &extent, &range)?;
            let own = Extent { offset: extent.offset, len: extent.len, from: extent.from() };
            let filled = extents.fill_to(extent.offset);
            Ok(if filled.is_continue() { extents.push(own) } else { filled })
        });
        if walked.is_ok() {
            let _ = extents.fill_to(range.end);
        }
        extents.finish(walked)
    }

    /// Refuses data without checksums as Linux does, unless the inode has `NODATASUM`. Registers
    /// the block of inline data.
    fn before_reading(
        &self,
        inode: &InodeItem,
        item: &Item,
        extent: &FileExtent,
        range: &Range<u64>,
    ) -> Result<()> {
        if extent.form == Form::Inline {
            if self.is_blanked(item) {
                return Err(Corruption::NotDumped { place: item.place() }.into());
            }
            if let Some(origin) = item.origin() {
                self.fs.store.expect_inline(origin.block, origin.generation);
            }
        }
        match self.unsummed(inode, extent, range)? {
            None => Ok(()),
            Some(at) => Err(Corruption::NoSum { place: item.place(), at }.into()),
        }
    }

    /// True for inline data that btrfs-image replaced with zeros.
    fn is_blanked(&self, item: &Item) -> bool {
        let data = item.bytes().within(INLINE_AT..);
        self.fs.store.super_block().is_dump() && data.iter().all(|byte| *byte == 0)
    }

    /// Returns the first address in a part of an extent whose required checksum is missing.
    pub(crate) fn unsummed(
        &self,
        inode: &InodeItem,
        extent: &FileExtent,
        part: &Range<u64>,
    ) -> Result<Option<u64>> {
        let stored = extent.stored_range(part);
        if inode.is_unsummed || self.fs.sums.is_none() || stored.is_empty() {
            Ok(None)
        } else {
            self.fs.unverified(stored)
        }
    }

    /// Passes on all extents, including those after the end of the file.
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
        // Linux shows an empty target, too.
        if self.is_blanked(&item) {
            self.fs.store.devices.blanked.fetch_add(1, Ordering::Relaxed);
            return Ok(Vec::new());
        }
        // Old versions of mkfs.btrfs --rootdir stored a NUL after the target.
        let stored = item.bytes().within(INLINE_AT..);
        let target = stored.get(..usize_of(link.len)).unwrap_or(stored);
        if target.is_empty() || target.len() > TARGET_LEN_MAX || target.contains(&0) {
            let figure = "length of the target";
            let found = target.len() as u64;
            return Err(Corruption::Figure { place, figure, found, allowed: "1 to 4095 without NUL" }.into());
        }
        Ok(target.to_vec())
    }
}
