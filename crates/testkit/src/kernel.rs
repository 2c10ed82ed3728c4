//! The kernel's own mount: the judge of what packfs writes. And peers' mounts, to hear a second
//! opinion.

use crate::Peer;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// An image mounted by the kernel or a peer; unmounted when dropped.
pub struct Mount {
    at: tempfile::TempDir,
}

impl Mount {
    /// Mounts an image read-only through a loop device. Needs root.
    ///
    /// The error is what `mount` printed.
    pub fn new(image: &Path, format: &str) -> Result<Self, String> {
        Mount::with_options(image.as_os_str(), format, "loop,ro")
    }

    /// Mounts an image that begins at an offset of a file. Needs root.
    ///
    /// The error is what `mount` printed.
    pub fn at_offset(file: &Path, format: &str, offset: u64) -> Result<Self, String> {
        Mount::with_options(file.as_os_str(), format, &format!("loop,ro,offset={offset}"))
    }

    /// Mounts an image for reading and writing through a loop device. Needs root.
    ///
    /// The error is what `mount` printed.
    pub fn writable(image: &Path, format: &str) -> Result<Self, String> {
        Mount::with_options(image.as_os_str(), format, "loop")
    }

    /// Mounts the image on a block device read-only. Needs root.
    ///
    /// The error is what `mount` printed.
    pub fn block_device(device: &Path, format: &str) -> Result<Self, String> {
        Mount::with_options(device.as_os_str(), format, "ro")
    }

    fn with_options(source: &OsStr, format: &str, options: &str) -> Result<Self, String> {
        let at = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", format, "-o", options]).arg(source).arg(at.path());
        succeeded(mount.output().map_err(|e| format!("mount: {e}"))?)?;
        Ok(Mount { at })
    }

    /// Mounts an image whose data lie on further devices, all through loop devices that go away
    /// with the mount. Needs root.
    ///
    /// The error is what `mount` or `losetup` printed.
    pub fn with_devices(image: &Path, format: &str, devices: &[&Path]) -> Result<Self, String> {
        let loops = devices.iter().map(|path| LoopDevice::new(path)).collect::<Result<Vec<_>, String>>()?;
        let named = loops.iter().map(|device| format!(",device={}", device.path().display()));
        Mount::with_options(image.as_os_str(), format, &format!("loop,ro{}", named.collect::<String>()))
    }

    /// A file system in memory with room for so many bytes. Needs root.
    ///
    /// The error is what `mount` printed.
    pub fn memory(bytes: u64) -> Result<Self, String> {
        Mount::with_options("tmpfs".as_ref(), "tmpfs", &format!("size={bytes},nr_inodes=2m"))
    }

    /// Mounts layers as overlayfs, read-only, the uppermost first. Needs root.
    ///
    /// The error is what `mount` printed.
    pub fn overlay(layers: &[PathBuf]) -> Result<Self, String> {
        let layers: Vec<String> = layers.iter().map(|layer| layer.display().to_string()).collect();
        Mount::with_options("overlay".as_ref(), "overlay", &format!("ro,lowerdir={}", layers.join(":")))
    }

    /// Mounts a composefs image that is mounted already below its objects, read-only. Needs root
    /// and Linux 6.5.
    ///
    /// The error is what `mount` printed.
    pub fn composefs(image: &Path, objects: &Path) -> Result<Self, String> {
        let layers = format!("lowerdir={}::{}", image.display(), objects.display());
        let options = format!("ro,metacopy=on,redirect_dir=on,{layers}");
        Mount::with_options("overlay".as_ref(), "overlay", &options)
    }

    /// Mounts an image with a peer that serves it through FUSE, such as `squashfuse`.
    pub fn fuse(peer: &Peer, image: &Path) -> Result<Self, String> {
        let at = tempfile::tempdir().map_err(|e| e.to_string())?;
        let outside = device(at.path());
        succeeded(peer.command(&[&image, &at.path()]).output().map_err(|e| e.to_string())?)?;
        let patience = Instant::now() + Duration::from_secs(10);
        while device(at.path()) == outside {
            if Instant::now() > patience {
                return Err("nothing was mounted within ten seconds".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Mount { at })
    }

    /// Returns the mount point.
    pub fn path(&self) -> PathBuf {
        self.at.path().into()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.at.path()).status();
    }
}

/// A file as a block device; detached when dropped, or when nothing uses it any more. Needs root.
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches a file.
    ///
    /// The error is what `losetup` printed.
    pub fn new(file: &Path) -> Result<Self, String> {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).arg(file);
        let output = losetup.output().map_err(|e| format!("losetup: {e}"))?;
        let path = String::from_utf8_lossy(&output.stdout).trim().into();
        succeeded(output)?;
        Ok(LoopDevice { path })
    }

    /// Returns the path of the device.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

/// Unmounts a filesystem that a test wrote to; false if it cannot be unmounted.
///
/// A process that another thread starts holds all open files of this one until it runs its program,
/// so that a filesystem can be busy for a moment after its last file was closed.
pub fn unmount(at: &Path) -> bool {
    (0..500).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Command::new("umount").arg(at).output().is_ok_and(|output| output.status.success())
    })
}

fn succeeded(output: Output) -> Result<(), String> {
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

fn device(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|found| found.dev())
}
