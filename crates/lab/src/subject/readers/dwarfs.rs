//! dwarfs, the FUSE driver of DwarFS.

use std::path::Path;

use packfs::Result;

use super::{Reader, need_fuse};
use crate::process::Within;
use crate::programs::Wanted;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;

/// dwarfs.
pub(super) struct Dwarfs {
    program: Program,
}

impl Dwarfs {
    pub(super) fn find() -> Result<Self, Missing> {
        need_fuse("dwarfs")?;
        let from = "https://github.com/mhx/dwarfs/releases";
        let program = Wanted { name: "dwarfs", version_option: "--help", from }.find()?;
        Ok(Self { program })
    }
}

impl Reader for Dwarfs {
    fn name(&self) -> &'static str {
        "dwarfs"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        format == "dwarfs"
    }

    fn mount(&self, _: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
        Mounted::served(&within.of(&self.program.invocation().arg(image).arg(at).arg("-f")), at)
    }
}
