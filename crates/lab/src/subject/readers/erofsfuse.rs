//! erofsfuse of erofs-utils, which serves in up to ten threads.

use std::path::Path;

use packfs::Result;

use super::{Reader, need_fuse};
use crate::process::Within;
use crate::programs::Wanted;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;

/// erofsfuse.
pub(super) struct Erofsfuse {
    program: Program,
}

impl Erofsfuse {
    pub(super) fn find() -> Result<Self, Missing> {
        need_fuse("erofsfuse")?;
        let from = "Debian package erofsfuse, or `cargo xtask peers`";
        let program = Wanted { name: "erofsfuse", version_option: "--version", from }.find()?;
        Ok(Self { program })
    }
}

impl Reader for Erofsfuse {
    fn name(&self) -> &'static str {
        "erofsfuse"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        format == "erofs"
    }

    fn mount(&self, _: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
        Mounted::served(
            &within.of(&self.program.invocation().args(["-f", "--dbglevel=0"]).arg(image).arg(at)),
            at,
        )
    }
}
