//! Paths of the checkout and of the folders below its `target/`.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// Returns `target/` of the checkout, even if cargo builds elsewhere.
pub fn target() -> PathBuf {
    root().join("target")
}

/// Returns the folder of peers: programs of other projects, and their libraries.
pub fn peers() -> PathBuf {
    target().join("peers")
}

pub fn corpora() -> PathBuf {
    target().join("corpora")
}

/// Returns the folder of kernels for virtual machines.
pub fn kernels() -> PathBuf {
    target().join("kernels")
}

pub fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| Failure::io("make", path, error))
}

/// Removes a folder with its contents, if it exists.
pub fn remove_dir(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Makes a folder beside its place, and moves it there once it is complete.
pub fn replace(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let made = path.with_extension("new");
    remove_dir(&made)?;
    make(&made)?;
    remove_dir(path)?;
    std::fs::rename(&made, path).map_err(|error| Failure::io("move", &made, error))
}

/// Returns everything below a folder but folders, by path; links are not followed.
pub fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let (mut open, mut files) = (vec![dir.to_path_buf()], vec![]);
    while let Some(dir) = open.pop() {
        let entries = std::fs::read_dir(&dir).map_err(|error| Failure::io("list", &dir, error))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let list = if path.is_dir() && !path.is_symlink() { &mut open } else { &mut files };
            list.push(path);
        }
    }
    files.sort();
    Ok(files)
}
