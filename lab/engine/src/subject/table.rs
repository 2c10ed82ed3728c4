//! Programs as `subjects.toml` describes them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Installed;
use super::own::program;
use crate::programs::Wanted;
use crate::results::Missing;

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Table {
    #[serde(rename = "maker")]
    pub(super) makers: Vec<Row<Making>>,
    #[serde(rename = "reader")]
    pub(super) readers: Vec<Row<Mounting>>,
    #[serde(rename = "own-reader")]
    pub(super) own_readers: Vec<Row<Mounting>>,
    #[serde(rename = "unpacker")]
    pub(super) unpackers: Vec<Row<Unpacks>>,
    #[serde(rename = "own-unpacker")]
    pub(super) own_unpackers: Vec<Row<Unpacks>>,
}

/// A program, and its abilities `K`.
#[derive(Deserialize)]
pub(super) struct Row<K> {
    pub(super) name: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    from: String,
    #[serde(flatten)]
    pub(super) kind: K,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Making {
    pub(super) format: String,
    /// Arguments for a directory; none if it takes tars only.
    pub(super) dir: Option<String>,
    /// Arguments for a tar on standard input; none if it takes directories only.
    pub(super) tar: Option<String>,
    pub(super) block: String,
    /// True if it takes the logarithm.
    #[serde(default)]
    pub(super) block_log2: bool,
    #[serde(default)]
    pub(super) level: String,
    pub(super) codecs: BTreeMap<String, Codec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Codec {
    #[serde(default)]
    pub(super) words: String,
    /// The first and the last level that the user may choose.
    pub(super) levels: Option<(i32, i32)>,
    pub(super) only: Option<i32>,
    pub(super) level: Option<String>,
    pub(super) why: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Mounting {
    /// None for all formats of packfs.
    formats: Option<Vec<String>>,
    /// A template of `{image}` and `{at}`.
    pub(super) mount: String,
    /// A switch of the kernel that has to be on: a file that holds `Y`.
    pub(super) switch: Option<String>,
}

/// The formats that a program decodes, and its command lines: templates of `{image}`, `{dir}`,
/// `{jobs}` and `{xattrs}`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unpacks {
    /// None for all formats of packfs.
    formats: Option<Vec<String>>,
    /// Arguments that write a tar to standard output; none if it writes none.
    pub(super) tar: Option<String>,
    /// Arguments that extract into a directory; none if it extracts nothing.
    pub(super) dir: Option<String>,
    /// Arguments that list all entries with their facts; none if it is not asked for that.
    pub(super) list: Option<String>,
    /// True if the directory has to exist.
    #[serde(default)]
    pub(super) needs_dir: bool,
}

/// The table; tests read all of it.
pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("../../subjects.toml")).unwrap_or_default());

impl<K> Row<K> {
    pub(super) fn find(&'static self) -> Result<Installed<&'static K>, Missing> {
        Installed::find(
            Wanted { name: &self.name, version_option: &self.version, from: &self.from },
            &self.kind,
        )
    }

    pub(super) fn find_own(&'static self, packfs: &Path) -> Result<Installed<&'static K>, Missing> {
        Ok(Installed { name: &self.name, program: program(packfs)?, kind: &self.kind })
    }
}

impl Mounting {
    pub(super) fn reads(&self, format: &str) -> bool {
        is_read(self.formats.as_deref(), format)
    }
}

impl Unpacks {
    pub(super) fn reads(&self, format: &str) -> bool {
        is_read(self.formats.as_deref(), format)
    }
}

/// Returns true if a program of these formats, or one of all formats of packfs, reads a format.
fn is_read(own: Option<&[String]>, format: &str) -> bool {
    own.map_or_else(|| packfs::formats::by_name(format).is_some(), |own| own.iter().any(|own| own == format))
}
