//! Runs of stored bytes that a file is made of.

use crate::corruption::{Corruption, Place};
use crate::sectors::Sectors;
use packfs_core::{Error, Result, usize_of};

/// A run of a file's stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// Its start, in bytes from the start of the image.
    pub(crate) at: u64,
    /// In bytes.
    pub(crate) len: u64,
}

/// Returns the place of the stored byte at `position`, and the number of contiguous bytes there.
pub(crate) fn at_position(sections: &[Section], mut position: u64) -> Option<(u64, u64)> {
    for section in sections {
        if position < section.len {
            return Some((section.at + position, section.len - position));
        }
        position -= section.len;
    }
    None
}

/// The error for a position after the end of what is stored.
pub(crate) fn check_position(place: Place, found: u64, end: u64) -> Error {
    Corruption::ZisofsPointer { place, index: 0, found, min: 0, end }.into()
}

/// Fills `buf` with what is stored of a file, from `position` on.
pub(crate) fn read_stored(
    sectors: &Sectors,
    sections: &[Section],
    position: u64,
    buf: &mut [u8],
    place: Place,
) -> Result<()> {
    let mut done = 0;
    while done < buf.len() {
        let Some((at, row)) = at_position(sections, position + done as u64) else {
            let fault = "zisofs: the file ends within its header or its table of block pointers";
            return Err(Corruption::Zisofs { place, fault }.into());
        };
        let len = usize_of(row).min(buf.len() - done);
        let part = buf.get_mut(done..done + len).unwrap_or_default();
        sectors.read(Place::at("zisofs header", at), part)?;
        done += len;
    }
    Ok(())
}
