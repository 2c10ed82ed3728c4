//! fsck.erofs of erofs-utils, which also unpacks, in one thread whatever it is told.

use std::ffi::OsString;

use super::{DebianProgram, Rival, Task, words};
use crate::failure::Result;

pub struct FsckErofs(DebianProgram);

impl FsckErofs {
    pub fn find() -> Result<Self> {
        DebianProgram::find("fsck.erofs").map(Self)
    }
}

impl Rival for FsckErofs {
    fn name(&self) -> &'static str {
        "fsck.erofs"
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn command(&self, task: &Task) -> Option<Vec<OsString>> {
        let Task::Unpack { image, dir, .. } = task else { return None };
        let mut extract = OsString::from("--extract=");
        extract.push(dir);
        Some(words(&self.0.command, &[&extract, &"--xattrs", &"-d0", image]))
    }
}
