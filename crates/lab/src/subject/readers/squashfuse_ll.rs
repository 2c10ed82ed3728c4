//! squashfuse_ll, the version of squashfuse that serves in up to ten threads.

use std::path::Path;

use packfs::Result;

use super::{Reader, need_fuse};
use crate::process::Within;
use crate::programs::Wanted;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;

/// squashfuse_ll.
pub(super) struct SquashfuseLl {
    program: Program,
}

impl SquashfuseLl {
    pub(super) fn find() -> Result<Self, Missing> {
        need_fuse("squashfuse_ll")?;
        let from = "Debian package squashfuse, or `cargo xtask peers`";
        let program = Wanted { name: "squashfuse_ll", version_option: "--version", from }.find()?;
        Ok(Self { program })
    }
}

impl Reader for SquashfuseLl {
    fn name(&self) -> &'static str {
        "squashfuse_ll"
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
