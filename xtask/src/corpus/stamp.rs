//! The note `NAME.json` beside a complete corpus, with the size of the tree.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Corpus;
use crate::failure::{Failure, Result};
use crate::workspace;

#[derive(Clone, Copy, Default, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    pub entries: u64,
    /// Bytes of regular files; a file with several names counts once.
    pub bytes: u64,
}

impl Counts {
    /// Counts the tree or file at `path`; links are not followed.
    pub fn of(path: &Path) -> Result<Self> {
        let mut counts = Self::default();
        let mut linked = std::collections::HashSet::new();
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            let meta = path.symlink_metadata().map_err(|error| Failure::io("look at", &path, error))?;
            counts.entries += 1;
            if meta.is_file() && is_first_name(&meta, &mut linked) {
                counts.bytes += meta.len();
            }
            if meta.is_dir() {
                let entries = std::fs::read_dir(&path).map_err(|error| Failure::io("list", &path, error))?;
                waiting.extend(entries.flatten().map(|entry| entry.path()));
            }
        }
        Ok(counts)
    }
}

fn is_first_name(meta: &Metadata, linked: &mut std::collections::HashSet<(u64, u64)>) -> bool {
    meta.nlink() == 1 || linked.insert((meta.dev(), meta.ino()))
}

pub fn path(corpus: Corpus) -> PathBuf {
    workspace::corpora().join(format!("{}.json", corpus.name))
}

pub fn read(corpus: Corpus) -> Option<Counts> {
    let text = std::fs::read_to_string(path(corpus)).ok()?;
    serde_json::from_str(&text).ok()
}

pub fn write(corpus: Corpus, counts: Counts) -> Result<()> {
    let path = path(corpus);
    let text = serde_json::to_string(&counts).map_err(|error| Failure::io("write", &path, error))?;
    std::fs::write(&path, text + "\n").map_err(|error| Failure::io("write", &path, error))
}

pub fn remove(corpus: Corpus) -> Result<()> {
    match std::fs::remove_file(path(corpus)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::io("remove", &path(corpus), error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_every_name_and_a_linked_file_once() {
        let dir = std::env::temp_dir().join(format!("xtask-counts-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sub")).unwrap();
        std::fs::write(dir.join("a"), [0; 10]).unwrap();
        std::fs::write(dir.join("sub/b"), [0; 5]).unwrap();
        std::fs::hard_link(dir.join("a"), dir.join("sub/c")).unwrap();
        std::os::unix::fs::symlink("a", dir.join("link")).unwrap();
        let counts = Counts::of(&dir).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(counts, Counts { entries: 6, bytes: 15 });
    }
}
