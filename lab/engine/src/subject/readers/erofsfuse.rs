//! erofsfuse of erofs-utils, which serves in up to ten threads.

use std::path::Path;

use packfs::Result;

use super::{Mounts, Reader, find_fuse};
use crate::process::Within;
use crate::programs::Wanted;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;

const MOUNTS: Mounts = Mounts { reads: |format| format == "erofs", mount };

pub(super) fn find() -> Result<Reader, Missing> {
    let from = "Debian package erofsfuse, or `cargo xtask peers`";
    find_fuse(Wanted { name: "erofsfuse", version_option: "--version", from }, MOUNTS)
}

fn mount(program: &Program, _: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
    Mounted::served(&within.of(&program.invocation().args(["-f", "--dbglevel=0"]).arg(image).arg(at)), at)
}
