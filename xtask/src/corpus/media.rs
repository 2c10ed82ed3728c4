//! Incompressible files: pictures, music, web fonts, and downloaded packages.

use std::path::Path;

use crate::debian::{self, Debootstrap, MEDIA};
use crate::failure::{Failure, Result};
use crate::workspace;

const SUITE: &str = "bookworm";

/// Packages whose archives, compressed with XZ, are part of the corpus.
const KEPT: [&str; 3] = ["frozen-bubble-data", "neverball-data", "desktop-base"];

pub fn make(path: &Path) -> Result<()> {
    let made = path.with_extension("new");
    let download = path.with_extension("download");
    for dir in [&made, &download] {
        workspace::remove_dir(dir)?;
        workspace::make_dir(dir)?;
    }
    let packages = [&MEDIA[..], &KEPT].concat();
    Debootstrap::find()?.run(&["--download-only"], &packages, SUITE, &download)?;
    let archives = debian::downloaded(&download)?;
    let archive = |package: &str| {
        archives.get(package).ok_or_else(|| Failure::new(format!("Debian {SUITE} has no package {package}")))
    };
    for package in MEDIA {
        debian::extract(archive(package)?, &made.join(package))?;
    }
    let kept = made.join("packages");
    workspace::make_dir(&kept)?;
    for package in KEPT {
        let from = &archive(package)?.path;
        let to = kept.join(format!("{package}.deb"));
        std::fs::copy(from, to).map_err(|error| Failure::io("copy", from, error))?;
    }
    workspace::remove_dir(&download)?;
    workspace::remove_dir(path)?;
    std::fs::rename(&made, path).map_err(|error| Failure::io("move", &made, error))
}
