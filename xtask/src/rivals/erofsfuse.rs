//! erofsfuse of erofs-utils, which serves in up to ten threads unless told otherwise.

use std::ffi::OsString;

use super::{DebianProgram, Rival, Task, words};
use crate::failure::Result;

pub struct ErofsFuse(DebianProgram);

impl ErofsFuse {
    pub fn find() -> Result<Self> {
        DebianProgram::find("erofsfuse").map(Self)
    }
}

impl Rival for ErofsFuse {
    fn name(&self) -> &'static str {
        "erofsfuse"
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn command(&self, task: &Task) -> Option<Vec<OsString>> {
        let Task::Mount { image, dir } = task else { return None };
        Some(words(&self.0.command, &[&"-f", &"--dbglevel=0", image, dir]))
    }
}
