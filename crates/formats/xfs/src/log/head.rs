//! Head and tail of the log, as `xlog_find_tail` of Linux finds them.

use super::record::Header;
use super::rest::{Rest, cycle_after, rest};
use super::ring::{FLIGHT_MAX, Ring, SECTOR_LEN, cycle};
use crate::corruption::Corruption;
use crate::disk::OpHeader;
use packfs_core::{Error, ErrorKind, Result};
use packfs_format::{structure, units::*};

/// Flag of an operation: unmount record.
const UNMOUNT: u8 = 0x20;

/// Sectors with changes that may not be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) tail: u64,
    pub(super) len: u64,
}

/// Outcome of the search.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// `None` for a log without changes, as after an unmount.
    pub(super) span: Option<Span>,
    pub(super) rest: Option<Rest>,
    /// True for a log of zeros, which no tool writes.
    pub(super) is_empty: bool,
}

pub(super) fn find(ring: &Ring) -> Result<Found> {
    let head = find_head(ring)?;
    if head == 0 && ring.cycle(0)? == 0 {
        return match ring.header_in(0..ring.count)? {
            Some(_) => Err(Corruption::Log { fault: "its first sector is zeros, but it has records" }.into()),
            None => Ok(Found { is_empty: true, ..Found::default() }),
        };
    }
    // The search may wrap around.
    let end = head.plus(ring.count);
    let Some(last) = ring.last_header_in(head..end)? else {
        return Err(Corruption::Log { fault: "no record before its end" }.into());
    };
    let last = Header::read(ring, last)?;
    // If all cycles were right, a record newer than the last one would be the last one.
    if last.sector < head && last.cycle() != ring.cycle(0)? {
        return Err(Corruption::log_record(last.sector, "not of the newest cycle").into());
    }
    if is_unmount(ring, &last, head)? {
        return Ok(Found { rest: rest(ring, head, &last)?, ..Found::default() });
    }
    verified(ring, head, last)
}

fn is_unmount(ring: &Ring, last: &Header, head: u64) -> Result<bool> {
    let end = ring.wrapped(last.sector.plus(last.all_sectors()));
    if end != head || last.operations != 1 {
        return Ok(false);
    }
    let operation = ring.read(last.sector.plus(last.sectors()), 1)?;
    Ok(structure(&operation, 0).is_some_and(|operation: OpHeader| operation.oh_flags & UNMOUNT != 0))
}

/// Returns the sector of a record's tail LSN.
fn tail_of(ring: &Ring, header: &Header) -> u64 {
    ring.wrapped(header.tail & u64::from(u32::MAX))
}

/// Skips incomplete records at the head (`xlog_verify_head`).
fn verified(ring: &Ring, head: u64, last: Header) -> Result<Found> {
    let tail = tail_of(ring, &last);
    // The number of records that may have been in flight, from the head back to the tail.
    let len = match ring.distance(tail, head) {
        0 => ring.count,
        len => len,
    };
    let (mut first, start) = (tail.plus(len), tail);
    for _ in 0..FLIGHT_MAX {
        let Some(before) = ring.last_header_in(start..first)? else { break };
        first = before;
    }
    let unread = tail.plus(len).minus(first);
    let Some(bad) = first_bad(ring, first, unread)? else {
        let rest = rest(ring, head, &last)?;
        return Ok(Found { span: verified_tail(ring, head, tail, &last)?, rest, ..Found::default() });
    };
    let end = bad.plus(if bad < tail { ring.count } else { 0 });
    let Some(good) = ring.last_header_in(tail..end)? else {
        return Err(Corruption::log_record(bad, "wrong checksum").into());
    };
    let last = Header::read(ring, good)?;
    let rest = rest(ring, bad, &last)?;
    let tail = tail_of(ring, &last);
    let span = if is_unmount(ring, &last, bad)? || tail == bad {
        None
    } else {
        verified_tail(ring, bad, tail, &last)?
    };
    Ok(Found { span, rest, ..Found::default() })
}

/// Skips records at the tail that newer ones may have overwritten (`xlog_verify_tail`).
fn verified_tail(ring: &Ring, head: u64, tail: u64, last: &Header) -> Result<Option<Span>> {
    let mut tail = tail;
    loop {
        let len = ring.distance(tail, head);
        if len == 0 {
            return Ok(None);
        }
        let Some(start) = ring.header_in(tail..tail.plus(len))? else {
            return Err(Corruption::log_record(tail, "no record from there on").into());
        };
        let len = len.minus(start.minus(tail));
        tail = ring.wrapped(start);
        let Some(bad) = first_bad(ring, tail, len)? else {
            return Ok(Some(Span { tail, len }));
        };
        let may_be_over = ring.distance(head, bad) <= ring.flight_sectors_max();
        if !may_be_over || !is_overwritten(ring, bad, last)? {
            return Err(Corruption::log_record(bad, "wrong header or checksum").into());
        }
        tail = ring.wrapped(bad.plus(1));
        if ring.distance(tail, head) >= len {
            return Ok(None);
        }
    }
}

