//! Workloads: a row each in `workloads.toml`, with the document it comes from, and the command.
//!
//! Rows say what a workload is and what it needs; who runs it is [`crate::session`].

mod commands;
mod draw;
mod lists;
mod pieces;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::words;

pub use commands::{Places, Reading, reading};
pub use lists::{Listed, Lists, files_of};
pub use pieces::read_pieces;

pub(crate) use draw::{Random, shuffled};
pub(crate) use lists::as_list;

/// One workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "workloads.toml describes each")]
pub enum Workload {
    ImageSize,
    Build,
    Decode,
    Unpack,
    SequentialData,
    SequentialMetadata,
    List,
    Find,
    SmallRandomData,
    SmallRandomMetadata,
    FullRandomData,
    ParallelRandomData,
    Boot,
    FullRandomMetadata,
    SizeOrder,
    TarPrograms,
    LargeSequential,
    LargeRandom,
    LargeSmallRandom,
    Write,
    TarRead,
    CpRead,
    DiskUsage,
}

/// Things that have to be there for a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// An image, and nothing is read.
    Image,
    /// A maker of images, run again and again.
    Maker,
    /// A program that decodes an image without mounting it.
    Unpacker,
    /// A mount of an image, or of a writable file system.
    Mount,
    /// A mount of a tree whose largest file is read.
    LargeFile,
    /// A writable file system.
    Writable,
}

/// The description of a workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The word for it on the command line and in results.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// The command, as the document has it or nearly so.
    pub command: String,
    /// Things it needs.
    pub need: Need,
    /// The documents that measure so, by the names of [`crate::seed`].
    pub seeds: Vec<String>,
    /// The command that runs in the mount; empty for workloads that read none.
    #[serde(default)]
    runs: String,
    /// True if its output goes through cat.
    #[serde(default)]
    cat: bool,
    list: Option<Order>,
    /// Programs whose files have to be in memory beforehand, so that loading them is not measured.
    #[serde(default)]
    programs: Vec<String>,
    /// The files whose bytes its user sees.
    pub(crate) reads: Option<Reads>,
    /// The command in its place where its first program is not here.
    instead: Option<Instead>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Instead {
    runs: String,
    programs: Vec<String>,
    command: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    Few,
    All,
    BySize,
    Traced,
}

/// Files whose bytes are read.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reads {
    Tree,
    List,
    Programs,
}

#[derive(Default, Deserialize)]
struct File {
    workload: Vec<Row>,
}

/// All workloads, in the order in which a session runs them; a test reads them.
pub static WORKLOADS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    toml::from_str::<File>(include_str!("../../workloads.toml")).unwrap_or_default().workload
});

impl Workload {
    /// Returns its description.
    pub fn row(self) -> &'static Row {
        // Rows stand in the order of the enumeration; a test holds them to it.
        &WORKLOADS[self as usize]
    }

    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        &self.row().name
    }

    /// Returns the things it needs.
    pub fn need(self) -> Need {
        self.row().need
    }

    /// The one of this name.
    ///
    /// Errors: there is none; the message lists all.
    pub fn named(name: &str) -> packfs::Result<Self> {
        words::named(name).ok_or_else(|| {
            let known: Vec<_> = WORKLOADS.iter().map(|row| &*row.name).collect();
            packfs::Error::usage(format!("there is no workload {name:?}"))
                .hint(format!("there are {}", known.join(", ")))
        })
    }

    /// Returns true if something is run and timed.
    pub fn is_timed(self) -> bool {
        !matches!(self, Self::ImageSize | Self::DiskUsage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_workloads_and_are_named_as_results_spell_them() {
        assert_eq!(WORKLOADS.len(), Workload::DiskUsage as usize + 1);
        for row in WORKLOADS.iter() {
            let workload = Workload::named(&row.name).unwrap();
            assert_eq!(workload.name(), row.name);
            assert_eq!(serde_json::to_value(workload).unwrap(), row.name);
        }
    }

    #[test]
    fn an_unknown_one_is_refused_with_those_there_are() {
        let error = Workload::named("compile").unwrap_err();
        assert!(error.hints()[0].contains("sequential-data"), "{error:?}");
    }
}
