//! `packfs info --scan`: the images within a file.

use crate::args::ImageInput;
use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::SliceImage;
use packfs::{Found, Result, ScanOptions, Silent, printable};
use serde::Serialize;
use std::borrow::Cow;
use std::process::ExitCode;
use std::sync::Arc;

/// Searches, and prints what was found. Finding nothing is no failure.
pub fn run(input: &ImageInput, nested: bool, as_json: bool) -> Outcome {
    input.enter_sandbox(|sandbox| sandbox)?;
    let options = input.options(0)?;
    let file = options.bytes_at(&input.image)?;
    let len = file.len();
    let image = match options.image_offset() {
        0 => file,
        offset => Arc::new(SliceImage::new(file, offset, None)?),
    };
    let mut found = packfs::scan(image, ScanOptions::new().nested(nested), &Silent)?;
    // What is printed is to be given to `--offset`.
    found.iter_mut().for_each(|found| found.offset += options.image_offset());
    if as_json {
        json::print(&Scanned { image: input.shown(), size: len, found: &found })?;
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
    found: &'a [Found],
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
