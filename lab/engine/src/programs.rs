//! Finding programs, and asking them who they are.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::process::{self, Invocation};
use crate::results::{Missing, Program};

/// Folders of system programs, which not every user has on `PATH`.
const SYSTEM: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Folder of a checkout that `cargo xtask peers` fetches programs to.
const PEERS: &str = "target/peers/bin";

/// A program of others: its name, the option that makes it tell its version, and who brings it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub name: &'static str,
    pub version_option: &'static str,
    /// Its origin: `Debian package squashfs-tools`.
    pub from: &'static str,
}

impl Wanted {
    /// Looks for it, and asks for its version.
    ///
    /// A checkout's own programs come first, if this process runs in one or from one: they are the
    /// newest, and the ones that our documents speak of.
    pub(crate) fn find(&self) -> Result<Program, Missing> {
        let Some(path) = locate(self.name) else {
            let why = format!("{} is neither on PATH nor in {PEERS}; it comes with {}", self.name, self.from);
            return Err(Missing { what: self.name.into(), why });
        };
        // Some end with an error after they have told it.
        let said = process::capture(&Invocation::new(&path).arg(self.version_option), true)
            .map_err(|error| Missing { what: self.name.into(), why: format!("it does not run: {error}") })?;
        // erofsfuse tells the version of fusermount3 before its own.
        let own = said.lines().filter(|line| line.starts_with(self.name)).find_map(version_in);
        let version = own.or_else(|| version_in(&said)).unwrap_or("unknown").to_owned();
        Ok(Program { name: self.name.into(), version, path: Some(path.to_string_lossy().into_owned()) })
    }
}

impl Program {
    /// Runs it, with no argument yet.
    pub fn invocation(&self) -> Invocation {
        Invocation::new(self.path.as_deref().unwrap_or(&self.name))
    }

    /// Its abilities by its own help: versions and builds differ in their options.
    pub(crate) fn offers(&self) -> Offers {
        let help = process::capture(&self.invocation().arg("--help"), true).unwrap_or_default();
        Offers { help }
    }
}

pub(crate) struct Offers {
    help: String,
}

impl Offers {
    /// Finds a word in it, such as `--workers`, `level=` or `zstd`. A program that does not answer
    /// counts as the newest.
    pub(crate) fn has(&self, word: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let help = self.help.trim();
        let ends = |&(at, _): &(usize, &str)| {
            !help[..at].ends_with(is_part)
                && (word.ends_with('=') || !help[at + word.len()..].starts_with(is_part))
        };
        help.is_empty() || help.match_indices(word).any(|found| ends(&found))
    }
}

/// A program of this name: of a checkout, on `PATH`, or in a folder of system programs.
pub fn locate(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let peers = if wants_system_only() { vec![] } else { in_checkouts(PEERS) };
    let folders = peers.into_iter();
    let folders = folders.chain(std::env::split_paths(&path)).chain(SYSTEM.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| is_runnable(path))
}

/// True if what a checkout fetched is to be passed by: the same word that tells it to the tests.
fn wants_system_only() -> bool {
    std::env::var_os("PACKFS_PEERS").is_some_and(|value| value == "system")
}

pub(crate) fn in_checkout(path: &str) -> Option<PathBuf> {
    in_checkouts(path).into_iter().next()
}

fn in_checkouts(path: &str) -> Vec<PathBuf> {
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    let above = starts.iter().flatten().flat_map(|start| start.ancestors());
    above.map(|dir| dir.join(path)).filter(|found| found.exists()).collect()
}

fn is_runnable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The first word that looks like a version: figures with points between them, maybe behind `v` or
/// a name and a dash.
fn version_in(said: &str) -> Option<&str> {
    said.split(|c: char| c.is_whitespace() || "(),".contains(c)).find_map(|word| {
        let start = word.find(|c: char| c.is_ascii_digit())?;
        let (before, rest) = word.split_at(start);
        let len = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let version = rest[..len].trim_end_matches('.');
        let is_named = before.is_empty() || before.ends_with('v') || before.ends_with('-');
        (is_named && !before.contains('/') && version.contains('.')).then_some(version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version_in_what_programs_say() {
        let said = [
            ("mksquashfs version 4.7.5 (2026/03/01)\ncopyright (C) 2026", "4.7.5"),
            ("tar2sqfs (squashfs-tools-ng) 1.3.2\nCopyright (c) 2019", "1.3.2"),
            ("mkfs.btrfs, part of btrfs-progs v6.2", "6.2"),
            ("mke2fs 1.47.0 (5-Feb-2023)\n\tUsing EXT2FS Library version 1.47.0", "1.47.0"),
            ("fio-3.33", "3.33"),
            ("cryptsetup 2.6.1 flags: UDEV BLKID", "2.6.1"),
            ("mkdwarfs (v0.9.10, fuse version 35)", "0.9.10"),
        ];
        for (text, version) in said {
            assert_eq!(version_in(text), Some(version), "{text}");
        }
        assert_eq!(version_in("usage: a [OPTIONS] 2 files"), None);
    }

    #[test]
    fn knows_options_and_codecs_by_the_help() {
        let usage = " -d#  set output level\n -zX[,Y]  (Y=compression level)\n --chunksize=#\n";
        let old = Offers { help: format!("{usage}Available compressors are: lz4hc, lz4") };
        assert!(old.has("lz4") && old.has("lz4hc") && old.has("--chunksize"));
        assert!(!old.has("--workers") && !old.has("zstd") && !old.has("level=") && !old.has("--chunk"));
        let new = Offers { help: " -zX[,level=Y]\n   zstd\n --workers=#  set threads\n --tar=X".into() };
        assert!(new.has("level=") && new.has("zstd") && new.has("--workers") && new.has("--tar"));
        assert!(Offers { help: String::new() }.has("--workers"), "one that does not answer is the newest");
    }

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        let wanted = Wanted { name: "no-such-program", version_option: "-V", from: "no package" };
        let missing = wanted.find().unwrap_err();
        assert!(missing.why.contains("no-such-program") && missing.why.contains("no package"), "{missing:?}");
    }
}
