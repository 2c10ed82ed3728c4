//! `packfs info --compression`: bytes on disk, uncompressed, and referenced, by codec.

use crate::args::ImageInput;
use crate::args::reading;
use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::{CodecUse, Compression, Result, Source};
use serde::Serialize;
use std::borrow::Cow;
use std::path::PathBuf;
use std::process::ExitCode;

/// Counts and prints.
pub fn run(input: &ImageInput, more: &[PathBuf], as_json: bool) -> Outcome {
    let mut documents = Vec::new();
    if input.image.is_dir() || !more.is_empty() {
        let paths = std::iter::once(&input.image).chain(more);
        input.sandbox.enter(|sandbox| {
            paths.clone().fold(sandbox, |sandbox, path| reading(sandbox, &Source::Directory(path.clone())))
        })?;
        for path in paths {
            let use_of_codecs = match path.is_dir() {
                true => Compression::of_directory(path)?,
                false => input.options(1).open(path)?.compression()?,
            };
            documents.push((path, use_of_codecs));
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
