//! The programs that decode whole images: a row each.

use std::path::Path;

use super::makers::packfs_program;
use super::{Unpacker, Unpacks};
use crate::programs::Wanted;
use crate::results::Missing;

/// packfs, which is not looked for but given.
const PACKFS: Unpacks = Unpacks {
    format: None,
    tar: Some("tar {image} --jobs {jobs}"),
    dir: Some("unpack {image} {dir} --jobs {jobs} --quiet"),
    needs_dir: false,
};

/// packfs, which writes the disk inside a container, as the programs of containers do.
const PACKFS_OUTER: Unpacks =
    Unpacks { tar: None, dir: Some("unpack --outer {image} {dir} --jobs {jobs} --quiet"), ..PACKFS };

/// Rivals. sqfs2tar and fsck.erofs work in one thread.
const RIVALS: [(Wanted, Unpacks); 7] = [
    (
        Wanted {
            name: "unsquashfs",
            version_option: "-version",
            from: "Debian package squashfs-tools, or `cargo xtask peers`",
        },
        Unpacks {
            format: Some("squashfs squashfs-legacy"),
            tar: None,
            dir: Some("-d {dir} -processors {jobs} -no-progress -quiet {image}"),
            needs_dir: false,
        },
    ),
    (
        Wanted {
            name: "sqfs2tar",
            version_option: "--version",
            from: "Debian package squashfs-tools-ng, or `cargo xtask peers`",
        },
        Unpacks { format: Some("squashfs"), tar: Some("{image}"), dir: None, needs_dir: false },
    ),
    (
        Wanted {
            name: "fsck.erofs",
            version_option: "-V",
            from: "Debian package erofs-utils, or `cargo xtask peers`",
        },
        Unpacks {
            format: Some("erofs"),
            tar: None,
            dir: Some("--extract={dir} {xattrs} -d0 {image}"),
            needs_dir: false,
        },
    ),
    (
        Wanted {
            name: "dwarfsextract",
            version_option: "--help",
            from: "https://github.com/mhx/dwarfs/releases",
        },
        Unpacks {
            format: Some("dwarfs"),
            tar: Some("-i {image} -f gnutar -n {jobs} --log-level=error"),
            dir: Some("-i {image} -o {dir} -n {jobs} --log-level=error"),
            needs_dir: true,
        },
    ),
    (
        Wanted { name: "xorriso", version_option: "-version", from: "Debian package xorriso" },
        Unpacks {
            format: Some("iso9660"),
            tar: None,
            dir: Some("-report_about FATAL -osirrox on -indev stdio:{image} -extract / {dir}"),
            needs_dir: false,
        },
    ),
    (
        Wanted { name: "fsck.cramfs", version_option: "--version", from: "Debian package util-linux-extra" },
        Unpacks { format: Some("cramfs"), tar: None, dir: Some("--extract={dir} {image}"), needs_dir: false },
    ),
    (
        Wanted {
            name: "extract_compressed_fs",
            version_option: "--version",
            from: "Debian package cloop-utils",
        },
        Unpacks { format: Some("cloop"), tar: None, dir: Some("{image} {dir}"), needs_dir: false },
    ),
];

/// Returns all that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Unpacker, Missing>> {
    let own = [("packfs", PACKFS), ("packfs-outer", PACKFS_OUTER)]
        .map(|(name, kind)| packfs_program(packfs).map(|program| Unpacker { name, program, kind }));
    own.into_iter().chain(RIVALS.map(|(wanted, kind)| Unpacker::find(wanted, kind))).collect()
}

/// Returns true if there is an unpacker of this name, here or elsewhere.
pub fn is_unpacker(name: &str) -> bool {
    matches!(name, "packfs" | "packfs-outer") || RIVALS.iter().any(|(wanted, _)| wanted.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Unpack;

    #[test]
    fn each_is_known_by_its_name() {
        for one in find(Path::new("/bin/true")) {
            let name = one.map_or_else(|missing| missing.what, |unpacker| unpacker.name().to_owned());
            assert!(is_unpacker(&name), "{name}");
        }
    }

    /// Making a tar, and a directory `d`, of the image `i` in four threads.
    fn spelled(name: &'static str, unpacks: Unpacks) -> [Option<String>; 2] {
        let unpacker = Unpacker::in_bin(name, unpacks);
        [Unpack::Tar, Unpack::Dir("d".into())]
            .map(|task| unpacker.command(&task, Path::new("i"), 4).map(|command| command.spelled()))
    }

    #[test]
    fn each_spells_what_it_does() {
        let [tar, dir] = spelled("packfs", PACKFS);
        assert_eq!(tar.unwrap(), "packfs tar i --jobs 4");
        assert_eq!(dir.unwrap(), "packfs unpack i d --jobs 4 --quiet");
        let [unsquashfs, sqfs2tar, fsck, dwarfs, xorriso, ..] =
            RIVALS.map(|(wanted, kind)| spelled(wanted.name, kind));
        let line = "unsquashfs -d d -processors 4 -no-progress -quiet i";
        assert_eq!(unsquashfs, [None, Some(line.into())]);
        assert_eq!(sqfs2tar, [Some("sqfs2tar i".into()), None]);
        assert_eq!(fsck, [None, Some("fsck.erofs --extract=d --xattrs -d0 i".into())]);
        let line = "xorriso -report_about FATAL -osirrox on -indev stdio:i -extract / d";
        assert_eq!(xorriso, [None, Some(line.into())]);
        let [tar, dir] = dwarfs;
        assert_eq!(tar.unwrap(), "dwarfsextract -i i -f gnutar -n 4 --log-level=error");
        assert_eq!(
            dir.unwrap(),
            "sh -c 'mkdir d && /nowhere/bin/dwarfsextract -i i -o d -n 4 --log-level=error'"
        );
    }
}
