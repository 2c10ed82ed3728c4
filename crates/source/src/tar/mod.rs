//! The tar source: v7, ustar, PAX and GNU archives, sparse members in every dialect, compressed or
//! not.
//!
//! Headers are read once, in order; the last member with a name wins. Contents of an uncompressed
//! file are read in place when they are packed; those of a stream are kept in an unnamed file, so
//! memory stays bounded. Truncated, contradictory or unsupported members are errors that name the
//! member and its position.

mod acl;
mod attribute;
mod compression;
mod contents;
mod header;
mod ids;
mod image_archive;
mod input;
mod lists;
mod member;
mod pax;
mod sparse;
mod spooled;

pub use compression::{Compression, compression_of};
pub use header::{is_empty_tar, looks_like_tar};
pub use image_archive::holds_container_image;
pub use spooled::{decoded_beginning, decoded_file, decoded_stream};

use crate::Loaded;
use crate::shape::Shape;
use crate::shaper::Shaper;
use compression::BEGINNING_LEN;
use contents::TarContents;
use header::{BLOCK_LEN, Header};
use input::Input;
use member::Members;
use packfs_core::{Error, Limits, Progress, Result, ResultExt, Stage};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Input of an archive.
pub enum TarInput {
    /// A file, compressed or not.
    File(PathBuf),
    /// A stream, compressed or not.
    Stream {
        /// The bytes.
        reader: Box<dyn Read + Send>,
        /// Name in messages, such as `standard input`.
        name: String,
        /// Directory for an unnamed file with contents.
        spool_dir: PathBuf,
    },
}

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
    progress.begin(Stage::Scan, 0, 0);
    let mut input = open(input, limits, progress)?;
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
            let error = Error::corrupt(format!("tar archive {}", input.name()), fault);
            return Err(if seen_any { error } else { error.hint("this may not be a tar archive") });
        };
        (seen_any, is_behind_zeros) = (true, false);
        members.take(&header, start, &mut input)?;
        progress.advance(1, 0, 0);
    }
    let (mut shaper, stored) = members.finish(&input)?;
    shaper.note_implied();
    let in_place = input.is_in_place();
    let (file, name) = input.finish()?;
    shaper.finish(Arc::new(TarContents { file, name, stored, in_place }))
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
    Err(Error::corrupt(format!("tar archive {}", input.name()), fault))
}

fn open(input: TarInput, limits: Limits, progress: &dyn Progress) -> Result<Input<'_>> {
    let (reader, name, spool_dir): (Box<dyn Read + Send>, _, _) = match input {
        TarInput::Stream { reader, name, spool_dir } => (reader, name, spool_dir),
        TarInput::File(path) => {
            let name = format!("{path:?}");
            let file = File::open(&path).or_io(|| format!("cannot open {name}"))?;
            if compression_of(&beginning(&file, &path)?).is_none() {
                return Input::in_place(file, name, progress);
            }
            (Box::new(file), name, std::env::temp_dir())
        }
    };
    let mut reader = reader;
    let mut beginning = Vec::new();
    reader
        .by_ref()
        .take(BEGINNING_LEN as u64)
        .read_to_end(&mut beginning)
        .or_io(|| format!("cannot read {name}"))?;
    let compression = compression_of(&beginning);
    let whole: Box<dyn Read + Send> = Box::new(Cursor::new(beginning).chain(reader));
    let (plain, watch) = match compression {
        Some(compression) => {
            let (plain, watch) = compression::decoded(whole, compression, limits, &name)?;
            (plain, Some(watch))
        }
        None => (whole, None),
    };
    Input::stream(plain, name, &spool_dir, watch, progress)
}

fn beginning(file: &File, path: &Path) -> Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut beginning = vec![0; BEGINNING_LEN];
    let len = file.read_at(&mut beginning, 0).or_io(|| format!("cannot read {path:?}"))?;
    beginning.truncate(len);
    Ok(beginning)
}
