//! Entries that are laid over a source, `--add`, `--add-manifest`, and manifests of any source.

use crate::fixture::{Fixture, Run};
use packfs_testkit::{Mount, is_root, odd_tree, skip, write_dir};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, symlink};
use std::process::Command;

/// Rows as people give them to mksquashfs, gensquashfs and genext2fs, and lines of packfs's own.
const ENTRIES: [&str; 13] = [
    "c /dev/console 0600 0 0 5 1",
    "/dev/null c 666 0 0 1 3",
    "/dev/zero c 666 0 0 1 5 0 0 -",
    "dev/full c 666 0 0 1 7",
    "nod /dev/sda 0660 0 6 b 8 0",
    "d /home/box 0750 1000 1000",
    "l /bin/sh 0777 0 0 busybox",
    "f /etc/motd 0640 1 2 host-file",
    "h /etc/issue /etc/motd",
    "f /etc/empty 0600 0 0",
    "p /run/fifo 0620 0 5",
    "sock /run/socket 0600 0 0",
    "file /etc/hostname mode=0604 uid=9 mtime=77 data=\"box\\n\" xattr.user.origin=made",
];

/// A folder with a tree, a tar, an image and a manifest of it, and a file to add.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("rootfs/etc/motd", "old");
    fixture.write("rootfs/etc/kept", "kept\n");
    fs::hard_link(fixture.path("rootfs/etc/motd"), fixture.path("rootfs/etc/motd.old")).unwrap();
    symlink("etc", fixture.path("rootfs/conf")).unwrap();
    fixture.write("host-file", "from the host\n");
    fixture.run(["pack", "rootfs", "plain.sqfs", "-q"]).done();
    fixture.run(["tar", "plain.sqfs", "-q", "-o", "plain.tar"]).done();
    let manifest = fixture.run(["info", "--manifest", "plain.sqfs"]);
    fixture.write("rootfs/list", manifest.done().text());
    fixture
}

fn pack<'a>(source: &'a str, image: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["pack", source, image, "-q"], rest].concat()
}

/// `--add` before each.
fn adding<'a>(entries: &[&'a str]) -> Vec<&'a str> {
    entries.iter().flat_map(|entry| ["--add", entry]).collect()
}

/// The row of a path, as `stat --json` has it.
#[track_caller]
fn stat(fixture: &Fixture, image: &str, path: &str) -> Value {
    fixture.run(["stat", image, path, "--json"]).json()[0].clone()
}

/// Type, mode, owner and time of a path.
#[track_caller]
fn told(fixture: &Fixture, image: &str, path: &str) -> String {
    let row = stat(fixture, image, path);
    let text = |key: &str| row[key].as_str().unwrap().to_owned();
    format!("{} {} {}:{} {}", text("type"), text("mode"), row["uid"], row["gid"], row["mtime"])
}

