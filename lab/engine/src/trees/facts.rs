//! Counts of a tree's contents.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use packfs::{Result, ResultExt};

use crate::results::TreeFacts;

/// Counts what is below a folder; of a file, such as a tar, only its length is known. `id` and
/// `made_by` are for the caller to fill in.
pub fn facts_of(path: &Path) -> Result<TreeFacts> {
    let mut facts =
        TreeFacts { id: String::new(), made_by: String::new(), files: 0, dirs: 0, others: 0, bytes: 0 };
    let root = path.metadata().or_io(|| format!("cannot look at {path:?}"))?;
    if !root.is_dir() {
        return Ok(TreeFacts { files: 1, bytes: root.len(), ..facts });
    }
    facts.dirs = 1;
    let (mut linked, mut folders) = (HashSet::new(), vec![PathBuf::from(path)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).or_io(|| format!("cannot list {folder:?}"))? {
            let entry = entry.or_io(|| format!("cannot list {folder:?}"))?;
            let found = entry.metadata().or_io(|| format!("cannot look at {:?}", entry.path()))?;
            if found.is_dir() {
                facts.dirs += 1;
                folders.push(entry.path());
            } else if found.is_file() {
                facts.files += 1;
                let is_first = found.nlink() < 2 || linked.insert((found.dev(), found.ino()));
                facts.bytes += if is_first { found.len() } else { 0 };
            } else {
                facts.others += 1;
            }
        }
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_hard_link_and_its_bytes_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/a"), [0; 100]).unwrap();
        std::fs::hard_link(at("d/a"), at("b")).unwrap();
        std::os::unix::fs::symlink("b", at("c")).unwrap();
        let facts = facts_of(dir.path()).unwrap();
        assert_eq!((facts.files, facts.dirs, facts.others, facts.bytes), (2, 2, 1, 100));
        assert_eq!(facts_of(&at("b")).unwrap().bytes, 100);
    }
}
