//! Gives files their owner, extended attributes, permissions and time, in this order, as far as privileges allow.
//!
//! The order matters: a change of owner clears set-id bits and file capabilities, so both come after it; attributes in
//! `user.` need write permission on the file itself, so they come before its final permissions; times come last because
//! everything else could change them. What cannot be restored is counted, never fatal.

use super::losses::{LossKind, Losses};
use super::options::{OwnerPolicy, UnpackOptions};
use packfs_core::{ImagePath, Node, NodeId, NodeKind, Owner, Timestamp, Tree, XattrsId};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

const SET_UID: u16 = 0o4000;
const SET_GID: u16 = 0o2000;
const PERMISSIONS: u16 = 0o777;
const OWNER_WRITE: u16 = 0o200;

/// Restores metadata; shared by all workers.
pub(super) struct Restore<'a> {
    tree: &'a Tree,
    losses: &'a Losses,
    owner: OwnerPolicy,
    xattrs: bool,
    times: bool,
    is_root: bool,
    /// Who owns what this process makes.
    own: Owner,
    /// Permission bits that making a file leaves out; `None` if that cannot be told, so every mode is set.
    umask: Option<u16>,
    /// Whether files may be made with another owner than `own`.
    owner_unsure: bool,
}

/// What a file was made with, as far as it is known.
#[derive(Clone, Copy)]
pub(super) struct Made {
    /// Permissions asked for when it was made; `None`: something else made it.
    pub mode: Option<u16>,
}

impl<'a> Restore<'a> {
    /// `root` is the target's own directory: what it hands on to new files (a group, default permissions) must be
    /// undone. `fresh`: nothing but what this extraction makes is in it.
    pub(super) fn new(
        tree: &'a Tree,
        losses: &'a Losses,
        options: &UnpackOptions,
        root: BorrowedFd<'_>,
        fresh: bool,
    ) -> Self {
        let own =
            Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
        let hands_on_group = rustix::fs::fstat(root)
            .map_or(true, |stat| stat.st_gid != own.gid || stat.st_mode & u32::from(SET_GID) != 0);
        let mut no_value = [0_u8; 0];
        let hands_on_mode =
            rustix::fs::fgetxattr(root, c"system.posix_acl_default", &mut no_value[..]).is_ok();
        Restore {
            tree,
            losses,
            owner: options.owner,
            xattrs: options.xattrs,
            times: options.times,
            is_root: own.uid == 0,
            own,
            umask: if fresh && !hands_on_group && !hands_on_mode { umask() } else { None },
            owner_unsure: !fresh || hands_on_group,
        }
    }

    fn path(&self, id: NodeId) -> ImagePath {
        self.tree.path(id)
    }

    /// Whether the image's owners are to be set.
    fn restores_owner(&self) -> bool {
        self.owner == OwnerPolicy::Image || self.owner == OwnerPolicy::Auto && self.is_root
    }

    /// The owner to set, if what making the file gave it is not right already.
    fn owner_to_set(&self, node: &Node) -> Option<Owner> {
        let wanted = if self.restores_owner() { node.meta.owner } else { return None };
        (self.owner_unsure || wanted != self.own).then_some(wanted)
    }

    /// The final permissions if the file ends up owned by `owner`: set-id bits only for the owner they were meant for.
    fn final_mode(&self, node: &Node, owner: Owner) -> u16 {
        let mut mode = node.meta.mode & 0o7777;
        if owner.uid != node.meta.owner.uid {
            mode &= !SET_UID;
        }
        if owner.gid != node.meta.owner.gid {
            mode &= !SET_GID;
        }
        mode
    }

    /// The permissions to make a file with that is finished at once.
    pub(super) fn mode_to_make(&self, node: &Node) -> u16 {
        let mode = node.meta.mode & PERMISSIONS;
        if self.xattrs && node.xattrs != XattrsId::NONE { mode | OWNER_WRITE } else { mode }
    }

    /// The permissions to make a directory with: usable by this process until the end, and by nobody else for writing.
    pub(super) fn mode_to_make_dir(&self, node: &Node) -> u16 {
        let mode = node.meta.mode & PERMISSIONS;
        if mode & 0o722 == 0o700 { mode } else { 0o700 }
    }

    /// Whether a directory's final permissions would keep this process from working in it.
    pub(super) fn locks_out(&self, node: &Node) -> bool {
        !self.is_root && node.meta.mode & 0o700 != 0o700
    }

    /// Whether permissions found on a directory keep this process from working in it.
    pub(super) fn locks_out_mode(&self, st_mode: u32) -> bool {
        !self.is_root && st_mode & 0o700 != 0o700
    }

