//! Filesystems that can be written, a row each, and LUKS below them.

mod compsize;
mod luks;

use std::ffi::CString;
use std::path::Path;

use packfs::mount::is_root;
use packfs::{Error, Result, ResultExt};
use rustix::mount::MountFlags;

use super::Installed;
use super::drivers::has_driver;
use crate::process::{self, Invocation};
use crate::programs::Wanted;
use crate::results::{CodecUsage, Missing, Recipe};
use crate::scratch::Mounted;

/// Every filesystem: its name, the program that makes it, and how that is called.
const ROWS: [(&str, Wanted, Writes); 3] = [
    (
        "btrfs",
        Wanted { name: "mkfs.btrfs", version_option: "--version", from: "Debian package btrfs-progs" },
        // See btrfs(5).
        Writes { options: &["-q", "-f"], codecs: &[("lzo", 0), ("zlib", 9), ("zstd", 15)] },
    ),
    (
        "ext4",
        Wanted { name: "mkfs.ext4", version_option: "-V", from: "Debian package e2fsprogs" },
        // By default the kernel would write inode tables later, while something is measured.
        Writes { options: &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], codecs: &[] },
    ),
    (
        "xfs",
        Wanted { name: "mkfs.xfs", version_option: "-V", from: "Debian package xfsprogs" },
        Writes { options: &["-q", "-f"], codecs: &[] },
    ),
];

/// Returns true if a format is a filesystem that a tree is copied to, not an image that is made at
/// once.
pub fn is_writable(format: &str) -> bool {
    ROWS.iter().any(|(name, ..)| *name == format)
}

/// A file system that a tree is copied to, by its name: as recipes name formats, and as the kernel
/// names its driver. All needs root.
pub type WritableFs = Installed<Writes>;

/// Options of a filesystem's maker and of its mount.
pub struct Writes {
    /// Arguments before those of the recipe.
    options: &'static [&'static str],
    /// Codecs that its mount compresses with, and their highest levels; 0 for codecs without
    /// levels.
    codecs: &'static [(&'static str, i32)],
}

impl WritableFs {
    /// Returns the command that makes an empty one on a device, or why there is none like this.
    /// LUKS is not part of it.
    pub fn command(&self, recipe: &Recipe, device: &Path) -> Result<Invocation, Missing> {
        if recipe.format != self.name {
            return Err(cannot(recipe, format!("{} makes {} only", self.program.name, self.name)));
        }
        if recipe.block_len.is_some() {
            return Err(cannot(recipe, format!("blocks of {} are not chosen; leave them out", self.name)));
        }
        // What cannot be mounted like this is not made like this.
        self.mount_options(recipe)?;
        Ok(self.program.invocation().args(self.kind.options).args(&recipe.options).arg(device))
    }

    /// Returns the options of a mount, `compress=zstd:1`, or why it has none like this.
    pub fn mount_options(&self, recipe: &Recipe) -> Result<String, Missing> {
        if recipe.codec == "none" || self.kind.codecs.is_empty() {
            return plain_options(recipe);
        }
        let known = self.kind.codecs;
        let Some((codec, highest)) = known.iter().find(|(codec, _)| *codec == recipe.codec) else {
            let names: Vec<_> = known.iter().map(|(codec, _)| *codec).collect();
            let (last, others) = names.split_last().unwrap_or((&"none", &[]));
            let why = format!("{} knows {} and {last} only", self.name, others.join(", "));
            return Err(cannot(recipe, why));
        };
        match recipe.level {
            None => Ok(format!("compress={codec}")),
            Some(level) if (1..=*highest).contains(&level) => Ok(format!("compress={codec}:{level}")),
            Some(_) => Err(cannot(recipe, format!("{} has no such level", self.name))),
        }
    }

    /// Makes an empty one on a block device, on LUKS if the recipe says so; whatever the device
    /// holds is lost.
    ///
    /// Errors: what cannot be made, the program's own, and with LUKS a kernel that has no device
    /// mapper.
    pub fn make(&self, recipe: &Recipe, device: &Path) -> Result<()> {
        // Installed out before anything is written.
        let command = self.command(recipe, device).map_err(failed)?;
        if !recipe.luks {
            return process::capture(&command, false).map(drop);
        }
        luks::format(device)?;
        let opened = luks::Opened::new(device)?;
        process::capture(&self.command(recipe, opened.device()).map_err(failed)?, false)?;
        opened.close()
    }

