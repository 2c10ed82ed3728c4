//! XFS.

use std::path::Path;

use super::{WritableFs, maker, plain_options};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program, Recipe};

/// mkfs.xfs.
pub(super) struct Xfs {
    program: Program,
}

impl Xfs {
    pub(super) fn find() -> Result<Self, Missing> {
        let from = "Debian package xfsprogs";
        let program = maker(&Wanted { name: "mkfs.xfs", version_option: "-V", from }, "xfs")?;
        Ok(Self { program })
    }
}

impl WritableFs for Xfs {
    fn name(&self) -> &'static str {
        "xfs"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn command(&self, recipe: &Recipe, device: &Path) -> Result<Invocation, Missing> {
        Ok(self.program.invocation().args(["-q", "-f"]).args(&recipe.options).arg(device))
    }

    fn mount_options(&self, recipe: &Recipe) -> Result<String, Missing> {
        plain_options(recipe)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{program, recipe};
    use super::*;

    #[test]
    fn compresses_nothing() {
        let xfs = Xfs { program: program("mkfs.xfs") };
        assert!(xfs.mount_options(&recipe("xfs lzo")).is_err());
        let command = xfs.command(&recipe("xfs none"), Path::new("/dev/loop7")).unwrap();
        assert_eq!(command.spelled(), "mkfs.xfs -q -f /dev/loop7");
    }
}
