//! The folder images and trees are written to: memory, so that no disk blurs what programs do.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::workspace;

/// What the largest case needs: a few images and two unpacked trees.
const ROOM: u64 = 2 << 30;

/// What our folders are called, before the id of their process.
pub const PREFIX: &str = "packfs-bench-";

/// A folder of our own, removed when done.
pub struct Scratch {
    pub dir: PathBuf,
    /// Type and place, for the report.
    pub description: String,
    /// Whether what lies here is in memory anyway.
    pub is_memory: bool,
}

impl Scratch {
    /// Makes it below `parent`, or in `/dev/shm` if none is given.
    pub fn new(parent: Option<&Path>) -> Result<Self> {
        let parent = parent.unwrap_or(Path::new("/dev/shm"));
        let stat = rustix::fs::statvfs(parent).map_err(|error| Failure::io("look at", parent, error))?;
        let free = stat.f_bavail * stat.f_frsize;
        if free < ROOM {
            let found = format!("{} has {} MiB free, and 2048 are needed", parent.display(), free >> 20);
            return Err(Failure::new(format!(
                "{found}\nhint: --scratch DIR names another place, best a tmpfs"
            )));
        }
        remove_left_over(parent)?;
        let dir = parent.join(format!("{PREFIX}{}", std::process::id()));
        workspace::make_dir(&dir)?;
        let is_memory = is_tmpfs(parent);
        let kind = if is_memory { "tmpfs" } else { "no tmpfs: the disk is measured too" };
        let description = format!("{} ({kind})", parent.display());
        Ok(Self { dir, description, is_memory })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Removes what sessions left that were killed: it takes up memory. A folder's name ends in the id of its process.
fn remove_left_over(parent: &Path) -> Result<()> {
    let entries = std::fs::read_dir(parent).map_err(|error| Failure::io("list", parent, error))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|id| id.parse::<u32>().ok());
        if process.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            workspace::remove_dir(&entry.path())?;
        }
    }
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = workspace::remove_dir(&self.dir) {
            eprintln!("warning: {error}");
        }
    }
}

/// Linux `magic.h`: TMPFS_MAGIC.
const TMPFS_MAGIC: i64 = 0x0102_1994;

fn is_tmpfs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|stat| i128::from(stat.f_type) == i128::from(TMPFS_MAGIC))
}
