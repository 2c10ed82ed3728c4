//! The documents that the lab can reproduce: each a file in `seeds/` with its own figures, quoted,
//! and the tables that put those measured here beside them.
//!
//! One engine draws them all. Tables are functions of results alone, and a plan is the cells that
//! its tables look up.

mod document;
mod request;
mod row;
mod tables;
mod trees;

use std::sync::OnceLock;

use packfs::{Error, Result};

pub use document::Document;
pub use request::{DocumentRequest, Roles};
pub use trees::{SeedTrees, prepare};

/// The descriptions, oldest reproduction first.
const SEEDS: [&str; 5] = [
    include_str!("../../seeds/erofs-perf.toml"),
    include_str!("../../seeds/squashfs21.toml"),
    include_str!("../../seeds/gentle.toml"),
    include_str!("../../seeds/tools-ng.toml"),
    include_str!("../../seeds/daily.toml"),
];

impl Document {
    /// Returns all documents.
    ///
    /// Errors: `Failed` if a description is malformed.
    pub fn all() -> Result<&'static [Self]> {
        static ALL: OnceLock<Vec<Document>> = OnceLock::new();
        if let Some(all) = ALL.get() {
            return Ok(all);
        }
        let all = SEEDS.iter().map(|text| Self::parse(text)).collect::<Result<_>>()?;
        Ok(ALL.get_or_init(|| all))
    }

    /// Returns the document of this name.
    ///
    /// Errors: `Usage` if there is none; the message lists all.
    pub fn named(name: &str) -> Result<&'static Self> {
        let all = Self::all()?;
        all.iter().find(|document| document.name == name).ok_or_else(|| {
            let known: Vec<_> = all.iter().map(|document| &*document.name).collect();
            Error::usage(format!("there is no document {name:?}"))
                .hint(format!("there are {}", known.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests;
