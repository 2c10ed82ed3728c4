//! The kernel's drivers, and the programs that serve images through FUSE.

pub(super) mod kernel;

use std::path::Path;

use super::table::TABLE;
use super::{Found, Mounts, Reader};
use crate::results::Missing;

/// Returns all that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Reader, Missing>> {
    let served = |found: Result<Found<&'static _>, Missing>| {
        found.map(|Found { name, program, kind }| Reader { name, program, kind: Mounts(Some(kind)) })
    };
    let own = TABLE.own_readers.iter();
    let own = own.map(|row| need_fuse(&row.name).and_then(|()| served(row.find_own(packfs))));
    let rivals = TABLE.readers.iter();
    let rivals = rivals.map(|row| need_fuse(&row.name).and_then(|()| served(row.find())));
    std::iter::once(kernel::find()).chain(own).chain(rivals).collect()
}

/// Checks that this machine has FUSE, and that the user may use it.
fn need_fuse(what: &str) -> Result<(), Missing> {
    match std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => Ok(()),
        Err(error) => Err(Missing { what: what.into(), why: format!("/dev/fuse cannot be opened: {error}") }),
    }
}
