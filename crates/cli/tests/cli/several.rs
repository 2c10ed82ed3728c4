//! A single file as the source, and several sources.

use crate::fixture::Fixture;
use packfs_testkit::{Mount, is_root, peer, skip};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// Two directories with a hard link between them, two files, links to both kinds, a tar and an
/// image.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    for dir in ["a/x", "b/x", "sub/a"] {
        fs::create_dir_all(fixture.path(dir)).unwrap();
    }
    for (file, text) in
        [("a/x/f", "a's"), ("b/x/f", "b's"), ("b/x/g", "more"), ("app.bin", "app\n"), ("sub/s", "s")]
    {
        fixture.write(file, text);
    }
    fs::hard_link(fixture.path("a/x/f"), fixture.path("b/hard")).unwrap();
    symlink("app.bin", fixture.path("link.bin")).unwrap();
    symlink("a", fixture.path("alink")).unwrap();
    fixture.run(["pack", "a", "i.sqfs", "-q"]).done();
    fixture.run(["tar", "i.sqfs", "-q", "-o", "t.tar"]).done();
    fixture
}

/// All paths of an image.
#[track_caller]
fn paths(fixture: &Fixture, image: &str) -> Vec<String> {
    let rows = fixture.run(["ls", "-R", "--json", image]).json();
    let paths = rows.as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().to_owned());
    paths.filter(|path| !path.is_empty()).collect()
}

#[track_caller]
fn cat(fixture: &Fixture, image: &str, path: &str) -> String {
    fixture.run(["cat", image, path]).done().text().to_owned()
}

const NOTE: &str = "is not a directory, image, archive or manifest: packing the file itself";

#[test]
fn a_single_file_is_the_only_entry_of_the_root_with_a_warning() {
    let fixture = fixture();
    fixture.write("sub/random", [0x93; 700]);
    fixture.write("notes.txt", "dir of everything\n");
    fixture.write("program", [&b"\x7fELF\x02\x01\x01\0"[..], &[0; 100]].concat());
    fs::set_permissions(fixture.path("program"), PermissionsExt::from_mode(0o4751)).unwrap();
    for format in ["squashfs", "erofs", "cramfs", "iso9660"] {
        for (source, name) in [
            ("app.bin", "app.bin"),
            ("./link.bin", "link.bin"),
            ("sub/random", "random"),
            ("sub/../notes.txt", "notes.txt"),
            ("program", "program"),
        ] {
            let run = fixture.run(["pack", source, "image", "-q", "--lossy", "--format", format]);
            assert_eq!(run.code, Some(0), "{source}: {}", run.stderr);
            assert_eq!(run.stderr.lines().filter(|line| line.contains(NOTE)).count(), 1, "{}", run.stderr);
            assert_eq!(paths(&fixture, "image"), [name], "{source} as {format}");
            let bytes = fs::read(fixture.path(source)).unwrap();
            assert!(fixture.run(["cat", "image", name]).stdout == bytes, "{source} as {format}");
        }
    }
    // With the option there is no warning.
    fixture.run(["pack", "--as-file", "app.bin", "image", "-q"]).done();
    let root = fixture.run(["stat", "--json", "image", "/"]).json();
    assert_eq!(
        (&root[0]["mode"], &root[0]["uid"], &root[0]["mtime"]),
        (&"0755".into(), &0.into(), &0.into())
    );
}

#[test]
fn refuses_possible_trees_without_as_file() {
    let fixture = fixture();
    let tar = fixture.bytes("t.tar");
    let mut checksum = tar.clone();
    checksum[0] ^= 0x20;
    let mut first_block = tar.clone();
    first_block[..512].fill(0x55);
    let image = fixture.bytes("i.sqfs");
    let altered = [b"XXXX", &image[4..]].concat();
    for (name, bytes) in [
        ("no-checksum", &checksum[..]),
        ("no-first-header", &first_block),
        ("altered", &altered),
        ("cut.sqfs", b"cut"),
        ("notes.TAR", b"text"),
        ("data.img", &[7; 5000]),
        ("table", b"# devices\n\nc /dev/console 0600 0 0 5 1\n"),
        ("list", b"dir /\nfile /a\n"),
        ("empty", b""),
        ("zeros", &[0; 100_000]),
        ("ext4", &[&[0x11; 1080][..], b"\x53\xef", &[0; 4000]].concat()),
        ("zip", b"PK\x03\x04 and more"),
    ] {
        fixture.write(name, bytes);
        let refused = fixture.run(["pack", name, "image.erofs", "-q"]);
        refused.failed(4, &["neither a directory", "hint: packfs pack --as-file packs the file itself"]);
        assert!(!fixture.path("image.erofs").exists(), "{name}");
        fixture.run(["pack", name, "--as-file", "image.erofs", "-q"]).done();
        assert!(fixture.run(["cat", "image.erofs", name]).done().stdout == bytes, "{name}");
        fs::remove_file(fixture.path("image.erofs")).unwrap();
    }
    // What is whole is packed as what it is, or as a file, as it is asked for.
    for (source, expected) in [("t.tar", "x/f"), ("i.sqfs", "x/f")] {
        fixture.run(["pack", source, "image.erofs", "-q"]).done();
        assert!(paths(&fixture, "image.erofs").contains(&expected.to_owned()));
        fixture.run(["pack", source, "image.erofs", "-q", "--as-file"]).done();
        assert_eq!(paths(&fixture, "image.erofs"), [source]);
    }
    fixture.run(["pack", "--keep-as-directory", "b", "image.erofs", "-q"]).done();
    assert_eq!(paths(&fixture, "image.erofs"), ["b", "b/hard", "b/x", "b/x/f", "b/x/g"]);
    // Other verbs go on refusing what holds no tree.
    fixture.run(["digest", "app.bin"]).failed(4, &["neither a directory"]);
    fixture.run(["pack", "app.bin", "image", "--source-offset", "4"]).failed(4, &[]);
}

