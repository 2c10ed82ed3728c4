//! Directories with damage.

use packfs_format::InodeId;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const DAMAGED_MAX: usize = 4096;

/// Directories whose listings found damage. A request that starts after the damage does not find
/// it.
#[derive(Default)]
pub(crate) struct DamagedDirs(Mutex<HashMap<InodeId, Errno>>);

impl DamagedDirs {
    fn dirs(&self) -> MutexGuard<'_, HashMap<InodeId, Errno>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, dir: InodeId, fault: Errno) {
        let mut dirs = self.dirs();
        if dirs.len() < DAMAGED_MAX {
            dirs.insert(dir, fault);
        }
    }

    pub(crate) fn of(&self, dir: InodeId) -> Option<Errno> {
        self.dirs().get(&dir).copied()
    }
}
