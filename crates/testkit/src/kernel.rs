//! The kernel's own mount: the judge of what packfs writes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An image mounted by the kernel; unmounted when dropped.
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
        let output = mount.output().map_err(|e| format!("mount: {e}"))?;
        if output.status.success() {
            Ok(Mount { at })
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into())
        }
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