#[test]
fn several_sources_lie_side_by_side_by_their_names() {
    let fixture = fixture();
    let sources = ["a/", "./b", "sub/s", "app.bin", "t.tar", "i.sqfs", "alink", "sub/.."];
    for format in ["squashfs", "erofs"] {
        let pack = [&["pack", "-q", "--format", format][..], &sources[..7], &["image"]].concat();
        fixture.run(&pack).done();
        let expected = "a a/x a/x/f alink app.bin b b/hard b/x b/x/f b/x/g i.sqfs s t.tar";
        assert_eq!(paths(&fixture, "image").join(" "), expected);
        assert_eq!(cat(&fixture, "image", "app.bin"), "app\n");
        assert_eq!(cat(&fixture, "image", "b/x/f"), "b's");
        assert!(fixture.run(["cat", "image", "t.tar"]).stdout == fixture.bytes("t.tar"));
        // One file below two sources is one file of the image.
        for path in ["a/x/f", "b/hard"] {
            assert_eq!(fixture.run(["stat", "--json", "image", path]).json()[0]["links"], 2, "{path}");
        }
        assert_eq!(fixture.run(["stat", "--json", "image", "alink"]).json()[0]["target"], "a");
        let root = fixture.run(["stat", "--json", "image", "/"]).json();
        assert_eq!(
            (&root[0]["mode"], &root[0]["uid"], &root[0]["mtime"]),
            (&"0755".into(), &0.into(), &0.into())
        );
        // Absolute names, another order, another number of threads, options in between: the same
        // image.
        let again = fixture.path("b").to_str().unwrap().to_owned();
        let again = [
            "pack", "alink", "i.sqfs", "-q", &again, "t.tar", "-j", "1", "app.bin", "sub/s", "a", "again",
            "-f", format,
        ];
        fixture.run(again).done();
        assert!(fixture.bytes("image") == fixture.bytes("again"), "{format}");
    }
    let shaped = [
        "pack",
        "a",
        "b",
        "image",
        "-q",
        "-L",
        "--exclude",
        "b/x",
        "--owner",
        "3:4",
        "--add",
        "p /p 0600 0 0",
    ];
    fixture.run(shaped).done();
    assert_eq!(paths(&fixture, "image").join(" "), "a a/x a/x/f b b/hard p");
    assert_eq!(fixture.run(["stat", "--json", "image", "/"]).json()[0]["uid"], 3);
    // What a directory by another name is called, it is called here, too.
    let here = fixture.path("").canonicalize().unwrap();
    fixture.run(["pack", "sub/..", "app.bin", "image", "-q", "--exclude", "*.*"]).done();
    let name = here.file_name().unwrap().to_str().unwrap();
    assert!(paths(&fixture, "image").iter().all(|path| path.starts_with(name)) || name.contains('.'));
}

#[test]
fn the_kernel_mounts_an_image_of_several_sources() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let fixture = fixture();
    fixture.run(["pack", "a", "b", "app.bin", "x.sqfs", "-q"]).done();
    match Mount::new(&fixture.path("x.sqfs"), "squashfs") {
        Err(why) => skip(&format!("squashfs cannot be mounted: {why}")),
        Ok(mount) => {
            let stat = |path: &str| mount.path().join(path).metadata().unwrap();
            assert_eq!((stat("a/x/f").ino(), stat("a/x/f").nlink()), (stat("b/hard").ino(), 2));
            assert_eq!(fs::read(mount.path().join("app.bin")).unwrap(), b"app\n");
        }
    }
}

#[test]
fn directories_are_merged_in_their_order() {
    let fixture = fixture();
    fixture.write("a/only", "a");
    fs::hard_link(fixture.path("b/hard"), fixture.path("b/x/again")).unwrap();
    fs::set_permissions(fixture.path("b"), PermissionsExt::from_mode(0o711)).unwrap();
    fixture.run(["pack", "a", "b", "app.bin", "image", "--merge", "-q"]).done();
    assert_eq!(paths(&fixture, "image").join(" "), "app.bin hard only x x/again x/f x/g");
    assert_eq!(cat(&fixture, "image", "x/f"), "b's");
    assert_eq!(cat(&fixture, "image", "hard"), "a's");
    assert_eq!(fixture.run(["stat", "--json", "image", "/"]).json()[0]["mode"], "0711");
    assert_eq!(fixture.run(["stat", "--json", "image", "hard"]).json()[0]["links"], 2);
    fixture.run(["pack", "b", "a", "image", "--merge", "-q"]).done();
    assert_eq!(cat(&fixture, "image", "x/f"), "a's");
    fixture.write("sub/x", "not a directory");
    fixture
        .run(["pack", "b", "sub", "image", "--merge", "-q"])
        .failed(1, &["\"x\" is a directory with entries"]);
}

