//! A root without names: every format that packs, every kind of source, every verb that reads.

use crate::fixture::Fixture;
use packfs_testkit::{Mount, is_root, peer, skip};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Formats to pack, and the kernel's name of each if its modules are commonly there.
const FORMATS: [(&str, Option<&str>); 6] = [
    ("squashfs", Some("squashfs")),
    ("squashfs-legacy", None),
    ("erofs", Some("erofs")),
    ("cramfs", None),
    ("iso9660", None),
    ("cloop", None),
];

/// A folder with an empty directory, and with other sources that hold nothing.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("empty")).unwrap();
    fixture.write("full/file", "x");
    fixture.write("manifest", "#packfs-manifest 1\n");
    fixture.write("root.manifest", "#packfs-manifest 1\ndir / mode=0700 mtime=1\n");
    for dir in ["empty", "full"] {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
        File::open(fixture.path(dir)).unwrap().set_modified(time).unwrap();
    }
    fixture
}

/// Reads an image of an empty root by every verb.
#[track_caller]
fn assert_read_as_empty(fixture: &Fixture, image: &str) {
    for verb in [&["info"][..], &["ls", "-R"], &["check"], &["check", "--data"], &["digest"], &["tar"]] {
        let run = fixture.run([verb, &[image]].concat());
        assert_eq!(run.code, Some(0), "{verb:?} {image}: {}", run.stderr);
    }
    let stat = fixture.run(["stat", image, "/", "--json"]).json();
    assert!(stat.to_string().contains("directory"), "{stat}");
    fixture.run(["diff", image, image]).done();
    fixture.run(["unpack", image, "out", "-q"]).done();
    assert_eq!(fs::read_dir(fixture.path("out")).unwrap().count(), 0, "{image}");
    fs::remove_dir(fixture.path("out")).unwrap();
    let manifest = fixture.run(["info", "--manifest", image]);
    assert_eq!(manifest.done().text().lines().filter(|line| line.contains(" /")).count(), 1, "{image}");
    for (format, _) in FORMATS {
        let run = fixture.run(["pack", image, "again", "-q", "--lossy", "--format", format]);
        assert_eq!(run.code, Some(0), "{image} to {format}: {}", run.stderr);
        fs::remove_file(fixture.path("again")).unwrap();
    }
    let run = fixture.run(["repack", image, "again", "-q", "--lossy"]);
    assert_eq!(run.code, Some(0), "{image}: {}", run.stderr);
    fs::remove_file(fixture.path("again")).unwrap();
}

#[track_caller]
fn assert_mounts_as_empty(image: &Path, format: &str) {
    if !is_root() {
        return skip("mounting needs root");
    }
    match Mount::new(image, format) {
        Ok(mount) => assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 0, "{image:?}"),
        Err(why) => panic!("{image:?}: {why}"),
    }
}

#[test]
fn an_empty_root_is_packed_of_every_source_into_every_format() {
    let fixture = fixture();
    for (format, kernel) in FORMATS {
        for source in ["empty", "manifest", "root.manifest", "full"] {
            let image = format!("{source}.{format}");
            let shape: &[&str] = if source == "full" { &["--include", "nothing"] } else { &[] };
            let run = fixture
                .run([&["pack", source, &image, "-q", "--verify", "--format", format], shape].concat());
            assert_eq!(run.code, Some(0), "{image}: {}", run.stderr);
            if let Some(kernel) = kernel {
                assert_mounts_as_empty(&fixture.path(&image), kernel);
            }
        }
        if format != "cloop" {
            assert_read_as_empty(&fixture, &format!("empty.{format}"));
        }
    }
}

#[test]
fn the_empty_images_of_other_writers_are_read() {
    let fixture = fixture();
    for (name, image, arguments, format) in [
        ("mksquashfs", "mk", &["empty", "mk", "-quiet", "-no-progress"][..], "squashfs"),
        (
            "mksquashfs",
            "plain",
            &["empty", "plain", "-noI", "-no-exports", "-quiet", "-no-progress"],
            "squashfs",
        ),
        ("gensquashfs", "gen", &["-q", "-D", "empty", "gen"], "squashfs"),
        ("mkfs.erofs", "er", &["--quiet", "er", "empty"], "erofs"),
    ] {
        let Some(peer) = peer(name) else { continue };
        let arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = arguments.iter().map(|one| one as _).collect();
        let output = peer.command(&arguments).current_dir(fixture.path("")).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert_read_as_empty(&fixture, image);
        assert_mounts_as_empty(&fixture.path(image), format);
        fixture.run(["diff", "--no-times", image, "empty"]).done();
    }
}
