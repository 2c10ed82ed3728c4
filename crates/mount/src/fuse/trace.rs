//! Trace of a mount: the paths of used inodes, in order of first use.

use packfs_core::{ImagePath, Name};
use packfs_format::InodeId;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Most parents of a path; only an image that contains itself exceeds it.
const DEPTH_MAX: usize = 4096;

/// Writes each path once, when a file is read, a symbolic link followed or a directory listed.
///
/// Records the directory and name of every inode, so memory grows with the inodes looked up. Inodes
/// without a known name (NFS handles), and names with a line feed, are skipped.
pub(crate) struct TraceWriter {
    root: InodeId,
    above: ImagePath,
    state: Mutex<State>,
}

struct State {
    file: File,
    found: HashMap<InodeId, (InodeId, Box<[u8]>)>,
    used: HashSet<InodeId>,
}

impl TraceWriter {
    pub(crate) fn new(file: File, root: InodeId, above: ImagePath) -> Self {
        let state = State { file, found: HashMap::new(), used: HashSet::new() };
        TraceWriter { root, above, state: Mutex::new(state) }
    }

    pub(crate) fn found(&self, dir: InodeId, name: &[u8], id: InodeId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.found.entry(id).or_insert_with(|| (dir, name.into()));
    }

    pub(crate) fn used(&self, id: InodeId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.used.insert(id)
            && let Some(path) = self.path(&state.found, id).filter(|path| !path.as_bytes().contains(&b'\n'))
        {
            let line = [path.as_bytes(), b"\n"].concat();
            // Unbuffered, so that nothing is lost if the server is killed; a failed write does not
            // affect reads.
            let _ = state.file.write_all(&line);
        }
    }

    fn path(&self, found: &HashMap<InodeId, (InodeId, Box<[u8]>)>, id: InodeId) -> Option<ImagePath> {
        let mut names = Vec::new();
        let mut at = id;
        while at != self.root {
            let (dir, name) = found.get(&at)?;
            if names.len() == DEPTH_MAX {
                return None;
            }
            names.push(Name::new(name).ok()?);
            at = *dir;
        }
        let mut path = self.above.clone();
        names.into_iter().rev().for_each(|name| path.push(name));
        (!path.is_root()).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_once_in_the_order_of_their_use() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace");
        let id = InodeId;
        let above = ImagePath::parse(b"top").unwrap();
        let trace = TraceWriter::new(File::create(&file).unwrap(), id(1), above);
        trace.found(id(1), b"a", id(2));
        trace.found(id(2), b"b", id(3));
        trace.found(id(2), b"line\nfeed", id(4));
        trace.found(id(2), b"again", id(3));
        // Two directories that contain each other.
        trace.found(id(6), b"x", id(5));
        trace.found(id(5), b"y", id(6));
        for used in [3, 2, 3, 4, 5, 9, 1] {
            trace.used(id(used));
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), "top/a/b\ntop/a\ntop\n");
    }
}
