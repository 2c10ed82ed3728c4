//! The Linux source in Debian's package.

use std::path::Path;
use std::process::Command;

use crate::debian::{self, Debootstrap, LINUX_SOURCE as SOURCE};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

const SUITE: &str = "bookworm";

pub fn make(path: &Path) -> Result<()> {
    let made = path.with_extension("new");
    workspace::remove_dir(&made)?;
    workspace::make_dir(&made)?;
    Debootstrap::find()?.run(&["--download-only"], &[SOURCE], SUITE, &made)?;
    let archive = debian::downloaded(&made)?
        .remove(SOURCE)
        .ok_or_else(|| Failure::new(format!("Debian {SUITE} has no package {SOURCE}")))?;
    let root = made.join("package");
    debian::extract(&archive, &root)?;
    let tar = root.join(format!("usr/src/{SOURCE}.tar.xz"));
    shell::run_quietly(
        Command::new("tar").arg("--extract").arg("--file").arg(&tar).arg("--directory").arg(&made),
    )?;
    workspace::remove_dir(path)?;
    let tree = made.join(SOURCE);
    std::fs::rename(&tree, path).map_err(|error| Failure::io("move", &tree, error))?;
    workspace::remove_dir(&made)
}
