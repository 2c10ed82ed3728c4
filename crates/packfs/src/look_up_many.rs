//! Look-ups of many paths at once: level by level, a directory of which several names are wanted
//! is listed once, instead of searched for each path from the root on.

use crate::Reader;
use crate::ranges::spread;
use packfs_core::{Error, ImagePath, Progress, Result};
use packfs_format::{DirCursor, InodeId, InodeKind};
use packfs_read::Wanted;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// Entries of a directory that are looked through for each wanted name, before names are searched.
const ENTRIES_A_NAME: usize = 64;
/// Directories that a thread takes at a time.
const DIRS: usize = 4;
/// Single paths that a thread takes at a time.
const PATHS: usize = 16;
/// Longer paths are searched one by one: the tree below holds all their beginnings.
const PATH_LEN_MAX: usize = 4096;

/// A wanted name in a directory.
#[derive(Clone, Copy)]
enum Child {
    /// Number of a path.
    File(usize),
    /// Number of a directory.
    Dir(usize),
}

impl Child {
    fn dir(self) -> Option<usize> {
        match self {
            Child::Dir(number) => Some(number),
            Child::File(_) => None,
        }
    }
}

/// A directory on the way to wanted files.
#[derive(Default)]
struct Dir<'p> {
    /// Set if there is such a directory, and no link leads to it.
    id: OnceLock<InodeId>,
    names: Vec<(&'p [u8], Child)>,
}

/// The directories on the way to wanted files; the root is the first.
struct Dirs<'p> {
    dirs: Vec<Dir<'p>>,
    numbers: HashMap<&'p [u8], usize>,
}

impl<'p> Dirs<'p> {
    fn of(paths: &'p [ImagePath]) -> Self {
        let mut all = Dirs { dirs: vec![Dir::default()], numbers: HashMap::from([(&b""[..], 0)]) };
        for (index, path) in paths.iter().enumerate() {
            let path = path.as_bytes();
            if !path.is_empty() && path.len() <= PATH_LEN_MAX {
                let (dir, name) = split(path);
                let dir = all.number(dir);
                all.dirs[dir].names.push((name, Child::File(index)));
            }
        }
        all
    }

    /// Returns the number of a directory, which is added with those above it.
    fn number(&mut self, path: &'p [u8]) -> usize {
        if let Some(&number) = self.numbers.get(path) {
            return number;
        }
        let slashes = (0..path.len()).filter(|&at| path[at] == b'/');
        slashes.chain([path.len()]).fold(0, |above, end| {
            let Dirs { dirs, numbers } = self;
            *numbers.entry(&path[..end]).or_insert_with(|| {
                let number = dirs.len();
                dirs.push(Dir::default());
                dirs[above].names.push((split(&path[..end]).1, Child::Dir(number)));
                number
            })
        })
    }
}

/// Splits a path into its directory and its name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

impl Reader {
    /// Finds files as [`Reader::file_at`], on all threads; the outcomes have the order of the
    /// paths.
    ///
    /// Errors: `Cancelled`.
    pub fn files_at(&self, paths: &[ImagePath], progress: &dyn Progress) -> Result<Vec<Result<Wanted>>> {
        let found: Vec<OnceLock<Result<Wanted>>> = paths.iter().map(|_| OnceLock::new()).collect();
        let Dirs { dirs, .. } = Dirs::of(paths);
        let _ = dirs[0].id.set(self.volume().root());
        let mut level = vec![0];
        while !level.is_empty() {
            let one = |index: usize| self.find_below(level[index], &dirs, &found);
            spread(level.len(), DIRS, self.engine().jobs(), progress, &one)?;
            let below = level.iter().flat_map(|&dir| &dirs[dir].names);
            level = below
                .filter_map(|(_, child)| child.dir().filter(|&dir| dirs[dir].id.get().is_some()))
                .collect();
        }
        // Links, names that are missing, and errors are left to the search of a single path.
        let left: Vec<usize> = (0..found.len()).filter(|&index| found[index].get().is_none()).collect();
        let one = |index: usize| {
            let index = left[index];
            found[index].get_or_init(|| self.file_at(&paths[index]));
        };
        spread(left.len(), PATHS, self.engine().jobs(), progress, &one)?;
        let outcome =
            |found: OnceLock<Result<Wanted>>| found.into_inner().unwrap_or_else(|| Err(Error::cancelled()));
        Ok(found.into_iter().map(outcome).collect())
    }

    /// Finds the wanted names of a directory.
    fn find_below(&self, dir: usize, dirs: &[Dir<'_>], found: &[OnceLock<Result<Wanted>>]) {
        let Dir { id, names } = &dirs[dir];
        let Some(&dir) = id.get() else { return };
        let meet = |child: Child, id: InodeId| {
            // Of names that are wanted twice, one is set here.
            let _ = match (child, self.volume().inode(id).map(|inode| inode.kind)) {
                (Child::File(index), Ok(InodeKind::File { len })) => {
                    found[index].set(Ok(Wanted { id, len })).is_ok()
                }
                (Child::Dir(number), Ok(InodeKind::Directory)) => dirs[number].id.set(id).is_ok(),
                _ => false,
            };
        };
        let mut left: HashMap<&[u8], Child> = names.iter().copied().collect();
        if left.len() > 1 {
            let mut entries = left.len().saturating_mul(ENTRIES_A_NAME);
            let _ = self.volume().read_dir(dir, DirCursor::default(), &mut |entry, _| {
                if let Some(child) = left.remove(&entry.name[..]) {
                    meet(child, entry.id);
                }
                entries -= 1;
                if left.is_empty() || entries == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        }
        for (name, child) in left {
            if let Ok(Some(id)) = self.volume().lookup(dir, name) {
                meet(child, id);
            }
        }
    }
}
