//! Checks of the space that no structure takes.

use packfs_core::{Image, Result, usize_of};
use packfs_format::SpaceOwner;
use packfs_format::check::Report;
use std::ops::Range;

/// Most of the space after an image that is looked at.
const BEHIND_LEN_MAX: u64 = 1 << 20;
const PART_LEN: usize = 1 << 16;

/// Tells how much of an image nothing refers to.
pub(crate) fn check_unused(owners: &[SpaceOwner], report: &mut Report<'_>) {
    let unused = owners.iter().filter(|owner| owner.owner == "unused");
    let (count, len) = unused.fold((0, 0), |(count, len), owner| (count + 1, len + owner.len));
    if count > 0 {
        report.note("image", format_args!("{len} bytes in {count} places that nothing refers to"));
    }
}

/// Looks for data behind an image's end, which is where `behind` starts. Says whether there is
/// none.
///
/// Errors: `Io`.
pub(crate) fn check_behind(image: &dyn Image, behind: Range<u64>, report: &mut Report<'_>) -> Result<bool> {
    let end = behind.end.min(behind.start.saturating_add(BEHIND_LEN_MAX));
    let mut at = behind.start;
    let mut part = vec![0; PART_LEN];
    while at < end {
        part.truncate(usize_of(end - at));
        image.read_exact_at(at, &mut part)?;
        if let Some(found) = part.iter().position(|byte| *byte != 0) {
            let at = at + found as u64;
            report.note("padding", format_args!("data behind the image's end, first at {at:#x}"));
            return Ok(false);
        }
        at += part.len() as u64;
    }
    Ok(true)
}
