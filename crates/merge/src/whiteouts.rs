//! Whiteouts and opaque directories of overlayfs.

use packfs_core::{DeviceNumber, Xattrs};
use packfs_format::InodeKind;

const OPAQUE: [&[u8]; 2] = [b"trusted.overlay.opaque", b"user.overlay.opaque"];
const WHITEOUT: [&[u8]; 2] = [b"trusted.overlay.whiteout", b"user.overlay.whiteout"];

/// Returns true for an inode that hides what earlier images have under its name.
pub(crate) fn is_whiteout(kind: InodeKind, xattrs: &Xattrs) -> bool {
    match kind {
        InodeKind::CharDevice(number) => number == DeviceNumber { major: 0, minor: 0 },
        InodeKind::File { len: 0 } => WHITEOUT.iter().any(|&name| xattrs.contains_key(name)),
        _ => false,
    }
}

/// Returns true for a directory that hides what earlier images have in it. Other values than `y`
/// mark directories that hold other kinds of whiteouts.
pub(crate) fn is_opaque(xattrs: &Xattrs) -> bool {
    OPAQUE.iter().any(|&name| xattrs.get(name).is_some_and(|value| value == b"y"))
}

/// Removes the marks, which mean nothing once they are applied.
pub(crate) fn without_marks(mut xattrs: Xattrs) -> Xattrs {
    for name in OPAQUE.iter().chain(&WHITEOUT) {
        xattrs.remove(*name);
    }
    xattrs
}