#[test]
fn entries_are_laid_over_every_kind_of_source() {
    let fixture = fixture();
    let add = adding(&ENTRIES);
    for source in ["rootfs", "plain.tar", "plain.sqfs", "rootfs/list"] {
        for format in ["squashfs", "erofs"] {
            let options = [&add[..], &["--format", format]].concat();
            // Device nodes need no privilege.
            let run = fixture.run_as_nobody(pack(source, "image", &options));
            assert_eq!((run.code, run.said().as_str()), (Some(0), ""), "{source}");
            let case = format!("{source} as {format}");
            let list = fixture.run(["ls", "-lR", "image"]);
            let rows: Vec<Vec<&str>> =
                list.done().text().lines().map(|line| line.split_whitespace().collect()).collect();
            let is_there = |start: [&str; 3], end: &[&str]| {
                let found = rows.iter().any(|row| row[..3] == start && row.ends_with(end));
                assert!(found, "{case}: {start:?} {end:?}: {}", list.text());
            };
            is_there(["crw-------", "1", "0/0"], &["dev/console"]);
            is_there(["crw-rw-rw-", "1", "0/0"], &["dev/null"]);
            is_there(["crw-rw-rw-", "1", "0/0"], &["dev/zero"]);
            is_there(["crw-rw-rw-", "1", "0/0"], &["dev/full"]);
            is_there(["brw-rw----", "1", "0/6"], &["dev/sda"]);
            is_there(["drwxr-x---", "2", "1000/1000"], &["home/box"]);
            is_there(["lrwxrwxrwx", "1", "0/0"], &["bin/sh", "->", "busybox"]);
            is_there(["-rw-r-----", "2", "1/2"], &["etc/motd"]);
            is_there(["-rw-r-----", "2", "1/2"], &["etc/issue"]);
            is_there(["prw--w----", "1", "0/5"], &["run/fifo"]);
            is_there(["srw-------", "1", "0/0"], &["run/socket"]);
            for (path, text) in [
                ("etc/motd", "from the host\n"),
                ("etc/issue", "from the host\n"),
                ("etc/motd.old", "old"),
                ("etc/kept", "kept\n"),
                ("etc/empty", ""),
                ("etc/hostname", "box\n"),
            ] {
                assert_eq!(fixture.run(["cat", "image", path]).done().text(), text, "{case}: {path}");
            }
            let hostname = stat(&fixture, "image", "etc/hostname");
            assert_eq!(hostname["xattrs"][0]["name"], "user.origin", "{case}");
            assert_eq!(told(&fixture, "image", "etc/hostname"), "file 0604 9:0 77", "{case}");
            assert_eq!(stat(&fixture, "image", "dev/console")["device"]["major"], 5, "{case}");
            fixture.run(["check", "--data", "image"]).done();
        }
    }
}

#[test]
fn the_kernel_sees_what_was_added() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let fixture = fixture();
    for (format, image) in [("squashfs", "x.sqfs"), ("erofs", "x.erofs")] {
        fixture.run(pack("rootfs", image, &adding(&ENTRIES))).done();
        let mount = match Mount::new(&fixture.path(image), format) {
            Ok(mount) => mount,
            Err(why) => return skip(&format!("{format} cannot be mounted: {why}")),
        };
        let stat = |path: &str| mount.path().join(path).symlink_metadata().unwrap();
        let console = stat("dev/console");
        assert!(console.file_type().is_char_device());
        assert_eq!((console.rdev(), console.mode() & 0o7777), (rustix::fs::makedev(5, 1), 0o600));
        assert!(stat("dev/sda").file_type().is_block_device());
        assert!(stat("run/fifo").file_type().is_fifo() && stat("run/socket").file_type().is_socket());
        assert_eq!(fs::read_link(mount.path().join("bin/sh")).unwrap().to_str(), Some("busybox"));
        assert_eq!(fs::read(mount.path().join("etc/issue")).unwrap(), b"from the host\n");
        assert_eq!((stat("etc/motd").ino(), stat("etc/motd").nlink()), (stat("etc/issue").ino(), 2));
        assert_eq!((stat("etc/motd.old").nlink(), stat("etc/motd").uid()), (1, 1));
    }
}

#[test]
fn the_same_entries_give_the_same_image_however_they_come() {
    let fixture = fixture();
    fixture.run(pack("rootfs", "a.sqfs", &adding(&ENTRIES))).done();
    let list = ENTRIES.join("\n");
    fixture.write("table", format!("# devices\n\n{list}\n"));
    fixture.write("whole.manifest", format!("#packfs-manifest 1\r\n{list}"));
    for file in ["table", "whole.manifest"] {
        fixture.run(pack("rootfs", "b.sqfs", &["--add-manifest", file, "--jobs", "1"])).done();
        assert!(fixture.bytes("a.sqfs") == fixture.bytes("b.sqfs"), "{file}");
    }
    let from_pipe = pack("rootfs", "b.sqfs", &["--add-manifest", "-"]);
    fixture.run_with_input(from_pipe, list.as_bytes()).done();
    let mut split = vec!["--add-manifest", "part"];
    fixture.write("part", ENTRIES[..4].join("\n"));
    split.extend(adding(&ENTRIES[4..]));
    fixture.run(pack("rootfs", "c.sqfs", &split)).done();
    for image in ["b.sqfs", "c.sqfs"] {
        let diff = fixture.run(["diff", "a.sqfs", image, "--nanos"]);
        assert_eq!(diff.code, Some(0), "{image}: {}", diff.text());
    }
}

