//! Parents of directories. Only NFS exports of a mount need them, and images do not store them.

use packfs_core::{FileType, Result};
use packfs_format::{DirCursor, DirEntry, Inode, InodeId, InodeKind, Volume};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most directories with a known parent, about 2 MiB; others are searched for.
const KNOWN_MAX: usize = 1 << 16;
/// Most directories that a search reads.
const SEARCHED_MAX: usize = 1 << 22;

pub(crate) struct Parents {
    root: InodeId,
    known: Mutex<HashMap<InodeId, InodeId>>,
}

impl Parents {
    pub(crate) fn new(root: InodeId) -> Self {
        Parents { root, known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InodeId, InodeId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ignored unless `id` is a directory.
    pub(crate) fn learn(&self, dir: InodeId, id: InodeId, inode: &Inode) {
        if inode.kind == InodeKind::Directory {
            let mut known = self.lock();
            if known.len() < KNOWN_MAX {
                known.entry(id).or_insert(dir);
            }
        }
    }

    /// The root is its own parent.
    pub(crate) fn known(&self, dir: InodeId) -> Option<InodeId> {
        if dir == self.root { Some(dir) } else { self.lock().get(&dir).copied() }
    }

    /// Searches for an unknown parent.
    pub(crate) fn of(&self, dir: InodeId, volume: &dyn Volume) -> Result<Option<InodeId>> {
        match self.known(dir) {
            Some(parent) => Ok(Some(parent)),
            None => self.search(dir, volume),
        }
    }

    fn search(&self, wanted: InodeId, volume: &dyn Volume) -> Result<Option<InodeId>> {
        let mut seen = HashSet::from([self.root]);
        let mut open = vec![self.root];
        let mut found = None;
        while let Some(dir) = open.pop() {
            let mut visit = |entry: DirEntry, _| {
                if entry.file_type == FileType::Directory {
                    if entry.id == wanted {
                        found = Some(dir);
                        return ControlFlow::Break(());
                    }
                    if seen.len() < SEARCHED_MAX && seen.insert(entry.id) {
                        open.push(entry.id);
                    }
                }
                ControlFlow::Continue(())
            };
            // A damaged directory may hide it, but the search continues.
            let _ = volume.read_dir(dir, DirCursor::default(), &mut visit);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Meta;
    use packfs_testkit::{MadeUpNode, MadeUpVolume};

    fn entry(name: &str, id: u64) -> DirEntry {
        DirEntry { name: name.into(), id: InodeId(id), file_type: FileType::Directory }
    }

    #[test]
    fn a_parent_is_remembered_or_searched_for() {
        // 3 is within 2 within 0, and 2 contains itself, as in a hostile image.
        let dir = |id, entries| (InodeId(id), MadeUpNode::dir(InodeId(id), entries));
        let nodes = [
            dir(0, vec![entry("a", 1), entry("b", 2)]),
            dir(1, vec![]),
            dir(2, vec![entry("c", 3), entry("self", 2)]),
            dir(3, vec![]),
        ];
        let volume = MadeUpVolume { nodes: nodes.into_iter().collect() };
        let parents = Parents::new(InodeId(0));
        assert_eq!(parents.known(InodeId(3)), None);
        for (child, parent) in [(0, Some(0)), (1, Some(0)), (2, Some(0)), (3, Some(2)), (9, None)] {
            assert_eq!(parents.of(InodeId(child), &volume).unwrap(), parent.map(InodeId));
        }
        let inode = MadeUpNode::new(InodeId(9), InodeKind::Directory, Meta::default()).inode;
        parents.learn(InodeId(3), InodeId(9), &inode);
        assert_eq!(parents.of(InodeId(9), &volume).unwrap(), Some(InodeId(3)));
    }
}
