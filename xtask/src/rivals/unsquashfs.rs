//! unsquashfs of squashfs-tools.

use std::ffi::OsString;

use super::{DebianProgram, Rival, Task, words};
use crate::failure::Result;

pub struct Unsquashfs(DebianProgram);

impl Unsquashfs {
    pub fn find() -> Result<Self> {
        DebianProgram::find("unsquashfs").map(Self)
    }
}

impl Rival for Unsquashfs {
    fn name(&self) -> &'static str {
        "unsquashfs"
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn command(&self, task: &Task) -> Option<Vec<OsString>> {
        let Task::Unpack { image, dir, jobs } = task else { return None };
        let jobs = jobs.to_string();
        let rest: [&dyn AsRef<_>; 7] = [&"-d", dir, &"-processors", &jobs, &"-no-progress", &"-quiet", image];
        Some(words(&self.0.command, &rest))
    }
}
