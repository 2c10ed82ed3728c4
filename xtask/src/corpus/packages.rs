//! Files of Debian packages, unpacked and not configured: the same versions give the same files.

use std::path::Path;
use std::process::Command;

use crate::debian::{self, DESKTOP, Debootstrap, LINUX_SOURCE, MEDIA, Mmdebstrap};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

const SUITE: &str = "bookworm";

/// Packages whose archives, compressed with XZ, are part of `media`.
const KEPT: [&str; 3] = ["frozen-bubble-data", "neverball-data", "desktop-base"];

pub fn desktop(path: &Path) -> Result<()> {
    if !shell::is_root() {
        let why = "the desktop's root has files of many owners, so it can only be made as root";
        return Err(Failure::new(format!("{why}\nhint: sudo cargo xtask corpus desktop")));
    }
    workspace::replace(path, |new| Mmdebstrap::find()?.extract(&DESKTOP, "bullseye", new))
}

pub fn linux(path: &Path) -> Result<()> {
    workspace::replace(path, |new| {
        let download = path.with_extension("download");
        let root = download.join("package");
        with_packages(&download, &[LINUX_SOURCE], |archive| debian::extract(archive(LINUX_SOURCE)?, &root))?;
        workspace::make_dir(new)?;
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--strip-components=1", "--file"]);
        tar.arg(root.join(format!("usr/src/{LINUX_SOURCE}.tar.xz"))).arg("--directory").arg(new);
        shell::run_quietly(&mut tar)?;
        workspace::remove_dir(&download)
    })
}

/// Incompressible files: pictures, music, web fonts, and downloaded packages.
pub fn media(path: &Path) -> Result<()> {
    workspace::replace(path, |new| {
        let download = path.with_extension("download");
        let kept = new.join("packages");
        workspace::make_dir(&kept)?;
        with_packages(&download, &[&MEDIA[..], &KEPT].concat(), |archive| {
            MEDIA.iter().try_for_each(|package| debian::extract(archive(package)?, &new.join(package)))?;
            KEPT.iter().try_for_each(|package| {
                let from = &archive(package)?.path;
                let copied = std::fs::copy(from, kept.join(format!("{package}.deb")));
                copied.map(|_| ()).map_err(|error| Failure::io("copy", from, error))
            })
        })?;
        workspace::remove_dir(&download)
    })
}

type Archives<'a> = &'a dyn Fn(&str) -> Result<&'a debian::Archive>;

/// Fetches packages into a new folder, and calls `make` with what finds the archive of each.
fn with_packages(
    download: &Path,
    packages: &[&str],
    make: impl FnOnce(Archives<'_>) -> Result<()>,
) -> Result<()> {
    workspace::remove_dir(download)?;
    workspace::make_dir(download)?;
    Debootstrap::find()?.run(&["--download-only"], packages, SUITE, download)?;
    let archives = debian::downloaded(download)?;
    make(&|package| {
        archives.get(package).ok_or_else(|| Failure::new(format!("Debian {SUITE} has no package {package}")))
    })
}
