//! Other people's tools: the newest ones if `cargo xtask peers` fetched them, else installed ones
//! whose version the test is written for.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Programs that differ between versions in what tests hold them to: the oldest version that tests
/// are written for, unless they say otherwise (`peer_since`), and the option that makes the program
/// tell its version.
///
/// sqfstar 4.5.1 has a data race: under load it writes damaged images of archives with files that
/// are nearly all zeros (64 of 182 images here); 4.7.5 wrote 6,800 without one.
const WRITTEN_FOR: [(&str, &str, &str); 22] = [
    ("mksquashfs", "4.5", "-version"),
    ("unsquashfs", "4.5", "-version"),
    ("sqfstar", "4.7", "-version"),
    ("sqfscat", "4.5", "-version"),
    ("gensquashfs", "1.3", "--version"),
    ("rdsquashfs", "1.3", "--version"),
    ("tar2sqfs", "1.3", "--version"),
    ("sqfs2tar", "1.3", "--version"),
    ("mkfs.erofs", "1.9", "-V"),
    ("fsck.erofs", "1.9", "-V"),
    ("dump.erofs", "1.9", "-V"),
    ("erofsfuse", "1.9", "--version"),
    ("squashfuse", "0.1.104", "--version"),
    ("squashfuse_ll", "0.1.104", "--version"),
    ("mke2fs", "1.47", "-V"),
    ("debugfs", "1.47", "-V"),
    ("e2fsck", "1.47", "-V"),
    ("mkfs.xfs", "6.1", "-V"),
    ("xfs_db", "6.1", "-V"),
    ("xfs_repair", "6.1", "-V"),
    ("mkfs.btrfs", "6.2", "--version"),
    ("btrfs", "6.2", "--version"),
];

/// A tool that is there.
#[derive(Clone, Debug)]
pub struct Peer {
    path: PathBuf,
}

impl Peer {
    /// Runs it. Panics if it cannot be started or fails, with what it printed.
    #[track_caller]
    pub fn run(&self, arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
        let output = self.command(arguments).output().unwrap_or_else(|e| panic!("{:?}: {e}", self.path));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?} failed with {}: {text}", self.path, output.status);
        output
    }

    /// Prepares to run it.
    pub fn command(&self, arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments);
        command
    }
}

/// Finds a tool. If it is missing, or an installed one of a version tests are not written for, the
/// test is skipped visibly, or fails where `PACKFS_PEERS=required`.
pub fn peer(name: &str) -> Option<Peer> {
    found_or_skipped(find(name, written_for(name).map(|row| row.1)))
}

/// Finds a peer as `peer` does, for a test with a minimum version of its own.
pub fn peer_since(name: &str, least: &str) -> Option<Peer> {
    found_or_skipped(find(name, Some(least)))
}

/// True if tests are written for a version of a program that was found by other means; says that
/// the test is skipped if not.
pub fn serves(name: &str, version: &str) -> bool {
    let Some(least) = written_for(name).map(|row| row.1) else { return true };
    let does = figures(version) >= figures(least);
    if !does {
        skip(&format!("{name} {least} or later is needed, version {version} is installed"));
    }
    does
}

fn written_for(name: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    WRITTEN_FOR.iter().find(|row| row.0 == name)
}

fn found_or_skipped(found: Result<PathBuf, String>) -> Option<Peer> {
    found.map_err(|why| skip(&why)).ok().map(|path| Peer { path })
}

