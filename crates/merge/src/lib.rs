//! Merges separately packed images: data is moved without being decoded, and the format writes new
//! metadata.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! `scan` merges the trees of the images directory by directory. `blocks` and `clusters` collect
//! the blocks of each file from its image's metadata, and assign new offsets. The format lays out
//! inodes, directories, and tables as for any packed tree, before any data is moved, so that its
//! limits are checked first. `write` then moves the data, and renames the image. No format is known
//! here. Memory grows with entries and blocks, not with data.
#![forbid(unsafe_code)]

mod blocks;
mod clusters;
mod files;
mod in_store;
mod input;
mod last_cluster;
mod moves;
mod open_files;
mod packed;
mod padding;
mod ranges;
mod report;
mod scan;
mod warm;
mod write;

pub use in_store::merge_into_object;
pub use input::MergeInput;
pub use open_files::allow_open_files;
pub use report::MergeReport;

use moves::Move;
use packfs_core::{Error, ErrorKind, Implied, Limits, Progress, Result};
use packfs_format::{AnyLayout, DataFile, Format, Merging, Volume};
use std::path::Path;

/// Treatment of paths that several images contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnConflict {
    /// Refuses to merge, naming these paths. Directories are merged.
    #[default]
    Refuse,
    /// Keeps the entry of the last image. Directories are merged.
    LastWins,
}

packfs_core::words!(OnConflict: "rule for conflicts", { Refuse: "error", LastWins: "last" });

/// Location of the data of a merged image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataPlace {
    /// The image, as far as files refer to the data.
    #[default]
    Image,
    /// The image, with each input whole at the offset in the device table.
    Flat,
    /// The inputs, unchanged, as devices of the image.
    Inputs,
}

/// Treatment of whiteouts and opaque directories of overlayfs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Marks {
    /// Ordinary entries.
    #[default]
    Plain,
    /// Hide entries of earlier images, and are dropped.
    Applied,
    /// Hide entries of earlier images, and are kept.
    AppliedAndKept,
}

/// Options of merging.
#[derive(Clone, Debug, Default)]
pub struct MergeOptions {
    /// Treatment of paths that several images contain.
    pub on_conflict: OnConflict,
    /// Treatment of whiteouts and opaque directories of overlayfs.
    pub marks: Marks,
    /// Location of the data.
    pub data: DataPlace,
    /// Oldest Linux version that reads the new image, such as `6.18`, for formats that depend on
    /// it; `None` means the oldest that reads all inputs.
    pub kernel: Option<String>,
    /// Limits of all images together.
    pub limits: Limits,
    /// Set to sync the image to disk before it is renamed into place.
    pub sync: bool,
    /// Creation time in seconds since 1970; `None` means the newest time of any entry.
    pub made_at: Option<i64>,
    /// Metadata of directories above mount paths that no image describes.
    pub implied: Implied,
    /// Options of the format for the new image as a whole, such as its UUID.
    pub format_options: Vec<(String, String)>,
}

/// Merges images of one format into a new one; entries of later images take precedence.
///
/// Errors: `Usage` for images that cannot be merged, `Failed` for paths in conflict, `Unsupported`
/// for limits of the format; `Corrupt` for a damaged image; `Io`, `Limit`, `Cancelled`. The output
/// gets its name only once it is complete.
pub fn merge(
    format: &dyn Format,
    inputs: &[MergeInput],
    output: &Path,
    options: &MergeOptions,
    progress: &dyn Progress,
) -> Result<MergeReport> {
    Ok(written(format, inputs, output, options, false, progress)?.report)
}

/// Merges; `leaves_data` leaves holes in place of data, and returns the missing data in ascending
/// order of its offset: ranges of the inputs' data images, which zeros follow.
fn written(
    format: &dyn Format,
    inputs: &[MergeInput],
    output: &Path,
    options: &MergeOptions,
    leaves_data: bool,
    progress: &dyn Progress,
) -> Result<write::Written> {
    let warm = warm::Warm::new(inputs);
    check_inputs(format, inputs, &warm)?;
    let scanned = scan::scan(inputs, &warm, options, progress)?;
    let by_input = files::ByInput::new(&scanned, inputs.len());
    let merging = merging(inputs, &scanned, options);
    let packer = format.merger(&merging)?;
    let (warm, scanned, packer) = (&warm, &scanned, &*packer);
    let job = write::Job { inputs, warm, scanned, packer, output, options, progress, leaves_data };
    match packer.layout() {
        AnyLayout::Blocks(layout) => {
            let plan = job.plan(layout)?;
            let (placed, moves) = blocks::gather(&job, &plan, &by_input)?;
            job.write(layout, &plan, placed, &moves)
        }
        AnyLayout::Clusters { layout, .. } => {
            let plan = job.plan(layout)?;
            let (placed, moves) = clusters::gather(&job, &plan, &by_input)?;
            job.write(layout, &plan, placed, &moves)
        }
    }
}

/// Errors: `Usage` for images of different formats, and for options that apply to a whole image.
fn check_inputs(format: &dyn Format, inputs: &[MergeInput], warm: &warm::Warm<'_>) -> Result<()> {
    let Some(first) = inputs.first() else { return Err(Error::usage("there is no image to merge")) };
    for (index, input) in inputs.iter().enumerate() {
        warm.touch(index);
        let found = input.volume.format().name;
        if found != format.name() {
            let (name, first) = (&input.name, &first.name);
            let message =
                format!("cannot merge {name} with {first}: it is {found}, the other {}", format.name());
            return Err(Error::usage(message).hint("packfs repack makes an image of another format"));
        }
        let fault =
            input.volume.fault().map_or_else(|| input.volume.whole_fault(true), |fault| Ok(Some(fault)));
        if let Some(fault) = fault.map_err(|error| error.at(&input.name))? {
            return Err(fault.at(&input.name));
        }
    }
    Ok(())
}

fn merging<'a>(inputs: &'a [MergeInput], scanned: &scan::Scanned, options: &MergeOptions) -> Merging<'a> {
    let data_file = |input: &MergeInput| DataFile { path: input.path.clone(), len_max: None };
    Merging {
        volumes: inputs.iter().map(|input| &*input.volume as &dyn Volume).collect(),
        made_at: options.made_at.unwrap_or_else(|| scanned.newest()),
        data_files: match options.data {
            DataPlace::Image => Vec::new(),
            DataPlace::Flat | DataPlace::Inputs => inputs.iter().map(data_file).collect(),
        },
        is_flat: options.data == DataPlace::Flat,
        kernel: options.kernel.clone(),
        data_len: inputs.iter().map(|input| input.image.len()).fold(0, u64::saturating_add),
        options: options.format_options.clone(),
    }
}

/// Adds a hint to errors about limits of the format.
fn as_limit(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Failed | ErrorKind::TooLarge => {
            let hints = error.hints().to_vec();
            let unsupported = Error::unsupported("merge", error);
            hints.into_iter().fold(unsupported, Error::hint)
        }
        _ => error,
    }
}
