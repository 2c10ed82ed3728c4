//! The kernel's own mount: the judge of what packfs writes. And peers' mounts, to hear a second opinion.

use crate::Peer;
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
        let at = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", format, "-o", "loop,ro"]).arg(image).arg(at.path());
        succeeded(mount.output().map_err(|e| format!("mount: {e}"))?)?;
        Ok(Mount { at })
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

    /// Where the image is mounted.
    pub fn path(&self) -> PathBuf {
        self.at.path().into()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.at.path()).status();
    }
}

fn succeeded(output: Output) -> Result<(), String> {
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

fn device(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|found| found.dev())
}
