//! A Debian root, and a tar archive of it.

use std::path::Path;
use std::process::Command;

use crate::debian::{self, Debootstrap};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

const SUITE: &str = "bookworm";

const RELEASES: [&str; 3] = ["bullseye", "bookworm", "trixie"];

/// Packages beyond the minimal system: ping has a file capability (an extended attribute), and the
/// others are in daily use.
const PACKAGES: [&str; 3] = ["iputils-ping", "file", "xz-utils"];

pub fn make_tree(path: &Path) -> Result<()> {
    let made = path.with_extension("new");
    workspace::remove_dir(&made)?;
    make_root(SUITE, &made)?;
    replace(path, &made)
}

/// Creates one root for each release, in adjacent folders.
pub fn make_releases(path: &Path) -> Result<()> {
    let made = path.with_extension("new");
    workspace::remove_dir(&made)?;
    workspace::make_dir(&made)?;
    for release in RELEASES {
        make_root(release, &made.join(release))?;
    }
    replace(path, &made)
}

/// Creates a folder that holds only a tar archive of the tree: one large file.
pub fn make_tar_folder(tree: &Path, path: &Path) -> Result<()> {
    let made = path.with_extension("new");
    workspace::remove_dir(&made)?;
    workspace::make_dir(&made)?;
    let name = tree.file_name().unwrap_or(tree.as_os_str());
    make_tar(tree, &made.join(name).with_extension("tar"))?;
    replace(path, &made)
}

fn replace(path: &Path, made: &Path) -> Result<()> {
    workspace::remove_dir(path)?;
    std::fs::rename(made, path).map_err(|error| Failure::io("move", made, error))
}

fn make_root(suite: &str, path: &Path) -> Result<()> {
    if !shell::is_root() {
        let why = "the Debian root has device nodes and files of many owners, so it can only be made as root";
        return Err(Failure::new(format!("{why}\nhint: sudo cargo xtask corpus")));
    }
    let debootstrap = Debootstrap::find()?;
    debootstrap.run(&[], &PACKAGES, suite, path)?;
    debian::empty_caches(path)
}

pub fn make_tar(tree: &Path, path: &Path) -> Result<()> {
    let made = path.with_extension("new");
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=posix", "--numeric-owner", "--sort=name", "--xattrs"]);
    tar.arg("--xattrs-include=*").arg("--file").arg(&made).arg("--directory").arg(tree).arg(".");
    shell::run_quietly(&mut tar)?;
    std::fs::rename(&made, path).map_err(|error| Failure::io("move", &made, error))
}
