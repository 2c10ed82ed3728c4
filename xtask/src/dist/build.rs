//! Static programs of a target.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tools;
use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

const PROFILE: &str = "static";

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
        let zig = self.zig.unwrap_or(zig_path.is_some() && target.contains("-musl"));
        let build_std = self.check(target, zig, zig_path.is_some())?;
        eprintln!("building {target}{}", if zig { " by cargo zigbuild" } else { "" });
        let mut cargo = metadata::cargo();
        cargo.arg(if zig { "zigbuild" } else { "build" });
        cargo.args([
            "--profile",
            PROFILE,
            "--locked",
            "-p",
            "packfs-cli",
            "--bin",
            "packfs",
            "--target",
            target,
        ]);
        cargo.arg("--target-dir").arg(workspace::target());
        if build_std {
            // Stable compilers build their own library only if they are told to act like nightly.
            cargo.args(["-Z", "build-std=std,panic_unwind"]).env("RUSTC_BOOTSTRAP", "1");
        }
        if let Some(path) = zig_path.filter(|_| zig) {
            cargo.env("PATH", path);
        }
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(build_std && zig)?);
        shell::run(cargo.current_dir(workspace::root()))?;
        let program = workspace::target().join(target).join(PROFILE).join("packfs");
        check_static(&program)?;
        Ok(program)
    }

    /// Checks the requirements of a build; returns true if the standard library is to be built.
    fn check(&self, target: &str, zig: bool, has_zig: bool) -> Result<bool> {
        let build_std = self.build_std || !(has_library(target)? || self.fetch && fetched(target)?);
        if build_std && !self.build_std && !self.fetch {
            return Err(Failure::new(format!(
                "the Rust toolchain has no standard library for {target}\n\
                 hint: --fetch, `rustup target add {target}`, or install the component rust-src and give \
                 --build-std"
            )));
        }
        if zig && !has_zig {
            return Err(Failure::new(
                "cargo-zigbuild is missing\nhint: --fetch, or `pip install cargo-zigbuild`",
            ));
        }
        let is_foreign = !target.starts_with(std::env::consts::ARCH);
        let needs = if target.contains("-musl") && !is_foreign { Some("musl-gcc") } else { None };
        match needs {
            Some(program) if !zig && shell::find_program(program).is_none() => Err(Failure::new(format!(
                "{program} is missing, which compiles C for {target}\n\
                 hint: --fetch, install musl-tools, or `pip install cargo-zigbuild`"
            ))),
            _ => Ok(build_std),
        }
    }
}

/// Fetches the standard library of a target, or else its source; returns true for the former.
fn fetched(target: &str) -> Result<bool> {
    let Err(missing) = tools::fetch_library(target) else { return Ok(true) };
    eprintln!("{missing}\nbuilding the standard library from its source");
    tools::fetch_library_source().map(|()| false)
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

pub fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Returns flags of rustc: static linking, and paths that do not depend on the machine.
fn flags(from_zig: bool) -> Result<OsString> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let library = shell::capture(Command::new(rustc()).args(["--print", "sysroot"]))?;
    let library = PathBuf::from(library.trim()).join("lib/rustlib/src/rust");
    let mut flags = OsString::from("-Ctarget-feature=+crt-static");
    if from_zig {
        // zig has what the toolchain lacks, such as `crt1.o`.
        flags.push("\x1f-Clink-self-contained=no");
    }
    for (from, to) in [(Some(workspace::root()), "/packfs"), (home, "/cargo"), (Some(library), "/rust")] {
        if let Some(from) = from {
            flags.push("\x1f--remap-path-prefix=");
            flags.push(from);
            flags.push(format!("={to}"));
        }
    }
    Ok(flags)
}

/// Refuses a program that needs a dynamic loader.
fn check_static(program: &Path) -> Result<()> {
    let bytes = std::fs::read(program).map_err(|error| Failure::io("read", program, error))?;
    match loader(&bytes) {
        Some(false) => Ok(()),
        Some(true) => Err(Failure::new(format!("{} is linked dynamically", program.display()))),
        None => Err(Failure::new(format!("{} is no ELF program", program.display()))),
    }
}

/// Returns true if an ELF file, little endian, names a loader; none if it is no such file.
fn loader(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: &[u8] = &3_u32.to_le_bytes();
    let number = |at: usize, len: usize| {
        let mut number = [0; 8];
        number[..len].copy_from_slice(bytes.get(at..at + len)?);
        usize::try_from(u64::from_le_bytes(number)).ok()
    };
    // Positions in the headers of 32 and of 64 bits.
    let (table, word, len, count) = match bytes.get(..6)? {
        b"\x7fELF\x01\x01" => (28, 4, 42, 44),
        b"\x7fELF\x02\x01" => (32, 8, 54, 56),
        _ => return None,
    };
    let (len, count) = (number(len, 2)?, number(count, 2)?);
    let segments = bytes.get(number(table, word)?..)?.chunks_exact(len.max(1)).take(count);
    Some(segments.into_iter().any(|segment| segment.starts_with(INTERPRETER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and segments of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[32], bytes[54], bytes[56]) = (64, 56, types.len() as u8);
        for kind in types {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    fn elf32(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 52];
        bytes[..6].copy_from_slice(b"\x7fELF\x01\x01");
        (bytes[28], bytes[42], bytes[44]) = (52, 32, types.len() as u8);
        for kind in types {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 28]);
        }
        bytes
    }

    #[test]
    fn a_loader_is_found_among_the_segments() {
        for elf in [elf, elf32] {
            assert_eq!(loader(&elf(&[1, 3, 1])), Some(true));
            assert_eq!(loader(&elf(&[1, 1])), Some(false));
        }
        assert_eq!(loader(b"#!/bin/sh"), None);
    }

    #[test]
    fn this_test_is_linked_dynamically() {
        let program = std::env::current_exe().unwrap();
        assert!(check_static(&program).is_err());
    }
}
