//! Leftovers of killed sessions.
//!
//! Their processes' loop devices clear themselves once nothing is mounted from them; those that
//! were made otherwise are cleared here, as are LUKS mappings, which are named after the folder.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use packfs::{Error, Result, ResultExt};
use packfs_terminal::report;
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::mounted;
use crate::process::{self, Invocation};

/// Names of sessions' folders begin so, before the id of their process.
pub(super) const PREFIX: &str = "packfs-lab-";

/// Undoes what lies in folders of `parent` whose sessions are gone, as far as that can be done:
/// what cannot is told.
pub(super) fn remove_all(parent: &Path) -> Result<()> {
    let entries = std::fs::read_dir(parent).or_io(|| format!("cannot list {parent:?}"))?;
    for dir in entries.flatten().map(|entry| entry.path()) {
        // Held until the folder is gone, so that no other process begins to remove it.
        let Some(_lock) = lock_left_over(&dir) else { continue };
        report::note(format_args!("removing what a killed session left: {}", dir.display()));
        if let Err(error) = undo(&dir) {
            report::warning_of(&error);
        }
    }
    Ok(())
}

/// Takes the lock on a session's folder, if it is free and the folder still has this name.
///
/// Names are used again: between opening a folder and locking it, its session may have removed it,
/// and another one may have begun under the same name. The lock is then on a folder that is gone,
/// and says nothing about the one that is there.
fn lock_left_over(path: &Path) -> Option<File> {
    if !path.file_name()?.to_string_lossy().starts_with(PREFIX) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive).ok()?;
    is_at(&dir, path).then_some(dir)
}

/// True if an open folder is the one that a path names.
fn is_at(dir: &File, path: &Path) -> bool {
    let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
    let named = path.symlink_metadata().map(identity);
    named.is_ok_and(|named| dir.metadata().is_ok_and(|open| identity(open) == named))
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
    remove(dir)
}

fn mappings_of(folder: &str) -> Vec<String> {
    let names = blocks().into_iter().filter_map(|block| std::fs::read_to_string(block.join("dm/name")).ok());
    names.map(|name| name.trim().to_owned()).filter(|name| name.starts_with(&format!("{folder}-"))).collect()
}

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

/// Removes a folder, unless something is still mounted in it: a mount's contents are never removed
/// with it.
pub(super) fn remove(dir: &Path) -> Result<()> {
    if let Some(at) = mounted::below(dir)?.first() {
        return Err(
            Error::failed(format!("{at:?} is still mounted")).hint(format!("umount {at:?}; rm -r {dir:?}"))
        );
    }
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format!("cannot remove {dir:?}"), error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_leftover_folders_unless_locked() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join(format!("{}1", PREFIX));
        std::fs::create_dir(&path).unwrap();
        let lock = lock_left_over(&path).unwrap();
        assert!(lock_left_over(&path).is_none(), "two would remove it at once");
        drop(lock);
        assert!(lock_left_over(&path).is_some());
        remove_all(parent.path()).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn distinguishes_folders_of_the_same_name() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a");
        std::fs::create_dir(&path).unwrap();
        let open = File::open(&path).unwrap();
        assert!(is_at(&open, &path));
        std::fs::rename(&path, parent.path().join("b")).unwrap();
        assert!(!is_at(&open, &path), "nothing has the name");
        std::fs::create_dir(&path).unwrap();
        assert!(!is_at(&open, &path), "another one has the name");
    }

    #[test]
    fn leaves_links_and_other_names_alone() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join(format!("{}2", PREFIX));
        let other = parent.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        remove_all(parent.path()).unwrap();
        assert!(other.is_dir() && link.is_symlink());
    }
}