/// Looks in `target/peers`, whose programs are what tests are written for, then in `PATH`; with
/// `PACKFS_PEERS=system` in `PATH` alone.
///
/// Errors: no such program, or one in `PATH` that is older than `least`, with the version found and
/// the one needed.
fn find(name: &str, least: Option<&str>) -> Result<PathBuf, String> {
    let fetched = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/bin")).join(name);
    if std::env::var("PACKFS_PEERS").as_deref() != Ok("system") && is_program(&fetched) {
        return Ok(fetched);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    installed(name, folders, least)
}

/// The first of a name in some folders.
fn installed(
    name: &str,
    mut folders: impl Iterator<Item = PathBuf>,
    least: Option<&str>,
) -> Result<PathBuf, String> {
    let path = folders.find_map(|folder| Some(folder.join(name)).filter(|path| is_program(path)));
    let path = path.ok_or_else(|| format!("{name} is missing; `cargo xtask peers` fetches it"))?;
    let Some(least) = least else { return Ok(path) };
    let version = version(&path, written_for(name).map_or("--version", |row| row.2));
    if version.as_deref().is_some_and(|version| figures(version) >= figures(least)) {
        return Ok(path);
    }
    let version = version.as_deref().unwrap_or("unknown");
    Err(format!(
        "{name} {least} or later is needed, {path:?} is version {version}; `cargo xtask peers` fetches it"
    ))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The version a program tells. Its exit status says nothing: old ones fail after they have told
/// it.
fn version(path: &Path, option: &str) -> Option<String> {
    let output = Command::new(path).arg(option).stdin(Stdio::null()).output().ok()?;
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    // squashfuse tells it on standard error, with options on standard output; others the other way
    // round. erofsfuse tells the version of fusermount3 before its own.
    let name = path.file_name()?.to_str()?;
    let mut own = said.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with(name));
    own.find_map(version_in).or_else(|| said.iter().find_map(|text| version_in(text)))
}

/// The first word that is figures with points between them.
fn version_in(said: &str) -> Option<String> {
    let mut words = said.split_whitespace().map(|word| word.trim_start_matches('v'));
    let is_version = |word: &&str| {
        word.contains('.') && word.split('.').next().is_some_and(|major| major.parse::<u32>().is_ok())
    };
    words.find(is_version).map(str::to_owned)
}

/// Figures that versions are compared by: the figures between points, up to the first that has
/// anything else in it.
fn figures(version: &str) -> Vec<u32> {
    let digits = |part: &str| part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
    let mut figures = vec![];
    for part in version.split('.') {
        let len = digits(part);
        figures.extend(part[..len].parse::<u32>());
        if len < part.len() {
            break;
        }
    }
    figures
}

/// Says that a test is skipped, or fails it where `PACKFS_PEERS=required`.
#[expect(clippy::print_stderr, reason = "the test harness captures it")]
pub fn skip(why: &str) {
    assert!(std::env::var("PACKFS_PEERS").as_deref() != Ok("required"), "PACKFS_PEERS=required, but {why}");
    eprintln!("skipped: {why}");
}

/// Returns true if the test runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a program that says something on standard output and on standard error, and
    /// fails.
    fn folder(name: &str, out: &str, err: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho '{out}'\necho '{err}' >&2\nexit 1\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn takes_an_installed_program_only_of_a_version_that_serves() {
        let cases = [
            ("mksquashfs", "mksquashfs version 4.5.1 (2022/03/17)", "", "4.5", true),
            ("mksquashfs", "mksquashfs version 4.5.1 (2022/03/17)", "", "4.7", false),
            ("mksquashfs", "mksquashfs version 4.10 (2030/01/01)", "", "4.7", true),
            ("mkfs.erofs", "mkfs.erofs 1.5", "usage: [options] FILE", "1.9", false),
            ("mkfs.erofs", "mkfs.erofs (erofs-utils) 1.9.4", "", "1.9", true),
            ("squashfuse", "  -h   --help", "squashfuse 0.1.104 (c) 2012 Dave", "0.5", false),
            ("squashfuse", "  -h   --help", "squashfuse 0.5.2 (c) 2012 Dave", "0.5", true),
            ("erofsfuse", "fusermount3 version: 3.14.0\nerofsfuse 1.5", "", "1.9", false),
            ("unsquashfs", "no version told", "", "4.5", false),
        ];
        for (name, out, err, least, serves) in cases {
            let folder = folder(name, out, err);
            let found = installed(name, [folder.path().to_owned()].into_iter(), Some(least));
            assert_eq!(found.is_ok(), serves, "{out} {err}: {found:?}");
            if let Err(why) = found {
                assert!(why.contains(least) && why.contains(name), "{why}");
            }
        }
    }

    #[test]
    fn names_a_program_that_is_missing() {
        let why = installed("mksquashfs", std::iter::empty(), None).unwrap_err();
        assert!(why.starts_with("mksquashfs is missing"), "{why}");
    }

    #[test]
    fn takes_any_version_of_a_program_that_does_not_matter() {
        let folder = folder("tar", "no version told", "");
        assert!(installed("tar", [folder.path().to_owned()].into_iter(), None).is_ok());
    }
}
