//! Static programs of a target.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tools;
use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

pub struct Builder {
    pub build_std: bool,
    /// Uses `cargo zigbuild`; none if the target and the machine decide.
    pub zig: Option<bool>,
    pub fetch: bool,
}

impl Builder {
    pub fn build(&self, target: &str) -> Result<PathBuf> {
        if self.fetch && self.zig != Some(false) && tools::zig_path().is_none() {
            tools::fetch_zig()?;
        }
        let zig_path = tools::zig_path();
        let zig = self.zig.unwrap_or(zig_path.is_some() && target.ends_with("-musl"));
        self.check(target, zig, zig_path.is_some())?;
        eprintln!("building {target}{}", if zig { " by cargo zigbuild" } else { "" });
        let mut cargo = metadata::cargo();
        cargo.arg(if zig { "zigbuild" } else { "build" });
        cargo.args(["--release", "--locked", "-p", "packfs-cli", "--bin", "packfs", "--target", target]);
        cargo.arg("--target-dir").arg(workspace::target());
        if self.build_std {
            // Stable compilers build their own library only if they are told to act like nightly.
            cargo.args(["-Z", "build-std=std,panic_unwind"]).env("RUSTC_BOOTSTRAP", "1");
        }
        if let Some(path) = zig_path.filter(|_| zig) {
            cargo.env("PATH", path);
        }
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags()).env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        shell::run(cargo.current_dir(workspace::root()))?;
        let program = workspace::target().join(target).join("release/packfs");
        check_static(&program)?;
        Ok(program)
    }

    /// Checks that the machine has what a build needs, and says what is missing.
    fn check(&self, target: &str, zig: bool, has_zig: bool) -> Result<()> {
        match has_library(target)? {
            true => {}
            false if self.build_std => {}
            false if self.fetch => tools::fetch_library(target)?,
            false => {
                return Err(Failure::new(format!(
                    "the Rust toolchain has no standard library for {target}\n\
                     hint: --fetch, `rustup target add {target}`, or install the component rust-src and give \
                     --build-std"
                )));
            }
        }
        if zig && !has_zig {
            return Err(Failure::new(
                "cargo-zigbuild is missing\nhint: --fetch, or `pip install cargo-zigbuild`",
            ));
        }
        let is_foreign = !target.starts_with(std::env::consts::ARCH);
        let needs = if target.ends_with("-musl") && !is_foreign { Some("musl-gcc") } else { None };
        match needs {
            Some(program) if !zig && shell::find_program(program).is_none() => Err(Failure::new(format!(
                "{program} is missing, which compiles C for {target}\n\
                 hint: --fetch, install musl-tools, or `pip install cargo-zigbuild`"
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns true if the toolchain has the standard library of a target.
fn has_library(target: &str) -> Result<bool> {
    let folder =
        shell::capture(Command::new(rustc()).args(["--print", "target-libdir", "--target", target]))?;
    let mut entries = std::fs::read_dir(folder.trim()).into_iter().flatten().flatten();
    Ok(entries.any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-")))
}

/// Fetches the standard library of a target unless the toolchain has it.
pub fn fetch_library(target: &str) -> Result<()> {
    if has_library(target)? { Ok(()) } else { tools::fetch_library(target) }
}

fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Returns flags of rustc: static linking, and paths that do not depend on the machine.
fn flags() -> OsString {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let mut flags = OsString::from("-Ctarget-feature=+crt-static");
    for (from, to) in [(Some(workspace::root()), "/packfs"), (home, "/cargo")] {
        if let Some(from) = from {
            flags.push("\x1f--remap-path-prefix=");
            flags.push(from);
            flags.push(format!("={to}"));
        }
    }
    flags
}

/// Refuses a program that needs a dynamic loader.
fn check_static(program: &Path) -> Result<()> {
    let bytes = std::fs::read(program).map_err(|error| Failure::io("read", program, error))?;
    match loader(&bytes) {
        Some(false) => Ok(()),
        Some(true) => Err(Failure::new(format!("{} is linked dynamically", program.display()))),
        None => Err(Failure::new(format!("{} is no 64-bit ELF program", program.display()))),
    }
}

/// Returns true if an ELF file of 64 bits, little endian, names a loader; none if it is no such
/// file.
fn loader(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: &[u8] = &3_u32.to_le_bytes();
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    bytes.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let table = usize::try_from(u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?)).ok()?;
    let (len, count) = (short(54)?, short(56)?);
    let segments = bytes.get(table..)?.chunks_exact(len.max(1)).take(count);
    Some(segments.into_iter().any(|segment| segment.starts_with(INTERPRETER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and segments of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = types.len() as u8;
        for kind in types {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_loader_is_found_among_the_segments() {
        assert_eq!(loader(&elf(&[1, 3, 1])), Some(true));
        assert_eq!(loader(&elf(&[1, 1])), Some(false));
        assert_eq!(loader(b"#!/bin/sh"), None);
    }

    #[test]
    fn this_test_is_linked_dynamically() {
        let program = std::env::current_exe().unwrap();
        assert!(check_static(&program).is_err());
    }
}
