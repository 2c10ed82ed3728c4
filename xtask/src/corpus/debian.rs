//! A Debian root, and a tar archive of it.

use std::path::Path;
use std::process::Command;

use crate::debian::{self, Debootstrap};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

const RELEASES: [&str; 3] = ["bullseye", "bookworm", "trixie"];

/// Packages beyond the minimal system: ping has a file capability (an extended attribute), and the
/// others are in daily use.
const PACKAGES: [&str; 3] = ["iputils-ping", "file", "xz-utils"];

pub fn make_releases(path: &Path) -> Result<()> {
    workspace::replace(path, |new| {
        workspace::make_dir(new)?;
        RELEASES.iter().try_for_each(|release| make_root(release, &new.join(release)))
    })
}

pub fn make_root(suite: &str, path: &Path) -> Result<()> {
    if !shell::is_root() {
        let why = "the Debian root has device nodes and files of many owners, so it can only be made as root";
        return Err(Failure::new(format!("{why}\nhint: sudo cargo xtask corpus")));
    }
    Debootstrap::find()?.run(&[], &PACKAGES, suite, path)?;
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
