//! The folder of a session.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packfs::{Error, Result, ResultExt};
use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;

use super::left_over::{self, PREFIX, remove};
use super::mounted;
use crate::undo::Undo;

/// The way out of a place that takes no folder.
const ANOTHER_PLACE: &str = "--scratch DIR names another place";
/// Names of folders at first, before random letters.
const UNLOCKED_PREFIX: &str = "packfs-new-";

/// A folder that is removed when this is dropped, with all that is in it.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
    _undo: Undo,
    /// Locked until the folder is gone: by that others know whether its process is there.
    _lock: File,
}

impl Scratch {
    /// Makes one below `parent`, once what killed sessions left there is undone.
    ///
    /// Errors: `Io` if nothing can be made there.
    pub fn new(parent: &Path) -> Result<Self> {
        let parent = parent.canonicalize().map_err(|error| {
            Error::io(format!("cannot use {parent:?} for scratch"), error).hint(ANOTHER_PLACE)
        })?;
        left_over::remove_all(&parent)?;
        let (dir, lock) = make(&parent)?;
        let own = dir.clone();
        let undo = Undo::new(format!("remove {dir:?}"), move || remove_patiently(&own));
        Ok(Self { dir, _undo: undo, _lock: lock })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A path in it; nothing is made.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Bytes that are free where it lies.
    pub fn free(&self) -> Result<u64> {
        let stat = rustix::fs::statvfs(&self.dir).or_io(|| format!("cannot look at {:?}", self.dir))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// A folder, and the lock on it. One process may have several. Other users cannot read it: it
/// lies where all users may write, and holds contents that a tree may hide.
fn make(parent: &Path) -> Result<(PathBuf, File)> {
    // It is locked before it has the name that others look for: they would take it for one whose
    // process is gone.
    let mut folder = tempfile::Builder::new();
    let folder = folder.prefix(UNLOCKED_PREFIX).permissions(Permissions::from_mode(0o700));
    let made = folder.tempdir_in(parent).map_err(|error| {
        Error::io(format!("cannot make a folder in {parent:?} for scratch"), error).hint(ANOTHER_PLACE)
    })?;
    let unlocked = made.path();
    let lock = File::open(unlocked).or_io(|| format!("cannot open {unlocked:?}"))?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .or_io(|| format!("cannot lock {unlocked:?}"))?;
    let id = std::process::id();
    for number in 0..1000_u32 {
        let suffix = if number == 0 { String::new() } else { format!(".{number}") };
        let dir = parent.join(format!("{PREFIX}{id}{suffix}"));
        match rustix::fs::renameat_with(CWD, unlocked, CWD, &dir, RenameFlags::NOREPLACE) {
            Ok(()) => {
                // What it was called is gone already.
                let _ = made.keep();
                return Ok((dir, lock));
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Error::io(format!("cannot call {unlocked:?} {dir:?}"), error.into())),
        }
    }
    Err(Error::failed(format!("{parent:?} holds 1000 folders of process {id} already")))
}

/// Removes a folder whose process may be at work in it still: on a signal the one who undoes is not
/// the one who works, and a mount that the latter is about to make or to take away is gone in a
/// moment.
fn remove_patiently(dir: &Path) -> Result<()> {
    let start = Instant::now();
    loop {
        match remove(dir) {
            Err(_) if start.elapsed() < mounted::BUSY_MAX => std::thread::sleep(Duration::from_millis(10)),
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session that begins while others begin finds nothing of theirs that seems to be left.
    #[test]
    fn concurrent_starts_do_not_remove_files_of_each_other() {
        let parent = tempfile::tempdir().unwrap();
        let begin = || {
            for _ in 0..50 {
                let scratch = Scratch::new(parent.path()).unwrap();
                std::fs::write(scratch.path("file"), "kept").unwrap();
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(begin))));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_the_owner_can_read_it() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(parent.path()).unwrap();
        assert_eq!(scratch.dir().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
