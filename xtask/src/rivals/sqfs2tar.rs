//! sqfs2tar of squashfs-tools-ng, which works in one thread whatever it is told.

use std::ffi::OsString;

use super::{DebianProgram, Rival, Task, words};
use crate::failure::Result;

pub struct Sqfs2tar(DebianProgram);

impl Sqfs2tar {
    pub fn find() -> Result<Self> {
        DebianProgram::find("sqfs2tar").map(Self)
    }
}

impl Rival for Sqfs2tar {
    fn name(&self) -> &'static str {
        "sqfs2tar"
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn command(&self, task: &Task) -> Option<Vec<OsString>> {
        let Task::Tar { image, .. } = task else { return None };
        Some(words(&self.0.command, &[image]))
    }
}
