//! Contents of files: allocation descriptors converted to extents.
//!
//! Invariant: every reported range is within the image, and together they cover the file.

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::entry::FileEntry;
use crate::maps::{Addr, Reader, Run};
use packfs_core::{Result, range_at, usize_of};
use packfs_format::{Extent, ExtentFrom, structure, units::*};
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Descriptor {
    /// In bytes.
    len: u64,
    kind: u32,
    addr: Addr,
}

/// Positions of a file in the image, in whole blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Blocks of further descriptors.
    pub(crate) continued: Vec<Range<u64>>,
    pub(crate) data: Vec<Range<u64>>,
}

/// Called for the extents of a file, in order.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(Extent) -> Result<ControlFlow<()>>;

impl Reader {
    /// Calls `visit` for each extent of a file up to its length, and `continued` for each block of
    /// further descriptors.
    pub(crate) fn each_extent(
        &self,
        entry: &FileEntry,
        continued: &mut dyn FnMut(Range<u64>),
        visit: Visit<'_>,
    ) -> Result<()> {
        let (place, len) = (entry.place, entry.len());
        if entry.head.icb_tag.flags.get() & AD_MASK == AD_IN_ICB {
            if len != entry.descriptors.len() as u64 {
                return Err(Corruption::Embedded { place, found: len, len: entry.descriptors.len() }.into());
            }
            if len > 0 {
                let _ = visit(Extent { offset: 0, len, from: ExtentFrom::Stored(entry.descriptors_at) })?;
            }
            return Ok(());
        }
        let (mut offset, mut last) = (0_u64, None);
        let is_over = self.each_descriptor(entry, continued, &mut |descriptor| {
            let end = range_at(offset, descriptor.len).end.min(len);
            let flow = self.each_part(&descriptor, offset..end, visit)?;
            (offset, last) = (end, Some(descriptor));
            Ok(if offset == len { ControlFlow::Break(()) } else { flow })
        })?;
        if is_over || offset == len {
            return Ok(());
        }
        match last.map(|last| self.rest_of_block(&last, offset..len)).transpose()?.flatten() {
            Some(from) => visit(Extent { offset, len: len.minus(offset), from }).map(|_| ()),
            None => Err(Corruption::ExtentsEnd { place, found: offset, len }.into()),
        }
    }

    /// Returns the position of bytes after the last extent that are still in its last block: Linux
    /// appends there without making the extent longer.
    fn rest_of_block(&self, last: &Descriptor, range: Range<u64>) -> Result<Option<ExtentFrom>> {
        let block_len = u64::from(self.blocks.block_len);
        let within = last.len.remainder(block_len);
        let room = if within == 0 { 0 } else { block_len.minus(within) };
        if range.end.minus(range.start) > room {
            return Ok(None);
        }
        if last.kind != EXT_RECORDED {
            return Ok(Some(ExtentFrom::Hole));
        }
        let block = u64::from(last.addr.block).plus(last.len.quotient(block_len));
        let (block, _) = self.place(last.addr.partition, block, 1)?;
        let at = self.blocks.at(block).plus(within);
        self.blocks.check_range(Place::at("file data", at), room)?;
        Ok(Some(ExtentFrom::Stored(at)))
    }

