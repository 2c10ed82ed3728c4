//! Btrfs, which compresses what is written as its mount says.

use std::path::Path;

use packfs::Result;

use super::{WritableFs, cannot, compsize, maker, sync};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{CodecUsage, Missing, Program, Recipe};

/// mkfs.btrfs.
pub(super) struct Btrfs {
    program: Program,
}

impl Btrfs {
    pub(super) fn find() -> Result<Self, Missing> {
        let from = "Debian package btrfs-progs";
        let program = maker(&Wanted { name: "mkfs.btrfs", version_option: "--version", from }, "btrfs")?;
        Ok(Self { program })
    }
}

impl WritableFs for Btrfs {
    fn name(&self) -> &'static str {
        "btrfs"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn command(&self, recipe: &Recipe, device: &Path) -> Result<Invocation, Missing> {
        Ok(self.program.invocation().args(["-q", "-f"]).args(&recipe.options).arg(device))
    }

    fn mount_options(&self, recipe: &Recipe) -> Result<String, Missing> {
        // See btrfs(5).
        let levels = match recipe.codec.as_str() {
            "none" => return super::plain_options(recipe),
            "lzo" => 0..=0,
            "zlib" => 1..=9,
            "zstd" => 1..=15,
            _ => return Err(cannot(recipe, "btrfs knows lzo, zlib and zstd only")),
        };
        match recipe.level {
            None => Ok(format!("compress={}", recipe.codec)),
            Some(level) if levels.contains(&level) && *levels.end() > 0 => {
                Ok(format!("compress={}:{level}", recipe.codec))
            }
            Some(_) => Err(cannot(recipe, "btrfs has no such level")),
        }
    }

    fn usage(&self, at: &Path) -> Result<Vec<CodecUsage>> {
        sync(at)?;
        compsize::of(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{program, recipe};
    use super::*;

    #[test]
    fn tells_the_mount_its_codec() {
        let btrfs = Btrfs { program: program("mkfs.btrfs") };
        let options = |of: &str| btrfs.mount_options(&recipe(of));
        assert_eq!(options("btrfs none").unwrap(), "");
        assert_eq!(options("btrfs lzo").unwrap(), "compress=lzo");
        assert_eq!(options("btrfs zstd:3").unwrap(), "compress=zstd:3");
        assert!(options("btrfs zstd:16").is_err() && options("btrfs lzo:1").is_err());
        assert!(options("btrfs lz4").is_err());
        let command = btrfs.command(&recipe("btrfs none"), Path::new("/dev/loop7")).unwrap();
        assert_eq!(command.spelled(), "mkfs.btrfs -q -f /dev/loop7");
    }
}
