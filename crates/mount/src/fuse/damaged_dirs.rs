//! Directories with damage.

use packfs_format::InodeId;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Directories with damage that are remembered, at most.
const DAMAGED_MAX: usize = 4096;

/// Directories whose listings met damage. A request that starts behind the damage meets none.
#[derive(Default)]
pub(crate) struct DamagedDirs(Mutex<HashMap<InodeId, Errno>>);

impl DamagedDirs {
    fn dirs(&self) -> MutexGuard<'_, HashMap<InodeId, Errno>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the fault of a directory.
    pub(crate) fn note(&self, dir: InodeId, fault: Errno) {
        let mut dirs = self.dirs();
        if dirs.len() < DAMAGED_MAX {
            dirs.insert(dir, fault);
        }
    }

    /// Returns the fault of a directory.
    pub(crate) fn of(&self, dir: InodeId) -> Option<Errno> {
        self.dirs().get(&dir).copied()
    }
}
