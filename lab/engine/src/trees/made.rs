//! Trees are made beside their place and get their name once they are whole.

use std::path::{Path, PathBuf};

use packfs::{Error, Result, ResultExt};

use super::part::part_of;
use crate::process::{self, Invocation, Output};
use crate::undo::Undo;
use crate::workload::{as_list, files_of};

/// Calls `make` with a folder beside `dir` that does not exist, and renames what it made. Whatever
/// fails, or is stopped, leaves nothing.
pub(super) fn whole(dir: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let new = beside(dir)?;
    let gone = new.clone();
    let undo = Undo::new(format!("remove {new:?}"), move || match std::fs::remove_dir_all(&gone) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format!("cannot remove {gone:?}"), error))
        }
        _ => Ok(()),
    });
    make(&new)?;
    std::fs::rename(&new, dir).or_io(|| format!("cannot move {new:?} to {dir:?}"))?;
    undo.forget();
    Ok(())
}

fn beside(dir: &Path) -> Result<PathBuf> {
    let no_name = || Error::usage(format!("{dir:?} is no name for a folder"));
    let mut name = dir.file_name().ok_or_else(no_name)?.to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).or_io(|| format!("cannot make {parent:?}"))?;
    Ok(parent.join(name))
}

/// Copies whole folders of `tree`, drawn by lot, about `bytes` of files, and all below `wanted`, to
/// `dir`. Only files are copied, and the folders they need.
pub fn make_part(tree: &Path, bytes: u64, wanted: &[impl AsRef<Path>], seed: u64, dir: &Path) -> Result<()> {
    let part = part_of(&files_of(tree)?, bytes, wanted, seed);
    whole(dir, |new| {
        std::fs::create_dir(new).or_io(|| format!("cannot make {new:?}"))?;
        let list = dir.with_extension("list");
        std::fs::write(&list, as_list(&part)).or_io(|| format!("cannot write {list:?}"))?;
        let copied = copy(tree, &list, new);
        let _ = std::fs::remove_file(&list);
        copied
    })
}

fn copy(tree: &Path, list: &Path, dir: &Path) -> Result<()> {
    let tar = dir.with_extension("tar");
    let pack = Invocation::new("tar").args(["--create", "--format=posix", "--xattrs", "--xattrs-include=*"]);
    let pack = pack.arg("--file").arg(&tar).arg("--directory").arg(tree);
    let pack = pack.args(["--null", "--no-recursion", "--verbatim-files-from", "--files-from"]).arg(list);
    let unpack =
        Invocation::new("tar").args(["--extract", "--xattrs", "--xattrs-include=*", "--same-permissions"]);
    let unpack = unpack.arg("--file").arg(&tar).arg("--directory").arg(dir);
    let outcome = process::run(&pack, &Output::Null, &[])
        .and_then(|_| process::run(&unpack, &Output::Null, &[]))
        .map(drop);
    let _ = std::fs::remove_file(&tar);
    outcome
}

/// A tar of a tree with all it holds, in the order of names.
pub fn make_tar(tree: &Path, tar: &Path) -> Result<()> {
    let command =
        Invocation::new("tar").args(["--create", "--format=posix", "--numeric-owner", "--sort=name"]);
    let command = command.args(["--xattrs", "--xattrs-include=*", "--file"]).arg(tar);
    process::run(&command.arg("--directory").arg(tree).arg("."), &Output::Null, &[]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("tree");
        let error = whole(&at, |new| {
            std::fs::create_dir(new).unwrap();
            Err(Error::failed("no luck"))
        });
        assert_eq!(error.unwrap_err().to_string(), "no luck");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_part_is_a_tree_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, part) = (dir.path().join("tree"), dir.path().join("part"));
        for (path, len) in [("usr/bin/sh", 500), ("a/x y", 100), ("b/z", 5000)] {
            std::fs::create_dir_all(tree.join(path).parent().unwrap()).unwrap();
            std::fs::write(tree.join(path), vec![1; len]).unwrap();
        }
        make_part(&tree, 700, &["usr/bin"], 1, &part).unwrap();
        assert_eq!(std::fs::read(part.join("usr/bin/sh")).unwrap().len(), 500);
        assert_eq!(std::fs::read(part.join("a/x y")).unwrap().len(), 100);
        assert!(!part.join("b").exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