#[test]
fn files_of_a_list_lie_beside_it() {
    let fixture = fixture();
    fixture.write("board/host-file", "the board's\n");
    fixture.write("board/table", "f /etc/motd 0644 0 0 host-file\n");
    fixture.run(pack("rootfs", "a.sqfs", &["--add-manifest", "board/table"])).done();
    assert_eq!(fixture.run(["cat", "a.sqfs", "etc/motd"]).done().text(), "the board's\n");
    // A pipe lies nowhere.
    let script = "echo f /etc/motd 0644 0 0 host-file | $0 pack rootfs a.sqfs -q --add-manifest /dev/stdin";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_packfs")]).current_dir(fixture.path(""));
    Run::of(shell.output().unwrap()).done();
    assert_eq!(fixture.run(["cat", "a.sqfs", "etc/motd"]).done().text(), "from the host\n");
    // What is given by --add comes later, and its files are those of the working directory.
    let both = ["--add", "f /etc/motd 0644 0 0 host-file", "--add-manifest", "board/table"];
    fixture.run(pack("rootfs", "a.sqfs", &both)).done();
    assert_eq!(fixture.run(["cat", "a.sqfs", "etc/motd"]).done().text(), "from the host\n");
}

#[test]
fn attributes_of_an_entry_override_those_of_options() {
    let fixture = fixture();
    let add =
        adding(&["d /etc 0711 3 4", "fifo /dev/p", "file /x mode=0600 uid=5 mtime=99", "c /n 0600 0 0 1 3"]);
    let options =
        ["--owner", "7:8", "--mtime", "50", "--file-mode", "0640", "--exclude", "*", "--prefix", "sub"];
    fixture.run(pack("rootfs", "a.sqfs", &[&add[..], &options, &["--no-xattrs"]].concat())).done();
    assert_eq!(told(&fixture, "a.sqfs", "etc"), "directory 0711 3:4 50");
    assert_eq!(told(&fixture, "a.sqfs", "dev"), "directory 0755 7:8 50");
    assert_eq!(told(&fixture, "a.sqfs", "dev/p"), "fifo 0640 7:8 50");
    assert_eq!(told(&fixture, "a.sqfs", "x"), "file 0600 5:8 99");
    assert_eq!(told(&fixture, "a.sqfs", "n"), "char_device 0600 0:0 50");
    // A directory that is there changes only in what is said, and keeps what lies in it.
    let before = told(&fixture, "plain.sqfs", "etc");
    fixture
        .run(pack("rootfs", "b.sqfs", &["--add", "dir /etc uid=77", "--add", "d / 0700 1 2 mtime=5"]))
        .done();
    assert_eq!(told(&fixture, "b.sqfs", "/"), "directory 0700 1:2 5");
    let after = told(&fixture, "b.sqfs", "etc");
    let owner = before.split(' ').nth(2).unwrap();
    assert_eq!(after, before.replace(owner, &format!("77:{}", owner.split(':').nth(1).unwrap())));
    assert_eq!(fixture.run(["cat", "b.sqfs", "etc/kept"]).done().text(), "kept\n");
}

