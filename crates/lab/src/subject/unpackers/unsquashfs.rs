//! unsquashfs of squashfs-tools.

use std::path::Path;

use super::super::{Unpack, Unpacker};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program};

/// unsquashfs.
pub(super) struct Unsquashfs {
    program: Program,
}

impl Unsquashfs {
    pub(super) fn find() -> Result<Self, Missing> {
        let from = "Debian package squashfs-tools, or `cargo xtask peers`";
        let program = Wanted { name: "unsquashfs", version_option: "-version", from }.find()?;
        Ok(Self { program })
    }
}

impl Unpacker for Unsquashfs {
    fn name(&self) -> &'static str {
        "unsquashfs"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        format == "squashfs"
    }

    fn command(&self, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
        let Unpack::Dir(dir) = task else { return None };
        let command = self.program.invocation().arg("-d").arg(dir);
        Some(command.args(["-processors", &jobs.to_string(), "-no-progress", "-quiet"]).arg(image))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{program, spelled};
    use super::*;

    #[test]
    fn spells_what_it_does() {
        let [tar, dir] = spelled(&Unsquashfs { program: program("unsquashfs") });
        assert_eq!(tar, None);
        assert_eq!(dir.unwrap(), "unsquashfs -d d -processors 4 -no-progress -quiet i");
    }
}
