//! Unmounts, including mounts whose server has ended.

use crate::process::Process;
use crate::record::{self, Server};
use crate::table::{self, Mounted};
use packfs_core::{Error, Result, one_line};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time for a server to end after its mount is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Unmounts what packfs mounted on a directory, even if its server has ended. `drivers` are the
/// kernel's drivers that packfs uses. `lazy` detaches the mount at once and ends it when unused.
///
/// Errors: `Failed` if nothing of packfs is mounted there or it is in use, `Io` if the kernel
/// refuses.
pub fn unmount(path: &Path, drivers: &[&str], lazy: bool) -> Result<()> {
    let at = table::place(path)?;
    let Some(mounted) = table::topmost(&at)? else {
        let error = Error::failed(format!("cannot unmount {path:?}: nothing is mounted there"));
        return Err(error.hint("packfs mount --list lists the mounts of packfs"));
    };
    if !record::is_served(&mounted) && !drivers.contains(&mounted.fs_type.as_str()) {
        let what =
            format!("cannot unmount {path:?}: it is a mount of {}, not made by packfs", mounted.fs_type);
        return Err(Error::failed(what).hint("umount unmounts any filesystem"));
    }
    let server = match record::server_of(&mounted) {
        Some(Server::Fuse { pid }) if !lazy => Process::open(pid),
        _ => None,
    };
    take_away(&mounted, lazy)?;
    if let Some(server) = server {
        server.wait(PATIENCE);
    }
    record::remove(&mounted);
    Ok(())
}

/// Unmounts by a system call as root (also of a user namespace), else through `fusermount3`.
fn take_away(mounted: &Mounted, lazy: bool) -> Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, lazy);
    match rustix::mount::unmount(&mounted.at, flags) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(busy(&mounted.at)),
        Err(Errno::PERM | Errno::ACCESS) if mounted.fs_type.starts_with("fuse") => {
            by_helper(&mounted.at, lazy)
        }
        Err(error) => Err(Error::io(format!("cannot unmount {:?}", mounted.at), error.into())),
    }
}

fn busy(at: &Path) -> Error {
    let error = Error::failed(format!("cannot unmount {at:?}: it is in use"));
    error.hint(format!("fuser -vm {at:?} lists its users; --lazy unmounts it even so; open files stay usable until they are closed"))
}

fn by_helper(at: &Path, lazy: bool) -> Result<()> {
    let mut command = Command::new("fusermount3");
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(at);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::io("cannot run fusermount3", error).hint("install the package fuse3"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = one_line(&String::from_utf8_lossy(&output.stderr));
    if said.contains("busy") {
        return Err(busy(at));
    }
    Err(Error::failed(format!("cannot unmount {at:?}: {said}")))
}

/// Unmounts one specific mount, and never a later one at the same place.
#[derive(Clone, Debug)]
pub struct Unmounter {
    at: PathBuf,
    device: (u32, u32),
    /// True once the mount is gone, so its device number may be reused.
    is_over: Arc<AtomicBool>,
}

impl Unmounter {
    /// Refers to the mount at `at`.
    pub(crate) fn of(at: &Path) -> Result<Self> {
        let mounted = table::topmost(at)?;
        let mounted = mounted.ok_or_else(|| Error::failed(format!("nothing is mounted at {at:?}")))?;
        Ok(Unmounter { at: at.into(), device: mounted.device, is_over: Arc::default() })
    }

    /// Returns the device number of the filesystem, as in `stat`.
    pub(crate) fn device(&self) -> (u32, u32) {
        self.device
    }

    /// Records that the mount is gone.
    pub(crate) fn set_over(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Unmounts; succeeds if it is unmounted already.
    ///
    /// Errors: as [`unmount()`].
    pub fn unmount(&self, lazy: bool) -> Result<()> {
        if self.is_over.load(Ordering::SeqCst) {
            return Ok(());
        }
        match table::topmost(&self.at)? {
            Some(mounted) if mounted.device == self.device => take_away(&mounted, lazy),
            _ => Ok(()),
        }
    }
}
