//! squashfuse_ll of squashfuse, which serves in up to ten threads unless told otherwise.

use std::ffi::OsString;

use super::{DebianProgram, Rival, Task, words};
use crate::failure::Result;

pub struct SquashfuseLl(DebianProgram);

impl SquashfuseLl {
    pub fn find() -> Result<Self> {
        DebianProgram::find("squashfuse_ll").map(Self)
    }
}

impl Rival for SquashfuseLl {
    fn name(&self) -> &'static str {
        "squashfuse_ll"
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn command(&self, task: &Task) -> Option<Vec<OsString>> {
        let Task::Mount { image, dir } = task else { return None };
        Some(words(&self.0.command, &[&"-f", image, dir]))
    }
}