    /// Restores everything through an open file or directory.
    pub(super) fn finish_fd(&self, fd: BorrowedFd<'_>, id: NodeId, made: Made) {
        let node = self.tree.node(id);
        let owner = self.set_owner(id, node, |uid, gid| rustix::fs::fchown(fd, uid, gid));
        if self.xattrs && node.xattrs != XattrsId::NONE {
            self.set_xattrs(id, node.xattrs, |name, value| {
                rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty())
            });
        }
        if let Some(mode) = self.mode_to_set(id, node, owner, made)
            && let Err(errno) = rustix::fs::fchmod(fd, Mode::from_bits_truncate(u32::from(mode)))
        {
            self.losses.add(LossKind::Mode, || self.path(id), errno);
        }
        if self.times
            && let Err(errno) = rustix::fs::futimens(fd, &timestamps(node.meta.mtime))
        {
            self.losses.add(LossKind::Time, || self.path(id), errno);
        }
    }

    /// Restores everything of something that must not or cannot be opened, by name, never following a link.
    pub(super) fn finish_at(&self, dir: BorrowedFd<'_>, name: &[u8], id: NodeId, made: Made) {
        let node = self.tree.node(id);
        let is_symlink = matches!(node.kind, NodeKind::Symlink(_));
        let owner = self.set_owner(id, node, |uid, gid| {
            rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
        });
        if self.xattrs && node.xattrs != XattrsId::NONE {
            // The kernel has no call relative to a directory for this; only the last name is looked up, unfollowed.
            let path = magic_path(dir, name);
            self.set_xattrs(id, node.xattrs, |name, value| {
                rustix::fs::lsetxattr(&path[..], name, value, XattrFlags::empty())
            });
        }
        if !is_symlink
            && let Some(mode) = self.mode_to_set(id, node, owner, made)
            && let Err(errno) = chmod_at(dir, name, mode)
        {
            self.losses.add(LossKind::Mode, || self.path(id), errno);
        }
        if self.times
            && let Err(errno) =
                rustix::fs::utimensat(dir, name, &timestamps(node.meta.mtime), AtFlags::SYMLINK_NOFOLLOW)
        {
            self.losses.add(LossKind::Time, || self.path(id), errno);
        }
    }

    /// Whether a directory needs more than its owner and time, so that it must be opened.
    pub(super) fn needs_open_dir(&self, id: NodeId, made: Made) -> bool {
        let node = self.tree.node(id);
        let owner = if self.restores_owner() { node.meta.owner } else { self.own };
        self.xattrs && node.xattrs != XattrsId::NONE || self.differs(self.final_mode(node, owner), made)
    }

    /// Sets the owner and returns the one the file has now.
    fn set_owner(
        &self,
        id: NodeId,
        node: &Node,
        chown: impl FnOnce(Option<Uid>, Option<Gid>) -> Result<(), Errno>,
    ) -> Owner {
        let wanted = node.meta.owner;
        let Some(owner) = self.owner_to_set(node) else {
            if self.owner == OwnerPolicy::Auto && wanted != self.own {
                self.losses.add(LossKind::Owner, || self.path(id), "only root can give files away");
            }
            return self.own;
        };
        // The highest id means "leave as it is" to the kernel, so no file can have it.
        let done = if owner.uid == u32::MAX || owner.gid == u32::MAX {
            Err(Errno::INVAL)
        } else {
            chown(Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))
        };
        match done {
            Ok(()) => owner,
            Err(errno) => {
                self.losses.add(LossKind::Owner, || self.path(id), errno);
                self.own
            }
        }
    }

    /// The permissions to set, if those it was made with are not right already.
    fn mode_to_set(&self, id: NodeId, node: &Node, owner: Owner, made: Made) -> Option<u16> {
        let mode = self.final_mode(node, owner);
        if mode != node.meta.mode & 0o7777 {
            self.losses.add(LossKind::SetId, || self.path(id), "its owner could not be restored");
        }
        self.differs(mode, made).then_some(mode)
    }

    fn differs(&self, wanted: u16, made: Made) -> bool {
        match (made.mode, self.umask) {
            (Some(asked), Some(umask)) => asked & !umask != wanted,
            _ => true,
        }
    }

    fn set_xattrs(
        &self,
        id: NodeId,
        set: XattrsId,
        mut set_one: impl FnMut(&[u8], &[u8]) -> Result<(), Errno>,
    ) {
        for (name, value) in self.tree.xattrs(set) {
            if let Err(errno) = set_one(name, value) {
                let why = format!("{}: {errno}", packfs_core::escaped(name));
                self.losses.add(LossKind::Xattr, || self.path(id), why);
            }
        }
    }
}

/// Access time is set to the time of modification: images hold no other.
fn timestamps(time: Timestamp) -> Timestamps {
    let time = Timespec { tv_sec: time.seconds, tv_nsec: time.nanos.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// A path that leads to `name` in an open directory.
fn magic_path(dir: BorrowedFd<'_>, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", dir.as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

/// Changes permissions of something that is no symlink, without following one that may have taken its place.
pub(super) fn chmod_at(dir: BorrowedFd<'_>, name: &[u8], mode: u16) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    rustix::fs::chmod(path, Mode::from_bits_truncate(u32::from(mode)))
}

/// The umask of this process, read without changing it: other threads may be making files.
fn umask() -> Option<u16> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u16::from_str_radix(line.trim(), 8).ok()
}
