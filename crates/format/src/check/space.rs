//! Checks of unused space.

use super::Report;
use crate::{SpaceOwner, units::*};
use packfs_core::{Image, Result, len_of, parts_of, range_at, usize_of};
use std::ops::Range;

/// Limit of the bytes searched after an image.
const BEHIND_LEN_MAX: u64 = 1 << 20;
const PART_LEN: u64 = 1 << 16;

/// Reports the number of unused bytes of an image.
pub fn check_unused<'a>(owners: impl IntoIterator<Item = &'a SpaceOwner>, report: &mut Report<'_>) {
    let (mut count, mut len) = (0_u64, 0_u64);
    for unused in owners.into_iter().filter(|owner| owner.owner == "unused") {
        (count, len) = (count.plus(1), len.plus(unused.len));
    }
    if count > 0 {
        report.note("image", format_args!("{len} bytes in {count} places that nothing refers to"));
    }
}

/// Searches the space after an image for data. Returns true if it is all zeros.
///
/// Errors: `Io`.
pub fn check_behind(image: &dyn Image, behind: Range<u64>, report: &mut Report<'_>) -> Result<bool> {
    let end = behind.end.min(range_at(behind.start, BEHIND_LEN_MAX).end);
    let mut bytes = vec![0; usize_of(PART_LEN)];
    for part in parts_of(behind.start..end, PART_LEN) {
        bytes.truncate(usize_of(len_of(&part)));
        image.read_exact_at(part.start, &mut bytes)?;
        if let Some((at, _)) = part.zip(&bytes).find(|(_, byte)| **byte != 0) {
            report.note("padding", format_args!("data after the end of the image, first at {at:#x}"));
            return Ok(false);
        }
    }
    Ok(true)
}
