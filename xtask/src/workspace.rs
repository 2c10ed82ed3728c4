//! Paths of the checkout and of the folders below its `target/`.

use std::path::PathBuf;

use crate::failure::{Failure, Result};

/// Returns the top folder of the checkout.
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

/// Returns the folder of benchmark trees.
pub fn corpora() -> PathBuf {
    target().join("corpora")
}

/// Returns the folder of kernels for virtual machines.
pub fn kernels() -> PathBuf {
    target().join("kernels")
}

/// Creates a folder and its parents.
pub fn make_dir(path: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| Failure::io("make", path, error))
}

/// Removes a folder with its contents, if it exists.
pub fn remove_dir(path: &std::path::Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io("remove", path, error)),
        _ => Ok(()),
    }
}
