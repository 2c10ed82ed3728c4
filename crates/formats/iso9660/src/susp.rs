//! System use areas: the entries after a record's name, and those of its continuation areas (SUSP
//! 1.12).
//!
//! Owns the walk over entries. Invariant: number and length of a record's areas are bounded.

use crate::corruption::{Corruption, Place};
use crate::disk::{block_at, both32};
use crate::record::Record;
use crate::sectors::Sectors;
use packfs_core::{ErrorKind, Result};
use packfs_format::units::*;

/// Limit of continuation areas of one record. Linux follows 32; long attributes of libisofs need
/// more.
const AREAS_MAX: usize = 128;
/// Longest continuation area. Linux reads one block of it, libisofs wrote longer ones.
const AREA_LEN_MAX: u64 = 64 << 10;
const AREAS_LEN_MAX: u64 = 256 << 10;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) signature: [u8; 2],
    pub(crate) version: u8,
    /// The bytes after the four-byte header.
    pub(crate) fields: &'a [u8],
    pub(crate) place: Place,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Walked {
    /// Offset and length of each continuation area.
    pub(crate) areas: Vec<(u64, u64)>,
    /// Reason for an early end; earlier entries remain valid.
    pub(crate) fault: Option<Corruption>,
}

/// Calls `visit` for each entry of a record, `skip` bytes after the start of its system use area.
///
/// Errors: only those of reading; corruption ends the walk and is in its result.
pub(crate) fn each_entry(
    sectors: &Sectors,
    record: &Record,
    skip: usize,
    block_len: u32,
    mut visit: impl FnMut(Entry<'_>) -> Result<(), Corruption>,
) -> Result<Walked> {
    let mut walked = Walked::default();
    // As Linux: none are left if more are skipped than there are.
    let first = record.system_use().get(skip..).unwrap_or(&[]);
    let mut goes_on = match area(first, record.system_use_at().plus(skip as u64), &mut visit) {
        Ok(goes_on) => goes_on,
        Err(fault) => {
            walked.fault = Some(fault);
            return Ok(walked);
        }
    };
    let mut len_left = AREAS_LEN_MAX;
    let mut bytes = Vec::new();
    while let Some(Continuation { place, block, offset, len }) = goes_on {
        let at = block_at(block.into(), block_len).plus(offset.into());
        if walked.areas.len() == AREAS_MAX {
            walked.fault = Some(Corruption::Areas { place: record.place(), max: AREAS_MAX });
            break;
        }
        if u64::from(len) > AREA_LEN_MAX.min(len_left) {
            walked.fault = Some(Corruption::Area { place, found: len, max: AREA_LEN_MAX.min(len_left) });
            break;
        }
        len_left = len_left.minus(len.into());
        bytes.resize(len as usize, 0);
        let place = Place::at("continuation area", at);
        match sectors.read(place, &mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                walked.fault = Some(Corruption::Range { place, len: u64::from(len), end: sectors.len() });
                break;
            }
            Err(error) => return Err(error),
        }
        walked.areas.push((at, u64::from(len)));
        match area(&bytes, at, &mut visit) {
            Ok(next) => goes_on = next,
            Err(fault) => {
                walked.fault = Some(fault);
                break;
            }
        }
    }
    Ok(walked)
}

struct Continuation {
    place: Place,
    block: u32,
    offset: u32,
    len: u32,
}

/// Walks over one area. Returns the position of its continuation.
fn area(
    bytes: &[u8],
    at: u64,
    visit: &mut impl FnMut(Entry<'_>) -> Result<(), Corruption>,
) -> Result<Option<Continuation>, Corruption> {
    let mut goes_on = None;
    let mut rest = bytes;
    while let [first, second, len, version, ..] = *rest {
        let passed = bytes.len().minus(rest.len()) as u64;
        let place = Place::at("system use entry", at.plus(passed));
        let signature = [first, second];
        // Padding up to the end of an area.
        if signature == [0, 0] {
            break;
        }
        let wrong = Corruption::Entry { place, signature, found: len, left: rest.len() };
        let fields = rest.get(4..usize::from(len)).ok_or(wrong)?;
        rest = rest.within(usize::from(len)..);
        match &signature {
            b"ST" => break,
            b"PD" => {}
            b"CE" => {
                let number = |at| both32(fields, at).ok_or(Corruption::Fields { place, signature });
                goes_on =
                    Some(Continuation { place, block: number(0)?, offset: number(8)?, len: number(16)? });
            }
            _ => visit(Entry { signature, version, fields, place })?,
        }
    }
    Ok(goes_on)
}
