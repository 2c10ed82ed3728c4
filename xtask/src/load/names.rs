//! The names of a tree.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    File,
    Dir,
    Other,
}

/// Every name below `tree` as a path from there, in the order of paths; the top itself is the empty one.
pub fn of(tree: &Path) -> Result<Vec<(PathBuf, Kind)>> {
    let mut names = vec![(PathBuf::new(), Kind::Dir)];
    let mut waiting = vec![PathBuf::new()];
    while let Some(dir) = waiting.pop() {
        let place = tree.join(&dir);
        let failed = |error| Failure::io("list", &place, error);
        for entry in std::fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = dir.join(entry.file_name());
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                waiting.push(path.clone());
            }
            let kind = if kind.is_dir() {
                Kind::Dir
            } else if kind.is_file() {
                Kind::File
            } else {
                Kind::Other
            };
            names.push((path, kind));
        }
    }
    names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}

/// The regular files among them.
pub fn of_files(tree: &Path) -> Result<Vec<PathBuf>> {
    Ok(of(tree)?.into_iter().filter(|(_, kind)| *kind == Kind::File).map(|(path, _)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_names_in_the_order_of_paths() {
        let dir = std::env::temp_dir().join(format!("xtask-names-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("b/c")).unwrap();
        std::fs::write(dir.join("b/c/file"), "x").unwrap();
        std::os::unix::fs::symlink("b", dir.join("a")).unwrap();
        let (names, files) = (of(&dir), of_files(&dir));
        std::fs::remove_dir_all(&dir).unwrap();
        let wanted = [
            ("", Kind::Dir),
            ("a", Kind::Other),
            ("b", Kind::Dir),
            ("b/c", Kind::Dir),
            ("b/c/file", Kind::File),
        ];
        assert_eq!(names.unwrap(), wanted.map(|(path, kind)| (PathBuf::from(path), kind)));
        assert_eq!(files.unwrap(), [PathBuf::from("b/c/file")]);
    }
}
