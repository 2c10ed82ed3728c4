//! The logical address space as an image: every sector is verified, and a damaged copy replaced by
//! an intact one.

use crate::chunks::{Chunk, DATA, METADATA, SYSTEM};
use crate::corruption::Corruption;
use crate::disk::{Header, kind, tree};
use crate::fs::Fs;
use crate::key::Key;
use crate::tree::{Item, SumRun};
use packfs_core::{Error, ErrorKind, Image, Result, len_of, round_down, usize_of};
use packfs_format::units::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

pub(crate) struct LogicalImage {
    fs: Arc<Fs>,
    name: String,
}

impl LogicalImage {
    pub(crate) fn new(fs: Arc<Fs>, name: String) -> LogicalImage {
        LogicalImage { fs, name }
    }
}

impl Image for LogicalImage {
    fn len(&self) -> u64 {
        self.fs.store.chunks.end()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = usize_of(left(self.len(), offset)).min(buf.len());
        let mut done = 0_usize;
        while done < len {
            let at = offset.plus(done as u64);
            let chunk = self.fs.store.chunks.of(at)?;
            let end = done.plus(usize_of(chunk.range().end.minus(at))).min(len);
            let part = buf.within_mut(done..end);
            self.fs.read_in_chunk(chunk, at, part)?;
            done = end;
        }
        Ok(len)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Lookup of checksums that caches the last run.
pub(crate) struct Sums<'f> {
    fs: &'f Fs,
    run: Option<SumRun>,
}

impl<'f> Sums<'f> {
    pub(crate) fn new(fs: &'f Fs) -> Sums<'f> {
        Sums { fs, run: None }
    }

    /// Returns the end of the run that contains a logical address, and true if it has checksums.
    fn run(&mut self, at: u64) -> Result<(u64, bool)> {
        if !self.run.as_ref().is_some_and(|run| run.range.contains(&at)) {
            self.run = Some(self.fs.sum_run(at)?);
        }
        let run = self.run.as_ref();
        Ok(run.map_or((u64::MAX, false), |run| (run.range.end, run.item.is_some())))
    }

    pub(crate) fn of(&mut self, at: u64) -> Result<Option<&[u8]>> {
        self.run(at)?;
        let Some(item) = self.run.as_ref().and_then(|run| run.item.as_ref()) else { return Ok(None) };
        let block = self.fs.store.super_block();
        let len = block.checksum.len();
        let sector = at.minus(item.key.offset).quotient(block.sector_len.into());
        let start = usize_of(sector).times(len);
        Ok(item.bytes().get(start..start.plus(len)))
    }
}

impl Fs {
    pub(crate) fn sums_in(&self, item: &Item) -> Range<u64> {
        let block = self.store.super_block();
        let sectors = item.bytes().len().quotient(block.checksum.len());
        let len = (sectors as u64).times(block.sector_len.into());
        packfs_core::range_at(item.key.offset, len)
    }

    /// Returns the run from a sector on: from a log, or else from the tree of checksums.
    fn sum_run(&self, at: u64) -> Result<SumRun> {
        let after = self.log_sums.partition_point(|run| run.range.start <= at);
        let logged = after.checked_sub(1).and_then(|index| self.log_sums.get(index));
        if let Some(run) = logged.filter(|run| run.range.contains(&at)) {
            return Ok(run.clone());
        }
        let end = self.log_sums.get(after).map_or(u64::MAX, |run| run.range.start);
        let none = |end| Ok(SumRun { range: at..end, item: None });
        let Some(sums) = &self.sums else { return none(end) };
        let key = Key::new(tree::CHECKSUM_OBJECT, kind::EXTENT_CSUM, at);
        let item = sums.last_to(&self.store, &key)?;
        let is_sums = |item: &Item| (item.key.object, item.key.kind) == (key.object, key.kind);
        if let Some(item) = item.filter(is_sums)
            && self.sums_in(&item).contains(&at)
        {
            return Ok(SumRun { range: at..self.sums_in(&item).end.min(end), item: Some(item) });
        }
        match sums.items_of(&self.store, key.object, key.kind, at).next() {
            None => none(end),
            Some(Ok(next)) => none(next.key.offset.min(end)),
            // The damaged block is reported when data after it is read.
            Some(Err(_)) => none(at.plus(1)),
        }
    }

