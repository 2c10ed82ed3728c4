//! One file per program that decodes whole images.

mod dwarfsextract;
mod fsck_erofs;
mod packfs;
mod sqfs2tar;
mod unsquashfs;

use std::path::Path;

use super::{Unpack, Unpacker, Unpacks};
use crate::results::Missing;

/// All that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Unpacker, Missing>> {
    vec![
        packfs::find(packfs),
        unsquashfs::find(),
        sqfs2tar::find(),
        fsck_erofs::find(),
        dwarfsextract::find(),
    ]
}

/// Their names.
const NAMES: [&str; 5] = ["packfs", "unsquashfs", "sqfs2tar", "fsck.erofs", "dwarfsextract"];

/// Whether there is an unpacker of this name, here or elsewhere.
pub fn is_unpacker(name: &str) -> bool {
    NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_by_its_name() {
        let found = find(Path::new("/bin/true"));
        assert_eq!(found.len(), NAMES.len());
        for one in found {
            let name = one.map_or_else(|missing| missing.what, |unpacker| unpacker.name().to_owned());
            assert!(is_unpacker(&name), "{name}");
        }
    }

    /// What is typed to make a tar, and a directory `d`, of the image `i` in four threads.
    pub(super) fn spelled(name: &'static str, unpacks: Unpacks) -> [Option<String>; 2] {
        let unpacker = Unpacker::in_bin(name, unpacks);
        [Unpack::Tar, Unpack::Dir("d".into())]
            .map(|task| unpacker.command(&task, Path::new("i"), 4).map(|command| command.spelled()))
    }
}
