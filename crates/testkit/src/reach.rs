//! Paths of the host that are longer than Linux takes in one call.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::OsStr;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Paths longer than this are walked in parts.
const PART_LEN: usize = 3000;

/// A path that leads to a place below a directory, for as long as this lives.
pub(crate) struct Reached {
    path: PathBuf,
    /// Directory that the path starts from, kept open.
    _dir: Option<OwnedFd>,
}

impl Deref for Reached {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for Reached {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// Finds a way to `path` below `root`. Panics where a directory on it cannot be opened.
pub(crate) fn reach(root: &Path, path: &[u8]) -> Reached {
    let mut dir: Option<OwnedFd> = None;
    let mut rest = path;
    while rest.len() > PART_LEN {
        let cut = rest[..PART_LEN].iter().rposition(|&byte| byte == b'/').expect("names are not so long");
        let part = below(root, dir.as_ref(), &rest[..cut]);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, &part, flags, Mode::empty());
        dir = Some(opened.unwrap_or_else(|e| panic!("{part:?}: {e}")));
        rest = &rest[cut + 1..];
    }
    Reached { path: below(root, dir.as_ref(), rest), _dir: dir }
}

fn below(root: &Path, dir: Option<&OwnedFd>, rest: &[u8]) -> PathBuf {
    let from =
        dir.map_or_else(|| root.into(), |dir| PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())));
    if rest.is_empty() { from } else { from.join(OsStr::from_bytes(rest)) }
}
