//! The programs that decode whole images.

use std::path::Path;

use super::Unpacker;
use super::table::TABLE;
use crate::results::Missing;

/// Returns all that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Unpacker, Missing>> {
    let own = TABLE.own_unpackers.iter().map(|row| row.find_own(packfs));
    own.chain(TABLE.unpackers.iter().map(|row| row.find())).collect()
}

/// Returns true if there is an unpacker of this name, here or elsewhere.
pub fn is_unpacker(name: &str) -> bool {
    TABLE.own_unpackers.iter().chain(&TABLE.unpackers).any(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Unpack;
    use crate::subject::table::{Row, Unpacks};

    #[test]
    fn each_is_known_by_its_name() {
        for one in find(Path::new("/bin/true")) {
            let name = one.map_or_else(|missing| missing.what, |unpacker| unpacker.name().to_owned());
            assert!(is_unpacker(&name), "{name}");
        }
    }

    /// Making a tar, and a directory `d`, of the image `i` in four threads.
    fn spelled(row: &'static Row<Unpacks>) -> [Option<String>; 2] {
        let unpacker = Unpacker::in_bin(&row.name, &row.kind);
        [Unpack::Tar, Unpack::Dir("d".into())]
            .map(|task| unpacker.command(&task, Path::new("i"), 4).map(|command| command.spelled()))
    }

    #[test]
    fn each_spells_what_it_does() {
        let [tar, dir] = spelled(&TABLE.own_unpackers[0]);
        assert_eq!(tar.unwrap(), "packfs tar i --jobs 4");
        assert_eq!(dir.unwrap(), "packfs unpack i d --jobs 4 --quiet");
        let rivals: Vec<_> = TABLE.unpackers.iter().map(spelled).collect();
        let [unsquashfs, sqfs2tar, fsck, dwarfs, xorriso, ..] = &rivals[..] else { panic!("the table") };
        let line = "unsquashfs -d d -processors 4 -no-progress -quiet i";
        assert_eq!(*unsquashfs, [None, Some(line.into())]);
        assert_eq!(*sqfs2tar, [Some("sqfs2tar i".into()), None]);
        assert_eq!(*fsck, [None, Some("fsck.erofs --extract=d --xattrs -d0 i".into())]);
        let line = "xorriso -report_about FATAL -osirrox on -indev stdio:i -extract / d";
        assert_eq!(*xorriso, [None, Some(line.into())]);
        let [tar, dir] = dwarfs.clone();
        assert_eq!(tar.unwrap(), "dwarfsextract -i i -f gnutar -n 4 --log-level=error");
        assert_eq!(
            dir.unwrap(),
            "sh -c 'mkdir d && /nowhere/bin/dwarfsextract -i i -o d -n 4 --log-level=error'"
        );
    }
}
