//! Where things are: the checkout and what this tool makes below its `target/`.

use std::path::PathBuf;

use crate::failure::{Failure, Result};

/// Top folder of the checkout.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// `target/` of the checkout, wherever cargo itself was told to build.
pub fn target() -> PathBuf {
    root().join("target")
}

/// Programs of other projects and the libraries they run with.
pub fn peers() -> PathBuf {
    target().join("peers")
}

/// Trees the benchmark packs.
pub fn corpora() -> PathBuf {
    target().join("corpora")
}

/// Kernels of older releases, to be run in a virtual machine.
pub fn kernels() -> PathBuf {
    target().join("kernels")
}

/// Makes a folder and those above it.
pub fn make_dir(path: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| Failure::io("make", path, error))
}

/// Removes a folder and all below it; it need not exist.
pub fn remove_dir(path: &std::path::Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io("remove", path, error)),
        _ => Ok(()),
    }
}
