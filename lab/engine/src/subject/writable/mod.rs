//! File systems that can be written, one file each, and LUKS below them.

mod btrfs;
mod compsize;
mod ext4;
mod luks;
mod xfs;

use std::ffi::CString;
use std::path::Path;

use packfs::mount::is_root;
use packfs::{Error, Result, ResultExt};
use rustix::mount::MountFlags;

use super::Found;
use super::drivers::has_driver;
use crate::process::{self, Invocation};
use crate::programs::Wanted;
use crate::results::{CodecUsage, Missing, Recipe};
use crate::scratch::Mounted;

/// Their names.
const FORMATS: [&str; 3] = ["btrfs", "ext4", "xfs"];

/// Whether a format is a file system that a tree is copied to, not an image that is made at once.
pub fn is_writable(format: &str) -> bool {
    FORMATS.contains(&format)
}

/// A file system that a tree is copied to, by its name: as recipes name formats, and as the kernel names its driver. All
/// needs root.
pub type WritableFs = Found<Writes>;

/// How a file system is made, and what its mount is told.
pub struct Writes {
    /// What its maker is told before what the recipe says.
    options: &'static [&'static str],
    /// See [`WritableFs::mount_options`].
    mount_options: fn(&Recipe) -> Result<String, Missing>,
    /// See [`WritableFs::usage`].
    usage: fn(&Path) -> Result<Vec<CodecUsage>>,
}

/// Of those that have neither codecs nor blocks to choose.
const PLAIN: Writes = Writes { options: &[], mount_options: plain_options, usage: |_| Ok(vec![]) };

impl WritableFs {
    /// What to run to make an empty one on a device, or why there is none like this. LUKS is not part of it.
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

    /// What a mount is told, `compress=zstd:1`, or why it cannot be told that.
    pub fn mount_options(&self, recipe: &Recipe) -> Result<String, Missing> {
        (self.kind.mount_options)(recipe)
    }

    /// Makes an empty one on a block device, on LUKS if the recipe says so; whatever the device holds is lost.
    ///
    /// Errors: what cannot be made, the program's own, and with LUKS a kernel that has no device mapper.
    pub fn make(&self, recipe: &Recipe, device: &Path) -> Result<()> {
        // Found out before anything is written.
        let command = self.command(recipe, device).map_err(failed)?;
        if !recipe.luks {
            return process::capture(&command, false).map(drop);
        }
        luks::format(device)?;
        let opened = luks::Opened::new(device)?;
        process::capture(&self.command(recipe, opened.device()).map_err(failed)?, false)?;
        opened.close()
    }

    /// Mounts one that this made on the same device, on `at`, a directory that exists.
    pub fn mount(&self, recipe: &Recipe, device: &Path, at: &Path) -> Result<Mounted> {
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
        rustix::mount::mount(&source, &at, self.name(), MountFlags::empty(), data.as_c_str())
            .or_io(cannot)?;
        Ok(Mounted::new(&at, None, below))
    }

    /// How much of what is mounted at `at` each codec holds; empty where there are none.
    pub fn usage(&self, at: &Path) -> Result<Vec<CodecUsage>> {
        (self.kind.usage)(at)
    }

    /// Bytes of its device that are taken, by data and by its own structures, once all is written.
    pub fn taken(&self, at: &Path) -> Result<u64> {
        sync(at)?;
        let stat = rustix::fs::statvfs(at).or_io(|| format!("cannot look at {at:?}"))?;
        Ok(stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize))
    }
}

/// All that are known, found or not.
pub(super) fn find() -> Vec<Result<WritableFs, Missing>> {
    vec![btrfs::find(), ext4::find(), xfs::find()]
}

/// What is not here of what they are measured with: LUKS below them (`luks`), the program that counts (`compsize`).
pub(super) fn missing_helpers() -> Vec<Missing> {
    luks::missing().into_iter().chain(compsize::find().err()).collect()
}

/// Looks for the program that makes a file system, and sees that this process may mount it.
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

/// That there is no such file system.
fn cannot(recipe: &Recipe, why: impl Into<String>) -> Missing {
    let level = recipe.level.map(|level| format!(":{level}")).unwrap_or_default();
    Missing { what: format!("{} {}{level}", recipe.format, recipe.codec), why: why.into() }
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
mod tests {
    use super::*;
    use crate::session::parse_recipe;

    /// `format codec[:level]`.
    fn recipe(of: &str) -> Recipe {
        parse_recipe(&format!("mkfs:{}", of.replace(' ', ":"))).unwrap()
    }

    #[test]
    fn refuses_another_format_and_blocks() {
        let fs = WritableFs::in_bin("xfs", PLAIN);
        let why = |of: &str| fs.command(&recipe(of), Path::new("/dev/loop7")).unwrap_err().why;
        assert!(why("btrfs none").contains("makes xfs only"));
        assert!(why("xfs none 4096").contains("blocks of xfs"));
        assert!(fs.command(&recipe("xfs none"), Path::new("/dev/loop7")).is_ok());
    }

    #[test]
    fn a_format_is_written_if_there_is_a_maker_of_it() {
        assert!(FORMATS.iter().all(|format| is_writable(format)));
        assert!(!is_writable("squashfs") && !is_writable("mkfs.xfs"));
        for fs in find().into_iter().flatten() {
            assert!(is_writable(fs.name()), "{}", fs.name());
        }
    }

    /// What is typed to make one.
    pub(super) fn made(fs: &WritableFs, of: &str) -> String {
        fs.command(&recipe(of), Path::new("/dev/loop7")).unwrap().spelled()
    }

    /// What its mount is told.
    pub(super) fn mounted(fs: &WritableFs, of: &str) -> Result<String, Missing> {
        fs.mount_options(&recipe(of))
    }
}
