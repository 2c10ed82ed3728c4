//! Trying archives: each program packs, lists, checks, and unpacks, by an emulator if need be.

use std::path::Path;
use std::process::Command;

use super::{FORMS, TARGETS};
use crate::failure::{Failure, Result};
use crate::{debian, shell, workspace};

/// Emulators of `TARGETS`.
const EMULATORS: [&str; TARGETS.len()] = [
    "qemu-x86_64-static",
    "qemu-aarch64-static",
    "qemu-arm-static",
    "qemu-riscv64-static",
    "qemu-i386-static",
];

pub fn run(folder: &Path) -> Result<()> {
    let files = workspace::files_below(folder)?;
    let has = |target: &str| {
        let end = format!("-{target}.{}", FORMS[0]);
        files.iter().any(|file| file.to_string_lossy().ends_with(&end))
    };
    let found: Vec<_> = TARGETS.into_iter().zip(EMULATORS).filter(|(target, _)| has(target)).collect();
    if found.is_empty() {
        return Err(Failure::new(format!("{} has no archives\nhint: cargo xtask dist", folder.display())));
    }
    for (target, emulator) in found {
        let mut script = Command::new(workspace::root().join("integration/builds/static.sh"));
        script.env("TARGET", target).env("DIST", folder).env_remove("RUN");
        if !target.starts_with(std::env::consts::ARCH) {
            debian::need(&[emulator])?;
            script.env("RUN", emulator);
        }
        shell::run(&mut script)?;
    }
    Ok(())
}
