//! Sets owner, extended attributes, permissions and time of files, in this order, as far as
//! privileges allow.
//!
//! The order matters: changing the owner clears set-id bits and file capabilities, so both come
//! later. `user.` attributes need write permission on the file, so they precede its final
//! permissions. Times come last, because all other changes may affect them. Failures are counted,
//! never fatal.

use super::losses::{LossKind, Losses};
use super::options::{OwnerPolicy, UnpackOptions};
use super::sys;
use super::target::Target;
use packfs_core::{ImagePath, Node, NodeId, NodeKind, Owner, Timestamp, Tree, XattrsId};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use std::fs::File;

const SET_UID: u16 = 0o4000;
const SET_GID: u16 = 0o2000;
const PERMISSIONS: u16 = 0o777;
const OWNER_ACCESS: u16 = 0o600;

/// Flags for a descriptor to any type of file, without opening it or following a link.
const HOLD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(super) struct Restore<'a> {
    tree: &'a Tree,
    losses: &'a Losses,
    owner: OwnerPolicy,
    xattrs: bool,
    times: bool,
    is_root: bool,
    /// Owner of files that this process creates.
    own: Owner,
    /// The umask; `None` if unknown, so every mode is set explicitly.
    umask: Option<u16>,
    /// True if files may be created with another owner than `own`.
    owner_unsure: bool,
    /// True if another process may replace a name that was just created.
    careful: bool,
}

#[derive(Clone, Copy)]
pub(super) struct CreatedWith {
    /// Permissions requested at creation; `None` if created otherwise.
    pub mode: Option<u16>,
}

impl<'a> Restore<'a> {
    /// Attributes inherited from the target's directory (a group, default permissions) are reset.
    pub(super) fn new(tree: &'a Tree, losses: &'a Losses, options: &UnpackOptions, target: &Target) -> Self {
        let own =
            Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
        let hands_on_group = rustix::fs::fstat(&target.fd)
            .map_or(true, |stat| stat.st_gid != own.gid || stat.st_mode & u32::from(SET_GID) != 0);
        let mut no_value = [0_u8; 0];
        let hands_on_mode =
            rustix::fs::fgetxattr(&target.fd, c"system.posix_acl_default", &mut no_value[..]).is_ok();
        let as_asked = target.fresh && target.own && !hands_on_group;
        Restore {
            tree,
            losses,
            owner: options.owner,
            xattrs: options.xattrs,
            times: options.times,
            is_root: own.uid == 0,
            own,
            umask: if as_asked && !hands_on_mode { umask() } else { None },
            owner_unsure: !as_asked,
            careful: !target.closed,
        }
    }

    fn path(&self, id: NodeId) -> ImagePath {
        self.tree.path(id)
    }

    fn restores_owner(&self) -> bool {
        self.owner == OwnerPolicy::Image || self.owner == OwnerPolicy::Auto && self.is_root
    }

    /// `None` if the file has the owner already.
    fn owner_to_set(&self, node: &Node) -> Option<Owner> {
        let wanted = if self.restores_owner() { node.meta.owner } else { return None };
        // fakeroot reports unknown files as root's, until it sees an attribute; then the true owner
        // appears.
        let heard_of = self.xattrs && node.xattrs != XattrsId::NONE;
        (self.owner_unsure || heard_of || wanted != self.own).then_some(wanted)
    }

    /// Set-id bits are kept only for their intended owner, and only if owners are restored. A
    /// directory's bits only pass on its group.
    fn final_mode(&self, node: &Node, owner: Owner) -> u16 {
        let mut mode = node.meta.mode & 0o7777;
        let trusted = self.restores_owner() || node.is_dir();
        if owner.uid != node.meta.owner.uid || !trusted {
            mode &= !SET_UID;
        }
        if owner.gid != node.meta.owner.gid || !trusted {
            mode &= !SET_GID;
        }
        mode
    }

    /// Permissions for a file that is finished at once. Its owner may read and write it until then,
    /// for `user.` attributes, and because fakeroot only sees changes of permissions, and keeps it
    /// accessible to its pretended root.
    pub(super) fn mode_to_make(&self, node: &Node) -> u16 {
        node.meta.mode & PERMISSIONS | OWNER_ACCESS
    }

