//! Records behind the head, which are left out: torn by a crash, or damaged.
//!
//! Linux passes over both without a look at the difference. Each sector of a record has the number
//! of its cycle, so one that was not written in full has sectors of an older cycle; one that was,
//! but has a wrong checksum, is damaged.

use super::record::Header;
use super::ring::{FLIGHT_MAX, Ring, SECTOR_LEN, UUID_AT, cycle, is_header};
use crate::corruption::Corruption;
use crate::disk::uuid;
use packfs_core::{Result, usize_of};

/// First record that was left out at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Not written in full, as after a crash.
    Torn { sector: u64 },
    /// Written in full, but damaged since.
    Damaged(Corruption),
}

impl Rest {
    /// Returns the fault of a record that a crash does not explain.
    pub(crate) fn damage(self) -> Option<Corruption> {
        match self {
            Rest::Torn { .. } => None,
            Rest::Damaged(fault) => Some(fault),
        }
    }

    /// Returns what the user is told of a record that a crash explains.
    pub(crate) fn warning(self) -> Option<String> {
        match self {
            Rest::Damaged(_) => None,
            Rest::Torn { sector } => Some(format!(
                "log record at sector {sector}: not written in full; changes in it and after it are left out"
            )),
        }
    }
}

/// Looks at the sectors from the head on; `last` is the record before it.
pub(super) fn rest(ring: &Ring, head: u64, last: &Header) -> Result<Option<Rest>> {
    let room = ring.count.saturating_sub(last.all_sectors());
    let bytes = ring.read(head, ring.record_sectors_max().saturating_add(FLIGHT_MAX).min(room))?;
    let sectors = || bytes.chunks_exact(SECTOR_LEN);
    let cycle_of = |sector| cycle_after(ring, last, sector);
    let new: Vec<bool> = (head..).zip(sectors()).map(|(at, sector)| cycle(sector) == cycle_of(at)).collect();
    let has_later = sectors().zip(&new).skip(1).any(|(sector, new)| *new && is_record_of(ring, sector));
    let Some(first) = sectors().next() else { return Ok(None) };
    let damaged = |fault| Some(Rest::Damaged(Corruption::LogRest { sector: head, fault }));
    let is_old = [0, cycle_of(head).wrapping_sub(1)].contains(&cycle(first));
    if !is_record_of(ring, first) {
        return Ok(match is_old {
            false if new.get(1) == Some(&true) => damaged("damaged header"),
            _ => has_later.then_some(Rest::Torn { sector: head }),
        });
    }
    let Ok(header) = Header::read(ring, head) else {
        return Ok(if is_old { None } else { damaged("damaged header") });
    };
    if header.is_sum_in_cycles(ring, &cycle_of)? {
        return Ok(damaged("number of a cycle changed in it or before it"));
    }
    let is_whole = new.get(..usize_of(header.all_sectors())).is_some_and(|new| new.iter().all(|new| *new));
    Ok(match is_whole {
        true => damaged("wrong checksum"),
        false => (!is_old || has_later).then_some(Rest::Torn { sector: head }),
    })
}

/// Returns the cycle of a sector that is written after a record.
pub(super) fn cycle_after(ring: &Ring, last: &Header, sector: u64) -> u32 {
    let has_wrapped = ring.wrapped(sector) <= last.sector;
    last.cycle().wrapping_add(has_wrapped.into())
}

fn is_record_of(ring: &Ring, sector: &[u8]) -> bool {
    is_header(sector) && uuid(sector, UUID_AT) == ring.uuid
}
