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
    /// Active if any library is preloaded.
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
    pub(super) fn path(&self, entry: &WalkEntry<'_>) -> ImagePath {
        let mut path = if entry.dir == NodeId::ROOT { ImagePath::root() } else { self.tree.path(entry.dir) };
        if let Ok(name) = Name::new(entry.name) {
            path.push(name);
        }
        path
    }

    pub(super) fn cannot(&self, what: &str, entry: &WalkEntry<'_>, errno: Errno) -> Error {
        let error = Error::io(format!("cannot {what} {:?}", self.path(entry)), errno.into());
        match errno {
            Errno::EXIST => {
                error.hint("another process created it, or this filesystem treats two names as equal")
            }
            _ => error,
        }
    }

    /// Removes an existing name once if the policy replaces it.
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

    /// Not for directories.
    pub(super) fn remove(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        self.turns.remove(|| rustix::fs::unlinkat(dir, name, AtFlags::empty()))
    }

    pub(super) fn directory(&self, dirs: &mut Dirs<'_>, entry: &WalkEntry<'_>) -> Result<()> {
        let dir = dirs.get(entry.dir)?;
        let mode = mode_bits(self.restore.mode_to_make_dir(self.tree.node(entry.node)));
        self.make(dir, entry.name, || rustix::fs::mkdirat(dir, entry.name, mode))
            .map_err(|errno| self.cannot("create directory", entry, errno))
    }

    pub(super) fn enter_found_dir(&self, dirs: &mut Dirs<'_>, entry: &WalkEntry<'_>) -> Result<()> {
        super::restore::open_up_dir(dirs.get(entry.dir)?, entry.name, |mode| {
            self.restore.locks_out_mode(mode)
        })
        .map_err(|errno| self.cannot("open directory", entry, errno))
    }

    /// `mode` is reduced by the umask.
    pub(super) fn file(&self, dir: BorrowedFd<'_>, entry: &WalkEntry<'_>, mode: u16) -> Result<File> {
        self.make(dir, entry.name, || rustix::fs::openat(dir, entry.name, MAKE_FILE, mode_bits(mode)))
            .map(File::from)
            .map_err(|errno| self.cannot("create file", entry, errno))
    }

    /// Returns false if the node could not be created, which is then counted.
    pub(super) fn bare(&self, dirs: &mut Dirs<'_>, entry: &WalkEntry<'_>) -> Result<bool> {
        let node = self.tree.node(entry.node);
        let dir = dirs.get(entry.dir)?;
        match &node.kind {
            NodeKind::Symlink(target) => {
                self.make(dir, entry.name, || rustix::fs::symlinkat(&target[..], dir, entry.name))
                    .map_err(|errno| self.cannot("create symlink", entry, errno))?;
                self.restore.finish_at(dir, entry.name, entry.node, CreatedWith { mode: None });
                Ok(true)
            }
            NodeKind::BlockDevice(number) => self.special(dir, entry, node, FileType::BlockDevice, *number),
            NodeKind::CharDevice(number) => {
                self.special(dir, entry, node, FileType::CharacterDevice, *number)
            }
            NodeKind::Fifo => self.special(dir, entry, node, FileType::Fifo, DeviceNumber::default()),
            NodeKind::Socket => self.special(dir, entry, node, FileType::Socket, DeviceNumber::default()),
            NodeKind::File { len, .. } => {
                let mode = self.restore.mode_to_make(node);
                let fd = self.file(dir, entry, mode)?;
                if *len > 0 {
                    self.set_len(&fd, entry, *len)?;
                }
                self.restore.finish_fd(&fd, entry.node, CreatedWith { mode: Some(mode) });
                Ok(true)
            }
            NodeKind::Directory => Ok(false),
        }
    }

    fn special(
        &self,
        dir: BorrowedFd<'_>,
        entry: &WalkEntry<'_>,
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
        let made = self.make(dir, entry.name, || {
            rustix::fs::mknodat(dir, entry.name, file_type, mode_bits(mode), device)
        });
        match made {
            Ok(()) => {
                self.restore.finish_at(dir, entry.name, entry.node, CreatedWith { mode: Some(mode) });
                Ok(true)
            }
            Err(errno @ (Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS)) => {
                self.losses.add(kind, || self.path(entry), errno);
                Ok(false)
            }
            Err(errno) => Err(self.cannot("create", entry, errno)),
        }
    }

    /// Returns the error of a failure for this name alone: too many links, names on different
    /// filesystems, or a filesystem without hard links.
    pub(super) fn link(
        &self,
        from: &mut Dirs<'_>,
        to: &mut Dirs<'_>,
        entry: &WalkEntry<'_>,
        first: &WalkEntry<'_>,
    ) -> Result<Option<Error>> {
        let (old_dir, new_dir) = (from.get(first.dir)?, to.get(entry.dir)?);
        let made = self.make(new_dir, entry.name, || {
            rustix::fs::linkat(old_dir, first.name, new_dir, entry.name, AtFlags::empty())
        });
        let Err(errno) = made else { return Ok(None) };
        let error = self.cannot("create hard link", entry, errno);
        let error = error.hint(format!("it is a hard link to {:?}", self.path(first)));
        match errno {
            Errno::MLINK | Errno::XDEV | Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS => Ok(Some(error)),
            _ => Err(error),
        }
    }

    pub(super) fn set_len(&self, fd: &File, entry: &WalkEntry<'_>, len: u64) -> Result<()> {
        rustix::fs::ftruncate(fd, len).map_err(|errno| self.cannot("set the length of", entry, errno))
    }

    pub(super) fn write(
        &self,
        fd: BorrowedFd<'_>,
        entry: &WalkEntry<'_>,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> Result<()> {
        while !bytes.is_empty() {
            match rustix::io::pwrite(fd, bytes, offset) {
                Ok(0) => return Err(self.cannot("write", entry, Errno::NOSPC)),
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    offset = offset.saturating_add(count as u64);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.cannot("write", entry, errno)),
            }
        }
        Ok(())
    }

    pub(super) fn finish_dir(
        &self,
        dirs: &mut Dirs<'_>,
        entry: &WalkEntry<'_>,
        made: CreatedWith,
    ) -> Result<()> {
        if self.restore.needs_open_dir(entry.node, made) {
            let dir = dirs.file(entry.node)?;
            self.restore.finish_fd(dir, entry.node, made);
        } else {
            let parent = dirs.get(entry.dir)?;
            self.restore.finish_at(parent, entry.name, entry.node, made);
        }
        Ok(())
    }
}

pub(super) fn mode_bits(mode: u16) -> Mode {
    Mode::from_bits_truncate(u32::from(mode))
}