    /// Calls `visit` for the contiguous parts of an extent.
    fn each_part(
        &self,
        descriptor: &Descriptor,
        range: Range<u64>,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let Descriptor { addr, kind, .. } = *descriptor;
        let (mut offset, mut block) = (range.start, u64::from(addr.block));
        let block_len = u64::from(self.blocks.block_len);
        while offset < range.end {
            let left = range.end.minus(offset);
            let (len, from) = if kind == EXT_RECORDED {
                let (at, count) = self.place(addr.partition, block, left.div_ceil(block_len))?;
                block = block.plus(count);
                (left.min(count.times(block_len)), ExtentFrom::Stored(self.blocks.at(at)))
            } else {
                (left, ExtentFrom::Hole)
            };
            if let ExtentFrom::Stored(at) = from {
                self.blocks.check_range(Place::at("file data", at), len)?;
            }
            if visit(Extent { offset, len, from })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            offset = offset.plus(len);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `visit` for each descriptor, including those in further blocks. True if it broke.
    fn each_descriptor(
        &self,
        entry: &FileEntry,
        continued: &mut dyn FnMut(Range<u64>),
        visit: &mut dyn FnMut(Descriptor) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let (place, kind) = (entry.place, entry.head.icb_tag.flags.get() & AD_MASK);
        let mut seen = HashSet::new();
        let (mut bytes, mut at) = (entry.descriptors.clone(), 0_usize);
        while let Some((descriptor, len)) = descriptor(&bytes, at, kind, entry.addr.partition, place)? {
            at = at.plus(len);
            if descriptor.kind != EXT_NEXT {
                if visit(descriptor)?.is_break() {
                    return Ok(true);
                }
                continue;
            }
            let (own, block) = self.tagged("allocation descriptors", descriptor.addr, &[AED])?;
            continued(range_at(own.at, self.blocks.block_len.into()));
            if !seen.insert(own.at) {
                return Err(Corruption::Continued { place }.into());
            }
            let head: Option<AllocExtDesc> = structure(&block, 0);
            let found = head.map_or(0, |head| head.length_alloc_descs.get());
            let rest = block.within(size_of::<AllocExtDesc>()..);
            let room = rest.len();
            let next = rest.get(..usize_of(found.into()));
            let next =
                next.ok_or(Corruption::Descriptors { place: own, attributes: 0, descriptors: found, room })?;
            (bytes, at) = (next.to_vec(), 0);
        }
        Ok(false)
    }

    /// Returns the positions of a file other than its entry.
    pub(crate) fn places(&self, entry: &FileEntry) -> Result<Places> {
        let (mut found, mut continued) = (Places::default(), Vec::new());
        if entry.head.icb_tag.flags.get() & AD_MASK == AD_IN_ICB || !entry.has_contents()? {
            return Ok(found);
        }
        let block_len = u64::from(self.blocks.block_len);
        self.each_extent(entry, &mut |range| continued.push(range), &mut |extent| {
            // Bytes after the last extent are in its last block.
            if let ExtentFrom::Stored(at) = extent.from
                && at.is_multiple_of(block_len)
            {
                let end = at.plus(extent.len);
                found.data.push(at..end.checked_next_multiple_of(block_len).unwrap_or(end));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Places { continued, ..found })
    }

    /// Returns the runs of a file of whole blocks, without its holes.
    pub(crate) fn runs(&self, entry: &FileEntry) -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        let block_len = u64::from(self.blocks.block_len);
        self.each_extent(entry, &mut |_| {}, &mut |extent| {
            if let ExtentFrom::Stored(at) = extent.from {
                let blocks = packfs_core::blocks_of(&extent.range(), block_len);
                runs.push(Run { range: blocks, at: at.quotient(block_len) });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(runs)
    }

    pub(crate) fn read_whole(&self, entry: &FileEntry) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize_of(entry.len())];
        self.each_extent(entry, &mut |_| {}, &mut |extent| {
            let range = usize_of(extent.offset)..usize_of(extent.range().end);
            if let (ExtentFrom::Stored(at), Some(part)) = (extent.from, bytes.get_mut(range)) {
                self.blocks.read(Place::at("file data", at), part)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(bytes)
    }
}

/// Returns the descriptor at `at` and its length; `None` at the end.
fn descriptor(
    bytes: &[u8],
    at: usize,
    kind: u16,
    partition: u16,
    place: Place,
) -> Result<Option<(Descriptor, usize)>> {
    let new = |raw: u32, addr: Addr, len: usize| {
        let own = u64::from(raw & EXTENT_LEN_MASK);
        (raw != 0).then_some((Descriptor { len: own, kind: raw >> 30, addr }, len))
    };
    Ok(match kind {
        AD_SHORT => structure::<ShortAd>(bytes, at).and_then(|ad| {
            let addr = Addr { partition, block: ad.ext_position.get() };
            new(ad.ext_length.get(), addr, size_of::<ShortAd>())
        }),
        AD_LONG => structure::<LongAd>(bytes, at)
            .and_then(|ad| new(ad.ext_length.get(), ad.ext_location.into(), size_of::<LongAd>())),
        AD_EXTENDED => structure::<ExtAd>(bytes, at)
            .and_then(|ad| new(ad.ext_length.get(), ad.ext_location.into(), size_of::<ExtAd>())),
        found => return Err(Corruption::DescriptorType { place, found }.into()),
    })
}
