//! `packfs info --scan`: the images within a file.

use crate::args::ImageInput;
use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::{FileImage, SliceImage};
use packfs::{Found, Image, Result, ScanOptions, Silent, printable};
use serde::Serialize;
use std::borrow::Cow;
use std::process::ExitCode;
use std::sync::Arc;

/// Searches, and prints what was found. Finding nothing is no failure.
pub fn run(input: &ImageInput, nested: bool, as_json: bool) -> Outcome {
    input.enter_sandbox(|sandbox| sandbox)?;
    let file: Arc<dyn Image> = Arc::new(FileImage::open(&input.image)?);
    let len = file.len();
    let image = match input.offset {
        0 => file,
        offset => Arc::new(SliceImage::new(file, offset, None)?),
    };
    let mut found = packfs::scan(image, ScanOptions::new().nested(nested), &Silent)?;
    // What is printed is to be given to `--offset`.
    found.iter_mut().for_each(|found| found.offset += input.offset);
    if as_json {
        let (image, found) = (input.image.to_string_lossy(), found.iter().map(Row::from).collect());
        json::print(&Scanned { image, size: len, found })?;
    } else {
        print(&found)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Document of `info --scan --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Scanned<'a> {
    /// Path of the file that was searched.
    image: Cow<'a, str>,
    /// Its length.
    size: u64,
    /// Images in it, by offset.
    found: Vec<Row<'a>>,
}

/// Image in a file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row<'a> {
    /// Offset in the file.
    offset: u64,
    /// Length; null if the format does not state one.
    size: Option<u64>,
    /// Name of the format.
    format: &'static str,
    /// Version of the format, where it has several.
    version: Option<&'a str>,
    /// Value for `--magic`, where the image has a magic of its own.
    magic: Option<&'static str>,
}

impl<'a> From<&'a Found> for Row<'a> {
    fn from(found: &'a Found) -> Self {
        Row {
            offset: found.offset,
            size: found.len,
            format: found.format.name(),
            version: found.version.as_deref(),
            magic: found.magic,
        }
    }
}

fn print(found: &[Found]) -> Result<()> {
    let mut out = Out::stdout();
    if found.is_empty() {
        out.line("no images")?;
        return out.finish();
    }
    out.line(format_args!("{:>14}  {:>15}  {}", "offset".bold(), "bytes".bold(), "format".bold()))?;
    for found in found {
        let size = found.len.map_or("?".into(), text::count);
        let version = found.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
        let magic = found.magic.map_or(String::new(), |magic| format!("  (--magic {magic} reads it)"));
        let offset = format!("{:#x}", found.offset);
        let format = found.format.name();
        out.line(format_args!("{offset:>14}  {size:>15}  {format}{}{magic}", printable(&version)))?;
    }
    out.finish()
}
