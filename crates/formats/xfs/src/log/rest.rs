//! Records after the head, which are not replayed: torn by a crash, or damaged.
//!
//! Linux ignores both without distinction. Each sector of a record contains its cycle, so an
//! incomplete record has sectors of an older cycle; a complete one with a wrong checksum is
//! damaged.

use super::record::Header;
use super::ring::{FLIGHT_MAX, Ring, SECTOR_LEN, cycle, is_header_of};
use crate::corruption::Corruption;
use packfs_core::{Result, usize_of};
use packfs_format::units::*;

/// First record after the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Incomplete, as after a crash.
    Torn { sector: u64 },
    /// Complete, but damaged since.
    Damaged(Corruption),
}

impl Rest {
    /// Returns the fault of a damaged record.
    pub(crate) fn damage(self) -> Option<Corruption> {
        match self {
            Rest::Torn { .. } => None,
            Rest::Damaged(fault) => Some(fault),
        }
    }

    pub(crate) fn warning(self) -> Option<String> {
        match self {
            Rest::Damaged(_) => None,
            Rest::Torn { sector } => Some(format!(
                "log record at sector {sector}: not written in full; changes in it and after it are left out"
            )),
        }
    }
}

/// Examines the sectors after the head; `last` is the record before it.
pub(super) fn rest(ring: &Ring, head: u64, last: &Header) -> Result<Option<Rest>> {
    let room = left(ring.count, last.all_sectors());
    let bytes = ring.read(head, ring.record_sectors_max().plus(FLIGHT_MAX).min(room))?;
    let sectors = || bytes.chunks_exact(SECTOR_LEN);
    let cycle_of = |sector| cycle_after(ring, last, sector);
    let new: Vec<bool> = (head..).zip(sectors()).map(|(at, sector)| cycle(sector) == cycle_of(at)).collect();
    let has_later = sectors().zip(&new).skip(1).any(|(sector, new)| *new && is_header_of(sector, ring.uuid));
    let Some(first) = sectors().next() else { return Ok(None) };
    let damaged = |fault| Some(Rest::Damaged(Corruption::LogRest { sector: head, fault }));
    let is_old = [0, cycle_of(head).wrapping_sub(1)].contains(&cycle(first));
    if !is_header_of(first, ring.uuid) {
        return Ok(if !is_old && new.get(1) == Some(&true) {
            damaged("damaged header")
        } else {
            has_later.then_some(Rest::Torn { sector: head })
        });
    }
    let Ok(header) = Header::read(ring, head) else {
        return Ok(if is_old { None } else { damaged("damaged header") });
    };
    if header.is_sum_in_cycles(ring, &cycle_of)? {
        return Ok(damaged("number of a cycle changed in it or before it"));
    }
    let is_whole = new.get(..usize_of(header.all_sectors())).is_some_and(|new| new.iter().all(|new| *new));
    Ok(if is_whole {
        damaged("wrong checksum")
    } else {
        (!is_old || has_later).then_some(Rest::Torn { sector: head })
    })
}

pub(super) fn cycle_after(ring: &Ring, last: &Header, sector: u64) -> u32 {
    let has_wrapped = ring.wrapped(sector) <= last.sector;
    last.cycle().wrapping_add(has_wrapped.into())
}
