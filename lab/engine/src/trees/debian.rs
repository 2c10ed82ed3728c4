//! Trees of Debian packages.

use std::path::{Path, PathBuf};

use packfs::mount::is_root;
use packfs::{Error, Result, ResultExt};
use packfs_host::debian;

use crate::process::{self, Invocation, Output};
use crate::programs;

/// The smallest Debian 11.
pub(super) fn root(dir: &Path) -> Result<()> {
    need_root("it has device nodes and files of many owners")?;
    run(&debootstrap(&[], &[], "bullseye", dir)?)?;
    debian::empty_caches(dir).or_io(|| format!("cannot empty the caches of {dir:?}"))
}

/// Packages of a desktop and all they recommend, unpacked and not configured: the same versions
/// give the same files.
pub(super) fn desktop(dir: &Path) -> Result<()> {
    need_root("it has files of many owners")?;
    let program = found("mmdebstrap", "Debian package mmdebstrap")?;
    run(&Invocation::new(program).args(debian::mmdebstrap(&debian::DESKTOP, "bookworm", dir)))
}

/// The source of Linux in Debian 12.
pub(super) fn linux(dir: &Path) -> Result<()> {
    with_packages(dir, &[debian::LINUX_SOURCE], |archives| {
        let unpacked = dir.join("package");
        extract(&archives[0], &unpacked)?;
        let tar = unpacked.join(format!("usr/src/{}.tar.xz", debian::LINUX_SOURCE));
        let command = Invocation::new("tar").args(["--extract", "--strip-components=1", "--file"]).arg(tar);
        run(&command.arg("--directory").arg(dir))?;
        std::fs::remove_dir_all(&unpacked).or_io(|| format!("cannot remove {unpacked:?}"))
    })
}

pub(super) fn media(dir: &Path) -> Result<()> {
    with_packages(dir, &debian::MEDIA, |archives| {
        let both = debian::MEDIA.iter().zip(archives);
        both.into_iter().try_for_each(|(package, archive)| extract(archive, &dir.join(package)))
    })
}

/// Makes `dir`, fetches packages and calls `make` with their archives, in this order.
fn with_packages(dir: &Path, packages: &[&str], make: impl FnOnce(&[PathBuf]) -> Result<()>) -> Result<()> {
    let download = dir.join("download");
    std::fs::create_dir_all(&download).or_io(|| format!("cannot make {download:?}"))?;
    run(&debootstrap(&["--download-only"], packages, "bookworm", &download)?)?;
    let mut archives = debian::downloaded(&download).or_io(|| "no packages were downloaded".to_owned())?;
    let archive = |package: &&str| {
        let missing = || Error::failed(format!("Debian bookworm has no package {package}"));
        archives.remove(*package).map(|archive| archive.path).ok_or_else(missing)
    };
    make(&packages.iter().map(archive).collect::<Result<Vec<_>>>()?)?;
    std::fs::remove_dir_all(&download).or_io(|| format!("cannot remove {download:?}"))
}

fn extract(archive: &Path, dir: &Path) -> Result<()> {
    run(&Invocation::new(found("dpkg-deb", "Debian package dpkg")?).arg("--extract").arg(archive).arg(dir))
}

fn debootstrap(options: &[&str], packages: &[&str], suite: &str, dir: &Path) -> Result<Invocation> {
    let command = Invocation::new(found("debootstrap", "Debian package debootstrap")?);
    let command = command.args(debian::debootstrap(options, packages, suite, dir));
    Ok(command.env("PATH", debian::debootstrap_path()))
}

fn run(command: &Invocation) -> Result<()> {
    process::run(command, &Output::Null, &[]).map(drop)
}

fn found(program: &str, from: &str) -> Result<PathBuf> {
    programs::locate(program)
        .ok_or_else(|| Error::failed(format!("{program} is not here")).hint(format!("it comes with {from}")))
}

fn need_root(why: &str) -> Result<()> {
    if is_root() {
        return Ok(());
    }
    Err(Error::failed(format!("only root can make this tree: {why}")).hint("run the same with sudo"))
}