#[test]
fn what_is_there_can_be_given_another_owner_and_nothing_else_changes() {
    let fixture = fixture();
    let add = [
        "default uid=9 gid=9",
        "m /etc/kept 4755 1 2",
        "modify /etc/motd uid=5 xattr.user.a=b",
        "/conf m 777 3 4",
    ];
    let list = [&add[..], &["m / mtime=8"]].concat().join("\n");
    fixture.write("table", list);
    for source in ["rootfs", "plain.tar", "plain.sqfs", "rootfs/list"] {
        fixture.run(pack(source, "x.sqfs", &["--add-manifest", "table", "--root-owned"])).done();
        assert_eq!(fixture.run(["cat", "x.sqfs", "etc/kept"]).done().text(), "kept\n", "{source}");
        let row = |path| stat(&fixture, "x.sqfs", path);
        let before = |path| stat(&fixture, "plain.sqfs", path);
        let kept = row("etc/kept");
        assert_eq!(
            (&kept["mode"], &kept["uid"], &kept["gid"]),
            (&"4755".into(), &1.into(), &2.into()),
            "{source}"
        );
        assert_eq!(kept["mtime"], before("etc/kept")["mtime"], "{source}");
        // Both names are of one file.
        for path in ["etc/motd", "etc/motd.old"] {
            let motd = row(path);
            assert_eq!(
                (&motd["uid"], &motd["gid"], &motd["links"]),
                (&5.into(), &0.into(), &2.into()),
                "{source}"
            );
            assert_eq!(
                (&motd["xattrs"][0]["name"], &motd["mode"]),
                (&"user.a".into(), &before(path)["mode"])
            );
        }
        assert_eq!((&row("conf")["uid"], &row("conf")["target"]), (&3.into(), &"etc".into()), "{source}");
        assert_eq!((&row("/")["mtime"], &row("/")["uid"]), (&8.into(), &0.into()), "{source}");
    }
    fixture.write("m", "#packfs-manifest 1\nmodify /a mode=0644\n");
    fixture.run(["pack", "m", "x.sqfs"]).failed(3, &["m:2: ", "modify: allowed only", "--add-manifest"]);
}

#[test]
fn source_date_epoch_is_the_time_of_entries_without_one_and_their_latest() {
    let fixture = fixture();
    let add = adding(&["c /dev/console 0600 0 0 5 1", "file /late mtime=4000000000", "file /early mtime=3"]);
    let run =
        fixture.command(pack("rootfs", "a.sqfs", &add)).env("SOURCE_DATE_EPOCH", "86400").output().unwrap();
    Run::of(run).done();
    for (path, time) in [("dev", 86_400), ("dev/console", 86_400), ("late", 86_400), ("early", 3)] {
        assert_eq!(stat(&fixture, "a.sqfs", path)["mtime"], time, "{path}");
    }
    fixture.run(pack("rootfs", "b.sqfs", &add)).done();
    assert_eq!(stat(&fixture, "b.sqfs", "dev/console")["mtime"], 0);
}

#[test]
fn hard_links_lead_to_what_the_image_has_in_the_end() {
    let fixture = fixture();
    let add =
        adding(&["h /c /b", "h /b /a", "f /a 0644 0 0 host-file", "h /kept2 /etc/kept", "link /d 0 0 0 /a"]);
    fixture.run(pack("rootfs", "a.sqfs", &add)).done();
    for (path, links) in [("a", 4), ("b", 4), ("c", 4), ("d", 4), ("kept2", 2), ("etc/kept", 2)] {
        assert_eq!(stat(&fixture, "a.sqfs", path)["links"], links, "{path}");
    }
    // A hard link of a tar stays one to the file of the tar, though an entry takes that one's name.
    fixture.run(pack("plain.tar", "b.sqfs", &["--add", "f /etc/motd 0600 0 0 host-file"])).done();
    assert_eq!(fixture.run(["cat", "b.sqfs", "etc/motd.old"]).done().text(), "old");
}