    /// Mounts one that this made on the same device, on `at`, a directory that exists, with
    /// `flags` (`RDONLY` where it is read).
    pub fn mount(&self, recipe: &Recipe, device: &Path, at: &Path, flags: MountFlags) -> Result<Mounted> {
        let options = self.mount_options(recipe).map_err(failed)?;
        let at = at.canonicalize().or_io(|| format!("cannot find {at:?}"))?;
        let mut below = vec![];
        let mut source = device.to_owned();
        if recipe.luks {
            let opened = luks::Opened::new(device)?;
            source = opened.device().to_owned();
            below.push(opened.into_undo());
        }
        let cannot = || format!("the kernel does not mount {source:?} as {} ({options})", self.name());
        let data = CString::new(options.as_str()).map_err(|_| Error::usage("options hold a NUL"))?;
        rustix::mount::mount(&source, &at, self.name(), flags, data.as_c_str()).or_io(cannot)?;
        Ok(Mounted::new(&at, None, below))
    }

    /// Returns the bytes of each codec on the filesystem that is mounted at `at`; empty where there
    /// are none.
    pub fn usage(&self, at: &Path) -> Result<Vec<CodecUsage>> {
        if self.kind.codecs.is_empty() { Ok(Vec::new()) } else { compsize::of(at) }
    }

    /// Bytes of its device that are taken, by data and by its own structures, once all is written.
    pub fn taken(&self, at: &Path) -> Result<u64> {
        sync(at)?;
        let stat = rustix::fs::statvfs(at).or_io(|| format!("cannot look at {at:?}"))?;
        Ok(stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize))
    }
}

pub(super) fn find() -> Vec<Result<WritableFs, Missing>> {
    ROWS.map(|(name, wanted, kind)| find_mkfs(name, &wanted, kind)).into()
}

/// Returns missing helpers: LUKS (`luks`), and the program that counts (`compsize`).
pub(super) fn missing_helpers() -> Vec<Missing> {
    luks::missing().into_iter().chain(compsize::find().err()).collect()
}

fn find_mkfs(name: &'static str, wanted: &Wanted, kind: Writes) -> Result<WritableFs, Missing> {
    let missing = |why: &str| Missing { what: wanted.name.into(), why: why.into() };
    if !is_root() {
        return Err(missing("only root makes and mounts file systems; run this with sudo"));
    }
    if !has_driver(name) {
        return Err(missing(&format!("this kernel has no driver for {name}")));
    }
    Ok(WritableFs { name, program: wanted.find()?, kind })
}

fn cannot(recipe: &Recipe, why: impl Into<String>) -> Missing {
    Missing { what: format!("{} {}", recipe.format, recipe.codec_and_level()), why: why.into() }
}

/// Nothing, as it has neither codecs nor levels to choose.
fn plain_options(recipe: &Recipe) -> Result<String, Missing> {
    if recipe.codec != "none" || recipe.level.is_some() {
        return Err(cannot(recipe, format!("{} compresses nothing", recipe.format)));
    }
    Ok(String::new())
}

fn failed(missing: Missing) -> Error {
    Error::failed(format!("{}: {}", missing.what, missing.why))
}

/// Waits until all is on the device.
fn sync(at: &Path) -> Result<()> {
    let dir = std::fs::File::open(at).or_io(|| format!("cannot open {at:?}"))?;
    rustix::fs::syncfs(&dir).or_io(|| format!("cannot write out {at:?}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The filesystem of a maker, on no machine.
    pub(in crate::subject) fn named(maker: &str) -> WritableFs {
        let (name, wanted, kind) = ROWS.into_iter().find(|(_, wanted, _)| wanted.name == maker).unwrap();
        WritableFs { name, ..WritableFs::in_bin(wanted.name, kind) }
    }

    #[test]
    fn a_format_is_written_if_there_is_a_maker_of_it() {
        assert!(ROWS.iter().all(|(name, ..)| is_writable(name)));
        assert!(!is_writable("squashfs") && !is_writable("mkfs.xfs"));
    }
}
