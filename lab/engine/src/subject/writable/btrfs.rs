//! Btrfs, which compresses what is written as its mount says.

use super::{WritableFs, Writes, cannot, compsize, find_mkfs, plain_options};
use crate::programs::Wanted;
use crate::results::{Missing, Recipe};

const WRITES: Writes = Writes { options: &["-q", "-f"], mount_options, usage: compsize::of };

pub(super) fn find() -> Result<WritableFs, Missing> {
    let from = "Debian package btrfs-progs";
    find_mkfs("btrfs", &Wanted { name: "mkfs.btrfs", version_option: "--version", from }, WRITES)
}

fn mount_options(recipe: &Recipe) -> Result<String, Missing> {
    // See btrfs(5).
    let levels = match recipe.codec.as_str() {
        "none" => return plain_options(recipe),
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

#[cfg(test)]
mod tests {
    use super::super::tests::{made, mounted};
    use super::*;

    #[test]
    fn tells_the_mount_its_codec() {
        let btrfs = WritableFs { name: "btrfs", ..WritableFs::in_bin("mkfs.btrfs", WRITES) };
        let options = |of: &str| mounted(&btrfs, of);
        assert_eq!(options("btrfs none").unwrap(), "");
        assert_eq!(options("btrfs lzo").unwrap(), "compress=lzo");
        assert_eq!(options("btrfs zstd:3").unwrap(), "compress=zstd:3");
        assert!(options("btrfs zstd:16").is_err() && options("btrfs lzo:1").is_err());
        assert!(options("btrfs lz4").is_err());
        assert_eq!(made(&btrfs, "btrfs none"), "mkfs.btrfs -q -f /dev/loop7");
    }
}
