//! sqfs2tar of squashfs-tools-ng, which works in one thread whatever it is told.

use std::path::Path;

use super::super::{Unpack, Unpacker};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program};

/// sqfs2tar.
pub(super) struct Sqfs2tar {
    program: Program,
}

impl Sqfs2tar {
    pub(super) fn find() -> Result<Self, Missing> {
        let from = "Debian package squashfs-tools-ng, or `cargo xtask peers`";
        let program = Wanted { name: "sqfs2tar", version_option: "--version", from }.find()?;
        Ok(Self { program })
    }
}

impl Unpacker for Sqfs2tar {
    fn name(&self) -> &'static str {
        "sqfs2tar"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        format == "squashfs"
    }

    fn command(&self, task: &Unpack, image: &Path, _: u32) -> Option<Invocation> {
        (*task == Unpack::Tar).then(|| self.program.invocation().arg(image))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{program, spelled};
    use super::*;

    #[test]
    fn spells_what_it_does() {
        let [tar, dir] = spelled(&Sqfs2tar { program: program("sqfs2tar") });
        assert_eq!(tar.unwrap(), "sqfs2tar i");
        assert_eq!(dir, None);
    }
}
