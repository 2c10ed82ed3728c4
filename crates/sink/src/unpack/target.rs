use super::dirs::{Dirs, OPEN_DIR};
use super::options::Existing;
use super::sys::{fchmod, fchown};
use crate::select::WalkEntry;
use packfs_core::{Error, ImagePath, NodeId, Result, Timestamp, Tree};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, Stat, fstat, mkdirat, openat, statat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

/// Everything else is reached from its descriptor.
pub(super) struct Target {
    pub fd: File,
    pub fresh: bool,
    /// True if this process owned it when it was opened or created. With `fakeroot
    /// --unknown-is-real` created files are not.
    pub own: bool,
    /// True if unprivileged processes cannot change it: it is empty, ours, and closed to others.
    pub closed: bool,
}

impl Target {
    /// Does not follow a symbolic link.
    ///
    /// Errors: `Failed` if the directory has contents that `existing` refuses.
    pub(super) fn open(path: &Path, existing: Existing) -> Result<Self> {
        let made = match mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(Error::io(format!("cannot create directory {path:?}"), errno.into())),
        };
        let fd = openat(CWD, path, OPEN_DIR, Mode::empty()).map_err(|errno| {
            let error = Error::io(format!("cannot open directory {path:?}"), errno.into());
            let is_link = matches!(errno, Errno::NOTDIR | Errno::LOOP);
            if is_link { error.hint("it must be a directory itself, not a file or a link") } else { error }
        })?;
        let fd = File::from(fd);
        let fresh =
            made || is_empty(&fd).map_err(|e| Error::io(format!("cannot read {path:?}"), e.into()))?;
        if !fresh && existing == Existing::Refuse {
            return Err(Error::already_exists(format!(
                "cannot unpack into {path:?}: directory is not empty"
            )));
        }
        let own = fstat(&fd).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
        let closed = fresh && close_to_others(&fd).is_ok();
        Ok(Target { fd, fresh, own, closed })
    }
}

fn close_to_others(dir: &File) -> Result<(), Errno> {
    let own = rustix::process::geteuid();
    if fstat(dir)?.st_uid != own.as_raw() {
        fchown(dir, Some(own), None)?;
    }
    fchmod(dir, Mode::RWXU)
}

fn is_empty(dir: &File) -> Result<bool, Errno> {
    for entry in Dir::read_from(dir)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs before anything is written.
pub(super) struct ConflictScan<'a> {
    tree: &'a Tree,
    existing: Existing,
    dirs: Dirs<'a>,
    pub found: HashSet<NodeId>,
}

impl<'a> ConflictScan<'a> {
    pub(super) fn new(tree: &'a Tree, target: &'a Target, existing: Existing) -> Self {
        let found = HashSet::from([NodeId::ROOT]);
        ConflictScan { tree, existing, dirs: Dirs::new(tree, &target.fd, 64), found }
    }

    /// Parents must be checked first.
    ///
    /// Errors: `Failed` for a conflict with a file that must stay.
    pub(super) fn wants(&mut self, entry: &WalkEntry<'_>) -> Result<bool> {
        if !self.found.contains(&entry.dir) {
            return Ok(true);
        }
        let place = || {
            let mut path =
                if entry.dir == NodeId::ROOT { ImagePath::root() } else { self.tree.path(entry.dir) };
            if let Ok(name) = packfs_core::Name::new(entry.name) {
                path.push(name);
            }
            path
        };
        let there = match statat(self.dirs.get(entry.dir)?, entry.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => {
                return Err(Error::io(format!("cannot read the attributes of {:?}", place()), errno.into()));
            }
        };
        let node = self.tree.node(entry.node);
        let dir_there = FileType::from_raw_mode(there.st_mode) == FileType::Directory;
        match (node.is_dir(), dir_there) {
            (true, true) => {
                self.found.insert(entry.node);
                Ok(true)
            }
            (false, true) => {
                let word = node.kind.file_type().word();
                Err(Error::failed(format!(
                    "cannot unpack {:?}: a directory is in the way of a {word}",
                    place()
                )))
            }
            (true, false) if !matches!(self.existing, Existing::Replace | Existing::KeepNewer) => Err(
                Error::failed(format!("cannot unpack {:?}: a file is in the way of a directory", place())),
            ),
            (true, false) => Ok(true),
            (false, false) => match self.existing {
                Existing::Refuse | Existing::Merge => {
                    Err(Error::already_exists(format!("cannot unpack {:?}: it exists already", place())))
                }
                Existing::Replace => Ok(true),
                Existing::Skip => Ok(false),
                Existing::KeepNewer => Ok(mtime(&there) < node.meta.mtime),
            },
        }
    }
}

fn mtime(stat: &Stat) -> Timestamp {
    Timestamp { seconds: stat.st_mtime, nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}
