//! Runs of stored bytes of a file.

use crate::corruption::{Corruption, Place};
use crate::sectors::Sectors;
use packfs_core::{Error, Result, len_of, range_at, usize_of};
use packfs_format::units::*;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl Section {
    pub(crate) fn range(&self) -> Range<u64> {
        range_at(self.at, self.len)
    }
}

/// Returns the offset of the stored byte at `position`, and the number of contiguous bytes there.
pub(crate) fn at_position(sections: &[Section], mut position: u64) -> Option<(u64, u64)> {
    for section in sections {
        match position.checked_sub(section.len) {
            Some(left) => position = left,
            None => {
                let at = section.at.plus(position);
                return Some((at, len_of(&(at..section.range().end))));
            }
        }
    }
    None
}

pub(crate) fn check_position(place: Place, found: u64, end: u64) -> Error {
    Corruption::ZisofsPointer { place, index: 0, found, min: 0, end }.into()
}

/// Fills `buf` with stored data of a file from `position` on.
pub(crate) fn read_stored(
    sectors: &Sectors,
    sections: &[Section],
    mut position: u64,
    mut buf: &mut [u8],
    place: Place,
) -> Result<()> {
    while !buf.is_empty() {
        let Some((at, contiguous)) = at_position(sections, position) else {
            return Err(Corruption::Zisofs {
                place,
                fault: "zisofs: the file ends within its header or its table of block pointers",
            }
            .into());
        };
        let (part, rest) = buf.split_at_mut(usize_of(contiguous).min(buf.len()));
        sectors.read(Place::at("zisofs header", at), part)?;
        position = position.plus(part.len() as u64);
        buf = rest;
    }
    Ok(())
}
