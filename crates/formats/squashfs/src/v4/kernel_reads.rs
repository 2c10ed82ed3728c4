//! Reads of Linux (`fs/squashfs/{namei,inode,id,fragment,block,cache}.c`).

use crate::v4::volume::SquashfsVolume;
use crate::{Cursor, RawKind, Region, SQUASHFS_INVALID_FRAG, data, dir, inode};
use packfs_core::{Result, len_of, parts_of, u32_of};
use packfs_format::{InodeId, KernelBlock, KernelCache, KernelRead, KernelReads, units::*};
use std::ops::ControlFlow;

/// `SQUASHFS_CACHED_BLKS`.
const METADATA_KEPT: usize = 8;
/// `CONFIG_SQUASHFS_FRAGMENT_CACHE_SIZE`, by default.
const FRAGMENTS_KEPT: usize = 3;
/// `SQUASHFS_DEVBLK_SIZE`.
const UNIT: u64 = 1024;
/// "squashfs: cache partial compressed blocks".
const EDGES_SINCE: Option<(u16, u16)> = Some((6, 5));
const HEADER_LEN: u64 = 2;

impl SquashfsVolume {
    fn read_from(&self, region: &Region, first: u64, last: u64) -> Result<Vec<KernelRead>> {
        let mut reads = Vec::new();
        let mut offset = first;
        while offset <= last {
            let block = self.metadata.block(region, offset)?;
            let stored = u32_of(block.next.minus(offset).minus(HEADER_LEN));
            reads.push(KernelRead { offset, stored, decoded: u32_of(block.bytes.len() as u64) });
            offset = block.next;
        }
        Ok(reads)
    }
}

impl KernelReads for &SquashfsVolume {
    fn cache(&self) -> KernelCache {
        let (metadata, shared) = (METADATA_KEPT, FRAGMENTS_KEPT);
        KernelCache::Blocks { metadata, shared, header_len: HEADER_LEN, unit: UNIT, edges_since: EDGES_SINCE }
    }

    /// For each inode the driver looks up its owners, and the fragment of its tail.
    fn inode(&self, id: InodeId) -> Result<Vec<KernelRead>> {
        let raw = inode::raw_inode(*self, id)?;
        let layout = &self.geometry.layout;
        let mut end = Cursor::resume(&self.metadata, layout.inodes, "block size", raw.tail)?;
        if let RawKind::File(file) = &raw.kind {
            end.skip(inode::word_count(*self, file).times(4))?;
        }
        let mut reads = self.read_from(&layout.inodes, raw.place.at, end.position().at)?;
        let ids = &self.geometry.ids;
        if let Some(at) = ids.block_of(u32::from(raw.uid)) {
            reads.splice(1..1, self.read_from(&ids.region, at, at)?);
        }
        if let (RawKind::File(file), Some(fragments)) = (&raw.kind, &layout.fragments)
            && let Some(at) = fragments.block_of(file.fragment)
        {
            reads.extend(self.read_from(&fragments.region, at, at)?);
        }
        Ok(reads)
    }

    fn name(&self, id: InodeId, name: &[u8]) -> Result<Vec<KernelRead>> {
        let layout = &self.geometry.layout;
        let way = dir::way_to(*self, id, name)?;
        let index = way.index.map_or(Ok(vec![]), |(first, last)| self.read_from(&layout.inodes, first, last));
        let list =
            way.list.map_or(Ok(vec![]), |(first, last)| self.read_from(&layout.directories, first, last));
        Ok([index?, list?].concat())
    }

    /// Uncompressed blocks share an extent, and are read one by one; a fragment is read as a whole.
    fn blocks(&self, id: InodeId) -> Result<Vec<KernelBlock>> {
        let raw = inode::raw_inode(*self, id)?;
        let RawKind::File(file) = raw.kind else { return Err(raw.not_a("file")) };
        let block_len = u64::from(self.geometry.layout.block_len);
        let has_fragment = file.fragment != SQUASHFS_INVALID_FRAG;
        let own_len = data::blocks_len(*self, &file).min(file.file_size);
        let mut blocks = Vec::new();
        data::file_extents(*self, id, 0..own_len, &mut |extent| {
            let Some(whole) = KernelBlock::of_extent(&extent) else { return ControlFlow::Continue(()) };
            for range in parts_of(extent.range(), block_len).filter(|_| !whole.compressed) {
                let passed = range.start.minus(extent.offset);
                let offset = whole.read.offset.plus(passed);
                let len = u32_of(len_of(&range));
                let read = KernelRead { offset, stored: len, decoded: len };
                blocks.push(KernelBlock { read, range, ..whole.clone() });
            }
            blocks.extend(Some(whole).filter(|whole| whole.compressed));
            ControlFlow::Continue(())
        })?;
        if has_fragment && own_len < file.file_size {
            let (offset, stored) = data::fragment(*self, file.fragment, raw.place)?;
            let decoded = if stored.compressed { u32_of(block_len) } else { stored.len };
            blocks.push(KernelBlock {
                read: KernelRead { offset, stored: stored.len, decoded },
                compressed: stored.compressed,
                range: own_len..file.file_size,
                shared: true,
                tail_at: None,
            });
        }
        Ok(blocks)
    }
}
