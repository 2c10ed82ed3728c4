//! `packfs info --compression`: bytes on disk, uncompressed, and referenced, by codec.

use crate::args::{ImageInput, reading};
use crate::out::json;
use crate::out::report::{self, Out};
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::mount::table::{self, Mounted};
use packfs::{CodecUse, Compression, CompressionCount, Result, Source};
use packfs_names::Measured;
use serde::Serialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Counts and prints.
pub fn run(input: &ImageInput, more: &[PathBuf], as_json: bool) -> Outcome {
    let mut documents = Vec::new();
    if input.image.is_dir() || !more.is_empty() {
        let mounts = table::read()?;
        let paths = std::iter::once(&input.image).chain(more).map(|path| (path, mounted(path, &mounts)));
        let paths: Vec<_> = paths.collect();
        input.sandbox.enter(|sandbox| {
            let devices = paths.iter().flat_map(|(_, mounted)| mounted).flat_map(|mounted| &mounted.devices);
            let all = paths.iter().map(|(path, _)| *path).chain(devices);
            all.fold(sandbox, |sandbox, path| reading(sandbox, &Source::Directory(path.clone())))
        })?;
        for (path, mounted) in paths {
            documents.push((path, of_path(input, path, mounted)?));
        }
    } else {
        documents.push((&input.image, input.open(1)?.compression()?));
    }
    if as_json {
        let document = |(path, compression): &(&PathBuf, Compression)| Compressed {
            image: Cow::Owned(packfs::without_secrets(path).to_string_lossy().into_owned()),
            compression: compression.clone(),
        };
        let documents: Vec<Compressed<'_>> = documents.iter().map(document).collect();
        json::print(&documents)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = Out::stdout();
    for (index, (path, compression)) in documents.iter().enumerate() {
        if documents.len() > 1 {
            let gap = if index > 0 { "\n" } else { "" };
            out.line(format_args!(
                "{gap}{}",
                packfs::printable(&packfs::without_secrets(path).to_string_lossy()).bold()
            ))?;
        }
        print(compression, &mut out)?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the directory of a mounted btrfs whose devices can be read.
fn mounted(path: &Path, mounts: &[Mounted]) -> Option<Measured> {
    if !path.is_dir() {
        return None;
    }
    Measured::mounted(path, mounts).unwrap_or_else(|error| {
        report::warning(&format!("{path:?} is measured without its codecs: {error}"));
        None
    })
}

fn of_path(input: &ImageInput, path: &Path, mounted: Option<Measured>) -> Result<Compression> {
    match mounted {
        Some(mounted) => {
            let mut count = CompressionCount::default();
            mounted.count(0, false, &mut count)?;
            Ok(count.finish())
        }
        None if path.is_dir() => Compression::of_directory(path),
        None => input.options(1)?.open(path)?.compression(),
    }
}

/// Document of `info --compression --json`: one for each path.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Compressed<'a> {
    /// Path of the image or directory.
    image: Cow<'a, str>,
    #[serde(flatten)]
    compression: Compression,
}

fn print(found: &Compression, out: &mut Out) -> Result<()> {
    out.line(format_args!(
        "{}, {} ({}), {} inline",
        text::counted(found.files, "file"),
        text::counted(found.extents, "extent"),
        text::counted(found.references, "reference"),
        text::count(found.inline)
    ))?;
    out.line(format_args!(
        "{:<12} {:>6} {:>18} {:>18} {:>18}",
        "codec".bold(),
        "share".bold(),
        "disk".bold(),
        "uncompressed".bold(),
        "referenced".bold()
    ))?;
    print_row(&found.total, out)?;
    found.codecs.iter().try_for_each(|row| print_row(row, out))
}

fn print_row(row: &CodecUse, out: &mut Out) -> Result<()> {
    out.line(format_args!(
        "{:<12} {:>6} {:>18} {:>18} {:>18}",
        row.codec,
        text::percent(row.disk, row.uncompressed),
        text::count(row.disk),
        text::count(row.uncompressed),
        text::count(row.referenced)
    ))
}
