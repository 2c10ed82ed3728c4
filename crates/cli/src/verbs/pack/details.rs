//! The longer half of what `packfs pack` tells at its end: what takes the space, what took the
//! time, and what could be had.

use crate::out::report::Out;
use crate::out::text;
use packfs::{PackReport, Result, Stage};
use std::time::Duration;

/// Classes named where there is room for one line only, and the least share of one that is named.
const CLASSES_IN_SHORT: usize = 3;
const SHARE_MIN: u64 = 20;
/// Metadata shorter than this are not worth a word.
const METADATA_MIN: u64 = 64 << 10;
/// A walk that reads more blocks than this, relative to tree order, is worth a word.
const WALK_RATIO_MAX: f64 = 1.1;
/// A pack that takes so long is worth a word about its stages.
const LONG: Duration = Duration::from_secs(5);

/// One line of what takes the most space, if there is something to tell apart.
pub fn short(report: &PackReport) -> Option<String> {
    let total: u64 = report.image_len.max(1);
    let named = report.classes.iter().filter(|row| row.stored * SHARE_MIN >= total).take(CLASSES_IN_SHORT);
    let parts: Vec<String> =
        named.map(|row| format!("{} {}", text::percent(row.stored, total), row.class.name())).collect();
    (report.classes.len() > 1 && !parts.is_empty()).then(|| parts.join(", "))
}

/// Tables, as lines.
pub fn print(report: &PackReport, out: &mut Out) -> Result<()> {
    let unread = if report.classes.is_empty() { " not known, since no file was read" } else { "" };
    out.line(format_args!("space by class:{unread}"))?;
    for row in &report.classes {
        out.line(format_args!(
            "  {:18} {:>12} {:>12} became {:>12} ({})",
            row.class.name(),
            text::counted(row.files, "file"),
            text::size(row.bytes),
            text::size(row.stored),
            text::percent(row.stored, row.bytes),
        ))?;
    }
    out.line(format_args!("  {:18} {:>45}", "names and inodes", text::size(report.metadata_len)))?;
    if report.fragments.bytes > 0 {
        out.line(format_args!(
            "small files and tails in fragments: {} became {} ({})",
            text::size(report.fragments.bytes),
            text::size(report.fragments.stored),
            text::percent(report.fragments.stored, report.fragments.bytes),
        ))?;
    }
    if report.fragment_blocks > 0 {
        out.line(format_args!(
            "a walk along the tree decodes {} fragment blocks, of {}: {} read; {} with --order path",
            text::count(report.walk.decodes),
            text::count(report.fragment_blocks),
            text::size(report.walk.read_bytes),
            text::count(report.walk.path_decodes),
        ))?;
        out.line(format_args!(
            "reading all of it along the tree takes the kernel {:.2} times the blocks of --order path",
            report.walk.ratio()
        ))?;
    }
    if report.plain_bytes > 0 {
        out.line(format_args!("incompressible, stored uncompressed: {}", text::size(report.plain_bytes)))?;
    }
    let stages = report.stages.iter();
    let stages = stages.map(|row| format!("{} {:.2} s", row.stage.name(), row.took.as_secs_f64()));
    out.line(format_args!("time: {}", stages.collect::<Vec<_>>().join(", ")))?;
    print_suggestions(report, "", out)
}

/// Returns what reading along the tree costs, if that is much more than in tree order.
pub fn walk_warning(report: &PackReport) -> Option<String> {
    let ratio = report.walk.ratio();
    (ratio > WALK_RATIO_MAX).then(|| {
        format!(
            "reading it along the tree takes the kernel about {ratio:.1} times the blocks of --order path"
        )
    })
}

/// Suggestions, a line each.
pub fn print_suggestions(report: &PackReport, indent: &str, out: &mut Out) -> Result<()> {
    for suggestion in suggestions(report) {
        out.line(format_args!("{indent}suggestion: {suggestion}"))?;
    }
    Ok(())
}

/// Returns the advice for an image of which uncompressed metadata takes a good part.
pub fn metadata_advice(report: &PackReport) -> Option<&'static str> {
    let much = report.metadata_len >= METADATA_MIN && report.metadata_len * 4 >= report.image_len;
    report.metadata_advice.filter(|_| much)
}

/// Returns options that may improve this image. Each was measured on similar images.
pub fn suggestions(report: &PackReport) -> Vec<&'static str> {
    let mut found = Vec::new();
    let bytes = report
        .bytes_in
        .saturating_sub(
            report.duplicate_bytes + report.run_bytes + report.duplicate_tail_bytes + report.hole_bytes,
        )
        .max(1);
    found.extend(metadata_advice(report));
    found.extend(report.default_advice);
    let data_took = report.stages.iter().find(|row| row.stage == Stage::Data).map(|row| row.took);
    if report.codec != "none" && report.plain_bytes * 10 > bytes * 9 {
        found.push("--codec lz4: little here compresses, and lz4 blocks are faster to read");
        return found;
    }
    if report.codec.starts_with("gzip") {
        found.push("--codec zstd: smaller and faster to read than gzip, from Linux 4.14 on");
    }
    if report.far_apart {
        found.push(
            "--order similarity: some percent larger, and reads in path order decode hardly more blocks than with --order path",
        );
    }
    if data_took.is_some_and(|took| took > LONG) {
        found.push("--optimize build: several times faster, some percent larger");
    }
    found
}