#[test]
fn what_cannot_lie_side_by_side_is_wrong_usage() {
    let fixture = fixture();
    let run = fixture.run(["pack", "a", "sub/a/", "x.sqfs"]);
    run.failed(2, &["cannot pack \"a\" and \"sub/a/\"", "called \"a\"", "hint: rename", "--merge"]);
    fixture.run(["pack", "/", "a", "x.sqfs"]).failed(2, &["\"/\" has no name"]);
    fixture.run(["pack", "-", "a", "x.sqfs"]).failed(2, &["standard input", "./-"]);
    fixture.run(["pack", "-", "x.sqfs", "--as-file"]).failed(2, &["standard input"]);
    fixture.run(["pack", "a", "x.sqfs", "--as-file", "--merge"]).failed(2, &["--merge"]);
    fixture.run(["pack", "a", "nothing", "x.sqfs"]).failed(1, &["cannot open \"nothing\""]);
    fixture.run(["pack", "a"]).failed(2, &["<IMAGE>", "Usage: packfs pack [OPTIONS] <SOURCE>... <IMAGE>"]);
    fixture.run(["repack", "i.sqfs", "t.tar", "x.sqfs"]).failed(2, &["unexpected argument 'x.sqfs'"]);
    fixture.run(["pack", "a", "b", "x.sqfs", "--source-offset", "4"]).failed(2, &["not an image"]);
    // A glob without a name for the image behind it costs no file.
    fixture
        .run(["pack", "a", "b", "app.bin"])
        .failed(2, &["\"app.bin\": the file exists and is not an image", "hint: "]);
    assert_eq!(fixture.bytes("app.bin"), b"app\n");
    assert!(!fixture.path("x.sqfs").exists());
    // An image that is there is replaced, and is no part of itself.
    fixture.run(["pack", "a", "i.sqfs", "b", "i.sqfs", "-q"]).done();
    assert!(!paths(&fixture, "i.sqfs").contains(&"i.sqfs".to_owned()));
}

#[test]
fn what_cannot_be_read_of_several_sources_is_named_by_its_path() {
    if !is_root() {
        return skip("files are closed to others by root");
    }
    let fixture = fixture();
    fs::create_dir(fixture.path("sub/closed")).unwrap();
    fs::set_permissions(fixture.path("sub/closed"), PermissionsExt::from_mode(0o000)).unwrap();
    fs::set_permissions(fixture.path("sub/s"), PermissionsExt::from_mode(0o000)).unwrap();
    let pack = ["pack", "a", "sub/closed", "sub/s", "x.sqfs", "-q"];
    fixture.run_as_nobody(pack).failed(1, &["sub/closed"]);
    let run = fixture.run_as_nobody([&pack[..], &["--keep-going"]].concat()).ended(1);
    assert!(run.stderr.contains("\"sub/closed\"") && run.stderr.contains("\"sub/s\""), "{}", run.stderr);
    assert_eq!(cat(&fixture, "x.sqfs", "a/x/f"), "a's");
}

#[test]
fn sources_and_device_tables_mean_what_they_mean_to_mksquashfs() {
    let fixture = fixture();
    let table = ["/dev d 755 0 0", "dev/console c 600 0 0 5 1", "/dev/sda b 660 0 6 8 0", "a/x/f m 4711 3 4"];
    for sources in [&["a", "b", "app.bin", "alink", "t.tar"][..], &["app.bin", "a"], &["a/x", "sub/"], &["b"]]
    {
        let Some(mksquashfs) = peer("mksquashfs") else { return };
        let mut command = mksquashfs.command(&[]);
        command.args(sources).args(["ref.sqfs", "-noappend", "-quiet", "-no-progress", "-root-mode", "0755"]);
        let table = &table[..if sources.contains(&"b") && sources.len() > 1 { 4 } else { 3 }];
        table.iter().for_each(|row| {
            command.args(["-p", row]);
        });
        let made = command.current_dir(fixture.path("")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let rows = table.iter().flat_map(|row| ["--add", *row]);
        let pack: Vec<&str> = ["pack", "-q"]
            .into_iter()
            .chain(sources.iter().copied())
            .chain(["our.sqfs"])
            .chain(rows)
            .collect();
        fixture.run(pack).done();
        let diff = fixture.run(["diff", "ref.sqfs", "our.sqfs", "--no-times"]);
        let differences = diff.text().lines().filter(|line| line.starts_with(['~', '+', '-']));
        // Whose the root is depends on who runs mksquashfs.
        let others: Vec<&str> = differences.filter(|line| !line.starts_with("~ /: ")).collect();
        assert!(others.is_empty(), "{sources:?}: {}", diff.text());
    }
}