#[test]
fn a_wrong_entry_is_refused_by_its_number_with_what_is_allowed() {
    let fixture = fixture();
    for (entry, code, words) in [
        ("c /dev/console 0600", 2, &["--add 2 \"c /dev/console 0600\"", "MODE UID GID MAJOR MINOR"][..]),
        ("c /dev/console 0600 0 0 5", 2, &["MODE UID GID MAJOR MINOR"]),
        ("c /dev/console 0600 0 0 5 1 2", 2, &["\"2\"", "KEY=VALUE"]),
        ("c /dev/console 0600 0 0 5 99999999", 2, &["minor \"99999999\"", "1048575"]),
        ("c /dev/console 0800 0 0 5 1", 2, &["mode \"0800\"", "octal"]),
        ("c /dev/console 0600 root 0 5 1", 2, &["uid \"root\"", "4294967295"]),
        ("c /dev/console 0600 0 0 5 1 mode=0600", 2, &["key \"mode\"", "twice"]),
        ("flie c", 2, &["type \"flie\""]),
        ("x /dev/console", 2, &["type \"x\"", "char", "hint: "]),
        ("/etc/motd f 644 0 0 cat x", 2, &["type \"f\" after a path", "hint: put the type first"]),
        ("c", 2, &["without a path"]),
        ("l /a 0777 0 0", 2, &["MODE UID GID TARGET"]),
        ("d /a/../b 0755 0 0", 2, &["\"..\""]),
        ("f /a 0644 0 0 nothing", 1, &["--add 2", "cannot open \"nothing\""]),
        ("f /a 0644 0 0 rootfs", 1, &["--add 2", "not a regular file"]),
        ("f /etc 0644 0 0", 1, &["--add 2", "directory with entries", "--exclude"]),
        ("f /conf/x 0644 0 0", 1, &["--add 2", "symbolic link to \"etc\"", "hint: name the path"]),
        ("f /etc/kept/x 0644 0 0", 1, &["--add 2", "below a file"]),
        ("h /a /etc", 1, &["--add 2", "a directory"]),
        ("h /a /nothing", 1, &["--add 2", "the image has no such path"]),
        ("h /a /a", 1, &["circle"]),
        ("m /nothing 0644 0 0", 1, &["--add 2", "the image has no such path"]),
        ("m /etc target=x", 2, &["key \"target\"", "of a modify the keys mode"]),
        ("f / 0644 0 0", 1, &["--add 2", "the root must be a directory"]),
    ] {
        let add = adding(&["d /first 0755 0 0", entry]);
        fixture.run(pack("rootfs", "x.sqfs", &add)).failed(code, words);
        assert!(!fixture.path("x.sqfs").exists(), "{entry}");
    }
    for (list, code, words) in [
        ("d /a 0755 0 0\nc /b", 3, &["table:2: ", "char needs both"][..]),
        ("d /a 0755 0 0\n\nfifo /a", 3, &["table:3: ", "already on line 1"]),
        ("#packfs-manifest 7\n", 4, &["table:1: ", "version 7"]),
        ("f /a 0644 0 0 nothing", 1, &["table:1: ", "cannot open"]),
    ] {
        fixture.write("table", list);
        fixture.run(pack("rootfs", "x.sqfs", &["--add-manifest", "table"])).failed(code, words);
    }
    fixture.run(pack("rootfs", "x.sqfs", &["--add-manifest", "none"])).failed(1, &["cannot open \"none\""]);
    let twice = ["--add-manifest", "-", "--add-manifest", "-"];
    fixture.run(pack("rootfs", "x.sqfs", &twice)).failed(2, &["given twice", "standard input"]);
    fixture.run(pack("-", "x.sqfs", &twice[..2])).failed(2, &["SOURCE and --add-manifest", "standard input"]);
    // An image that is wrapped unchanged has no place for entries.
    fixture
        .run(pack("plain.sqfs", "x.cloop", &["--add", "d /a 0755 0 0"]))
        .failed(2, &["cannot filter or rename"]);
}

#[test]
fn entries_go_over_an_image_that_is_packed_again_and_over_a_base() {
    let fixture = fixture();
    let add = adding(&["c /dev/console 0600 0 0 5 1", "f /etc/motd 0640 1 2 host-file"]);
    let add = [&["--mtime", "@1"], &add[..]].concat();
    let repack = [&["repack", "plain.sqfs", "again.sqfs", "-q"], &add[..]].concat();
    fixture.run(repack).done();
    let based = pack("rootfs", "based.sqfs", &["--base", "plain.sqfs", "--exclude", "list"]);
    fixture.run([&based[..], &add].concat()).done();
    let diff = fixture.run(["diff", "again.sqfs", "based.sqfs"]);
    assert_eq!(diff.code, Some(0), "{}", diff.text());
    assert_eq!(fixture.run(["cat", "again.sqfs", "etc/motd"]).done().text(), "from the host\n");
    assert_eq!(fixture.run(["cat", "again.sqfs", "etc/motd.old"]).done().text(), "old");
}

/// A tree of odd names, links, holes and attributes, as far as this user can make it.
fn odd_fixture() -> Fixture {
    let fixture = Fixture::new();
    let (tree, contents) = odd_tree(4096, is_root());
    fs::create_dir(fixture.path("odd")).unwrap();
    write_dir(&tree, &contents, &fixture.path("odd"));
    let sparse = fs::File::create(fixture.path("odd/sparse")).unwrap();
    sparse.set_len(3 << 20).unwrap();
    sparse.write_all_at(b"in the middle", 1 << 20).unwrap();
    fixture.write("odd/a \"name\" = #odd\n", "x");
    fixture
}

