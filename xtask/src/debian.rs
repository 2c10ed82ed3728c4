//! Fetching from Debian; missing programs for that are installed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use packfs_host::debian::{self, KEYRING};
pub use packfs_host::debian::{Archive, DESKTOP, LINUX_SOURCE, MEDIA};

use crate::failure::{Failure, Result};
use crate::shell;

/// A `debootstrap` that checks signatures.
pub struct Debootstrap {
    program: PathBuf,
    pub mirror: String,
}

impl Debootstrap {
    /// Finds debootstrap and the archive's keys; as root on a machine with apt, installs them if
    /// missing.
    pub fn find() -> Result<Self> {
        Ok(Self { program: ready("debootstrap")?, mirror: debian::mirror() })
    }

    /// Runs `debootstrap OPTIONS SUITE DIR MIRROR` with the smallest variant; shows output only of
    /// failures.
    pub fn run(&self, options: &[&str], packages: &[&str], suite: &str, dir: &Path) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(debian::debootstrap(options, packages, suite, dir));
        shell::run_quietly(command.env("PATH", debian::debootstrap_path()))
    }
}

/// An `mmdebstrap` that checks signatures. It resolves dependencies like apt, including recommended
/// packages, and unpacks fast.
pub struct Mmdebstrap {
    program: PathBuf,
}

impl Mmdebstrap {
    /// Finds mmdebstrap, like [`Debootstrap::find`].
    pub fn find() -> Result<Self> {
        Ok(Self { program: ready("mmdebstrap")? })
    }

    /// Unpacks packages (names or apt patterns) with their dependencies and recommended packages
    /// into a new folder, without configuring them.
    pub fn extract(&self, packages: &[&str], suite: &str, dir: &Path) -> Result<()> {
        shell::run_quietly(Command::new(&self.program).args(debian::mmdebstrap(packages, suite, dir)))
    }
}

/// Finds a program that fetches packages, and its requirements; as root on a machine with apt,
/// installs missing ones.
fn ready(program: &'static str) -> Result<PathBuf> {
    let mut missing = missing_packages(&[program, "dpkg-deb", "wget", "gpgv"]);
    if !Path::new(KEYRING).exists() {
        missing.push("debian-archive-keyring");
    }
    install(&missing)?;
    shell::find_program(program)
        .ok_or_else(|| Failure::new(format!("{program} is missing even after its installation")))
}

/// Checks that programs are present; as root on a machine with apt, installs missing ones.
pub fn need(programs: &[&'static str]) -> Result<()> {
    install(&missing_packages(programs))
}

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

/// Unpacks a package into `dir`.
pub fn extract(archive: &Archive, dir: &Path) -> Result<()> {
    shell::run_quietly(Command::new("dpkg-deb").arg("--extract").arg(&archive.path).arg(dir))
}

/// Returns the packages that `debootstrap --download-only` wrote to `dir`, by name.
pub fn downloaded(dir: &Path) -> Result<HashMap<String, Archive>> {
    debian::downloaded(dir).map_err(|error| Failure::new(error.to_string()))
}

pub fn empty_caches(root: &Path) -> Result<()> {
    debian::empty_caches(root).map_err(|error| Failure::new(error.to_string()))
}
