//! Calls on open files that must go through the C library: rustix bypasses it, so interposers
//! (fakeroot, pseudo) would not see them.

use rustix::fs::{Gid, Mode, Uid};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;

/// `None` keeps an id.
pub(super) fn fchown(file: &File, uid: Option<Uid>, gid: Option<Gid>) -> Result<(), Errno> {
    std::os::unix::fs::fchown(file, uid.map(Uid::as_raw), gid.map(Gid::as_raw)).map_err(|e| errno(&e))
}

pub(super) fn fchmod(file: &File, mode: Mode) -> Result<(), Errno> {
    file.set_permissions(Permissions::from_mode(mode.bits())).map_err(|e| errno(&e))
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