    /// Returns the first sector in a range that has no checksum and is not in a tree block.
    pub(crate) fn unverified(&self, range: Range<u64>) -> Result<Option<u64>> {
        let sector_len = u64::from(self.store.super_block().sector_len);
        let mut at = round_down(range.start, sector_len);
        let mut sums = Sums::new(self);
        while at < range.end {
            let chunk = self.store.chunks.of(at)?;
            if chunk.kind & (METADATA | SYSTEM) != 0 && self.is_metadata(at, &mut sums)? {
                at = at.plus(sector_len);
                continue;
            }
            let (end, has_sums) = sums.run(at)?;
            if !has_sums {
                return Ok(Some(at));
            }
            at = end;
        }
        Ok(None)
    }

    pub(crate) fn verifies(&self, range: Range<u64>) -> Result<bool> {
        Ok(self.unverified(range)?.is_none())
    }

    fn read_in_chunk(&self, chunk: &Chunk, at: u64, buf: &mut [u8]) -> Result<()> {
        let sector_len = u64::from(self.store.super_block().sector_len);
        let end = at.plus(buf.len() as u64);
        let mut sums = Sums::new(self);
        let mut done = at;
        while done < end {
            let rest = buf.within_mut(usize_of(done.minus(at))..);
            if chunk.kind & DATA == 0 && self.is_metadata(done, &mut sums)? {
                done = done.plus(self.read_node_part(done, rest)? as u64);
                continue;
            }
            let before = done.minus(round_down(done, sector_len));
            let whole = len_of(&(done..end)).quotient(sector_len).times(sector_len);
            if before == 0 && whole > 0 {
                let sectors = rest.within_mut(..usize_of(whole));
                self.read_sectors(chunk, done, sectors, &mut sums)?;
                done = done.plus(whole);
                continue;
            }
            let mut sector = vec![0; usize_of(sector_len)];
            self.read_sectors(chunk, done.minus(before), &mut sector, &mut sums)?;
            let wanted = sector.within(usize_of(before)..);
            let len = wanted.len().min(rest.len());
            rest.iter_mut().zip(wanted).for_each(|(to, from)| *to = *from);
            done = done.plus(len as u64);
        }
        Ok(())
    }

    /// Reads whole sectors of a chunk. Metadata chunks contain data if they are mixed, or if
    /// `btrfs-convert` before 4.2 wrote them.
    fn read_sectors(&self, chunk: &Chunk, at: u64, buf: &mut [u8], sums: &mut Sums<'_>) -> Result<()> {
        if chunk.kind & METADATA == 0 {
            return self.read_data(at, buf, sums);
        }
        let sector_len = self.store.super_block().sector_len as usize;
        let (mut start, mut was_node) = (0_usize, false);
        for offset in (0..buf.len()).step_by(sector_len.max(1)) {
            let sector_at = at.plus(offset as u64);
            let is_node = self.is_metadata(sector_at, sums)?;
            if is_node != was_node {
                let part = buf.within_mut(start..offset);
                self.read_one_kind(at.plus(start as u64), part, was_node, sums)?;
                (start, was_node) = (offset, is_node);
            }
        }
        let part = buf.within_mut(start..);
        self.read_one_kind(at.plus(start as u64), part, was_node, sums)
    }

    fn read_one_kind(&self, at: u64, buf: &mut [u8], is_node: bool, sums: &mut Sums<'_>) -> Result<()> {
        if is_node { self.read_metadata(at, buf) } else { self.read_data(at, buf, sums) }
    }

    fn read_data(&self, at: u64, buf: &mut [u8], sums: &mut Sums<'_>) -> Result<()> {
        let sector_len = self.store.super_block().sector_len as usize;
        let len = buf.len();
        self.store.parts(at, len, &mut |chunk, part_at, range| {
            let part = buf.within_mut(range);
            let used = self.read_any_copy(chunk, part_at, part)?;
            let mut sector_at = part_at;
            for sector in part.chunks_mut(sector_len) {
                if let Some(sum) = sums.of(sector_at)?
                    && !self.store.super_block().checksum.agrees(sum, sector)
                {
                    self.heal(chunk, sector_at, used, sum, sector)?;
                }
                sector_at = sector_at.plus(sector.len() as u64);
            }
            Ok(())
        })
    }

