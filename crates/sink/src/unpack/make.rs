//! Creates single names in the target: directories, links, special files, and files to be filled.
//!
//! Existing files of the target are never opened or changed. If the policy replaces one, its name
//! is removed first.

use super::dirs::Dirs;
use super::losses::{LossKind, Losses};
use super::options::Existing;
use super::restore::{CreatedWith, Restore};
use crate::select::WalkEntry;
use packfs_core::{DeviceNumber, Error, ImagePath, Name, Node, NodeId, NodeKind, Result, Tree};
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::sync::{PoisonError, RwLock};

/// Flags for creating files: new ones only, and never through a link.
const MAKE_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Inputs for creating names, shared by all workers.
pub(super) struct Maker<'a> {
    pub tree: &'a Tree,
    pub restore: &'a Restore<'a>,
    pub losses: &'a Losses,
    pub existing: Existing,
    pub devices: bool,
    pub turns: RemovalLock,
}

/// Prevents names from being created while one is removed, if an interposer is loaded.
///
/// fakeroot forgets a removed inode only after the system call that removed it. If another thread
/// creates a file with the same inode number in between, fakeroot forgets that file's owner or
/// device.
pub(super) struct RemovalLock(Option<RwLock<()>>);

impl RemovalLock {
    /// Creates the lock; it is active if any library is preloaded.
    pub(super) fn new() -> RemovalLock {
        RemovalLock(std::env::var_os("LD_PRELOAD").map(|_| RwLock::default()))
    }

    fn make<T>(&self, make: impl FnOnce() -> T) -> T {
        let _turn = self.0.as_ref().map(|lock| lock.read().unwrap_or_else(PoisonError::into_inner));
        make()
    }

    fn remove<T>(&self, remove: impl FnOnce() -> T) -> T {
        let _turn = self.0.as_ref().map(|lock| lock.write().unwrap_or_else(PoisonError::into_inner));
        remove()
    }
}

