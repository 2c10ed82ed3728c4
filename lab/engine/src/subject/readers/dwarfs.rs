//! dwarfs, the FUSE driver of DwarFS.

use std::path::Path;

use packfs::Result;

use super::{Mounts, Reader, find_fuse};
use crate::process::Within;
use crate::programs::Wanted;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;

const MOUNTS: Mounts = Mounts { reads: |format| format == "dwarfs", mount };

pub(super) fn find() -> Result<Reader, Missing> {
    let from = "https://github.com/mhx/dwarfs/releases";
    find_fuse(Wanted { name: "dwarfs", version_option: "--help", from }, MOUNTS)
}

fn mount(program: &Program, _: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
    Mounted::served(&within.of(&program.invocation().arg(image).arg(at).arg("-f")), at)
}
