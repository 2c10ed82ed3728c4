//! Reads of Linux (`fs/erofs/{inode,namei,zmap,zdata}.c`): pages of metadata, and clusters.

use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
use packfs_core::{Result, range_at, u32_of};
use packfs_format::{ExtentFrom, InodeId, KernelBlock, KernelCache, KernelRead, KernelReads, units::*};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const PAGE: u64 = 4096;
/// Bytes of a file per row of an index.
const ROW_SPAN: u64 = 4096;
const INDEX_PAGES_MAX: usize = 64;

/// Steps of reading an image, with its packed inode.
pub(crate) struct Reads<'a> {
    reader: &'a Reader,
    /// Clusters of the packed inode by their position in the image: offset in the stream, and
    /// decoded length.
    tails: BTreeMap<u64, (u64, u32)>,
    tails_len: (u64, u64),
}

impl Reads<'_> {
    /// Errors: those of reading the image.
    pub(crate) fn of(reader: &Reader) -> Result<Reads<'_>> {
        let mut reads = Reads { reader, tails: BTreeMap::new(), tails_len: (0, 0) };
        let Some(packed) = &reader.packed else { return Ok(reads) };
        reads.tails_len.0 = packed.size;
        let stream = reader.raw_inode(packed.nid)?;
        reader.content(&stream, 0..packed.size, &mut |extent| {
            if let Some(block) = KernelBlock::of_extent(&extent) {
                reads.tails_len.1 = reads.tails_len.1.plus(u64::from(block.read.stored));
                let begins = left(extent.offset, start_of(extent.from));
                reads
                    .tails
                    .insert(block.read.offset, (begins, u32::try_from(extent.len).unwrap_or(u32::MAX)));
            }
            ControlFlow::Continue(())
        })?;
        Ok(reads)
    }

    /// Returns the page at the start of a directory block.
    fn dir_page(&self, raw: &RawInode, index: u64) -> Result<Option<KernelRead>> {
        let start = index.times(self.reader.geometry.block_len());
        let mut found = None;
        self.reader.content(raw, range_at(start, 1), &mut |extent| {
            found = KernelBlock::of_extent(&extent).map(|block| page(block.read.offset / PAGE));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

fn page(number: u64) -> KernelRead {
    KernelRead { offset: number.times(PAGE), stored: u32_of(PAGE), decoded: 0 }
}

/// Offset of an extent's first byte in its decoded block.
fn start_of(from: ExtentFrom) -> u64 {
    match from {
        ExtentFrom::Block { start, .. } => u64::from(start),
        _ => 0,
    }
}

impl KernelReads for Reads<'_> {
    fn cache(&self) -> KernelCache {
        KernelCache::Pages { len: PAGE }
    }

    fn inode(&self, id: InodeId) -> Result<Vec<KernelRead>> {
        let raw = self.reader.raw_inode(id.0)?;
        let row_len = match raw.layout {
            Layout::CompressedCompact => 2,
            Layout::CompressedFull => 8,
            _ => 0,
        };
        let end = nth_at(raw.tail_at(), raw.size.div_ceil(ROW_SPAN), row_len);
        Ok((raw.at / PAGE..=end / PAGE).take(INDEX_PAGES_MAX).map(page).collect())
    }

    /// The driver bisects directory blocks by their first names (`erofs_find_target_block`).
    fn name(&self, dir: InodeId, name: &[u8]) -> Result<Vec<KernelRead>> {
        let raw = self.reader.raw_dir(dir)?;
        let mut pages = Vec::new();
        let (mut low, mut high) = (0, self.reader.dir_block_count(&raw));
        while low < high {
            let middle = low.midpoint(high.minus(1));
            pages.extend(self.dir_page(&raw, middle)?);
            let block = self.reader.dir_block(&raw, middle)?;
            if block.entry(0)?.name <= name { low = middle.plus(1) } else { high = middle }
        }
        Ok(pages)
    }

    fn blocks(&self, id: InodeId) -> Result<Vec<KernelBlock>> {
        let raw = self.reader.raw_inode(id.0)?;
        let mut blocks = Vec::new();
        self.reader.content(&raw, 0..raw.size, &mut |extent| {
            let Some(mut block) = KernelBlock::of_extent(&extent) else { return ControlFlow::Continue(()) };
            if let Some((begins, len)) = self.tails.get(&block.read.offset) {
                block.tail_at = Some(begins.plus(start_of(extent.from)));
                block.shared = true;
                if block.compressed {
                    block.read.decoded = *len;
                }
            }
            blocks.push(block);
            ControlFlow::Continue(())
        })?;
        Ok(blocks)
    }

    fn tails_len(&self) -> (u64, u64) {
        self.tails_len
    }
}