impl Maker<'_> {
    /// Returns the path of a name, for messages.
    pub(super) fn path(&self, met: &WalkEntry<'_>) -> ImagePath {
        let mut path = if met.dir == NodeId::ROOT { ImagePath::root() } else { self.tree.path(met.dir) };
        if let Ok(name) = Name::new(met.name) {
            path.push(name);
        }
        path
    }

    pub(super) fn cannot(&self, what: &str, met: &WalkEntry<'_>, errno: Errno) -> Error {
        let error = Error::io(format!("cannot {what} {:?}", self.path(met)), errno.into());
        match errno {
            Errno::EXIST => {
                error.hint("another process created it, or this filesystem treats two names as equal")
            }
            _ => error,
        }
    }

    /// Creates a name; if it exists and the policy replaces it, removes it and tries once more.
    fn make<T>(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        make: impl Fn() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match self.turns.make(&make) {
            Err(Errno::EXIST) if matches!(self.existing, Existing::Replace | Existing::KeepNewer) => {
                self.remove(dir, name)?;
                self.turns.make(&make)
            }
            outcome => outcome,
        }
    }

    /// Removes a name other than a directory's.
    pub(super) fn remove(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        self.turns.remove(|| rustix::fs::unlinkat(dir, name, AtFlags::empty()))
    }

    /// Creates a new directory.
    pub(super) fn directory(&self, dirs: &mut Dirs<'_>, met: &WalkEntry<'_>) -> Result<()> {
        let dir = dirs.get(met.dir)?;
        let mode = mode_bits(self.restore.mode_to_make_dir(self.tree.node(met.node)));
        self.make(dir, met.name, || rustix::fs::mkdirat(dir, met.name, mode))
            .map_err(|errno| self.cannot("create directory", met, errno))
    }

    /// Makes an existing directory accessible until it gets its final permissions.
    pub(super) fn enter_found_dir(&self, dirs: &mut Dirs<'_>, met: &WalkEntry<'_>) -> Result<()> {
        super::restore::open_up_dir(dirs.get(met.dir)?, met.name, |mode| self.restore.locks_out_mode(mode))
            .map_err(|errno| self.cannot("open directory", met, errno))
    }

    /// Creates an empty file and leaves it open; `mode` is reduced by the umask.
    pub(super) fn file(&self, dir: BorrowedFd<'_>, met: &WalkEntry<'_>, mode: u16) -> Result<File> {
        self.make(dir, met.name, || rustix::fs::openat(dir, met.name, MAKE_FILE, mode_bits(mode)))
            .map(File::from)
            .map_err(|errno| self.cannot("create file", met, errno))
    }

    /// Creates and finishes a node without contents. Returns false if it could not be created,
    /// which is then counted.
    pub(super) fn bare(&self, dirs: &mut Dirs<'_>, met: &WalkEntry<'_>) -> Result<bool> {
        let node = self.tree.node(met.node);
        let dir = dirs.get(met.dir)?;
        match &node.kind {
            NodeKind::Symlink(target) => {
                self.make(dir, met.name, || rustix::fs::symlinkat(&target[..], dir, met.name))
                    .map_err(|errno| self.cannot("create symlink", met, errno))?;
                self.restore.finish_at(dir, met.name, met.node, CreatedWith { mode: None });
                Ok(true)
            }
            NodeKind::BlockDevice(number) => self.special(dir, met, node, FileType::BlockDevice, *number),
            NodeKind::CharDevice(number) => self.special(dir, met, node, FileType::CharacterDevice, *number),
            NodeKind::Fifo => self.special(dir, met, node, FileType::Fifo, DeviceNumber::default()),
            NodeKind::Socket => self.special(dir, met, node, FileType::Socket, DeviceNumber::default()),
            NodeKind::File { len, .. } => {
                let mode = self.restore.mode_to_make(node);
                let fd = self.file(dir, met, mode)?;
                if *len > 0 {
                    self.set_len(&fd, met, *len)?;
                }
                self.restore.finish_fd(&fd, met.node, CreatedWith { mode: Some(mode) });
                Ok(true)
            }
            NodeKind::Directory => Ok(false),
        }
    }

    fn special(
        &self,
        dir: BorrowedFd<'_>,
        met: &WalkEntry<'_>,
        node: &Node,
        file_type: FileType,
        number: DeviceNumber,
    ) -> Result<bool> {
        let is_device = matches!(file_type, FileType::BlockDevice | FileType::CharacterDevice);
        let kind = if is_device { LossKind::Device } else { LossKind::SpecialFile };
        if is_device && !self.devices {
            return Ok(false);
        }
        let mode = self.restore.mode_to_make(node);
        let device = rustix::fs::makedev(number.major, number.minor);
        let made = self
            .make(dir, met.name, || rustix::fs::mknodat(dir, met.name, file_type, mode_bits(mode), device));
        match made {
            Ok(()) => {
                self.restore.finish_at(dir, met.name, met.node, CreatedWith { mode: Some(mode) });
                Ok(true)
            }
            Err(errno @ (Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS)) => {
                self.losses.add(kind, || self.path(met), errno);
                Ok(false)
            }
            Err(errno) => Err(self.cannot("create", met, errno)),
        }
    }

    /// Adds a name to a node.
    pub(super) fn link(
        &self,
        from: &mut Dirs<'_>,
        to: &mut Dirs<'_>,
        met: &WalkEntry<'_>,
        first: &WalkEntry<'_>,
    ) -> Result<()> {
        let (old_dir, new_dir) = (from.get(first.dir)?, to.get(met.dir)?);
        self.make(new_dir, met.name, || {
            rustix::fs::linkat(old_dir, first.name, new_dir, met.name, AtFlags::empty())
        })
        .map_err(|errno| {
            let error = self.cannot("create hard link", met, errno);
            error.hint(format!("it is a hard link to {:?}", self.path(first)))
        })
    }

    pub(super) fn set_len(&self, fd: &File, met: &WalkEntry<'_>, len: u64) -> Result<()> {
        rustix::fs::ftruncate(fd, len).map_err(|errno| self.cannot("set the length of", met, errno))
    }

    /// Writes all of `bytes` at `offset`.
    pub(super) fn write(
        &self,
        fd: BorrowedFd<'_>,
        met: &WalkEntry<'_>,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> Result<()> {
        while !bytes.is_empty() {
            match rustix::io::pwrite(fd, bytes, offset) {
                Ok(0) => return Err(self.cannot("write", met, Errno::NOSPC)),
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    offset = offset.saturating_add(count as u64);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.cannot("write", met, errno)),
            }
        }
        Ok(())
    }

    /// Sets a directory's final owner, attributes, permissions and time.
    pub(super) fn finish_dir(
        &self,
        dirs: &mut Dirs<'_>,
        met: &WalkEntry<'_>,
        made: CreatedWith,
    ) -> Result<()> {
        if self.restore.needs_open_dir(met.node, made) {
            let dir = dirs.file(met.node)?;
            self.restore.finish_fd(dir, met.node, made);
        } else {
            let parent = dirs.get(met.dir)?;
            self.restore.finish_at(parent, met.name, met.node, made);
        }
        Ok(())
    }
}

pub(super) fn mode_bits(mode: u16) -> Mode {
    Mode::from_bits_truncate(u32::from(mode))
}