#[test]
fn a_manifest_of_a_directory_packs_from_anywhere() {
    let fixture = odd_fixture();
    fs::create_dir(fixture.path("elsewhere")).unwrap();
    for folder in ["odd", "./elsewhere/../odd/"] {
        let manifest = fixture.run(["info", "--manifest", folder]);
        fixture.write("elsewhere/m", &manifest.done().stdout);
        fixture.run(["pack", "elsewhere/m", "again.erofs", "-q", "--lossy"]).ended(0);
        let diff = fixture.run(["diff", "odd", "again.erofs", "--nanos"]);
        assert_eq!(diff.code, Some(0), "{}{}", diff.text(), diff.stderr);
    }
    fixture.run(["pack", "odd", "direct.erofs", "-q", "--lossy"]).ended(0);
    assert!(fixture.bytes("direct.erofs") == fixture.bytes("again.erofs"));
    let sandboxed = fixture.run(["info", "--manifest", "--sandbox", "odd"]).ended(0);
    assert!(sandboxed.stdout == fixture.run(["info", "--manifest", "odd"]).stdout);
}

#[test]
fn a_manifest_of_a_directory_can_be_edited_and_is_no_part_of_itself() {
    let fixture = fixture();
    fs::remove_file(fixture.path("rootfs/list")).unwrap();
    let out = fs::File::create(fixture.path("rootfs/list")).unwrap();
    let status = fixture.command(["info", "--manifest", "rootfs"]).stdout(out).status().unwrap();
    assert!(status.success());
    let text = fs::read_to_string(fixture.path("rootfs/list")).unwrap();
    assert!(!text.contains("file list"), "{text}");
    let edited = text.replace("symlink conf ", "symlink settings ") + "c /dev/console 0600 0 0 5 1\n";
    fixture.write("m", edited);
    fixture.run(["pack", "m", "x.sqfs", "-q"]).done();
    assert_eq!(stat(&fixture, "x.sqfs", "dev/console")["type"], "char_device");
    assert_eq!(stat(&fixture, "x.sqfs", "settings")["target"], "etc");
    assert_eq!(fixture.run(["cat", "x.sqfs", "etc/motd"]).done().text(), "old");
}

#[test]
fn a_manifest_of_a_tar_is_that_of_its_image() {
    let fixture = odd_fixture();
    fixture.run(["pack", "odd", "odd.erofs", "-q", "--lossy"]).ended(0);
    assert_eq!(fixture.run(["tar", "odd.erofs", "-q", "-o", "odd.tar"]).code, Some(0));
    let of_image = fixture.run(["info", "--manifest", "odd.erofs"]);
    let of_tar = fixture.run(["info", "--manifest", "odd.tar"]).ended(0);
    // A tar has no sockets.
    let lines = of_image.done().text().split_inclusive('\n').filter(|line| !line.starts_with("socket "));
    assert!(of_tar.text() == lines.collect::<String>());
    let piped = fixture.run_with_input(["info", "--manifest", "-"], &fixture.bytes("odd.tar"));
    assert!(piped.stdout == of_tar.stdout, "{}", piped.stderr);
}

#[test]
fn only_what_holds_a_tree_has_a_manifest() {
    let fixture = fixture();
    fixture.run(["info", "--manifest", "rootfs/list"]).failed(2, &["it is a manifest"]);
    fixture.run(["info", "--manifest", "host-file"]).failed(4, &["neither a directory"]);
    fixture.run(["info", "--manifest", "nothing"]).failed(1, &["nothing"]);
    fixture.run(["info", "--manifest", "rootfs", "--offset", "8"]).failed(2, &["a directory"]);
    fixture.run(["info", "rootfs"]).failed(2, &["a directory, not an image"]);
    let limited = ["info", "--manifest", "plain.tar", "--max-entries", "2"];
    fixture.run(limited).failed(1, &["over a limit", "--max-entries"]);
}
