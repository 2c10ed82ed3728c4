//! A FUSE mount outside the directory tree: it is inaccessible by path, and ends with its last
//! descriptor, however the process ends.

use super::device;
use packfs_core::{Result, ResultExt};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

/// Returns the descriptors for requests and of the root. Requires root.
///
/// Errors: `Io` if the kernel lacks FUSE, or denies it.
pub(crate) fn mount_detached(source: &str, read_only: bool) -> Result<(OwnedFd, OwnedFd)> {
    let cannot = || "cannot mount through FUSE".to_owned();
    let requests = device::open().or_io(|| format!("cannot open {:?}", device::PATH))?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC).or_io(cannot)?;
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let settings = [
        ("source", source.to_owned()),
        ("subtype", "packfs".to_owned()),
        ("fd", requests.as_raw_fd().to_string()),
        // A directory that its owner may read and enter.
        ("rootmode", "40500".to_owned()),
        ("user_id", uid.to_string()),
        ("group_id", gid.to_string()),
    ];
    for (name, value) in settings {
        fsconfig_set_string(&context, name, value.as_str()).or_io(cannot)?;
    }
    if read_only {
        fsconfig_set_flag(&context, "ro").or_io(cannot)?;
    }
    fsconfig_create(&context).or_io(cannot)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    attributes.set(MountAttrFlags::MOUNT_ATTR_RDONLY, read_only);
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).or_io(cannot)?;
    Ok((requests, root))
}
