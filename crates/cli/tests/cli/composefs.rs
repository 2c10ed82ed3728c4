//! composefs images: made, read through their objects, dumped.

use crate::fixture::{Fixture, assert_same_files, words};
use std::fs;

/// A folder with the tree `rootfs`, `root.cfs`, and its `objects`.
fn made() -> Fixture {
    let fixture = Fixture::with_tree();
    fixture.write("rootfs/usr/big", words(200_000));
    fixture.run(["composefs", "pack", "rootfs", "root.cfs", "--objects", "objects", "-q"]).done();
    fixture
}

#[test]
fn images_are_read_through_their_objects() {
    let fixture = made();
    assert!(fixture.run(["info", "root.cfs"]).done().text().contains("composefs"));
    fixture.run(["ls", "-lR", "root.cfs"]).done();
    fixture.run(["check", "root.cfs"]).done();
    fixture.run(["check", "--data", "root.cfs", "--objects", "objects"]).done();
    let cat = ["cat", "root.cfs", "usr/big", "--objects", "objects"];
    assert!(fixture.run(cat).done().stdout == words(200_000));
    assert!(fixture.run([&cat[..], &["--sandbox"]].concat()).stdout == words(200_000));
    fixture.run(["unpack", "root.cfs", "out", "--objects", "objects", "-q"]).done();
    assert_same_files(&fixture.path("out/usr"), &fixture.path("rootfs/usr"));
    fixture.run(["diff", "rootfs", "root.cfs", "--objects-b", "objects", "-q"]).done();
    fixture.run(["pack", "root.cfs", "whole.erofs", "--objects", "objects", "-q"]).done();
    fixture.run(["diff", "rootfs", "whole.erofs", "-q"]).done();

    fixture.run(["cat", "root.cfs", "usr/big"]).failed(1, &["usr/big", "object ", "--objects DIR"]);
    fixture.run(["cat", "root.cfs", "usr/big", "--objects", "none"]).failed(1, &["none"]);
    fixture.run(["ls", "whole.erofs", "--objects", "objects"]).failed(2, &["no objects"]);
    fixture.run(["pack", "rootfs", "a.cfs"]).failed(4, &["packfs composefs pack"]);
}

#[test]
fn objects_are_reported_with_their_fs_verity() {
    let fixture = made();
    let pack = |objects: &str, more: &[&str]| {
        fixture.run([&["composefs", "pack", "rootfs", "a.cfs", "--objects", objects][..], more].concat())
    };
    let counts = pack("more", &["--json"]).json()["objects"].clone();
    assert!(counts["written"].as_u64().unwrap() > 0);
    let required = pack("others", &["--require-fsverity"]);
    match counts["fs_verity"].as_u64().unwrap() {
        0 => {
            required.failed(1, &["have no fs-verity", "-O verity"]);
            assert!(pack("again", &[]).done().text().contains("without fs-verity"));
        }
        count => {
            assert_eq!(counts["written"], count);
            assert!(required.done().text().contains("with fs-verity"));
        }
    }
    fixture.run(["composefs", "pack", "rootfs", "a.cfs", "--require-fsverity"]).ended(2);
}

#[test]
fn missing_objects_are_named_and_the_rest_is_unpacked() {
    let fixture = made();
    let objects = fixture.run(["composefs", "objects", "root.cfs"]).done().text().to_owned();
    fixture.run(["composefs", "objects", "root.cfs", "--missing"]).failed(2, &["--objects DIR"]);
    let missing = ["composefs", "objects", "root.cfs", "--missing", "--objects", "objects"];
    assert_eq!(fixture.run(missing).done().text(), "");
    let opened = packfs::open(fixture.path("root.cfs")).unwrap();
    let big = opened.volume().object(opened.find("usr/big").unwrap()).unwrap().unwrap();
    let object = String::from_utf8(big.path).unwrap();
    assert!(objects.lines().any(|line| line == object));
    fs::remove_file(fixture.path("objects").join(&object)).unwrap();
    let run = fixture.run(missing);
    assert_eq!((run.code, run.text()), (Some(1), format!("{object} usr/big\n").as_str()));
    let run = fixture.run(["unpack", "root.cfs", "out", "--objects", "objects", "-q"]).ended(3);
    for word in ["usr/big", &object, "missing", "digest"] {
        assert!(run.stderr.contains(word), "no {word} in {}", run.stderr);
    }
    assert_same_files(&fixture.path("out/etc"), &fixture.path("rootfs/etc"));
    // A second directory has it.
    fixture.run(["composefs", "pack", "rootfs", "same.cfs", "--objects", "more", "-q"]).done();
    fixture.run(["check", "--data", "root.cfs", "--objects", "objects", "--objects", "more"]).done();
}

