//! ext4.

use std::path::Path;

use super::{WritableFs, maker, plain_options};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program, Recipe};

/// mkfs.ext4.
pub(super) struct Ext4 {
    program: Program,
}

impl Ext4 {
    pub(super) fn find() -> Result<Self, Missing> {
        let from = "Debian package e2fsprogs";
        let program = maker(&Wanted { name: "mkfs.ext4", version_option: "-V", from }, "ext4")?;
        Ok(Self { program })
    }
}

impl WritableFs for Ext4 {
    fn name(&self) -> &'static str {
        "ext4"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn command(&self, recipe: &Recipe, device: &Path) -> Result<Invocation, Missing> {
        // Left to later, tables of inodes would be written by the kernel while something is measured.
        let command =
            self.program.invocation().args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        Ok(command.args(&recipe.options).arg(device))
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
        let ext4 = Ext4 { program: program("mkfs.ext4") };
        assert_eq!(ext4.mount_options(&recipe("ext4 none")).unwrap(), "");
        assert!(ext4.mount_options(&recipe("ext4 zstd")).is_err());
        let command = ext4.command(&recipe("ext4 none"), Path::new("/dev/loop7")).unwrap();
        assert!(command.spelled().starts_with("mkfs.ext4 -q -F "), "{command:?}");
    }
}
