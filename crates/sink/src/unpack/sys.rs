//! Calls on open files that have to be the C library's own: rustix makes them without it, even
//! where it uses it for everything else, and then who listens between a program and its C library
//! (fakeroot, pseudo) never hears of them.

use rustix::fs::{Gid, Mode, Uid};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;

/// Changes the owner of an open file; `None` leaves an id as it is.
pub(super) fn fchown(file: &File, uid: Option<Uid>, gid: Option<Gid>) -> Result<(), Errno> {
    std::os::unix::fs::fchown(file, uid.map(Uid::as_raw), gid.map(Gid::as_raw)).map_err(|e| errno(&e))
}

/// Changes the permissions of an open file.
pub(super) fn fchmod(file: &File, mode: Mode) -> Result<(), Errno> {
    file.set_permissions(Permissions::from_mode(mode.bits())).map_err(|e| errno(&e))
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
