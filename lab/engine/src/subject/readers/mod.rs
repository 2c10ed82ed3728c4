//! The kernel's drivers, and the programs that serve images through FUSE: a row each.

pub(super) mod kernel;

use std::path::Path;

use super::makers::packfs_program;
use super::{Mounts, Reader};
use crate::programs::Wanted;
use crate::results::Missing;

const SQUASHFUSE: Wanted = Wanted {
    name: "squashfuse",
    version_option: "--version",
    from: "Debian package squashfuse, or `cargo xtask peers`",
};

/// Rivals: squashfuse serves in one thread, squashfuse_ll and erofsfuse in up to ten.
const RIVALS: [(Wanted, Mounts); 4] = [
    (SQUASHFUSE, Mounts::Server(Some("squashfs"), "-f {image} {at}")),
    (Wanted { name: "squashfuse_ll", ..SQUASHFUSE }, Mounts::Server(Some("squashfs"), "-f {image} {at}")),
    (
        Wanted {
            name: "erofsfuse",
            version_option: "--version",
            from: "Debian package erofsfuse, or `cargo xtask peers`",
        },
        Mounts::Server(Some("erofs"), "-f --dbglevel=0 {image} {at}"),
    ),
    (
        Wanted { name: "dwarfs", version_option: "--help", from: "https://github.com/mhx/dwarfs/releases" },
        Mounts::Server(Some("dwarfs"), "{image} {at} -f"),
    ),
];

/// Returns all that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Reader, Missing>> {
    let rivals =
        RIVALS.map(|(wanted, mounts)| need_fuse(wanted.name).and_then(|()| Reader::find(wanted, mounts)));
    [kernel::find(), packfs_fuse(packfs)].into_iter().chain(rivals).collect()
}

/// Returns packfs's own FUSE server.
fn packfs_fuse(path: &Path) -> Result<Reader, Missing> {
    need_fuse("packfs-fuse")?;
    let kind = Mounts::Server(None, "mount --fuse --foreground {image} {at}");
    Ok(Reader { name: "packfs-fuse", program: packfs_program(path)?, kind })
}

/// Checks that this machine has FUSE, and that the user may use it.
fn need_fuse(what: &str) -> Result<(), Missing> {
    match std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => Ok(()),
        Err(error) => Err(Missing { what: what.into(), why: format!("/dev/fuse cannot be opened: {error}") }),
    }
}
