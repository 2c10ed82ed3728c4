//! Packs an image that may have so many bytes only: with what was asked for, then with denser and
//! denser ways of its format. Where samples tell that none of them can do, none is tried.

use super::excluding;
use packfs_core::{Contents, Error, ErrorKind, Goal, Order, Progress, Result, Tree, WithoutWarnings};
use packfs_format::{Format, PackFormat, PackSettings, Rung};
use packfs_pack::{Measured, PackOptions, PackReport, SizeLimit, Survey, unwritten};
use packfs_source::Shape;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

/// Tree to pack, and its destination.
pub(crate) struct Job<'a> {
    pub tree: &'a Tree,
    pub contents: &'a dyn Contents,
    pub format: &'static dyn Format,
    pub output: &'a Path,
    /// Way from the source to the tree.
    pub shape: &'a Shape,
    /// True if the order of small files follows the goal.
    pub order_by_goal: bool,
}

/// A way to pack.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub settings: &'a PackSettings,
    /// Made of the settings.
    pub packer: &'a dyn PackFormat,
}

/// Packs by the `first` way, and if `fits` is asked for, by every denser way that its settings
/// leave open, until the image fits.
///
/// # Errors
/// Packs like [`packfs_pack::pack`]; `TooLarge` if even the smallest image does not fit, or
/// cannot by far.
pub(crate) fn pack(
    job: &Job<'_>,
    first: Way<'_>,
    options: &PackOptions,
    fits: bool,
    progress: &dyn Progress,
) -> Result<PackReport> {
    let rungs = if fits { rungs(job.format, first.settings) } else { Vec::new() };
    let ways = || rungs.iter().map(|(settings, packer)| Way { settings, packer: &**packer });
    let stops_early = !rungs.is_empty();
    if fits {
        let (densest, options) = match ways().next_back() {
            Some(rung) => (rung, of_rung(job, rung.settings, options)),
            None => (first, options.clone()),
        };
        refuse_early(job, densest, &options, rungs.len() + 1, progress)?;
    }
    let survey = fits.then(|| Arc::new(Survey::default()));
    let surveyed = |options: PackOptions, is_last: bool| PackOptions {
        survey: survey.clone().filter(|_| is_last),
        ..options
    };
    let own = surveyed(options.clone(), !stops_early);
    let mut outcome = attempt(job, first.packer, &own, stops_early, progress);
    for (index, rung) in ways().enumerate() {
        if !outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::TooLarge) {
            break;
        }
        let what = described(rung.settings);
        progress.part(&format!("too large; try {} of {}: {what}", index + 2, rungs.len() + 1));
        let is_last = index + 1 == rungs.len();
        let options = surveyed(of_rung(job, rung.settings, options), is_last);
        // What is to be said of the tree was said.
        outcome = attempt(job, rung.packer, &options, !is_last, &WithoutWarnings(progress));
        if let Ok(report) = &mut outcome {
            report.fitted = Some(what);
        }
    }
    match outcome {
        Err(error) if error.kind() == ErrorKind::TooLarge && fits => {
            let ways = match rungs.len() {
                0 => "by the only way to pack it".to_owned(),
                count => format!("by the densest of {} ways to pack it", count + 1),
            };
            let found = survey.as_ref().and_then(|survey| survey.found());
            Err(Error::too_large(format!("{error}, {ways}")).hint(advice(job, found, options)))
        }
        outcome => outcome,
    }
}

/// The options for a rung.
fn of_rung(job: &Job<'_>, rung: &PackSettings, options: &PackOptions) -> PackOptions {
    let order = if job.order_by_goal { Order::for_goal(rung.optimize) } else { options.order };
    // Blocks of an earlier image are of its codec and block size.
    PackOptions { order, base: None, ..options.clone() }
}

/// Asks samples if the densest of so many ways can fit.
///
/// Errors: `TooLarge` if it is out of the question; `Cancelled`. Whatever else stops the survey is
/// told by the tries.
fn refuse_early(
    job: &Job<'_>,
    densest: Way<'_>,
    options: &PackOptions,
    ways: usize,
    progress: &dyn Progress,
) -> Result<()> {
    let (Some(survey), Some(room)) = (Survey::by_samples(job.tree.bytes_total()), room(job, options)) else {
        return Ok(());
    };
    let what = described(densest.settings);
    progress.part(&format!("asking samples of the densest of {ways} ways: {what}"));
    match measure(job, densest.packer, options, survey, &WithoutWarnings(progress)) {
        Ok(Some(found)) if found.least > room => {
            let output = job.output;
            let error = Error::too_large(format!(
                "cannot write {output:?}: by samples, the image has about {} bytes, at most {room} are \
                 allowed, by the densest of {ways} ways to pack it ({what})",
                found.len
            ));
            Err(error.hint(unwritten(format_args!("{output:?}"))).hint(advice(job, Some(&found), options)))
        }
        Err(error) if error.kind() == ErrorKind::Cancelled => Err(error),
        _ => Ok(()),
    }
}

/// Packs for what a survey finds, and keeps nothing; `None` if the image is not alone.
///
/// Errors: as [`packfs_pack::pack`].
fn measure(
    job: &Job<'_>,
    packer: &dyn PackFormat,
    options: &PackOptions,
    survey: Survey,
    progress: &dyn Progress,
) -> Result<Option<Measured>> {
    if !packer.layout().data_files().is_empty() {
        return Ok(None);
    }
    let survey = Arc::new(survey);
    let options = PackOptions {
        // Nothing is written of an image that may have no byte.
        size_limit: SizeLimit { max_size: Some(0), stops_early: false },
        survey: Some(Arc::clone(&survey)),
        base: None,
        verify: None,
        ..options.clone()
    };
    match packfs_pack::pack(job.tree, job.contents, packer, job.output, &options, progress) {
        Err(error) if error.kind() != ErrorKind::TooLarge => Err(error),
        _ => Ok(survey.found().cloned()),
    }
}

