//! One file per program, or driver, that mounts images.

mod dwarfs;
mod erofsfuse;
mod kernel;
mod packfs_fuse;
mod squashfuse;
mod squashfuse_ll;

use std::path::Path;

use super::{Mounts, Reader};
use crate::programs::Wanted;
use crate::results::Missing;

/// All that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Reader, Missing>> {
    vec![
        kernel::find(),
        packfs_fuse::find(packfs),
        squashfuse::find(),
        squashfuse_ll::find(),
        erofsfuse::find(),
        dwarfs::find(),
    ]
}

/// Looks for a program that serves images through FUSE.
fn find_fuse(wanted: Wanted, mounts: Mounts) -> Result<Reader, Missing> {
    need_fuse(wanted.name)?;
    Reader::find(wanted, mounts)
}

/// That this machine has no FUSE, or will not let us have it.
fn need_fuse(what: &str) -> Result<(), Missing> {
    match std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => Ok(()),
        Err(error) => Err(Missing { what: what.into(), why: format!("/dev/fuse cannot be opened: {error}") }),
    }
}
