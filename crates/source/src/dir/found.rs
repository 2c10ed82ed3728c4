//! Entries of a directory, as the host describes them.

use packfs_core::{Error, FileType, Xattrs};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Linux's limit of the list of attribute names, and of a value.
const XATTR_LEN_MAX: usize = 1 << 16;
// Linux allocates a buffer of this length for each call.
const XATTR_LEN_FEW: usize = 1 << 10;
/// Linux's limit of a link target.
const TARGET_LEN_MAX: usize = 4096;

/// Errors count only for entries that the shape keeps.
pub(super) struct Found {
    pub stat: Stat,
    /// Target of a symbolic link.
    pub target: Result<Vec<u8>, Errno>,
    pub xattrs: Result<Xattrs, Unread>,
}

/// The entries of a directory by name: errors and warnings come in the same order on every
/// filesystem.
pub(super) type Entries = Vec<(CString, Result<Found, Errno>)>;

pub(super) struct NotListed {
    pub verb: &'static str,
    pub error: Errno,
}

pub(super) struct Unread {
    /// Name of the attribute; `None` for the list of names.
    attribute: Option<Vec<u8>>,
    error: Errno,
}

impl Unread {
    pub(super) fn error(self, file: &str) -> Error {
        let what = match &self.attribute {
            Some(name) => format!("cannot read extended attribute {} of {file}", packfs_core::escaped(name)),
            None => format!("cannot list extended attributes of {file}"),
        };
        Error::io(what, self.error.into())
    }
}

#[derive(Clone)]
pub(super) struct Looker {
    pub follow: bool,
    /// Leaves targets and attributes empty.
    pub stat_only: bool,
    buffer: Vec<u8>,
}

impl Looker {
    pub(super) fn new(follow: bool) -> Self {
        Looker { follow, stat_only: false, buffer: vec![0; XATTR_LEN_MAX] }
    }

    /// Looks up an entry of the directory `fd`, whose number is `number`.
    pub(super) fn look(&mut self, fd: &OwnedFd, number: &str, name: &CStr) -> Result<Found, Errno> {
        let stat_as = |flags| rustix::fs::statat(fd, name, flags);
        let stat = if self.follow {
            // A dangling symlink is kept.
            stat_as(AtFlags::empty()).or_else(|_| stat_as(AtFlags::SYMLINK_NOFOLLOW))?
        } else {
            stat_as(AtFlags::SYMLINK_NOFOLLOW)?
        };
        let is_link = FileType::from_mode_bits(stat.st_mode) == Some(FileType::Symlink);
        let target = if is_link && !self.stat_only {
            let target = rustix::fs::readlinkat(fd, name, Vec::with_capacity(TARGET_LEN_MAX));
            target.map(|target| target.as_bytes().to_vec())
        } else {
            Ok(Vec::new())
        };
        let xattrs = if self.stat_only { Ok(Xattrs::new()) } else { self.xattrs(number, name.to_bytes()) };
        Ok(Found { stat, target, xattrs })
    }

    /// Accesses the entry through its directory's descriptor: its path may exceed Linux's limit.
    pub(super) fn xattrs(&mut self, fd_number: &str, name: &[u8]) -> Result<Xattrs, Unread> {
        let path = [b"/proc/self/fd/", fd_number.as_bytes(), b"/", name].concat();
        let path = Path::new(OsStr::from_bytes(&path));
        let follow = self.follow || name.is_empty();
        let list = if follow { rustix::fs::listxattr } else { rustix::fs::llistxattr };
        let listed = match list(path, &mut self.buffer[..XATTR_LEN_FEW]) {
            Err(Errno::RANGE) => list(path, &mut self.buffer[..]),
            listed => listed,
        };
        let len = match listed {
            Ok(0) | Err(Errno::NOTSUP) => return Ok(Xattrs::new()),
            Err(Errno::NOENT) if follow => return Ok(Xattrs::new()),
            listed => listed.map_err(|error| Unread { attribute: None, error })?,
        };
        let names = self.buffer[..len].to_vec();
        let mut xattrs = Xattrs::new();
        for name in names.split(|&b| b == 0).filter(|name| !name.is_empty()) {
            let attribute = OsStr::from_bytes(name);
            let value = &mut self.buffer[..];
            let read = if follow {
                rustix::fs::getxattr(path, attribute, value)
            } else {
                rustix::fs::lgetxattr(path, attribute, value)
            };
            let len = read.map_err(|error| Unread { attribute: Some(name.to_vec()), error })?;
            xattrs.insert(name.to_vec(), self.buffer[..len].to_vec());
        }
        Ok(xattrs)
    }
}
