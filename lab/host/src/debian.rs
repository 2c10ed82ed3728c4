//! Debian as a supplier of trees and programs: its mirror, what fetches from it, and what is taken
//! of it.
//!
//! Commands are told as words, without the program in front: who runs them looks for programs, and
//! tells failures, in a way of his own.

mod mirror;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use mirror::mirror;

/// Signatures of the archive are always checked, against these keys.
pub const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A desktop, in the words of apt's patterns: the smallest system, what a user expects beside it,
/// and XFCE.
pub const DESKTOP: [&str; 4] = ["?essential", "~prequired", "~pimportant", "task-xfce-desktop"];

/// The package of bookworm that holds the source of Linux, in a tar of the same name.
pub const LINUX_SOURCE: &str = "linux-source-6.1";

/// Packages of bookworm with files that do not compress: JPEG and PNG, Vorbis, WebP, WOFF and
/// WOFF2.
pub const MEDIA: [&str; 5] = [
    "plasma-workspace-wallpapers",
    "wesnoth-1.16-music",
    "gnome-backgrounds",
    "fonts-katex",
    "fonts-mathjax",
];

/// Folders that differ from one debootstrap to the next, below the root's `var`.
const CACHES: [&str; 5] = ["cache/apt", "cache/ldconfig", "lib/apt/lists", "log", "tmp"];

/// Words for debootstrap(8): the smallest variant of `suite` with `packages`, into `dir`,
/// signatures checked.
pub fn debootstrap(options: &[&str], packages: &[&str], suite: &str, dir: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = options.iter().map(OsString::from).collect();
    words.extend(["--variant=minbase", "--keyring", KEYRING].map(OsString::from));
    if !packages.is_empty() {
        words.push(format!("--include={}", packages.join(",")).into());
    }
    words.extend([suite.into(), dir.into(), mirror().into()]);
    words
}

/// `PATH` for debootstrap: it calls programs such as chroot and mknod that an ordinary user's may
/// lack.
pub fn debootstrap_path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Words for mmdebstrap(1): `packages`, which apt's patterns may name, and all they depend on or
/// recommend, unpacked to a new folder and not configured, so that the same versions give the same
/// files.
pub fn mmdebstrap(packages: &[&str], suite: &str, dir: &Path) -> Vec<OsString> {
    let fixed = ["--quiet", "--variant=extract", "--format=directory", "--keyring", KEYRING];
    let mut words: Vec<OsString> = fixed.map(OsString::from).into();
    words.push("--aptopt=APT::Install-Recommends \"true\"".into());
    words.extend(packages.iter().map(|package| format!("--include={package}").into()));
    words.extend([suite.into(), dir.into(), mirror().into()]);
    words
}

/// Empties what makes one debootstrap of the same packages differ from the next; the folders stay.
///
/// Errors: one of them cannot be emptied.
pub fn empty_caches(root: &Path) -> io::Result<()> {
    CACHES.iter().try_for_each(|cache| empty(&root.join("var").join(cache)))
}

fn empty(dir: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| at("list", dir, &error))?,
    };
    for entry in entries {
        let path = entry.map_err(|error| at("list", dir, &error))?.path();
        let is_folder = path.is_dir() && !path.is_symlink();
        let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(|error| at("remove", &path, &error))?;
    }
    Ok(())
}

/// A package that was downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Its path.
    pub path: PathBuf,
    /// Its version, with the epoch: `1:4.7.5-1`.
    pub version: String,
}

/// The packages that `debootstrap --download-only` left in `dir`, by name.
///
/// Errors: the folder of archives cannot be listed.
pub fn downloaded(dir: &Path) -> io::Result<HashMap<String, Archive>> {
    let dir = &dir.join("var/cache/apt/archives");
    let mut archives = HashMap::new();
    for entry in std::fs::read_dir(dir).map_err(|error| at("list", dir, &error))? {
        let path = entry.map_err(|error| at("list", dir, &error))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some((package, version)) = name_and_version(&name) {
            archives.insert(package, Archive { path, version });
        }
    }
    Ok(archives)
}

/// Reads `squashfs-tools_1%3a4.7.5-1_amd64.deb` as `squashfs-tools` and `1:4.7.5-1`.
fn name_and_version(file_name: &str) -> Option<(String, String)> {
    let mut parts = file_name.strip_suffix(".deb")?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some((name.to_owned(), version.replace("%3a", ":")))
}

fn at(verb: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_name_and_version_with_epoch_from_a_file_name() {
        let found = name_and_version("squashfs-tools_1%3a4.7.5-1_amd64.deb");
        assert_eq!(found, Some(("squashfs-tools".to_owned(), "1:4.7.5-1".to_owned())));
    }

    #[test]
    fn passes_over_files_that_are_no_packages() {
        let root = tempfile::tempdir().unwrap();
        let archives = root.path().join("var/cache/apt/archives");
        std::fs::create_dir_all(archives.join("partial")).unwrap();
        let path = archives.join("fonts-katex_0.16.4_all.deb");
        ["lock", "fonts-katex_0.16.4_all.deb"]
            .iter()
            .for_each(|name| std::fs::write(archives.join(name), "").unwrap());
        let found = downloaded(root.path()).unwrap();
        let archive = Archive { path, version: "0.16.4".into() };
        assert_eq!(found, HashMap::from([("fonts-katex".to_owned(), archive)]));
    }

    #[test]
    fn a_folder_without_downloads_is_named() {
        let error = downloaded(Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("cannot list /nowhere/var/cache/apt/archives"), "{error}");
    }

    #[test]
    fn empties_caches_and_keeps_their_folders_and_what_links_point_to() {
        let root = tempfile::tempdir().unwrap();
        let log = root.path().join("var/log");
        std::fs::create_dir_all(log.join("apt")).unwrap();
        let kept = root.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("file"), "").unwrap();
        std::fs::write(log.join("apt/history.log"), "").unwrap();
        std::os::unix::fs::symlink(&kept, log.join("link")).unwrap();
        empty_caches(root.path()).unwrap();
        assert_eq!(std::fs::read_dir(&log).unwrap().count(), 0);
        assert!(kept.join("file").exists());
    }

    #[test]
    fn packages_stand_where_debootstrap_and_mmdebstrap_look_for_them() {
        let words = debootstrap(&["--download-only"], &["a", "b"], "sid", Path::new("/to"));
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let fixed =
            ["--download-only", "--variant=minbase", "--keyring", KEYRING, "--include=a,b", "sid", "/to"];
        assert_eq!(words[..7], fixed);
        assert!(words[7].contains("://") && words.len() == 8, "{words:?}");
        assert!(!debootstrap(&[], &[], "sid", Path::new("/to")).iter().any(|word| word == "--include="));
        let words = mmdebstrap(&["a", "?essential"], "sid", Path::new("/to"));
        assert!(words.iter().any(|word| word == "--include=?essential"), "{words:?}");
    }
}
