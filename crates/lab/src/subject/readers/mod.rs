//! One file per program, or driver, that mounts images.

mod dwarfs;
mod erofsfuse;
mod kernel;
mod packfs_fuse;
mod squashfuse;
mod squashfuse_ll;

use std::path::Path;

use super::Reader;
use crate::results::Missing;

pub(super) use kernel::has_driver;

/// All that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Box<dyn Reader>, Missing>> {
    vec![
        kernel::Kernel::find().map(|reader| Box::new(reader) as _),
        packfs_fuse::PackfsFuse::find(packfs).map(|reader| Box::new(reader) as _),
        squashfuse::Squashfuse::find().map(|reader| Box::new(reader) as _),
        squashfuse_ll::SquashfuseLl::find().map(|reader| Box::new(reader) as _),
        erofsfuse::Erofsfuse::find().map(|reader| Box::new(reader) as _),
        dwarfs::Dwarfs::find().map(|reader| Box::new(reader) as _),
    ]
}

/// That this machine has no FUSE, or will not let us have it.
fn need_fuse(what: &str) -> Result<(), Missing> {
    match std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => Ok(()),
        Err(error) => Err(Missing { what: what.into(), why: format!("/dev/fuse cannot be opened: {error}") }),
    }
}
