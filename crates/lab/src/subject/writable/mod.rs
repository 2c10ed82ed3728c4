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

use super::has_driver;
use crate::process::{self, Invocation};
use crate::programs::Wanted;
use crate::results::{CodecUsage, Missing, Program, Recipe};
use crate::scratch::Mounted;

/// A file system that a tree is copied to. All needs root.
pub trait WritableFs: Sync + Send {
    /// `btrfs`, `ext4`, `xfs`: as recipes name formats, and as the kernel names its driver.
    fn name(&self) -> &'static str;

    /// What makes it.
    fn program(&self) -> &Program;

    /// What to run to make an empty one on a device, or why there is none like this. LUKS is not part of it.
    fn command(&self, recipe: &Recipe, device: &Path) -> Result<Invocation, Missing>;

    /// What a mount is told, `compress=zstd:1`, or why it cannot be told that.
    fn mount_options(&self, recipe: &Recipe) -> Result<String, Missing>;

    /// Makes an empty one on a block device, on LUKS if the recipe says so; whatever the device holds is lost.
    ///
    /// Errors: what cannot be made, the program's own, and with LUKS a kernel that has no device mapper.
    fn make(&self, recipe: &Recipe, device: &Path) -> Result<()> {
        self.mount_options(recipe).map_err(failed)?;
        // Found out before anything is written.
        self.command(recipe, device).map_err(failed)?;
        if recipe.luks {
            luks::format(device)?;
            let opened = luks::Opened::new(device)?;
            process::capture(&self.command(recipe, opened.device()).map_err(failed)?, false)?;
            return opened.close();
        }
        process::capture(&self.command(recipe, device).map_err(failed)?, false).map(drop)
    }

    /// Mounts one that this made on the same device, on `at`, a directory that exists.
    fn mount(&self, recipe: &Recipe, device: &Path, at: &Path) -> Result<Mounted> {
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
    fn usage(&self, _at: &Path) -> Result<Vec<CodecUsage>> {
        Ok(vec![])
    }

    /// Bytes of its device that are taken, by data and by its own structures, once all is written.
    fn taken(&self, at: &Path) -> Result<u64> {
        sync(at)?;
        let stat = rustix::fs::statvfs(at).or_io(|| format!("cannot look at {at:?}"))?;
        Ok(stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize))
    }
}

/// All that are known, found or not.
pub(super) fn find() -> Vec<Result<Box<dyn WritableFs>, Missing>> {
    vec![
        btrfs::Btrfs::find().map(|writable| Box::new(writable) as _),
        ext4::Ext4::find().map(|writable| Box::new(writable) as _),
        xfs::Xfs::find().map(|writable| Box::new(writable) as _),
    ]
}

/// What is not here of what they are measured with: LUKS below them (`luks`), the program that counts (`compsize`).
pub(super) fn missing_helpers() -> Vec<Missing> {
    luks::missing().into_iter().chain(compsize::find().err()).collect()
}

/// Finds a program that makes a file system, and sees that this process may mount it.
fn maker(wanted: &Wanted, driver: &str) -> Result<Program, Missing> {
    let missing = |why: &str| Missing { what: wanted.name.into(), why: why.into() };
    if !is_root() {
        return Err(missing("only root makes and mounts file systems; run this with sudo"));
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if !has_driver(driver, &release) {
        return Err(missing(&format!("this kernel has no driver for {driver}")));
    }
    wanted.find()
}

/// That there is no such file system.
fn cannot(recipe: &Recipe, why: impl Into<String>) -> Missing {
    let level = recipe.level.map(|level| format!(":{level}")).unwrap_or_default();
    Missing { what: format!("{} {}{level}", recipe.format, recipe.codec), why: why.into() }
}

/// Of those that have neither codecs nor blocks to choose.
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

    pub(super) fn program(name: &str) -> Program {
        Program { name: name.into(), version: "1.0".into(), path: Some(format!("/sbin/{name}")) }
    }

    /// `format codec[:level]`.
    pub(super) fn recipe(of: &str) -> Recipe {
        let (format, codec) = of.split_once(' ').unwrap();
        let (codec, level) =
            codec.split_once(':').map_or((codec, None), |(codec, level)| (codec, Some(level)));
        let level = level.map(|level| level.parse().unwrap());
        Recipe { format: format.into(), codec: codec.into(), level, ..Recipe::default() }
    }
}
