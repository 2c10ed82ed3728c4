//! packfs's own FUSE server.

use std::path::Path;

use packfs::Result;

use super::super::makers::packfs_program;
use super::{Reader, need_fuse};
use crate::process::Within;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;

/// `packfs mount --fuse`.
pub(super) struct PackfsFuse {
    program: Program,
}

impl PackfsFuse {
    pub(super) fn find(path: &Path) -> Result<Self, Missing> {
        need_fuse("packfs-fuse")?;
        let program = packfs_program(path)?;
        Ok(Self { program })
    }
}

impl Reader for PackfsFuse {
    fn name(&self) -> &'static str {
        "packfs-fuse"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        packfs::formats::by_name(format).is_some()
    }

    fn mount(&self, _: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
        let command = self.program.invocation().args(["mount", "--fuse", "--foreground"]);
        Mounted::served(&within.of(&command.arg(image).arg(at)), at)
    }
}
