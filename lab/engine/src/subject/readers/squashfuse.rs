//! squashfuse, in its version of one thread.

use std::path::Path;

use packfs::Result;

use super::{Mounts, Reader, find_fuse};
use crate::process::Within;
use crate::programs::Wanted;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;

pub(super) const MOUNTS: Mounts = Mounts { reads: |format| format == "squashfs", mount };

pub(super) const WANTED: Wanted = Wanted {
    name: "squashfuse",
    version_option: "--version",
    from: "Debian package squashfuse, or `cargo xtask peers`",
};

pub(super) fn find() -> Result<Reader, Missing> {
    find_fuse(WANTED, MOUNTS)
}

fn mount(program: &Program, _: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
    Mounted::served(&within.of(&program.invocation().arg("-f").arg(image).arg(at)), at)
}
