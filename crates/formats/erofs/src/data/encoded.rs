//! Files with encoded extents: records with the start and encoding of each extent.
//!
//! Records of 8 bytes are indexed directly, those of 16 and 32 searched by bisection. Those of 4
//! contain lengths only, which are summed from the first on; the last sum is cached, which makes
//! sequential reads fast.

use super::map_header::EncodedHead;
use super::stored::{Piece, PieceForm, PieceFrom};
use super::{RunFrom, Runs};
use crate::corruption::Place;
use crate::disk::*;
use crate::raw::RawInode;
use crate::reader::Reader;
use packfs_core::{Result, len_of, range_at, usize_of};
use packfs_format::{filled, units::*};
use std::ops::{ControlFlow, Range};
use std::sync::PoisonError;
use zerocopy::little_endian::{U32, U64};

#[derive(Clone, Copy, Debug)]
struct Record {
    plen: u32,
    address: u64,
    offset: u64,
}

/// Arguments: a record, its range of the file, and true for the last one.
type VisitRecord<'v> = dyn FnMut(&Record, Range<u64>, bool) -> Result<ControlFlow<()>> + 'v;

impl Record {
    fn stored_len(&self) -> u64 {
        u64::from(self.plen & Z_EROFS_EXTENT_PLEN_MASK)
    }
}

impl Reader {
    /// See [`Reader::runs`].
    pub(super) fn encoded_runs(&self, raw: &RawInode, head: &EncodedHead, runs: &mut Runs<'_>) -> Result<()> {
        let index = match head.record_len {
            4 | 8 => runs.range.start >> head.lcluster_bits,
            _ => self.last_record_before(raw, head, runs.range.start)?,
        };
        let (index, record) = self.each_record(raw, head, index, &mut |record, logical, is_last| {
            self.record_runs(raw, head, record, logical, is_last, runs)
        })?;
        if head.record_len == 4 {
            let mut last = self.last_record.lock().unwrap_or_else(PoisonError::into_inner);
            *last = (raw.nid, index, record.address);
        }
        Ok(())
    }

    /// Calls `visit` for each record from `index` on, until it breaks. Returns the last index and
    /// record.
    fn each_record(
        &self,
        raw: &RawInode,
        head: &EncodedHead,
        mut index: u64,
        visit: &mut VisitRecord<'_>,
    ) -> Result<(u64, Record)> {
        let address = match head.record_len {
            4 => self.summed_address(raw, head, index)?,
            _ => 0,
        };
        let mut record = self.record(raw, head, index, address)?;
        loop {
            let address = end_of(record.address, record.stored_len());
            let following = index.plus(1);
            let next =
                if following < head.count { Some(self.record(raw, head, following, address)?) } else { None };
            let end = next.map_or(raw.size, |next| next.offset);
            if record.offset >= end || end > raw.size {
                return Err(place(raw).fault("extents that do not follow each other"));
            }
            match (visit(&record, record.offset..end, next.is_none())?, next) {
                (ControlFlow::Continue(()), Some(next)) => (index, record) = (following, next),
                _ => return Ok((index, record)),
            }
        }
    }

