//! Default names of the files beside an image or a key.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the path of an image's recovery data: `IMAGE.rec`.
pub fn recovery_path(image: &Path) -> PathBuf {
    with_suffix(image, ".rec")
}

/// Returns the path of an image's signature: `IMAGE.minisig`.
pub fn signature_path(image: &Path) -> PathBuf {
    with_suffix(image, ".minisig")
}

/// Returns the path of the root hash of an image's hash tree: `IMAGE.roothash`.
pub fn root_hash_path(image: &Path) -> PathBuf {
    with_suffix(image, ".roothash")
}

/// Returns the path of the public key of a secret one: `KEY.pub`.
pub fn public_key_path(secret_key: &Path) -> PathBuf {
    with_suffix(secret_key, ".pub")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
