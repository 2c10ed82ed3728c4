//! Wrong command lines of the tools: exit codes, messages, and what is read before them.

use super::names::{Names, words};
use packfs_testkit::peer;

#[test]
fn wrong_lines_end_with_the_codes_of_the_tools() {
    let names = Names::new();
    names.fixture.run(["pack", "-q", "rootfs", "a.sqfs"]).done();
    std::fs::create_dir(names.path("at")).unwrap();
    names.write("junk", "no image");
    for (tool, line, code) in [
        ("mksquashfs", "rootfs new -b 3000", 1),
        ("mksquashfs", "rootfs new -comp zstd -Xcompression-level 99", 1),
        ("mkfs.erofs", "-zlz4 -C 5 new rootfs", 1),
        ("mkfs.erofs", "-zlz4 -C 6000 new rootfs", 1),
        ("gensquashfs", "-c none-such -D rootfs new", 1),
        ("create_compressed_fs", "-L 10 junk new", 1),
        ("create_compressed_fs", "-L -3 junk new", 1),
        ("mkfs.cramfs", "", 16),
        ("mkfs.cramfs", "missing new", 16),
        ("mkfs.cramfs", "-N middle rootfs new", 16),
        ("mkfs.cramfs", "junk new", 8),
        ("fsck.cramfs", "", 16),
        ("fsck.cramfs", "--unknown junk", 16),
        ("squashfuse", "-o unknown a.sqfs at", 3),
        ("squashfuse", "junk at", 255),
        ("squashfuse_ll", "-o unknown a.sqfs at", 1),
        ("squashfuse_ll", "missing at", 255),
        ("erofsfuse", "-o unknown a.sqfs at", 1),
    ] {
        let ours = names.ours(tool, line);
        assert_eq!((ours.code, ours.text()), (Some(code), ""), "{tool} {line}\n{}", ours.stderr);
        let is_named = |line: &str| line.starts_with(&format!("{tool}: "));
        // An image is opened by the process that serves it, which prints by itself.
        let is_served = code == 255;
        assert!(is_served || ours.stderr.lines().all(is_named), "{tool} {line}\n{}", ours.stderr);
        assert!(!names.path("new").exists(), "{tool} {line}");
        if let Some(peer) = peer(tool) {
            let theirs = names.theirs(&peer, &words(line), None);
            assert_eq!(theirs.code, ours.code, "{tool} {line}\n{}", theirs.stderr);
            let _ = std::fs::remove_file(names.path("new"));
        }
    }
}

#[test]
fn wrong_options_are_told_before_an_archive_is_read() {
    let names = Names::new();
    for (tool, line) in [
        ("sqfstar", "-b 3000 new"),
        ("tar2sqfs", "-c unknown new"),
        ("tar2sqfs", "-b 3000 new"),
        ("mkfs.erofs", "--tar=f -zlz4hc,99 new"),
    ] {
        // Standard input is empty, which is no archive.
        let ours = names.ours(tool, line);
        assert_eq!(ours.code, Some(1), "{tool} {line}");
        assert!(!ours.stderr.contains("archive"), "{tool} {line}\n{}", ours.stderr);
    }
}

#[test]
fn a_name_that_mkfs_cramfs_cannot_hold_is_cut() {
    let names = Names::new();
    let ours = names.ours("mkfs.cramfs", "-n 12345678901234567890 rootfs/etc new").ended(0);
    assert!(ours.stderr.contains("1234567890123456\""), "{}", ours.stderr);
    let info = names.fixture.run(["info", "new"]);
    assert!(info.text().contains(" 1234567890123456\n"), "{}", info.text());
}

#[test]
fn unsquashfs_unpacks_beside_other_files_and_refuses_those_that_are_there() {
    let names = Names::new();
    names.fixture.run(["pack", "-q", "rootfs", "a.sqfs"]).done();
    let tool = packfs_testkit::peer_since("unsquashfs", "4.7");
    for (made, code) in [("other", 0), ("etc", 1), ("usr", 1)] {
        let mut seen = Vec::new();
        for is_ours in [true, false] {
            let _ = std::fs::remove_dir_all(names.path("at"));
            std::fs::create_dir_all(names.path("at").join(made)).unwrap();
            let line = "-n -d at a.sqfs";
            let run = match (&tool, is_ours) {
                (_, true) => names.ours("unsquashfs", line),
                (Some(tool), false) => names.theirs(tool, &words(line), None),
                (None, false) => continue,
            };
            assert_eq!(run.code, Some(code), "{made}\n{}", run.stderr);
            assert!(names.path("at").join(made).is_dir());
            seen.push(names.path("at/etc/os-release").exists() || code == 1);
        }
        assert!(seen.iter().all(|whole| *whole), "{made}");
    }
    let ours = names.ours("unsquashfs", "-n -d at a.sqfs");
    assert!(ours.stderr.contains("-force") && !ours.stderr.contains("--existing"), "{}", ours.stderr);
    assert_eq!(names.ours("unsquashfs", "-n -f -d at a.sqfs").code, Some(0));
}

#[test]
fn rdsquashfs_makes_the_folders_above_its_target() {
    let names = Names::new();
    names.fixture.run(["pack", "-q", "rootfs", "a.sqfs"]).done();
    names.ours("rdsquashfs", "-q -u / -p new/deep/at a.sqfs").ended(0);
    assert!(names.path("new/deep/at/etc").is_dir());
}