    /// Accessible to this process, and not writable by others.
    pub(super) fn mode_to_make_dir(&self, node: &Node) -> u16 {
        let mode = node.meta.mode & PERMISSIONS;
        if mode & 0o722 == 0o700 { mode } else { 0o700 }
    }

    pub(super) fn locks_out(&self, node: &Node) -> bool {
        !self.is_root && node.meta.mode & 0o700 != 0o700
    }

    pub(super) fn locks_out_mode(&self, st_mode: u32) -> bool {
        !self.is_root && st_mode & 0o700 != 0o700
    }

    pub(super) fn finish_fd(&self, fd: &File, id: NodeId, made: CreatedWith) {
        let node = self.tree.node(id);
        let owner = self.set_owner(id, node, |uid, gid| sys::fchown(fd, uid, gid));
        if self.xattrs && node.xattrs != XattrsId::NONE {
            self.set_xattrs(id, node.xattrs, |name, value| {
                rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty())
            });
        }
        if let Some(mode) = self.mode_to_set(id, node, owner, made)
            && let Err(errno) = sys::fchmod(fd, Mode::from_bits_truncate(u32::from(mode)))
        {
            self.losses.add(LossKind::Mode, || self.path(id), errno);
        }
        if self.times
            && let Err(errno) = rustix::fs::futimens(fd, &timestamps(node.meta.mtime))
        {
            self.losses.add(LossKind::Time, || self.path(id), errno);
        }
    }

    /// Handles nodes that must not or cannot be opened; does not follow links.
    pub(super) fn finish_at(&self, dir: BorrowedFd<'_>, name: &[u8], id: NodeId, made: CreatedWith) {
        if !self.careful {
            return self.finish_path(dir, name, AtFlags::SYMLINK_NOFOLLOW, id, made, |uid, gid| {
                rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
            });
        }
        // The node must not have another name, or it could be a hard link to a file outside.
        let held = rustix::fs::openat(dir, name, HOLD, Mode::empty()).and_then(|fd| {
            let links = rustix::fs::fstat(&fd)?.st_nlink;
            if links == 1 { Ok(fd) } else { Err(Errno::STALE) }
        });
        match held {
            Ok(fd) => {
                let path = held_path(fd.as_fd());
                // pseudo would follow a link through a descriptor, because it resolves paths
                // itself.
                self.finish_path(CWD, path.as_bytes(), AtFlags::empty(), id, made, |uid, gid| {
                    rustix::fs::chownat(&fd, c"", uid, gid, AtFlags::EMPTY_PATH)
                });
            }
            Err(errno) => self.losses.add(LossKind::Owner, || self.path(id), errno),
        }
    }

    /// `flags` control following a link at the end of `name`: only our own in `/proc` is followed.
    fn finish_path(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        flags: AtFlags,
        id: NodeId,
        made: CreatedWith,
        chown: impl FnOnce(Option<Uid>, Option<Gid>) -> Result<(), Errno>,
    ) {
        let node = self.tree.node(id);
        let is_symlink = matches!(node.kind, NodeKind::Symlink(_));
        let owner = self.set_owner(id, node, chown);
        if self.xattrs && node.xattrs != XattrsId::NONE {
            self.set_xattrs(id, node.xattrs, |xattr, value| set_xattr_at(dir, name, flags, xattr, value));
        }
        if !is_symlink
            && let Some(mode) = self.mode_to_set(id, node, owner, made)
            && let Err(errno) = chmod_at(dir, name, flags, mode)
        {
            self.losses.add(LossKind::Mode, || self.path(id), errno);
        }
        if self.times
            && let Err(errno) = rustix::fs::utimensat(dir, name, &timestamps(node.meta.mtime), flags)
        {
            self.losses.add(LossKind::Time, || self.path(id), errno);
        }
    }

    /// True if more than owner and time is set.
    pub(super) fn needs_open_dir(&self, id: NodeId, made: CreatedWith) -> bool {
        let node = self.tree.node(id);
        let owner = if self.restores_owner() { node.meta.owner } else { self.own };
        self.careful
            || self.xattrs && node.xattrs != XattrsId::NONE
            || self.differs(self.final_mode(node, owner), made)
    }

    /// Returns the file's current owner.
    fn set_owner(
        &self,
        id: NodeId,
        node: &Node,
        chown: impl FnOnce(Option<Uid>, Option<Gid>) -> Result<(), Errno>,
    ) -> Owner {
        let wanted = node.meta.owner;
        let Some(owner) = self.owner_to_set(node) else {
            if self.owner == OwnerPolicy::Auto && wanted != self.own {
                self.losses.add(LossKind::Owner, || self.path(id), "only root can change owners");
            }
            return self.own;
        };
        // The kernel interprets the highest id as "unchanged", so no file can have it.
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

    /// `None` if the file was created with the permissions.
    fn mode_to_set(&self, id: NodeId, node: &Node, owner: Owner, made: CreatedWith) -> Option<u16> {
        let mode = self.final_mode(node, owner);
        if mode != node.meta.mode & 0o7777 {
            let why = if self.restores_owner() {
                "its owner could not be restored"
            } else {
                "only as root, or with owners as in the image"
            };
            self.losses.add(LossKind::SetId, || self.path(id), why);
        }
        self.differs(mode, made).then_some(mode)
    }

    fn differs(&self, wanted: u16, made: CreatedWith) -> bool {
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

/// Images store no access time, so it is set to the modification time.
fn timestamps(time: Timestamp) -> Timestamps {
    let time = Timespec { tv_sec: time.seconds, tv_nsec: time.nanos.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// Never affects a file or link that replaced the directory.
pub(super) fn open_up_dir(
    dir: BorrowedFd<'_>,
    name: &[u8],
    locks_out: impl FnOnce(u32) -> bool,
) -> Result<(), Errno> {
    let held = rustix::fs::openat(dir, name, HOLD | OFlags::DIRECTORY, Mode::empty())?;
    let mode = rustix::fs::fstat(&held)?.st_mode;
    if !locks_out(mode) {
        return Ok(());
    }
    // Fails for other owners; creating files in it then reports the error.
    let _ = rustix::fs::chmod(held_path(held.as_fd()), Mode::from_bits_truncate(mode & 0o7777 | 0o700));
    Ok(())
}

/// The kernel opens the descriptor's file again by this path, even a link itself.
fn held_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// The node must not be opened: no system call does that relative to a directory.
fn set_xattr_at(
    dir: BorrowedFd<'_>,
    name: &[u8],
    flags: AtFlags,
    xattr: &[u8],
    value: &[u8],
) -> Result<(), Errno> {
    if flags.is_empty() {
        return rustix::fs::setxattr(name, xattr, value, XattrFlags::empty());
    }
    let path = [held_path(dir).as_bytes(), b"/", name].concat();
    rustix::fs::lsetxattr(&path[..], xattr, value, XattrFlags::empty())
}

/// Not for symlinks; does not follow a link that replaced the node.
fn chmod_at(dir: BorrowedFd<'_>, name: &[u8], flags: AtFlags, mode: u16) -> Result<(), Errno> {
    let mode = Mode::from_bits_truncate(u32::from(mode));
    if flags.is_empty() {
        return rustix::fs::chmod(name, mode);
    }
    let fd = rustix::fs::openat(dir, name, HOLD, Mode::empty())?;
    rustix::fs::chmod(held_path(fd.as_fd()), mode)
}

/// Read without changing it: other threads may be creating files.
fn umask() -> Option<u16> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u16::from_str_radix(line.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_directories_that_lock_out_are_opened_up() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("closed")).unwrap();
        std::fs::create_dir(at("open")).unwrap();
        std::fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink("closed", at("link")).unwrap();
        for name in ["closed", "open", "file"] {
            std::fs::set_permissions(at(name), PermissionsExt::from_mode(0o077)).unwrap();
        }
        let dir = std::fs::File::open(folder.path()).unwrap();
        for (name, locks_out, done) in [
            ("link", true, Err(Errno::NOTDIR)),
            ("file", true, Err(Errno::NOTDIR)),
            ("open", false, Ok(())),
            ("closed", true, Ok(())),
        ] {
            assert_eq!(open_up_dir(dir.as_fd(), name.as_bytes(), |_| locks_out), done, "{name}");
        }
        let mode = |name: &str| std::fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("closed"), mode("open"), mode("file")), (0o777, 0o077, 0o077));
    }
}
