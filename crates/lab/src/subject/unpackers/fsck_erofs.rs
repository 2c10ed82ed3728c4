//! fsck.erofs of erofs-utils, which also unpacks, in one thread whatever it is told.

use std::path::Path;

use super::super::{Unpack, Unpacker};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program};

/// fsck.erofs.
pub(super) struct FsckErofs {
    program: Program,
}

impl FsckErofs {
    pub(super) fn find() -> Result<Self, Missing> {
        let from = "Debian package erofs-utils, or `cargo xtask peers`";
        let program = Wanted { name: "fsck.erofs", version_option: "--version", from }.find()?;
        Ok(Self { program })
    }
}

impl Unpacker for FsckErofs {
    fn name(&self) -> &'static str {
        "fsck.erofs"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        format == "erofs"
    }

    fn command(&self, task: &Unpack, image: &Path, _: u32) -> Option<Invocation> {
        let Unpack::Dir(dir) = task else { return None };
        let mut extract = std::ffi::OsString::from("--extract=");
        extract.push(dir);
        Some(self.program.invocation().arg(extract).args(["--xattrs", "-d0"]).arg(image))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{program, spelled};
    use super::*;

    #[test]
    fn spells_what_it_does() {
        let [tar, dir] = spelled(&FsckErofs { program: program("fsck.erofs") });
        assert_eq!(tar, None);
        assert_eq!(dir.unwrap(), "fsck.erofs --extract=d --xattrs -d0 i");
    }
}
