//! Merges images that were packed apart: data is moved and never decoded, and the format writes new
//! metadata around it.
//!
//! A merged image is a tree whose files are made of blocks that other images stored. `scan` merges
//! the trees of the images directory by directory; `blocks` and `clusters` collect the blocks of
//! each file from its image's metadata, and give them new places; the format lays out inodes,
//! directories, and tables as for any packed tree, before any data is moved, so that every limit of
//! the format is met first; `write` then moves the data, and renames the image. No format is known
//! here. Memory grows with entries and blocks, never with data.
#![forbid(unsafe_code)]

mod blocks;
mod clusters;
mod files;
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

pub use input::MergeInput;
pub use moves::Move;
pub use open_files::allow_open_files;
pub use report::MergeReport;

use packfs_core::{Error, ErrorKind, Implied, Limits, Progress, Result};
use packfs_format::{AnyLayout, DataFile, Format, Merging, Volume};
use std::path::Path;

/// Treatment of a path that several images have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Refuses to merge, naming such paths. Directories are merged.
    #[default]
    Refuse,
    /// Keeps what the last image has. Directories are merged.
    LastWins,
}

/// Place of the data of a merged image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataPlace {
    /// Within the image: only what files refer to.
    #[default]
    Image,
    /// Within the image: each input whole, at the place that the device table gives to it.
    Flat,
    /// In the inputs, which stay as they are: devices of the image.
    Inputs,
}

/// Treatment of whiteouts and opaque directories of overlayfs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// Entries like others.
    #[default]
    Plain,
    /// They hide what earlier images have, and are not in the new image themselves.
    Applied,
    /// They hide what earlier images have, and are in the new image, too.
    AppliedAndKept,
}

/// Options of merging.
#[derive(Clone, Debug, Default)]
pub struct MergeOptions {
    /// Treatment of a path that several images have.
    pub on_conflict: OnConflict,
    /// Treatment of whiteouts and opaque directories of overlayfs.
    pub marks: Marks,
    /// Place of the data.
    pub data: DataPlace,
    /// Oldest Linux version that reads the new image, such as `6.18`, for formats that differ by
    /// it; `None`: that which reads all of the images.
    pub kernel: Option<String>,
    /// Limits of all images together.
    pub limits: Limits,
    /// Set to sync the image to disk before it is renamed into place.
    pub sync: bool,
    /// Time of making in seconds since 1970; `None` for the newest time of any entry.
    pub made_at: Option<i64>,
    /// Metadata of directories that no image describes, above those that images are merged at.
    pub implied: Implied,
    /// Options of the format that describe the new image as a whole, such as its UUID.
    pub format_options: Vec<(String, String)>,
}

/// Merges images of one format into a new one; later ones lie over earlier ones.
///
/// Errors: `Usage` for images that cannot lie in one, `Failed` for paths in conflict, `Unsupported`
/// for more than the format can hold; `Corrupt` for a damaged image; `Io`, `Limit`, `Cancelled`.
/// Nothing has the name of the output before it is complete.
pub fn merge(
    format: &dyn Format,
    inputs: &[MergeInput],
    output: &Path,
    options: &MergeOptions,
    progress: &dyn Progress,
) -> Result<MergeReport> {
    Ok(written(format, inputs, output, options, false, progress)?.report)
}

/// Merges as [`merge`], but leaves holes where data belongs. Returns what belongs there, too, in
/// the order of its place: ranges of the inputs' data images, beyond whose ends are zeros.
///
/// Errors: as [`merge`].
pub fn merge_without_data(
    format: &dyn Format,
    inputs: &[MergeInput],
    output: &Path,
    options: &MergeOptions,
    progress: &dyn Progress,
) -> Result<(MergeReport, Vec<Move>)> {
    let written = written(format, inputs, output, options, true, progress)?;
    Ok((written.report, written.left))
}

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

/// Errors: `Usage` for images of different formats, and those that describe an image as a whole.
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

/// Says that the tree is more than the format can hold, where that is the error.
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
