//! Lists of files to read, drawn once from the tree itself, so that every image is asked for the
//! same.

use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use packfs::{Result, ResultExt};

use super::draw::shuffled;
use super::{Order, Workload};

/// Number of files that the documents draw.
const SMALL: usize = 500;
/// Paths that a Debian root reads when it starts, a line each, as `packfs mount --record` wrote
/// them.
const START: &str = include_str!("../../traces/debian.txt");

/// A regular file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Below the root, without a leading slash.
    pub path: PathBuf,
    /// In bytes.
    pub len: u64,
}

/// All regular files below `tree`, each name of a hard link counted, in the order of their paths.
pub fn files_of(tree: &Path) -> Result<Vec<Listed>> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        let dir = tree.join(&folder);
        for entry in std::fs::read_dir(&dir).or_io(|| format!("cannot list {dir:?}"))? {
            let entry = entry.or_io(|| format!("cannot list {dir:?}"))?;
            let (path, kind) = (folder.join(entry.file_name()), entry.file_type());
            let kind = kind.or_io(|| format!("cannot look at {:?}", entry.path()))?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let facts = entry.metadata().or_io(|| format!("cannot look at {:?}", entry.path()))?;
                files.push(Listed { path, len: facts.len() });
            }
        }
    }
    files.sort_by(|a, b| a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes()));
    Ok(files)
}

/// The orders in which a tree's files are read.
#[derive(Debug)]
pub struct Lists {
    tree: PathBuf,
    seed: u64,
    files: OnceCell<Vec<Listed>>,
}

impl Lists {
    /// Prepares the lists of a tree; nothing is read yet.
    pub fn new(tree: PathBuf, seed: u64) -> Self {
        Self { tree, seed, files: OnceCell::new() }
    }

    /// All files, by path.
    pub fn files(&self) -> Result<&[Listed]> {
        if let Some(files) = self.files.get() {
            return Ok(files);
        }
        let files = files_of(&self.tree)?;
        Ok(self.files.get_or_init(|| files))
    }

    /// The files that a workload reads, in its order; none if it takes no list.
    pub fn of(&self, workload: Workload) -> Result<Option<Vec<Listed>>> {
        let Some(order) = workload.row().list else { return Ok(None) };
        let mut files = self.files()?.to_vec();
        match order {
            // Stable: files of one length stay in the order of their paths, as `sort -g` leaves
            // them.
            Order::BySize => files.sort_by_key(|file| file.len),
            Order::All => files = shuffled(files, self.seed),
            Order::Traced => files = traced(&files, START),
            Order::Few => {
                files = shuffled(files, self.seed);
                files.truncate(SMALL);
            }
        }
        Ok(Some(files))
    }

    /// The longest file; the first of several by path.
    pub fn largest(&self) -> Result<Option<&Listed>> {
        let files = self.files()?;
        let len = files.iter().map(|file| file.len).max();
        Ok(files.iter().find(|file| Some(file.len) == len))
    }
}

/// Returns the files that a trace names, in its order; `files` are in the order of their paths.
fn traced(files: &[Listed], trace: &str) -> Vec<Listed> {
    let place = |path: &str| {
        let path = path.trim_start_matches('/').as_bytes();
        files.binary_search_by(|file| file.path.as_os_str().as_bytes().cmp(path)).ok()
    };
    trace.lines().filter_map(place).map(|place| files[place].clone()).collect()
}

/// Like `xargs -0` and `cpio -0` take it: each path from `./` on, and a zero byte behind it.
pub(crate) fn as_list(files: &[Listed]) -> Vec<u8> {
    let mut list = Vec::new();
    for file in files {
        list.extend_from_slice(b"./");
        list.extend_from_slice(file.path.as_os_str().as_bytes());
        list.push(0);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, len) in [("b/large", 900), ("a/x", 3), ("a/y z", 3), ("top", 40)] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![7; len]).unwrap();
        }
        std::os::unix::fs::symlink("x", dir.path().join("a/link")).unwrap();
        dir
    }

    fn names(files: &[Listed]) -> Vec<&str> {
        files.iter().map(|file| file.path.to_str().unwrap()).collect()
    }

    #[test]
    fn lists_regular_files_by_path_and_by_size() {
        let tree = tree();
        let lists = Lists::new(tree.path().into(), 1);
        assert_eq!(names(lists.files().unwrap()), ["a/x", "a/y z", "b/large", "top"]);
        let by_size = lists.of(Workload::SizeOrder).unwrap().unwrap();
        assert_eq!(names(&by_size), ["a/x", "a/y z", "top", "b/large"]);
        assert_eq!(lists.largest().unwrap().unwrap().path, Path::new("b/large"));
        assert_eq!(as_list(&by_size[..2]), b"./a/x\0./a/y z\0");
    }

    #[test]
    fn a_trace_keeps_its_order_and_names_what_the_tree_has() {
        let tree = tree();
        let files = files_of(tree.path()).unwrap();
        assert_eq!(names(&traced(&files, "top\n/b/large\na/gone\na\na/y z\n")), ["top", "b/large", "a/y z"]);
        assert_eq!(Lists::new(tree.path().into(), 1).of(Workload::Boot).unwrap().unwrap(), []);
    }

    #[test]
    fn a_small_draw_is_the_beginning_of_the_full_one() {
        let dir = tempfile::tempdir().unwrap();
        (0..600).for_each(|i| std::fs::write(dir.path().join(format!("f{i}")), "").unwrap());
        let lists = Lists::new(dir.path().into(), 42);
        let small = lists.of(Workload::SmallRandomData).unwrap().unwrap();
        let full = lists.of(Workload::FullRandomMetadata).unwrap().unwrap();
        assert_eq!((small.len(), full.len()), (500, 600));
        assert_eq!(small, full[..500]);
        assert_eq!(lists.of(Workload::SequentialData).unwrap(), None);
    }
}
