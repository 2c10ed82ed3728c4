//! The tar source: v7, ustar, PAX and GNU archives, sparse members in every dialect, compressed or
//! not.
//!
//! Headers are read once, in order; the last member with a name wins. Contents of an uncompressed
//! file are read in place when they are packed; those of a stream are kept in an unnamed file, so
//! memory stays bounded. Truncated, contradictory or unsupported members are errors that name the
//! member and its position.

mod acl;
mod attribute;
mod blocks;
mod header;
mod ids;
mod image_archive;
mod lists;
mod member;
mod pax;

pub use header::{is_empty_tar, looks_like_tar};
pub use image_archive::holds_container_image;

use crate::Loaded;
use crate::archive::TarInput;
use crate::archive::input::{Input, Opening};
use crate::shape::Shape;
use crate::shaper::Shaper;
use header::{BLOCK_LEN, Header};
use member::Members;
use packfs_core::{Error, Limits, Progress, Result, Stage};
use std::sync::Arc;

/// Loads an archive.
///
/// Errors: `Corrupt` for damage, `Unsupported` for multi-volume archives, `Io`, `Usage` for bad
/// globs, `Limit`, `Cancelled`.
pub fn load_tar(input: TarInput, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
    load_tar_within(input, shape, Limits::default(), progress)
}

/// Loads an archive with other limits.
///
/// Errors: as [`load_tar`].
pub fn load_tar_within(
    input: TarInput,
    shape: &Shape,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Loaded> {
    load(crate::archive::open(input, limits, progress)?, shape)
}

pub(crate) fn load(opening: Opening<'_>, shape: &Shape) -> Result<Loaded> {
    let (limits, progress) = (opening.limits, opening.progress);
    progress.begin(Stage::Scan, 0, 0);
    let mut input = Input::new(opening, "tar archive", BLOCK_LEN as u64)?;
    let mut members = Members::new(Shaper::within(shape, limits, "tar archive")?, shape.tar);
    let (mut seen_any, mut is_behind_zeros) = (false, false);
    loop {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let start = input.offset();
        let Some(block) = input.block()? else {
            if !is_behind_zeros {
                end_without_zeros(&input, seen_any)?;
            }
            break;
        };
        if block == [0; BLOCK_LEN] && shape.tar.ignore_zeros {
            is_behind_zeros = true;
            continue;
        }
        if block == [0; BLOCK_LEN] {
            if !input.zeros_follow()? {
                let name = input.name();
                progress.warn(&format!(
                    "{name}: ended by one block of zeros at {start:#x} instead of two; any data after it is ignored"
                ));
            }
            break;
        }
        let Some(header) = Header::new(&block) else {
            if is_behind_zeros {
                continue;
            }
            let fault = format!("header at {start:#x}: wrong checksum");
            let error = input.corrupt(fault);
            return Err(if seen_any { error } else { error.hint("this may not be a tar archive") });
        };
        (seen_any, is_behind_zeros) = (true, false);
        members.take(&header, start, &mut input)?;
        progress.advance(1, 0, 0);
    }
    let (mut shaper, stored) = members.finish(&input)?;
    shaper.note_implied();
    shaper.finish(Arc::new(input.finish(stored)?))
}

/// Some writers omit the final zeros, but an empty file, or one with a truncated header, is not an
/// archive.
fn end_without_zeros(input: &Input<'_>, seen_any: bool) -> Result<()> {
    let fault = if !seen_any {
        "is empty"
    } else if input.has_garbage() {
        "ends between two members, before data in another compression"
    } else {
        input.warn(&format!("{} has no end; it may be cut off between two members", input.name()));
        return Ok(());
    };
    Err(input.corrupt(fault))
}
