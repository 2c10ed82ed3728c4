//! Requirements of builds for other targets: the standard library, and zig as compiler of C and
//! linker.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{shell, workspace};

/// Packages of PyPI that hold cargo-zigbuild and zig as programs.
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// Returns a `PATH` on which cargo-zigbuild and zig are, installed or fetched before.
pub fn zig_path() -> Option<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if shell::find_program("cargo-zigbuild").is_some() {
        return Some(path);
    }
    let folders = [folder().join("bin"), folder().join("ziglang")];
    let is_there = folders[0].join("cargo-zigbuild").is_file() && folders[1].join("zig").is_file();
    let all = folders.into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(all).ok().filter(|_| is_there)
}

/// Fetches cargo-zigbuild and zig into `target/tools/zig`.
pub fn fetch_zig() -> Result<()> {
    if shell::find_program("python3").is_none() {
        return Err(Failure::new("python3 is missing, which fetches cargo-zigbuild\nhint: --no-zig"));
    }
    eprintln!("fetching {} from PyPI", PACKAGES.join(", "));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"]).arg(folder()).args(PACKAGES);
    shell::run_quietly(&mut pip)
}

/// Returns zig's folder of C libraries.
pub fn zig_library() -> Option<PathBuf> {
    let mut zig = Command::new("python3");
    let env = shell::capture(zig.args(["-m", "ziglang", "env"]).env("PYTHONPATH", folder())).ok()?;
    let line = env.lines().find_map(|line| line.trim().strip_prefix(".lib_dir = \""))?;
    Some(PathBuf::from(line.strip_suffix("\",")?))
}

pub fn fetch_library(target: &str) -> Result<()> {
    rustup(&["target", "add", target])
}

pub fn fetch_library_source() -> Result<()> {
    rustup(&["component", "add", "rust-src"])
}

fn rustup(arguments: &[&str]) -> Result<()> {
    if shell::find_program("rustup").is_none() {
        return Err(Failure::new("rustup is missing, which fetches standard libraries\nhint: --build-std"));
    }
    shell::run_quietly(Command::new("rustup").args(arguments))
}

fn folder() -> PathBuf {
    workspace::target().join("tools/zig")
}
