//! Packs an image that may have so many bytes only: with what was asked for, then with denser and
//! denser ways of its format.

use packfs_core::{Contents, Error, ErrorKind, Goal, Progress, Result, Tree, WithoutWarnings};
use packfs_format::{Format, PackSettings, Rung};
use packfs_pack::{Order, PackOptions, PackReport, SizeLimit};
use std::path::Path;

/// Tree to pack, and its destination.
pub(crate) struct Job<'a> {
    pub tree: &'a Tree,
    pub contents: &'a dyn Contents,
    pub format: &'static dyn Format,
    pub output: &'a Path,
    /// True if the order of small files follows the goal.
    pub order_by_goal: bool,
}

/// Packs by `settings`, and if `fits` is asked for, by every denser way that they leave open, until
/// the image fits.
///
/// # Errors
/// Packs like [`packfs_pack::pack`]; `TooLarge` if even the smallest image does not fit.
pub(crate) fn pack(
    job: &Job<'_>,
    settings: &PackSettings,
    options: &PackOptions,
    fits: bool,
    progress: &dyn Progress,
) -> Result<PackReport> {
    let rungs = if fits { rungs(job.format, settings) } else { Vec::new() };
    let stops_early = !rungs.is_empty();
    let mut outcome = attempt(job, settings, options, stops_early, progress);
    for (index, rung) in rungs.iter().enumerate() {
        if !outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::TooLarge) {
            break;
        }
        let what = described(rung);
        progress.part(&format!("too large; try {} of {}: {what}", index + 2, rungs.len() + 1));
        let order = if job.order_by_goal { Order::for_goal(rung.optimize) } else { options.order };
        // Blocks of an earlier image are of its codec and block size.
        let options = PackOptions { order, base: None, ..options.clone() };
        let is_last = index + 1 == rungs.len();
        // What is to be said of the tree was said.
        outcome = attempt(job, rung, &options, !is_last, &WithoutWarnings(progress))
            .map(|report| PackReport { fitted: Some(what), ..report });
    }
    match outcome {
        Err(error) if error.kind() == ErrorKind::TooLarge && stops_early => {
            Err(Error::too_large(format!("{error}, by the densest of {} ways to pack it", rungs.len() + 1))
                .hint("exclude files, or raise the limit"))
        }
        outcome => outcome,
    }
}

fn attempt(
    job: &Job<'_>,
    settings: &PackSettings,
    options: &PackOptions,
    stops_early: bool,
    progress: &dyn Progress,
) -> Result<PackReport> {
    let packer = job.format.packer(settings)?;
    let options =
        PackOptions { size_limit: SizeLimit { stops_early, ..options.size_limit }, ..options.clone() };
    packfs_pack::pack(job.tree, job.contents, &*packer, job.output, &options, progress)
}

/// The steps of a format's ladder that settings leave open: codec and block size that were typed
/// stay, and of a typed codec without a level the level rises.
fn rungs(format: &'static dyn Format, settings: &PackSettings) -> Vec<PackSettings> {
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
    // Options such as the kernel may rule a step out.
    found.retain(|rung| rung != settings && format.packer(rung).is_ok());
    found.dedup();
    found
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
            .map(described)
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