/// Returns the most bytes that an image may have.
fn room(job: &Job<'_>, options: &PackOptions) -> Option<u64> {
    let is_device = std::fs::metadata(job.output).is_ok_and(|found| found.file_type().is_block_device());
    let device = is_device.then(|| File::open(job.output).ok()?.seek(SeekFrom::End(0)).ok()).flatten();
    let device = device.map(|len| len.saturating_sub(options.offset));
    device.into_iter().chain(options.size_limit.max_size).min()
}

/// Returns what helps against an image that is too long.
fn advice(job: &Job<'_>, found: Option<&Measured>, options: &PackOptions) -> String {
    let excess = |found: &Measured| Some(found.len.saturating_sub(room(job, options)?));
    let (spaces, excess) = match found.and_then(|found| Some((&found.spaces[..], excess(found)?))) {
        Some(known) => known,
        None => (&[][..], u64::MAX),
    };
    excluding::hint(job.tree, spaces, job.shape, excess)
}

fn attempt(
    job: &Job<'_>,
    packer: &dyn PackFormat,
    options: &PackOptions,
    stops_early: bool,
    progress: &dyn Progress,
) -> Result<PackReport> {
    let options =
        PackOptions { size_limit: SizeLimit { stops_early, ..options.size_limit }, ..options.clone() };
    packfs_pack::pack(job.tree, job.contents, packer, job.output, &options, progress)
}

/// The steps of a format's ladder that settings leave open: codec and block size that were typed
/// stay, and of a typed codec without a level the level rises.
fn rungs(format: &'static dyn Format, settings: &PackSettings) -> Vec<(PackSettings, Box<dyn PackFormat>)> {
    let typed = settings.codec.as_deref();
    let name = typed.map(|codec| codec.split([':', ',']).next().unwrap_or(codec));
    let of_codec = |rung: &&Rung| name.is_none_or(|name| rung.codec.split(':').next() == Some(name));
    let mut found: Vec<PackSettings> = format
        .info()
        .ladder
        .iter()
        .filter(of_codec)
        .map(|rung| PackSettings {
            codec: Some(typed.filter(|typed| Some(*typed) != name).unwrap_or(rung.codec).to_owned()),
            block_size: Some(settings.block_size.unwrap_or(rung.block_size)),
            optimize: rung.optimize.unwrap_or(settings.optimize),
            ..settings.clone()
        })
        .collect();
    if let (Some(typed), Some(last)) = (typed, format.info().ladder.last()) {
        // A codec that no step has gets the longest blocks and the goal.
        found.push(PackSettings {
            codec: Some(typed.to_owned()),
            block_size: Some(settings.block_size.unwrap_or(last.block_size)),
            optimize: Goal::Size,
            ..settings.clone()
        });
    }
    found.retain(|rung| rung != settings);
    // Options such as the kernel may rule a step out.
    let packed = found.into_iter().filter_map(|rung| format.packer(&rung).ok().map(|packer| (rung, packer)));
    let mut packed: Vec<_> = packed.collect();
    packed.dedup_by(|one, other| one.0 == other.0);
    packed
}

/// A way to pack, in words.
fn described(settings: &PackSettings) -> String {
    let codec = settings.codec.as_deref().unwrap_or("the format's codec");
    let block = settings.block_size.map_or(String::new(), |len| format!(", blocks of {} KiB", len >> 10));
    let goal = if settings.optimize == Goal::Size { ", --optimize size" } else { "" };
    format!("{codec}{block}{goal}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(
        format: &str,
        codec: Option<&str>,
        block_len: Option<u32>,
        options: &[(&str, &str)],
    ) -> Vec<String> {
        let format = packfs_formats::by_name(format).unwrap();
        let options = options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let codec = codec.map(str::to_owned);
        rungs(format, &PackSettings { codec, block_size: block_len, options, ..PackSettings::default() })
            .iter()
            .map(|(settings, _)| described(settings))
            .collect()
    }

    #[test]
    fn what_was_typed_stays_and_the_rest_climbs() {
        assert_eq!(steps("squashfs", None, None, &[]).len(), 5);
        for step in steps("squashfs", None, Some(65_536), &[]) {
            assert!(step.contains("64 KiB"), "{step}");
        }
        let xz = steps("squashfs", Some("xz"), None, &[]);
        assert!(xz.len() == 2 && xz.iter().all(|step| step.starts_with("xz, ")), "{xz:?}");
        let lzo = steps("squashfs", Some("lzo:3"), None, &[]);
        assert_eq!(lzo, ["lzo:3, blocks of 1024 KiB, --optimize size"]);
        assert!(steps("cramfs", None, None, &[]).is_empty());
    }

    #[test]
    fn steps_that_a_named_kernel_does_not_read_are_left_out() {
        assert!(steps("erofs", None, None, &[]).iter().any(|step| step.starts_with("lzma")));
        let old = steps("erofs", None, None, &[("kernel", "5.15")]);
        assert!(!old.is_empty() && old.iter().all(|step| step.starts_with("lz4hc")), "{old:?}");
    }
}
