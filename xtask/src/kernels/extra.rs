//! Modules that Debian leaves out of its kernels, built from its kernel source with its headers.
//! Only the modules are compiled.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{one_of, read, write};
use crate::debian::{self, Archive};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

pub struct Module {
    pub name: &'static str,
    /// Folder in the kernel source.
    folder: &'static str,
    files: &'static [&'static str],
    flags: &'static str,
}

/// cramfs, for block devices.
pub const CRAMFS: Module = Module {
    name: "cramfs",
    folder: "fs/cramfs",
    files: &["inode.c", "internal.h", "uncompress.c"],
    flags: "-DCONFIG_CRAMFS_BLOCKDEV=1",
};

/// romfs, for block devices.
pub const ROMFS: Module = Module {
    name: "romfs",
    folder: "fs/romfs",
    files: &["super.c", "storage.c", "internal.h"],
    flags: "-DCONFIG_ROMFS_ON_BLOCK=1",
};

/// Package with the headers of the smallest kernel for virtual machines.
pub const HEADERS: &str = "linux-headers-cloud-amd64";

/// Package with a library that a tool of the kernel build needs.
const LIBELF: [&str; 2] = ["libelf1", "libelf1t64"];

/// Returns Debian's source package of a kernel.
pub fn source_package(version: &str) -> String {
    format!("linux-source-{version}")
}

pub fn need_tools() -> Result<()> {
    debian::need(&["make", "gcc", "tar", "xz"])
}

impl Module {
    /// Returns the recipe of a module, as a text that changes with it.
    pub fn recipe(&self) -> String {
        format!("{} {} {}", self.name, self.files.join(" "), self.flags)
    }

    /// Returns the Makefile of the module for the kernel build.
    fn makefile(&self) -> String {
        let objects = self.files.iter().filter_map(|file| file.strip_suffix(".c"));
        let objects: Vec<String> = objects.map(|name| format!("{name}.o")).collect();
        let Module { name, flags, .. } = self;
        format!("obj-m := {name}.o\n{name}-y := {}\nccflags-y += {flags}\n", objects.join(" "))
    }
}

pub struct Build {
    root: PathBuf,
    headers: PathBuf,
    source: PathBuf,
}

impl Build {
    /// Unpacks the needed packages into `root`, and moves paths of the headers' Makefile there.
    pub fn prepare(archives: &HashMap<String, Archive>, source: &str, root: &Path) -> Result<Self> {
        let is_needed = |name: &str| {
            let parts = ["linux-headers-", "linux-kbuild-"];
            parts.iter().any(|part| name.starts_with(part)) || name == source || LIBELF.contains(&name)
        };
        for (_, archive) in archives.iter().filter(|(name, _)| is_needed(name)) {
            debian::extract(archive, root)?;
        }
        let src = root.join("usr/src");
        let headers = one_of_folders(&src, "-cloud-amd64")?;
        let makefile = headers.join("Makefile");
        let text = String::from_utf8_lossy(&read(&makefile)?).into_owned();
        let there = format!("{}/", src.display());
        write(&makefile, text.replace("/usr/src/", &there).as_bytes())?;
        let source = one_of(&src, "linux-source-")?;
        Ok(Self { root: root.to_owned(), headers, source })
    }

    /// Builds a module and returns its bytes.
    pub fn module(&self, module: &Module) -> Result<Vec<u8>> {
        let at = self.root.join(module.name);
        workspace::make_dir(&at)?;
        let archive = self.source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let top = archive.strip_suffix(".tar.xz").unwrap_or(&archive);
        let mut tar = Command::new("tar");
        // Each file occurs once, so tar can stop early.
        tar.args(["--extract", "--xz", "--occurrence=1", "--strip-components=3", "--directory"]).arg(&at);
        tar.arg("--file").arg(&self.source);
        tar.args(module.files.iter().map(|file| format!("{top}/{}/{file}", module.folder)));
        shell::run_quietly(&mut tar)?;
        write(&at.join("Makefile"), module.makefile().as_bytes())?;

        let mut make = Command::new("make");
        make.arg("--directory").arg(&self.headers).arg(format!("M={}", at.display()));
        // The default compiler replaces the one that Debian used if that is not installed.
        let compiler = if shell::find_program("gcc-12").is_some() { "gcc-12" } else { "gcc" };
        make.arg(format!("CC={compiler}")).arg("modules");
        make.env("LD_LIBRARY_PATH", self.root.join("usr/lib/x86_64-linux-gnu"));
        shell::run_quietly(&mut make)?;
        let built = at.join(format!("{}.ko", module.name));
        shell::run_quietly(Command::new("strip").arg("--strip-debug").arg(&built))?;
        read(&built)
    }
}

/// Returns the only folder in `dir` whose name ends with `end`.
fn one_of_folders(dir: &Path, end: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(dir).map_err(|error| Failure::io("list", dir, error))?;
    let mut folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    folders
        .find(|path| path.to_string_lossy().ends_with(end))
        .ok_or_else(|| Failure::new(format!("{} has no *{end}", dir.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_makefile_names_what_is_compiled() {
        let text = CRAMFS.makefile();
        assert!(text.contains("cramfs-y := inode.o uncompress.o\n"), "{text}");
        assert!(CRAMFS.recipe().contains("internal.h"));
    }
}
