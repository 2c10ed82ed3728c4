//! The folder of a session.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packfs::{Error, Result, ResultExt};
use rustix::fs::FlockOperation;

use super::undo::Undo;
use super::{left_over, mounted};

/// What folders of sessions are called, before the id of their process.
pub(super) const PREFIX: &str = "packfs-lab-";

/// A folder that is removed when this is dropped, with all that is in it.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
    /// Locked as long as this lives: by that others know whether its process is there.
    _lock: File,
    _undo: Undo,
}

impl Scratch {
    /// Makes one below `parent`, once what killed sessions left there is undone.
    ///
    /// Errors: `Io` if nothing can be made there.
    pub fn new(parent: &Path) -> Result<Self> {
        let parent = parent.canonicalize().or_io(|| format!("cannot use {parent:?} for scratch"))?;
        left_over::remove(&parent)?;
        let dir = Self::make(&parent)?;
        let lock = File::open(&dir).or_io(|| format!("cannot open {dir:?}"))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .or_io(|| format!("cannot lock {dir:?}"))?;
        let own = dir.clone();
        let undo = Undo::new(format!("remove {dir:?}"), move || remove_patiently(&own));
        Ok(Self { dir, _lock: lock, _undo: undo })
    }

    /// One process may have several. Nobody else sees into it: it lies where everybody may write, and holds what a tree may hide.
    fn make(parent: &Path) -> Result<PathBuf> {
        let id = std::process::id();
        for number in 0..1000_u32 {
            let suffix = if number == 0 { String::new() } else { format!(".{number}") };
            let dir = parent.join(format!("{PREFIX}{id}{suffix}"));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok(dir),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(Error::io(format!("cannot make {dir:?} for scratch"), error)
                        .hint("--scratch DIR names another place"));
                }
            }
        }
        Err(Error::failed(format!("{parent:?} holds 1000 folders of process {id} already")))
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

/// Removes a folder whose process may be at work in it still: on a signal the one who undoes is not the one who works, and a
/// mount that the latter is about to make or to take away is gone in a moment.
pub(crate) fn remove_patiently(dir: &Path) -> Result<()> {
    let start = Instant::now();
    loop {
        match remove(dir) {
            Err(_) if start.elapsed() < mounted::BUSY_MAX => std::thread::sleep(Duration::from_millis(10)),
            outcome => return outcome,
        }
    }
}

/// Removes a folder, unless something is still mounted in it: a mount's contents are never removed with it.
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nobody_else_sees_into_it() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(parent.path()).unwrap();
        assert_eq!(scratch.dir().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
