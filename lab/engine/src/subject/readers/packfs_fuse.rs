//! packfs's own FUSE server.

use std::path::Path;

use packfs::Result;

use super::{Mounts, Reader, need_fuse};
use crate::process::Within;
use crate::results::{Missing, Program};
use crate::scratch::Mounted;
use crate::subject::makers::packfs_program;

const MOUNTS: Mounts = Mounts { reads: |format| packfs::formats::by_name(format).is_some(), mount };

pub(super) fn find(path: &Path) -> Result<Reader, Missing> {
    need_fuse("packfs-fuse")?;
    Ok(Reader { name: "packfs-fuse", program: packfs_program(path)?, kind: MOUNTS })
}

fn mount(program: &Program, _: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
    let command = program.invocation().args(["mount", "--fuse", "--foreground"]);
    Mounted::served(&within.of(&command.arg(image).arg(at)), at)
}