    pub(super) fn encoded_pieces(
        &self,
        raw: &RawInode,
        head: &EncodedHead,
        visit: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<()> {
        let mut at = 0;
        let last = self.each_record(raw, head, 0, &mut |record, logical, is_last| {
            // Later extents are adjacent.
            if logical.start != at {
                return Err(place(raw).fault("the first extent does not start at 0"));
            }
            at = logical.end;
            visit(self.record_piece(raw, head, record, logical, is_last)?)?;
            Ok(ControlFlow::Continue(()))
        });
        last.map(drop)
    }

    fn record_piece(
        &self,
        raw: &RawInode,
        head: &EncodedHead,
        record: &Record,
        logical: Range<u64>,
        is_last: bool,
    ) -> Result<Piece> {
        if is_last && head.packed {
            let upper = if head.record_len > 4 { record.address << 32 } else { 0 };
            let from = PieceFrom::Packed(u64::from(record.plen) | upper);
            return Ok(Piece { logical, from, form: PieceForm::Hole });
        }
        let stored_len = record.stored_len();
        if stored_len == 0 {
            return Ok(Piece { logical, from: PieceFrom::Stored(0..0), form: PieceForm::Hole });
        }
        let start = self.joined.locate(&self.geometry, 0, record.address, stored_len, place(raw))?;
        let stored = range_at(start, stored_len);
        let format = (record.plen >> Z_EROFS_EXTENT_PLEN_FMT_BIT) as u8;
        let form = match format.checked_sub(1) {
            None => {
                let interlaced = head.interlaced && self.geometry.in_block(record.address | stored_len) == 0;
                self.check_plain(place(raw), &logical, &stored, interlaced)?;
                PieceForm::Plain { rotated: interlaced && self.geometry.in_block(logical.start) != 0 }
            }
            Some(algorithm) => {
                let partial = record.plen & Z_EROFS_EXTENT_PLEN_PARTIAL != 0;
                PieceForm::Compressed { algorithm, partial }
            }
        };
        Ok(Piece { logical, from: PieceFrom::Stored(stored), form })
    }

    fn record_runs(
        &self,
        raw: &RawInode,
        head: &EncodedHead,
        record: &Record,
        logical: Range<u64>,
        is_last: bool,
        runs: &mut Runs<'_>,
    ) -> Result<ControlFlow<()>> {
        let (offset, len) = (logical.start, len_of(&logical));
        if is_last && head.packed {
            let upper = if head.record_len > 4 { record.address << 32 } else { 0 };
            return Ok(runs.push(offset, len, RunFrom::Packed(u64::from(record.plen) | upper)));
        }
        let stored_len = record.stored_len();
        if stored_len == 0 {
            return Ok(runs.push(offset, len, RunFrom::Hole));
        }
        if logical.end <= runs.range.start {
            return Ok(ControlFlow::Continue(()));
        }
        let start = self.joined.locate(&self.geometry, 0, record.address, stored_len, place(raw))?;
        let stored = range_at(start, stored_len);
        let format = (record.plen >> Z_EROFS_EXTENT_PLEN_FMT_BIT) as u8;
        match format.checked_sub(1) {
            None => {
                let whole_blocks = self.geometry.in_block(record.address | stored_len) == 0;
                self.plain_runs(place(raw), logical, stored, head.interlaced && whole_blocks, runs)
            }
            Some(algorithm) => {
                let partial = record.plen & Z_EROFS_EXTENT_PLEN_PARTIAL != 0;
                let block = self.cluster_block(place(raw), algorithm, stored, len, partial)?;
                Ok(runs.push(offset, len, RunFrom::Block(block, 0)))
            }
        }
    }

    /// Reads a record; `address` is used if the record does not contain one.
    fn record(&self, raw: &RawInode, head: &EncodedHead, index: u64, address: u64) -> Result<Record> {
        let in_front = if head.record_len == 4 { size_of::<U64>() as u64 } else { 0 };
        let at = nth_at(head.at.plus(in_front), index, head.record_len);
        let extent: Extent = filled(|bytes| {
            let room = bytes.within_mut(..usize_of(head.record_len));
            self.read_metadata(at, room, place(raw))
        })?;
        let low = u64::from(extent.pstart_lo.get());
        let high = u64::from(extent.pstart_hi.get());
        let starts = u64::from(extent.lstart_lo.get()) | u64::from(extent.lstart_hi.get()) << 32;
        Ok(match head.record_len {
            4 => Record { plen: extent.plen.get(), address, offset: index << head.lcluster_bits },
            8 => Record { plen: extent.plen.get(), address: low, offset: index << head.lcluster_bits },
            _ => Record { plen: extent.plen.get(), address: low | high << 32, offset: starts },
        })
    }

    fn last_record_before(&self, raw: &RawInode, head: &EncodedHead, offset: u64) -> Result<u64> {
        let (mut low, mut high) = (0, head.count);
        while len_of(&(low..high)) > 1 {
            let middle = low.midpoint(high);
            if self.record(raw, head, middle, 0)?.offset > offset { high = middle } else { low = middle }
        }
        if self.record(raw, head, low, 0)?.offset > offset {
            return Err(place(raw).fault("the first extent does not start at 0"));
        }
        Ok(low)
    }

    /// Returns the data address of a 4-byte record: the sum of the lengths before it.
    fn summed_address(&self, raw: &RawInode, head: &EncodedHead, index: u64) -> Result<u64> {
        let kept = *self.last_record.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, mut address) = match kept {
            (nid, kept, address) if nid == raw.nid && kept > 0 && kept <= index => (kept, address),
            _ => (0, self.read_struct::<U64>(head.at, place(raw))?.get()),
        };
        let lengths = head.at.plus(size_of::<U64>() as u64);
        for index in first..index {
            let plen: U32 = self.read_struct(nth_at(lengths, index, head.record_len), place(raw))?;
            address = end_of(address, u64::from(plen.get() & Z_EROFS_EXTENT_PLEN_MASK));
        }
        Ok(address)
    }
}

fn place(raw: &RawInode) -> Place {
    raw.place.of("extents of the inode")
}
