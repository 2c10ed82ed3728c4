//! Trees of Debian packages. Its mirror is the one that this machine's own apt uses.

use std::path::{Path, PathBuf};

use packfs::mount::is_root;
use packfs::{Error, Result, ResultExt};

use crate::process::{self, Invocation, Output};
use crate::programs;

/// The mirror for everybody, used where apt's configuration names none for Debian.
const MIRROR: &str = "http://deb.debian.org/debian";
/// Signatures of the archive are always checked, against these keys.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// What differs from one run to the next, below the root's `var`.
const CACHES: [&str; 5] = ["cache/apt", "cache/ldconfig", "lib/apt/lists", "log", "tmp"];
/// In the words of apt's patterns: the smallest system, what a user expects beside it, and the desktop.
const DESKTOP: [&str; 4] = ["?essential", "~prequired", "~pimportant", "task-xfce-desktop"];
const LINUX: &str = "linux-source-6.1";
/// JPEG and PNG, Vorbis, WebP, WOFF and WOFF2.
const MEDIA: [&str; 5] = [
    "plasma-workspace-wallpapers",
    "wesnoth-1.16-music",
    "gnome-backgrounds",
    "fonts-katex",
    "fonts-mathjax",
];

/// The smallest Debian 11.
pub(super) fn root(dir: &Path) -> Result<()> {
    need_root("it has device nodes and files of many owners")?;
    run(&debootstrap(&[], &[], "bullseye", dir)?)?;
    CACHES.iter().try_for_each(|cache| empty(&dir.join("var").join(cache)))
}

/// Packages of a desktop and all they recommend, unpacked and not configured: the same versions give the same files.
pub(super) fn desktop(dir: &Path) -> Result<()> {
    need_root("it has files of many owners")?;
    let command = Invocation::new(found("mmdebstrap", "Debian package mmdebstrap")?);
    let command = command.args(["--quiet", "--variant=extract", "--format=directory", "--keyring", KEYRING]);
    let command = command.arg("--aptopt=APT::Install-Recommends \"true\"");
    let command = command.args(DESKTOP.map(|package| format!("--include={package}")));
    run(&command.arg("bookworm").arg(dir).arg(mirror()))
}

/// The source of Linux in Debian 12.
pub(super) fn linux(dir: &Path) -> Result<()> {
    with_packages(dir, &[LINUX], |archives| {
        let unpacked = dir.join("package");
        extract(&archives[0], &unpacked)?;
        let tar = unpacked.join(format!("usr/src/{LINUX}.tar.xz"));
        let command = Invocation::new("tar").args(["--extract", "--strip-components=1", "--file"]).arg(tar);
        run(&command.arg("--directory").arg(dir))?;
        std::fs::remove_dir_all(&unpacked).or_io(|| format!("cannot remove {unpacked:?}"))
    })
}

/// Pictures, music and fonts.
pub(super) fn media(dir: &Path) -> Result<()> {
    with_packages(dir, &MEDIA, |archives| {
        MEDIA.iter().zip(archives).try_for_each(|(package, archive)| extract(archive, &dir.join(package)))
    })
}

/// Makes `dir`, fetches packages and calls `make` with their archives, in this order.
fn with_packages(dir: &Path, packages: &[&str], make: impl FnOnce(&[PathBuf]) -> Result<()>) -> Result<()> {
    let download = dir.join("download");
    std::fs::create_dir_all(&download).or_io(|| format!("cannot make {download:?}"))?;
    run(&debootstrap(&["--download-only"], packages, "bookworm", &download)?)?;
    let archives = download.join("var/cache/apt/archives");
    let names = std::fs::read_dir(&archives).or_io(|| format!("cannot list {archives:?}"))?;
    let paths: Vec<_> = names.flatten().map(|entry| entry.path()).collect();
    let archive = |package: &&str| {
        let start = format!("{package}_");
        let is_it =
            |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start));
        let missing = || Error::failed(format!("Debian bookworm has no package {package}"));
        paths.iter().find(is_it).cloned().ok_or_else(missing)
    };
    make(&packages.iter().map(archive).collect::<Result<Vec<_>>>()?)?;
    std::fs::remove_dir_all(&download).or_io(|| format!("cannot remove {download:?}"))
}

fn extract(archive: &Path, dir: &Path) -> Result<()> {
    run(&Invocation::new(found("dpkg-deb", "Debian package dpkg")?).arg("--extract").arg(archive).arg(dir))
}

fn debootstrap(options: &[&str], packages: &[&str], suite: &str, dir: &Path) -> Result<Invocation> {
    let command = Invocation::new(found("debootstrap", "Debian package debootstrap")?);
    let mut command = command.args(options).args(["--variant=minbase", "--keyring", KEYRING]);
    if !packages.is_empty() {
        command = command.arg(format!("--include={}", packages.join(",")));
    }
    // It calls programs such as chroot and mknod that an ordinary user's PATH may lack.
    let path = std::env::var("PATH").unwrap_or_default();
    Ok(command.arg(suite).arg(dir).arg(mirror()).env("PATH", format!("{path}:/usr/sbin:/sbin")))
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

/// Removes what a folder holds and keeps the folder.
fn empty(dir: &Path) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir).or_io(|| format!("cannot list {dir:?}"))? {
        let path = entry.or_io(|| format!("cannot list {dir:?}"))?.path();
        let is_folder = path.is_dir() && !path.is_symlink();
        let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.or_io(|| format!("cannot remove {path:?}"))?;
    }
    Ok(())
}

fn mirror() -> String {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = std::fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts.into_iter().find_map(|text| mirror_in(&text)).unwrap_or_else(|| MIRROR.to_owned())
}

/// The first archive in a sources file, of either syntax, that looks like Debian's main one.
fn mirror_in(sources: &str) -> Option<String> {
    let enabled = sources.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let places = enabled.filter(|line| line.starts_with("deb ") || line.starts_with("URIs:"));
    places.flat_map(str::split_whitespace).find_map(|word| {
        let place = word.trim_end_matches('/');
        (place.contains("://") && place.ends_with("/debian")).then(|| place.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::mirror_in;

    #[test]
    fn finds_the_mirror_in_both_syntaxes_and_passes_over_others() {
        let old = "# deb http://old/debian sid main\ndeb [arch=amd64] http://near.example/debian/ sid main\n";
        assert_eq!(mirror_in(old).as_deref(), Some("http://near.example/debian"));
        let new = "Types: deb\n# a note\nURIs: http://near.example/debian\nSuites: sid\n";
        assert_eq!(mirror_in(new).as_deref(), Some("http://near.example/debian"));
        assert_eq!(mirror_in("deb https://packages.example/apt cloud main\n"), None);
    }
}
