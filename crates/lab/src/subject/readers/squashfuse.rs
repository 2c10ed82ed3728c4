//! squashfuse, in its version of one thread.

use std::path::Path;

use packfs::Result;

use super::{Reader, need_fuse};
use crate::process::Within;
use crate::programs::Wanted;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;

/// squashfuse.
pub(super) struct Squashfuse {
    program: Program,
}

impl Squashfuse {
    pub(super) fn find() -> Result<Self, Missing> {
        need_fuse("squashfuse")?;
        let from = "Debian package squashfuse, or `cargo xtask peers`";
        let program = Wanted { name: "squashfuse", version_option: "--version", from }.find()?;
        Ok(Self { program })
    }
}

impl Reader for Squashfuse {
    fn name(&self) -> &'static str {
        "squashfuse"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        format == "squashfs"
    }

    fn mount(&self, _: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
        Mounted::served(&within.of(&self.program.invocation().arg("-f").arg(image).arg(at)), at)
    }
}
