//! ext4.

use super::{PLAIN, WritableFs, Writes, find_mkfs};
use crate::programs::Wanted;
use crate::results::Missing;

const WRITES: Writes = Writes {
    // Left to later, tables of inodes would be written by the kernel while something is measured.
    options: &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    ..PLAIN
};

pub(super) fn find() -> Result<WritableFs, Missing> {
    let from = "Debian package e2fsprogs";
    find_mkfs("ext4", &Wanted { name: "mkfs.ext4", version_option: "-V", from }, WRITES)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{made, mounted};
    use super::*;

    #[test]
    fn compresses_nothing() {
        let ext4 = WritableFs { name: "ext4", ..WritableFs::in_bin("mkfs.ext4", WRITES) };
        assert_eq!(mounted(&ext4, "ext4 none").unwrap(), "");
        assert!(mounted(&ext4, "ext4 zstd").is_err());
        assert!(made(&ext4, "ext4 none").starts_with("mkfs.ext4 -q -F "));
    }
}
