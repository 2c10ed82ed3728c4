//! Reports on a session, made from its [`Results`] alone, so that a report can be made again from
//! the document.
//!
//! One file for each output. They share what is said (`context`, `overview`), how figures are
//! spelled (`figures`) and what a table is in words (`grid`); the page and Markdown are templates,
//! filled with all of that (`shown`). None measures, and none knows a program or a format by name,
//! but packfs.

mod context;
mod csv;
mod figures;
mod files;
mod grid;
mod html;
mod json;
mod markdown;
mod overview;
mod shown;
mod summary;
mod text;

use std::str::FromStr;

use packfs::Result;
use serde::Deserialize;

pub use csv::csv;
pub(crate) use figures::figure;
pub use files::write_all;
pub use html::html;
pub use json::{json, parse, read};
pub use markdown::markdown;
pub(crate) use shown::environment;
pub(crate) use summary::as_figure;
#[cfg(test)]
pub(crate) use text::table;
pub(crate) use text::table_lines;
pub use text::{Terminal, text};

use crate::results::Results;
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
    /// The document itself.
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
/// Errors: as [`json()`].
pub fn report(results: &Results, format: Format, terminal: Terminal) -> Result<String> {
    Ok(match format {
        Format::Text => text(results, terminal),
        Format::Markdown => markdown(results)?,
        Format::Csv => csv(results),
        Format::Html => html(results)?,
        Format::Json => json(results)?,
    })
}
