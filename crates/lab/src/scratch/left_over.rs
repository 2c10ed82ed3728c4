//! What sessions left that were killed.
//!
//! Their processes' loop devices clear themselves once nothing is mounted from them; those that were made otherwise are
//! cleared here, as are LUKS mappings, which are named after the folder.

use std::fs::File;
use std::path::{Path, PathBuf};

use packfs::{Result, ResultExt};
use rustix::fs::FlockOperation;

use super::{folder, mounted};
use crate::process::{self, Invocation};

/// Undoes what lies in folders of `parent` whose sessions are gone, as far as that can be done: what cannot is told.
pub(super) fn remove(parent: &Path) -> Result<()> {
    for dir in find(parent)? {
        eprintln!("removing what a killed session left: {}", dir.display());
        let outcome = undo(&dir);
        if let Err(error) = outcome {
            eprintln!("warning: {error}");
            error.hints().iter().for_each(|hint| eprintln!("hint: {hint}"));
        }
    }
    Ok(())
}

/// Folders of sessions that nobody holds locked.
fn find(parent: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(parent).or_io(|| format!("cannot list {parent:?}"))?;
    let is_left_over = |path: &PathBuf| {
        let is_ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(folder::PREFIX));
        is_ours
            && path.symlink_metadata().is_ok_and(|found| found.is_dir())
            && File::open(path)
                .is_ok_and(|dir| rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok())
    };
    Ok(entries.flatten().map(|entry| entry.path()).filter(is_left_over).collect())
}

fn undo(dir: &Path) -> Result<()> {
    for at in mounted::below(dir)?.iter().rev() {
        mounted::detach(at)?;
    }
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for mapping in mappings_of(&name) {
        process::capture(&Invocation::new("cryptsetup").args(["close", &mapping]), false)?;
    }
    for device in loop_devices_on(dir) {
        process::capture(&Invocation::new("losetup").arg("--detach").arg(&device), false)?;
    }
    folder::remove(dir)
}

/// Mappings whose name begins with a folder's.
fn mappings_of(folder: &str) -> Vec<String> {
    let names = blocks().into_iter().filter_map(|block| std::fs::read_to_string(block.join("dm/name")).ok());
    names.map(|name| name.trim().to_owned()).filter(|name| name.starts_with(&format!("{folder}-"))).collect()
}

/// Loop devices whose file lies below a folder.
fn loop_devices_on(dir: &Path) -> Vec<PathBuf> {
    let is_below = |block: &PathBuf| {
        std::fs::read_to_string(block.join("loop/backing_file"))
            .is_ok_and(|file| Path::new(file.trim_end_matches('\n')).starts_with(dir))
    };
    let found = blocks().into_iter().filter(is_below);
    found.filter_map(|block| Some(Path::new("/dev").join(block.file_name()?))).collect()
}

/// Block devices, as the kernel lists them.
fn blocks() -> Vec<PathBuf> {
    std::fs::read_dir("/sys/block").into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
