//! Reports on a session, made from its [`Results`] alone, so that a report can be made again from
//! the file.
//!
//! They share what is said (`sections`), how figures are spelled (`figures`), and what a table is
//! in words (`grid`); `text` draws that for terminals and as Markdown, `html` as a page. None
//! measures, and none knows a program or a format by name, but packfs.

mod context;
mod csv;
mod figures;
mod grid;
mod html;
mod markdown;
mod overview;
mod sections;
mod summary;
mod text;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use packfs::{Result, ResultExt as _};
use serde::Deserialize;

pub use csv::csv;
pub(crate) use figures::figure;
pub use html::html;
pub(crate) use summary::as_figure;
pub(crate) use text::{Style, Text};
pub use text::{Terminal, markdown, text};

use crate::results::file::write_whole;
use crate::results::{FILE, Results};
use crate::words;

/// A form of the report on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Tables for the terminal.
    Text,
    /// Markdown, with everything.
    Markdown,
    /// One row for each run.
    Csv,
    /// One page that needs no network, with plots.
    Html,
    /// The file of results itself.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let known = "text, markdown, csv, html, json";
        words::named(name).ok_or_else(|| format!("{name:?} is no form of a report; there are {known}"))
    }
}

/// A session in one of the forms; `terminal` matters to [`Format::Text`] alone.
///
/// Errors: none that results can cause.
pub fn report(results: &Results, format: Format, terminal: Terminal) -> Result<String> {
    Ok(match format {
        Format::Text => text(results, terminal),
        Format::Markdown => markdown(results),
        Format::Csv => csv(results),
        Format::Html => html(results)?,
        Format::Json => results.json()?,
    })
}

/// Writes the results and all reports to a folder, which is made if need be, and returns the files
/// in the order in which they were written. Each is whole or not there.
///
/// Errors: `Io`, naming the file; those written before stay.
pub fn write_all(results: &Results, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).or_io(|| format!("cannot make the folder {folder:?}"))?;
    let files = [
        (FILE, Format::Json),
        ("report.md", Format::Markdown),
        ("report.csv", Format::Csv),
        ("report.html", Format::Html),
    ];
    let write = |(name, format): (&str, Format)| {
        let path = folder.join(name);
        write_whole(&path, report(results, format, Terminal::default())?.as_bytes())?;
        Ok(path)
    };
    files.into_iter().map(write).collect()
}