/// True if a record newer than the last one overwrites another.
fn is_overwritten(ring: &Ring, bad: u64, last: &Header) -> Result<bool> {
    let bytes = ring.read(bad, ring.record_sectors_max())?;
    let mut sectors = (bad..).zip(bytes.chunks_exact(SECTOR_LEN));
    Ok(sectors.any(|(at, sector)| cycle(sector) == cycle_after(ring, last, at)))
}

fn first_bad(ring: &Ring, start: u64, len: u64) -> Result<Option<u64>> {
    let mut done = 0_u64;
    while done < len {
        let sector = ring.wrapped(start.plus(done));
        let header = match Header::read(ring, sector) {
            Ok(header) => header,
            Err(error) => return bad_or(error, sector),
        };
        if header.len == 0 || (header.has_sum() && !header.is_sum_of(&header.data(ring)?)) {
            return Ok(Some(sector));
        }
        done = done.plus(header.all_sectors());
    }
    Ok(None)
}

/// Converts corruption to the sector of the record; other errors remain.
fn bad_or(error: Error, sector: u64) -> Result<Option<u64>> {
    if error.kind() == ErrorKind::Corrupt { Ok(Some(sector)) } else { Err(error) }
}

/// Returns the sector after the last record (`xlog_find_head`).
fn find_head(ring: &Ring) -> Result<u64> {
    if let Some(head) = zeroed(ring)? {
        return Ok(head);
    }
    let count = ring.count;
    let (first, last) = (ring.cycle(0)?, ring.cycle(count.minus(1))?);
    let (mut head, stop) = if first == last {
        (count, last.wrapping_sub(1))
    } else {
        (cycle_start(ring, 0, count.minus(1), last)?, last)
    };
    // Records may complete out of order: look for older cycles before the head.
    let scanned = count.min(ring.flight_sectors_max());
    if head >= scanned {
        head = ring.find_cycle(head.minus(scanned)..head, stop)?.unwrap_or(head);
    } else {
        let from = count.minus(scanned.minus(head));
        head = match ring.find_cycle(from..count, stop.wrapping_sub(1))? {
            Some(hole) => hole,
            None => ring.find_cycle(0..head, stop)?.unwrap_or(head),
        };
    }
    // The head must not be within a record.
    let scanned = ring.record_sectors_max();
    let is_found = whole_records(ring, left(head, scanned), &mut head, 0)?;
    if !is_found {
        if head >= scanned {
            return Err(Corruption::Log { fault: "no record before its end" }.into());
        }
        let from = left(count, scanned.minus(head));
        let mut end = count;
        if !whole_records(ring, from, &mut end, head)? {
            return Err(Corruption::Log { fault: "no record before its end" }.into());
        }
        if end != count {
            head = end;
        }
    }
    Ok(if head == count { 0 } else { head })
}

/// Returns the head of a log whose end was never written; `None` for other logs.
fn zeroed(ring: &Ring) -> Result<Option<u64>> {
    if ring.cycle(0)? == 0 {
        return Ok(Some(0));
    }
    let last = ring.count.minus(1);
    if ring.cycle(last)? != 0 {
        return Ok(None);
    }
    let mut head = cycle_start(ring, 0, last, 0)?;
    let from = left(head, ring.flight_sectors_max());
    head = ring.find_cycle(from..head, 0)?.unwrap_or(head);
    if whole_records(ring, from, &mut head, 0)? {
        Ok(Some(head))
    } else {
        Err(Corruption::Log { fault: "no record before its end" }.into())
    }
}

/// Finds the first sector of a cycle between `first` and `last`, which belongs to the cycle.
fn cycle_start(ring: &Ring, first: u64, last: u64, cycle: u32) -> Result<u64> {
    let (mut low, mut high) = (first, last);
    while high.minus(low) > 1 {
        let middle = low.plus(high) / 2;
        if ring.cycle(middle)? == cycle { high = middle } else { low = middle }
    }
    Ok(high)
}

/// Moves the head to the start of the last record if the record does not end there
/// (`xlog_find_verify_log_record`). `more` sectors of it precede the range. Returns false if no
/// record is found.
fn whole_records(ring: &Ring, start: u64, head: &mut u64, more: u64) -> Result<bool> {
    let Some(sector) = ring.last_header_in(start..*head)? else { return Ok(false) };
    match Header::read(ring, sector) {
        Ok(header) => {
            header.check_uuid(ring)?;
            let len = head.minus(sector).plus(more);
            if len != header.all_sectors() {
                *head = sector;
            }
        }
        Err(error) => {
            bad_or(error, sector)?;
            *head = sector;
        }
    }
    Ok(true)
}
