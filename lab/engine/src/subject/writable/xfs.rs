//! XFS.

use super::{PLAIN, WritableFs, Writes, find_mkfs};
use crate::programs::Wanted;
use crate::results::Missing;

const WRITES: Writes = Writes { options: &["-q", "-f"], ..PLAIN };

pub(super) fn find() -> Result<WritableFs, Missing> {
    let from = "Debian package xfsprogs";
    find_mkfs("xfs", &Wanted { name: "mkfs.xfs", version_option: "-V", from }, WRITES)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{made, mounted};
    use super::*;

    #[test]
    fn compresses_nothing() {
        let xfs = WritableFs { name: "xfs", ..WritableFs::in_bin("mkfs.xfs", WRITES) };
        assert!(mounted(&xfs, "xfs lzo").is_err());
        assert_eq!(made(&xfs, "xfs none"), "mkfs.xfs -q -f /dev/loop7");
    }
}
