use rustix::mount::{MountAttrFlags, MountFlags as HostFlags};

/// Restrictions of a mount, which is always read-only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountFlags {
    /// Set to ignore set-user-id bits and file capabilities.
    pub nosuid: bool,
    /// Set to deny access to device nodes.
    pub nodev: bool,
    /// Set to deny execution of programs.
    pub noexec: bool,
    /// Set to deny following symbolic links.
    pub nosymfollow: bool,
}

impl MountFlags {
    pub(crate) fn attributes(self) -> MountAttrFlags {
        let mut flags = MountAttrFlags::MOUNT_ATTR_RDONLY;
        flags.set(MountAttrFlags::MOUNT_ATTR_NOSUID, self.nosuid);
        flags.set(MountAttrFlags::MOUNT_ATTR_NODEV, self.nodev);
        flags.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, self.noexec);
        flags.set(MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW, self.nosymfollow);
        flags
    }

    pub(crate) fn host(self) -> HostFlags {
        let mut flags = HostFlags::RDONLY;
        flags.set(HostFlags::NOSUID, self.nosuid);
        flags.set(HostFlags::NODEV, self.nodev);
        flags.set(HostFlags::NOEXEC, self.noexec);
        flags.set(HostFlags::NOSYMFOLLOW, self.nosymfollow);
        flags
    }

    pub(crate) fn words(self) -> impl Iterator<Item = &'static str> {
        [(true, "ro"), (self.nosuid, "nosuid"), (self.nodev, "nodev"), (self.noexec, "noexec")]
            .into_iter()
            .filter_map(|(wanted, word)| wanted.then_some(word))
    }
}
