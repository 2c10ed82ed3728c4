//! Mounts by the kernel's driver: from a file if the driver supports that, else from a loop device.
//!
//! [`LinuxDriver`] is that of a format ([`packfs_format::FormatInfo::driver`]).

use crate::loop_device::{LoopDevice, LoopOptions};
use crate::{MountFlags, record};
use packfs_core::{Error, ImagePath, Result, ResultExt};
use packfs_format::LinuxDriver;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Parameters of a mount by the kernel.
#[derive(Clone, Debug)]
pub struct KernelMount {
    /// Driver.
    pub driver: LinuxDriver,
    /// File or block device.
    pub image: PathBuf,
    /// Offset of the image in it, in bytes.
    pub offset: u64,
    /// Further devices of the image (EROFS), in order.
    pub devices: Vec<PathBuf>,
    /// Directory of the image to mount.
    pub subdir: ImagePath,
    /// Restrictions.
    pub flags: MountFlags,
}

impl KernelMount {
    /// Returns the parameters for a whole file or device, without restrictions.
    pub fn new(driver: LinuxDriver, image: impl Into<PathBuf>) -> Self {
        let (image, subdir, flags) = (image.into(), ImagePath::root(), MountFlags::default());
        KernelMount { driver, image, offset: 0, devices: Vec::new(), subdir, flags }
    }

    /// Mounts the image on a directory. Requires root.
    ///
    /// Errors: `Io`, with the kernel's message if there is one.
    pub fn mount(&self, at: &Path) -> Result<()> {
        let (mount, _loop_device) = self.detached()?;
        if self.subdir.is_root() {
            return move_mount(&mount, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
                .or_io(|| format!("cannot mount on {at:?}"));
        }
        self.mount_subdir(&mount, at)
    }

    /// The mount may need the loop device, which is dropped after the mount is attached.
    fn detached(&self) -> Result<(OwnedFd, Option<LoopDevice>)> {
        let metadata = std::fs::metadata(&self.image).or_io(|| format!("cannot open {:?}", self.image))?;
        let is_device = metadata.file_type().is_block_device();
        let in_place = self.offset == 0;
        if in_place && is_device {
            return Ok((self.detached_from(&self.image)?, None));
        }
        if in_place && self.driver.mounts_files {
            // A kernel that needs a block device says so; older ones report another error.
            if let Ok(mount) = self.detached_from(&self.image) {
                return Ok((mount, None));
            }
        }
        let options = LoopOptions { offset: self.offset, ..LoopOptions::default() };
        let device = LoopDevice::new(&self.image, &options)?;
        Ok((self.detached_from(device.path())?, Some(device)))
    }

    fn detached_from(&self, source: &Path) -> Result<OwnedFd> {
        let cannot = || format!("cannot mount: this kernel has no driver {}", self.driver.name);
        let context = fsopen(self.driver.name, FsOpenFlags::FSOPEN_CLOEXEC).or_io(cannot)?;
        self.configure(&context, source).map_err(|error| {
            let said = messages(&context);
            let action = format!("cannot mount {:?} as {}", self.image, self.driver.name);
            let error = Error::io(action, error.into());
            if said.is_empty() { error } else { error.hint(format!("the kernel says: {said}")) }
        })
    }

    fn configure(&self, context: &OwnedFd, source: &Path) -> rustix::io::Result<OwnedFd> {
        fsconfig_set_string(context, "source", source)?;
        fsconfig_set_flag(context, "ro")?;
        for device in &self.devices {
            fsconfig_set_string(context, "device", device.as_path())?;
        }
        fsconfig_create(context)?;
        fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, self.flags.attributes())
    }

    /// Older kernels cannot mount part of a detached mount, so the whole is first mounted at a
    /// temporary location.
    fn mount_subdir(&self, mount: &OwnedFd, at: &Path) -> Result<()> {
        let temporary = TemporaryMount::new(mount)?;
        let root = rustix::fs::open(&temporary.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .or_io(|| format!("cannot open {:?}", temporary.path))?;
        // A link in the image must not lead outside.
        let found = rustix::fs::openat2(
            &root,
            self.subdir.as_bytes(),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_XDEV,
        )
        .or_io(|| format!("cannot open the directory {:?} of {:?}", self.subdir, self.image))?;
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let cannot = || format!("cannot mount on {at:?}");
        let part = open_tree(&found, "", flags).or_io(cannot)?;
        move_mount(&part, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).or_io(cannot)
    }
}

/// Mount and directory are removed when dropped.
struct TemporaryMount {
    path: PathBuf,
    is_mounted: bool,
}

impl TemporaryMount {
    fn new(mount: impl AsFd) -> Result<Self> {
        let path = record::own_folder()?.join(format!("aside-{}", std::process::id()));
        std::fs::create_dir(&path).or_io(|| format!("cannot create {path:?}"))?;
        let mut temporary = TemporaryMount { path, is_mounted: false };
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(mount, "", CWD, &temporary.path, flags)
            .or_io(|| format!("cannot mount on {:?}", temporary.path))?;
        temporary.is_mounted = true;
        Ok(temporary)
    }
}

impl Drop for TemporaryMount {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        }
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// Joins the messages in one line.
fn messages(context: &OwnedFd) -> String {
    let mut said = Vec::new();
    let mut buf = [0; 1024];
    while let Ok(len @ 1..) = rustix::io::read(context, &mut buf) {
        let line = String::from_utf8_lossy(&buf[..len]).trim().to_owned();
        // The first letter is the severity: e, w or i.
        said.push(line.get(2..).unwrap_or_default().to_owned());
        if said.len() == 8 {
            break;
        }
    }
    said.join("; ")
}
