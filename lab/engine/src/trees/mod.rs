//! Trees to measure on: how the ones that the documents name are made, and what is known of any.

mod debian;
mod facts;
mod large;
mod made;
mod part;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use packfs::{Error, Result};
use serde::Deserialize;

use crate::results::TreeFacts;
use crate::words;

pub use facts::facts_of;
pub use made::{make_part, make_tar};

/// A tree, and where it lies: a folder, or a tar.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTree {
    /// Its facts.
    pub facts: TreeFacts,
    /// Its folder, or tar.
    pub path: PathBuf,
}

/// A tree that a document measures on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeKind {
    /// The root of the smallest Debian.
    Debian,
    /// The files of a Debian desktop.
    Desktop,
    /// The source of Linux.
    Linux,
    /// One large file.
    Large,
    /// Files that do not compress.
    Media,
}

/// Description of a kind of tree.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TreeRow {
    /// Name on the command line.
    pub name: String,
    /// Description.
    pub about: String,
    /// The commands that make it.
    pub made_by: String,
}

#[derive(Default, Deserialize)]
struct File {
    tree: Vec<TreeRow>,
}

/// All there are; a test reads them.
pub static TREES: LazyLock<Vec<TreeRow>> =
    LazyLock::new(|| toml::from_str::<File>(include_str!("../../trees.toml")).unwrap_or_default().tree);

impl TreeKind {
    /// Returns its description.
    pub fn row(self) -> &'static TreeRow {
        // Rows stand in the order of the enumeration; a test holds them to it.
        &TREES[self as usize]
    }

    /// The one of this name.
    ///
    /// Errors: `Usage` if there is none; the message lists all.
    pub fn named(name: &str) -> Result<Self> {
        words::named(name).ok_or_else(|| {
            let known: Vec<_> = TREES.iter().map(|row| &*row.name).collect();
            Error::usage(format!("there is no tree {name:?}"))
                .hint(format!("there are {}; --tree takes a folder of any kind", known.join(", ")))
        })
    }

    /// Makes one at `dir`, which must not exist; `from` is the tree that parts are taken of, where
    /// parts are.
    ///
    /// Errors: a program that makes it is not here or fails, or this is not root; then nothing is
    /// left at `dir`.
    pub fn make(self, dir: &Path, from: Option<&Path>) -> Result<()> {
        if dir.exists() {
            return Err(Error::failed(format!("{dir:?} exists already")).hint("name a folder that does not"));
        }
        made::whole(dir, |new| match self {
            Self::Debian => debian::root(new),
            Self::Desktop => debian::desktop(new),
            Self::Linux => debian::linux(new),
            Self::Media => debian::media(new),
            Self::Large => {
                let hint = "--from TREE names one; `packfs lab tree debian DIR` makes one";
                let from = from.ok_or_else(|| Error::usage("one large file is made of a tree").hint(hint))?;
                large::make(from, new, large::LEN)
            }
        })
    }
}

/// Makes a folder with one large file in it, of `len` bytes or as long as silesia.tar, of the files
/// of a tree.
///
/// Errors: as [`TreeKind::make`].
pub fn make_large(from: &Path, dir: &Path, len: Option<u64>) -> Result<()> {
    made::whole(dir, |new| large::make(from, new, len.unwrap_or(large::LEN)))
}

/// A folder, or a tar, that the user names, as plans have it.
///
/// Errors: it is not there, or cannot be read.
pub fn planned(path: &Path, id: Option<&str>, made_by: Option<&str>) -> Result<PlannedTree> {
    let path: PathBuf = path.canonicalize().map_err(|error| {
        Error::io(format!("cannot use {path:?} as a tree"), error).hint("`packfs lab tree` makes some")
    })?;
    let name = path.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned());
    let id = id.map_or(name, str::to_owned);
    let made_by = made_by.map_or_else(|| format!("given by the user: {}", path.display()), str::to_owned);
    let facts = TreeFacts { id, made_by, ..facts_of(&path)? };
    if facts.files == 0 {
        return Err(Error::failed(format!("{path:?} holds no file")).hint("there is nothing to measure"));
    }
    Ok(PlannedTree { facts, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_kinds() {
        assert_eq!(TREES.len(), TreeKind::Media as usize + 1);
        for row in TREES.iter() {
            assert_eq!(TreeKind::named(&row.name).unwrap().row().name, row.name);
        }
        assert!(TreeKind::named("suse").unwrap_err().hints()[0].contains("debian, desktop"));
    }

    #[test]
    fn a_tree_that_is_there_is_not_made_over() {
        let dir = tempfile::tempdir().unwrap();
        let error = TreeKind::Large.make(dir.path(), None).unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
        let new = dir.path().join("new");
        let error = TreeKind::Large.make(&new, None).unwrap_err();
        assert_eq!(error.kind(), packfs::ErrorKind::Usage);
        assert!(!new.exists());
    }

    #[test]
    fn an_empty_folder_is_no_tree() {
        let dir = tempfile::tempdir().unwrap();
        assert!(planned(dir.path(), None, None).unwrap_err().to_string().contains("no file"));
        std::fs::write(dir.path().join("a"), "abc").unwrap();
        let tree = planned(dir.path(), Some("mine"), None).unwrap();
        assert_eq!((&*tree.facts.id, tree.facts.files, tree.facts.bytes), ("mine", 1, 3));
    }
}