    /// Reads the first readable copy, and returns its number.
    fn read_any_copy(&self, chunk: &Chunk, at: u64, buf: &mut [u8]) -> Result<usize> {
        let mut failure: Option<Error> = None;
        for copy in self.store.devices.order(chunk, at) {
            match self.store.devices.read_copy(chunk, at, copy, buf) {
                Ok(()) => return Ok(copy),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        Err(failure.unwrap_or_else(|| Corruption::Unmapped { at }.into()))
    }

    /// Replaces a damaged sector by a copy with the right checksum.
    fn heal(&self, chunk: &Chunk, at: u64, damaged: usize, sum: &[u8], sector: &mut [u8]) -> Result<()> {
        for copy in (0..chunk.copies()).filter(|copy| *copy != damaged) {
            let is_read = self.store.devices.read_copy(chunk, at, copy, sector).is_ok();
            if is_read && self.store.super_block().checksum.agrees(sum, sector) {
                self.store.devices.healed.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        }
        Err(Corruption::DataSum { at, copies: chunk.copies() }.into())
    }

    /// True if an address is in a tree block, intact or not, and not in data.
    fn is_metadata(&self, at: u64, sums: &mut Sums<'_>) -> Result<bool> {
        let is_expected = self.node_starts(at).any(|start| self.store.has_inline(start));
        Ok(is_expected || sums.of(self.sector_of(at))?.is_none() && self.is_in_node(at))
    }

    /// True if a possible start of the tree block around an address has its header.
    fn is_in_node(&self, at: u64) -> bool {
        self.node_starts(at).any(|start| self.is_node(start))
    }

    fn sector_of(&self, at: u64) -> u64 {
        round_down(at, self.store.super_block().sector_len.into())
    }

    /// Possible start addresses of the tree block that contains an address; converted filesystems
    /// have blocks at any sector.
    fn node_starts(&self, at: u64) -> impl Iterator<Item = u64> + use<> {
        let block = self.store.super_block();
        let node_len = u64::from(block.node_len);
        let sector_len = u64::from(block.sector_len);
        let aligned = round_down(at, node_len);
        let sector = self.sector_of(at);
        let others = (0..node_len.quotient(sector_len))
            .filter_map(move |back| sector.checked_sub(back.times(sector_len)));
        std::iter::once(aligned).chain(others.filter(move |start| *start != aligned))
    }

    /// True if the sector has the header of a tree block at this address.
    fn is_node(&self, at: u64) -> bool {
        let mut header = Header::default();
        // Header up to `bytenr`, in the first sector.
        let is_read = self.store.read_copy(at, 0, header.as_mut_bytes()).is_ok();
        let uuid = crate::key::Uuid(header.fsid);
        is_read && header.bytenr.get() == at && self.store.devices.uuids().contains(&uuid)
    }

    fn read_metadata(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        let mut done = 0_usize;
        while done < buf.len() {
            let part_at = at.plus(done as u64);
            let rest = buf.within_mut(done..);
            done = done.plus(self.read_node_part(part_at, rest)?);
        }
        Ok(())
    }

    /// Reads up to the end of the tree block that contains an address; returns the number of bytes.
    fn read_node_part(&self, at: u64, buf: &mut [u8]) -> Result<usize> {
        let mut starts: Vec<u64> = self.node_starts(at).collect();
        starts.sort_by_key(|start| !self.store.has_inline(*start));
        let mut failure: Option<Error> = None;
        for start in starts {
            match self.store.block(start) {
                Ok(node) => {
                    let from = usize_of(at.minus(start));
                    let Some(bytes @ [_, ..]) = node.bytes().get(from..) else { continue };
                    buf.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                    return Ok(bytes.len().min(buf.len()));
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    failure.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or_else(|| Corruption::NodeSum { at }.into()))
    }
}
