//! Look-ups of many paths at once: a directory of which several files are wanted is listed once,
//! instead of searched for each name.

use crate::Opened;
use crate::ranges::spread;
use packfs_core::{Error, ImagePath, Progress, Result};
use packfs_format::{DirCursor, InodeKind};
use packfs_read::Wanted;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// Entries of a directory that are looked through for each wanted name, before names are searched.
const ENTRIES_A_NAME: usize = 64;
/// Directories that a thread takes at a time.
const DIRS: usize = 4;

impl Opened {
    /// Finds files as [`Opened::file_at`], on all threads; the outcomes have the order of the
    /// paths.
    ///
    /// Errors: `Cancelled`.
    pub fn files_at(&self, paths: &[ImagePath], progress: &dyn Progress) -> Result<Vec<Result<Wanted>>> {
        let mut by_dir: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (index, path) in paths.iter().enumerate() {
            by_dir.entry(parts(path).0).or_default().push(index);
        }
        let by_dir: Vec<(&[u8], Vec<usize>)> = by_dir.into_iter().collect();
        let found: Vec<OnceLock<Result<Wanted>>> = paths.iter().map(|_| OnceLock::new()).collect();
        let one = |index: usize| {
            let (dir, wanted) = &by_dir[index];
            if wanted.len() > 1 {
                self.find_listed(dir, wanted, paths, &found);
            }
            for &index in wanted {
                found[index].get_or_init(|| self.file_at(&paths[index]));
            }
        };
        spread(by_dir.len(), DIRS, self.engine().jobs(), progress, &one)?;
        let outcome =
            |slot: OnceLock<Result<Wanted>>| slot.into_inner().unwrap_or_else(|| Err(Error::cancelled()));
        Ok(found.into_iter().map(outcome).collect())
    }

    /// Finds files that a directory lists. Links, names that it lacks, and errors are left to the
    /// search of a single path.
    fn find_listed(
        &self,
        dir: &[u8],
        wanted: &[usize],
        paths: &[ImagePath],
        found: &[OnceLock<Result<Wanted>>],
    ) {
        // Of equal paths the last one is found here.
        let mut left: HashMap<&[u8], usize> =
            wanted.iter().map(|&index| (parts(&paths[index]).1, index)).collect();
        let Ok(dir) = ImagePath::parse(dir).and_then(|dir| self.dir_at(dir)) else { return };
        let mut entries = wanted.len().saturating_mul(ENTRIES_A_NAME);
        let _ = self.volume().read_dir(dir, DirCursor::default(), &mut |entry, _| {
            if let Some(index) = left.remove(&entry.name[..])
                && let Ok(inode) = self.volume().inode(entry.id)
                && let InodeKind::File { len } = inode.kind
            {
                let _ = found[index].set(Ok(Wanted { id: entry.id, len }));
            }
            entries -= 1;
            if left.is_empty() || entries == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
}

/// Splits a path into its directory and its name.
fn parts(path: &ImagePath) -> (&[u8], &[u8]) {
    let path = path.as_bytes();
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}
