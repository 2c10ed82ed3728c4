//! Debian as a supplier: its mirror and its `debootstrap`.
//!
//! The mirror is the one this machine's own apt uses, so that a machine behind a mirror of its own keeps to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// The mirror for everybody, used where apt's configuration names none for Debian.
const MIRROR: &str = "http://deb.debian.org/debian";

/// Signatures of the archive are always checked, against these keys.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A `debootstrap` that checks signatures, ready to be given a suite and a folder.
pub struct Debootstrap {
    program: PathBuf,
    pub mirror: String,
}

impl Debootstrap {
    /// Finds debootstrap and the archive's keys; as root on a machine with apt, installs what is missing.
    pub fn find() -> Result<Self> {
        Ok(Self { program: ready("debootstrap")?, mirror: mirror() })
    }

    /// Runs `debootstrap OPTIONS SUITE DIR MIRROR` with the smallest variant, quietly unless it fails.
    pub fn run(&self, options: &[&str], packages: &[&str], suite: &str, dir: &Path) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(options).args(["--variant=minbase", "--keyring", KEYRING]);
        if !packages.is_empty() {
            command.arg(format!("--include={}", packages.join(",")));
        }
        command.arg(suite).arg(dir).arg(&self.mirror);
        // It calls programs such as chroot and mknod that an ordinary user's PATH may lack.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        shell::run_quietly(&mut command)
    }
}

/// An `mmdebstrap` that checks signatures: it solves what apt solves, recommendations too, and is quick to unpack.
pub struct Mmdebstrap {
    program: PathBuf,
}

impl Mmdebstrap {
    /// Finds it as [`Debootstrap::find`] does.
    pub fn find() -> Result<Self> {
        Ok(Self { program: ready("mmdebstrap")? })
    }

    /// Unpacks packages, which apt's patterns may name, and all they depend on or recommend, into a new folder;
    /// nothing is configured.
    pub fn extract(&self, packages: &[&str], suite: &str, dir: &Path) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["--quiet", "--variant=extract", "--format=directory", "--keyring", KEYRING]);
        command.arg("--aptopt=APT::Install-Recommends \"true\"");
        command.args(packages.iter().map(|package| format!("--include={package}")));
        shell::run_quietly(command.arg(suite).arg(dir).arg(mirror()))
    }
}

/// Finds a program that fetches packages, and what it needs; as root on a machine with apt, installs what is missing.
fn ready(program: &'static str) -> Result<PathBuf> {
    let mut missing = missing_packages(&[program, "dpkg-deb", "wget", "gpgv"]);
    if !Path::new(KEYRING).exists() {
        missing.push("debian-archive-keyring");
    }
    install(&missing)?;
    shell::find_program(program)
        .ok_or_else(|| Failure::new(format!("{program} is missing even after its installation")))
}

/// Makes sure of programs; as root on a machine with apt, installs what is missing.
pub fn need(programs: &[&'static str]) -> Result<()> {
    install(&missing_packages(programs))
}

/// The packages of the programs that are not there.
fn missing_packages(programs: &[&'static str]) -> Vec<&'static str> {
    let missing = programs.iter().filter(|program| shell::find_program(program).is_none());
    let package = |program: &&'static str| match *program {
        "dpkg-deb" => "dpkg",
        "xz" => "xz-utils",
        same => same,
    };
    missing.map(package).collect()
}

fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let words = packages.join(" ");
    if !shell::is_root() || shell::find_program("apt-get").is_none() {
        let hint = "install it with your package manager, or run this as root on a machine with apt-get";
        return Err(Failure::new(format!("missing on this machine: {words}\nhint: {hint}")));
    }
    eprintln!("installing {words}");
    let apt = |verb: &str, packages: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args([verb, "-qq", "-y"]);
        shell::run_quietly(command.args(packages))
    };
    apt("update", &[])?;
    apt("install", &[&["--no-install-recommends"], packages].concat())
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

/// A downloaded package.
pub struct Archive {
    pub path: PathBuf,
    pub version: String,
}

impl Archive {
    /// Unpacks it into `dir`.
    pub fn extract(&self, dir: &Path) -> Result<()> {
        shell::run_quietly(Command::new("dpkg-deb").arg("--extract").arg(&self.path).arg(dir))
    }
}

/// The packages that `debootstrap --download-only` left in `dir`, by name.
pub fn downloaded(dir: &Path) -> Result<HashMap<String, Archive>> {
    let dir = &dir.join("var/cache/apt/archives");
    let entries = std::fs::read_dir(dir).map_err(|error| Failure::io("list", dir, error))?;
    let mut archives = HashMap::new();
    for entry in entries {
        let path = entry.map_err(|error| Failure::io("list", dir, error))?.path();
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

#[cfg(test)]
mod tests {
    use super::{mirror_in, name_and_version};

    #[test]
    fn finds_the_mirror_in_both_syntaxes() {
        let old = "# deb http://old/debian sid main\ndeb [arch=amd64] http://near.example/debian/ sid main\n";
        assert_eq!(mirror_in(old).as_deref(), Some("http://near.example/debian"));
        let new = "Types: deb\n# a note\nURIs: http://near.example/debian\nSuites: sid\n";
        assert_eq!(mirror_in(new).as_deref(), Some("http://near.example/debian"));
    }

    #[test]
    fn passes_over_archives_of_others() {
        assert_eq!(mirror_in("deb https://packages.example/apt cloud main\n"), None);
        assert_eq!(mirror_in("URIs: http://near.example/debian-security\n"), None);
    }

    #[test]
    fn reads_name_and_version_with_epoch_from_a_file_name() {
        let found = name_and_version("squashfs-tools_1%3a4.7.5-1_amd64.deb");
        assert_eq!(found, Some(("squashfs-tools".to_owned(), "1:4.7.5-1".to_owned())));
    }

    #[test]
    fn passes_over_files_that_are_no_packages() {
        assert_eq!(name_and_version("lock"), None);
    }
}