#[test]
fn an_image_whose_magic_is_damaged_is_no_erofs_image_with_holes() {
    let fixture = made();
    let mut bytes = fixture.bytes("root.cfs");
    bytes[1] ^= 1;
    fixture.write("bad.cfs", bytes);
    for line in [&["cat", "bad.cfs", "usr/big"][..], &["check", "bad.cfs", "--objects", "objects"]] {
        fixture.run(line).failed(3, &["corrupt composefs image: header: begins with"]);
    }
}

#[test]
fn dumps_go_out_and_in() {
    let fixture = made();
    let dump = fixture.run(["composefs", "dump", "root.cfs"]).done().stdout.clone();
    fixture.write("root.dump", &dump);
    fixture.run(["composefs", "pack", "--from-dump", "root.dump", "again.cfs", "-q"]).done();
    assert!(fixture.bytes("again.cfs") == fixture.bytes("root.cfs"));
    let run = fixture.run_with_input(["composefs", "pack", "--from-dump", "-", "-"], &dump);
    assert!(run.done().stdout == fixture.bytes("root.cfs"));
    fixture.write("bad.dump", "/ 0 40755\n");
    fixture.run(["composefs", "pack", "--from-dump", "bad.dump", "bad.cfs"]).failed(3, &["line 1", "NLINK"]);
    assert!(!fixture.path("bad.cfs").exists());
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    fixture.run(["composefs", "dump", "root.erofs"]).failed(1, &["erofs image"]);
}

#[test]
fn names_of_the_tools_give_the_same_image() {
    let fixture = made();
    let print = ["as", "mkcomposefs", "--digest-store=theirs", "--print-digest", "rootfs", "named.cfs"];
    let digest = fixture.run(print).done().text().to_owned();
    let report = fixture.run(["composefs", "pack", "rootfs", "a.cfs", "--split-hard-links", "--json"]).json();
    assert_eq!(report["digest"], digest.trim_end());
    assert!(fixture.bytes("named.cfs") == fixture.bytes("a.cfs"));
    let only = fixture.run(["as", "mkcomposefs", "--print-digest-only", "rootfs"]);
    assert_eq!(only.done().text(), digest);
    let measured = fixture.run(["as", "composefs-info", "measure-file", "named.cfs"]);
    assert_eq!(measured.done().text(), digest);
    let epoch = ["as", "mkcomposefs", "--use-epoch", "--skip-xattrs", "rootfs", "epoch.cfs"];
    fixture.run(epoch).done();
    assert!(fixture.run(["as", "composefs-info", "dump", "epoch.cfs"]).done().text().contains(" 0.0 "));
    let info =
        |args: &[&str]| fixture.run([&["as", "composefs-info"][..], args].concat()).done().text().to_owned();
    let listed = info(&["ls", "named.cfs"]);
    assert!(listed.contains("/usr/\t\n") && listed.contains("/usr/big\t@ "), "{listed}");
    assert!(!info(&["--filter=etc", "ls", "named.cfs"]).contains("/usr"));
    assert!(info(&["objects", "named.cfs"]).lines().count() >= 1);
    assert_eq!(info(&["--basedir=theirs", "missing-objects", "named.cfs"]), "");
    assert_eq!(info(&["--basedir=rootfs", "missing-objects", "named.cfs"]), info(&["objects", "named.cfs"]));
    for args in [
        &["mkcomposefs"][..],
        &["mkcomposefs", "rootfs"],
        &["composefs-info", "ls"],
        &["composefs-info", "x", "y"],
    ] {
        assert_eq!(fixture.run([&["as"], args].concat()).code, Some(1), "{args:?}");
    }
}
