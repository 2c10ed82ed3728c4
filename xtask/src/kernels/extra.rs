//! Modules that Debian leaves out of its kernels, built from its source of the kernel with its
//! headers: nothing but the module is compiled.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{one_of, read, write};
use crate::debian::{self, Archive};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

/// A module, and how it is built.
pub struct Module {
    pub name: &'static str,
    /// Its folder in the source of the kernel.
    folder: &'static str,
    /// Its files there, headers too.
    files: &'static [&'static str],
    /// What Debian's configuration does not switch on, for the compiler.
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

/// The headers of the smallest kernel for virtual machines.
pub const HEADERS: &str = "linux-headers-cloud-amd64";

/// The library that a tool of the kernel's build needs; a machine that builds none may lack it.
const LIBELF: [&str; 2] = ["libelf1", "libelf1t64"];

/// Debian's package of the source of a kernel.
pub fn source_package(version: &str) -> String {
    format!("linux-source-{version}")
}

/// Makes sure of the programs that build.
pub fn need_tools() -> Result<()> {
    debian::need(&["make", "gcc", "tar", "xz"])
}

impl Module {
    /// What it is built by, in words that change with it.
    pub fn recipe(&self) -> String {
        format!("{} {} {}", self.name, self.files.join(" "), self.flags)
    }

    /// Tells the kernel's build what the module is made of.
    fn makefile(&self) -> String {
        let objects = self.files.iter().filter_map(|file| file.strip_suffix(".c"));
        let objects: Vec<String> = objects.map(|name| format!("{name}.o")).collect();
        let Module { name, flags, .. } = self;
        format!("obj-m := {name}.o\n{name}-y := {}\nccflags-y += {flags}\n", objects.join(" "))
    }
}

/// Unpacked headers and source.
pub struct Build {
    root: PathBuf,
    headers: PathBuf,
    source: PathBuf,
}

impl Build {
    /// Unpacks what is needed of the packages into `root`, and leads what is meant for `/usr/src`
    /// there.
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

    /// Builds a module: its bytes.
    pub fn module(&self, module: &Module) -> Result<Vec<u8>> {
        let at = self.root.join(module.name);
        workspace::make_dir(&at)?;
        let archive = self.source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let top = archive.strip_suffix(".tar.xz").unwrap_or(&archive);
        let mut tar = Command::new("tar");
        // Each once, so that it need not read to the end.
        tar.args(["--extract", "--xz", "--occurrence=1", "--strip-components=3", "--directory"]).arg(&at);
        tar.arg("--file").arg(&self.source);
        tar.args(module.files.iter().map(|file| format!("{top}/{}/{file}", module.folder)));
        shell::run_quietly(&mut tar)?;
        write(&at.join("Makefile"), module.makefile().as_bytes())?;

        let mut make = Command::new("make");
        make.arg("--directory").arg(&self.headers).arg(format!("M={}", at.display()));
        // The compiler of this machine, where it lacks the one that Debian built the kernel with.
        let compiler = if shell::find_program("gcc-12").is_some() { "gcc-12" } else { "gcc" };
        make.arg(format!("CC={compiler}")).arg("modules");
        make.env("LD_LIBRARY_PATH", self.root.join("usr/lib/x86_64-linux-gnu"));
        shell::run_quietly(&mut make)?;
        let built = at.join(format!("{}.ko", module.name));
        shell::run_quietly(Command::new("strip").arg("--strip-debug").arg(&built))?;
        read(&built)
    }
}

/// The only folder in `dir` whose name ends so.
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
