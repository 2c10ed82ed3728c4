//! The verbs that read images.

use crate::fixture::{Fixture, assert_same_files, words};
use std::process::Stdio;

#[test]
fn unpacks_what_was_packed() {
    let fixture = Fixture::with_image();
    let run = fixture.run(["unpack", "root.sqfs", "out"]);
    assert!(run.done().text().starts_with("unpacked 4 files ("), "{}", run.text());
    assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
    let json = fixture.run(["unpack", "root.sqfs", "again", "--json"]).json();
    for key in
        ["files", "file_bytes", "directories", "symlinks", "special_files", "hard_links", "not_created"]
    {
        assert!(json[key].is_u64(), "{key}: {json}");
    }
    assert_eq!(json["not_restored"].as_array().map(Vec::len), Some(0));
    assert_eq!(json["hard_links"], 1);
}

#[test]
fn unpacks_parts_of_an_image() {
    let fixture = Fixture::with_image();
    fixture.run(["unpack", "root.sqfs", "out", "etc", "usr/**/READ*", "-q"]).done();
    assert_eq!(std::fs::read(fixture.path("out/etc/os-release")).unwrap(), b"NAME=example\n");
    assert_eq!(std::fs::read(fixture.path("out/usr/share/doc/README")).unwrap(), words(5000));
    assert!(!fixture.path("out/usr/bin").exists());
    fixture.run(["unpack", "root.sqfs", "other", "no/such"]).failed(1, &["no/such"]);
}

#[test]
fn does_not_unpack_over_files_without_force() {
    let fixture = Fixture::with_image();
    fixture.write("out/etc/os-release", "mine");
    fixture.run(["unpack", "root.sqfs", "out"]).failed(1, &["out"]);
    fixture.run(["unpack", "root.sqfs", "out", "--existing", "skip", "-q"]).done();
    assert_eq!(fixture.bytes("out/etc/os-release"), b"mine");
    fixture.run(["unpack", "root.sqfs", "out", "--force", "-q"]).done();
    assert_eq!(fixture.bytes("out/etc/os-release"), b"NAME=example\n");
}

#[test]
fn writes_tars_to_standard_output_and_to_files() {
    let fixture = Fixture::with_image();
    let tar = fixture.run(["tar", "root.sqfs"]);
    assert_eq!(&tar.done().stdout[257..262], b"ustar");
    fixture.run(["tar", "root.sqfs", "-o", "root.tar", "-q"]).done();
    assert!(fixture.bytes("root.tar") == tar.stdout);
    assert!(fixture.run(["tar", "root.sqfs", "-o", "-"]).done().stdout == tar.stdout);
    let part = fixture.run(["tar", "root.sqfs", "etc"]);
    assert!(part.done().stdout.len() < tar.stdout.len() / 2);
    fixture.run(["tar", "root.sqfs", "-o", "no/such/dir/x.tar"]).failed(1, &["no/such/dir"]);
}

#[test]
fn lists_short_long_recursive_and_by_pattern() {
    let fixture = Fixture::with_image();
    assert_eq!(fixture.run(["ls", "root.sqfs"]).done().text(), "bin\nempty\netc\nusr\n");
    assert_eq!(fixture.run(["ls", "root.sqfs", "etc"]).done().text(), "etc/os-release\n");
    assert_eq!(fixture.run(["ls", "root.sqfs", "**/os-*"]).done().text(), "etc/os-release\n");
    let long = fixture.run(["ls", "-lR", "root.sqfs"]);
    assert!(long.done().text().contains("bin -> usr/bin\n"), "{}", long.text());
    assert!(long.text().contains(" usr/share/doc/README\n"), "{}", long.text());
    assert!(long.text().lines().all(|line| "dl-".contains(&line[..1])), "{}", long.text());
    let null = fixture.run(["ls", "-0", "root.sqfs"]);
    assert_eq!(null.done().stdout, b"bin\0empty\0etc\0usr\0");
    fixture.run(["ls", "root.sqfs", "no/such"]).failed(1, &["no/such"]);
}

#[test]
fn lists_as_json_without_losing_a_byte_of_a_name() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::with_tree();
    let name = std::ffi::OsStr::from_bytes(b"odd\xff\x1b");
    std::fs::write(fixture.path("rootfs").join(name), "x").unwrap();
    fixture.run(["pack", "rootfs", "root.sqfs", "-q"]).done();
    let rows = fixture.run(["ls", "--json", "root.sqfs"]).json();
    let odd = rows.as_array().unwrap().iter().find(|row| row["path_bytes"].is_string()).unwrap();
    assert_eq!(odd["path_bytes"], "6f6464ff1b");
    assert_eq!(odd["size"], 1);
    let text = fixture.run(["ls", "root.sqfs"]);
    assert!(text.text().contains("odd\\xff\\x1b\n"), "{}", text.text());
    let raw = fixture.run(["ls", "--raw", "root.sqfs"]);
    assert!(raw.done().stdout.windows(6).any(|part| part == b"odd\xff\x1b\n"));
}

#[test]
fn prints_contents_and_follows_links_inside_the_image() {
    let fixture = Fixture::with_image();
    assert_eq!(fixture.run(["cat", "root.sqfs", "etc/os-release"]).done().text(), "NAME=example\n");
    assert_eq!(fixture.run(["cat", "root.sqfs", "/usr/release"]).done().text(), "NAME=example\n");
    assert_eq!(fixture.run(["cat", "root.sqfs", "bin/tool"]).done().stdout, words(300_000));
    let both = fixture.run(["cat", "root.sqfs", "etc/os-release", "etc/os-release"]);
    assert_eq!(both.done().text(), "NAME=example\nNAME=example\n");
    fixture.run(["cat", "root.sqfs", "etc"]).failed(1, &["etc", "directory"]);
    fixture.run(["cat", "root.sqfs", "etc/none"]).failed(1, &["etc/none", "no such path"]);
    fixture.run(["cat", "root.sqfs", "../etc"]).failed(2, &[".."]);
}

#[test]
fn shows_all_of_single_files() {
    let fixture = Fixture::with_image();
    let text = fixture.run(["stat", "root.sqfs", "usr/bin/tool", "bin"]).done().text().to_owned();
    for line in ["path:    usr/bin/tool\n", "size:    300,000 bytes\n", "links:   2\n", "target:  usr/bin\n"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    let json = fixture.run(["stat", "--json", "root.sqfs", "usr/bin/tool", "/", "bin"]).json();
    assert_eq!(json[0]["size"], 300_000);
    assert_eq!(json[0]["blocks"], 3);
    assert_eq!(json[1]["type"], "directory");
    assert_eq!(json[2]["target"], "usr/bin");
    let followed = fixture.run(["stat", "-L", "--json", "root.sqfs", "bin"]).json();
    assert_eq!(followed[0]["type"], "directory");
}

#[test]
fn reports_facts_of_an_image_and_the_owner_of_every_byte() {
    let fixture = Fixture::with_image();
    let text = fixture.run(["info", "root.sqfs"]).done().text().to_owned();
    assert!(text.starts_with("Format") && text.contains("squashfs") && text.contains("gzip"), "{text}");
    let json = fixture.run(["info", "--json", "--space", "root.sqfs"]).json();
    assert_eq!(json["format"], "squashfs");
    assert!(json["facts"].as_object().is_some_and(|facts| facts.len() > 5), "{json}");
    let mut end = 0;
    for row in json["space"].as_array().unwrap() {
        assert_eq!(row["offset"], end, "{row}");
        end += row["size"].as_u64().unwrap();
    }
    assert_eq!(end, fixture.bytes("root.sqfs").len() as u64);
    let text = fixture.run(["info", "--space", "root.sqfs"]).done().text().to_owned();
    assert!(text.contains("inode table") && text.contains("total"), "{text}");
}

#[test]
fn checks_structure_and_data() {
    let fixture = Fixture::with_image();
    fixture.run(["check", "root.sqfs"]).done();
    fixture.run(["check", "--data", "root.sqfs"]).done();
    let json = fixture.run(["check", "--data", "--json", "root.sqfs"]).json();
    assert_eq!(json["sound"], true);
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn damaged_data_is_found_and_ends_with_code_3() {
    let fixture = Fixture::with_image();
    let mut image = fixture.bytes("root.sqfs");
    image[96..400].fill(0x5a);
    fixture.write("bad.sqfs", image);
    assert_eq!(fixture.run(["check", "--data", "bad.sqfs"]).code, Some(3));
    let run = fixture.run(["check", "--data", "--json", "bad.sqfs"]);
    assert_eq!(run.code, Some(3));
    let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(json["sound"], false);
    assert!(json["findings"][0]["fault"].is_string(), "{json}");
    assert_eq!(fixture.run(["unpack", "bad.sqfs", "out", "-q"]).code, Some(3));
}

#[test]
fn compares_images_directories_and_tars() {
    let fixture = Fixture::with_image();
    fixture.run(["tar", "root.sqfs", "-o", "root.tar", "-q"]).done();
    for (a, b) in
        [("root.sqfs", "rootfs"), ("rootfs", "root.sqfs"), ("root.sqfs", "root.tar"), ("rootfs", "rootfs")]
    {
        fixture.run(["diff", a, b]).done();
    }
    fixture.write("rootfs/etc/os-release", "NAME=changed\n");
    std::fs::remove_dir(fixture.path("rootfs/empty")).unwrap();
    let run = fixture.run(["diff", "root.sqfs", "rootfs"]).ended(1);
    assert!(run.text().contains("etc/os-release") && run.text().contains("empty"), "{}", run.text());
    let run = fixture.run(["diff", "--json", "root.sqfs", "rootfs"]);
    assert_eq!(run.code, Some(1));
    let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(json["same"], false);
    assert!(json["differences"].as_array().unwrap().iter().any(|row| row["path"] == "empty"), "{json}");
    assert_eq!(fixture.run(["diff", "--json", "root.tar", "root.sqfs"]).json()["same"], true);
}

#[test]
fn a_missing_image_is_code_1_a_damaged_one_3_an_unknown_one_4() {
    let fixture = Fixture::with_image();
    fixture.write("noise", words(5000));
    fixture.write("empty", "");
    let cut = fixture.bytes("root.sqfs")[..200].to_vec();
    fixture.write("cut", cut);
    for verb in ["ls", "info", "check", "tar"] {
        fixture.run([verb, "nowhere.sqfs"]).failed(1, &["nowhere.sqfs"]);
        fixture.run([verb, "noise"]).failed(4, &["noise"]);
        fixture.run([verb, "empty"]).failed(4, &["empty"]);
        let code = fixture.run([verb, "cut"]).code;
        assert_eq!(code, Some(3), "{verb}");
    }
    fixture.run(["ls", "rootfs"]).failed(2, &["rootfs"]);
}

#[test]
fn ends_quietly_when_its_output_is_closed() {
    let fixture = Fixture::with_tree();
    for number in 0..20_000 {
        fixture.write(&format!("rootfs/empty/{number}-{}", "x".repeat(100)), "");
    }
    fixture.run(["pack", "rootfs", "root.sqfs", "-q"]).done();
    let mut child = fixture
        .command(["ls", "-lR", "root.sqfs"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(141), 0));
}

#[test]
fn every_verb_prints_read_statistics_on_request() {
    let fixture = Fixture::with_image();
    let cat: &[&str] = &["cat", "root.sqfs", "etc/os-release", "--stats"];
    let verbs: [&[&str]; 7] = [
        cat,
        &["unpack", "root.sqfs", "out", "--stats", "-q"],
        &["tar", "root.sqfs", "--stats"],
        &["check", "--data", "root.sqfs", "--stats"],
        &["ls", "-R", "root.sqfs", "--stats"],
        &["stat", "root.sqfs", "etc", "--stats"],
        &["info", "root.sqfs", "--stats"],
    ];
    for verb in verbs {
        let run = fixture.run(verb.iter().copied()).ended(0);
        let told = run.stderr.trim();
        let cost: serde_json::Value = serde_json::from_str(told).unwrap_or_else(|e| panic!("{told}: {e}"));
        assert!(cost["metadata_reads"].as_u64() > Some(0), "{verb:?}: {told}");
        let reads_data = matches!(verb[0], "cat" | "unpack" | "tar" | "check");
        assert_eq!(cost["data_reads"].as_u64() > Some(0), reads_data, "{verb:?}: {told}");
    }
    fixture.run(cat[..3].iter().copied()).done();
}

#[test]
fn an_old_image_reports_its_losses_and_is_read_with_any_magic() {
    let fixture = Fixture::with_tree();
    let pack = |name: &str, version: &str, more: &[&str]| {
        let version = format!("version={version}");
        let args =
            ["pack", "rootfs", name, "-q", "-f", "squashfs-legacy", "-O", "endian=big", "-O", &version];
        fixture.run(args.iter().chain(more))
    };
    pack("old.img", "2.1", &[]).failed(1, &["hard links", "--lossy"]);
    assert!(!fixture.path("old.img").exists());
    pack("old.img", "3.1", &[]).done();
    assert_eq!(fixture.run(["info", "old.img", "--json"]).json()["format"], "squashfs-legacy");
    let mut bytes = fixture.bytes("old.img");
    bytes[..4].copy_from_slice(b"sqlz");
    fixture.write("old.img", bytes);
    fixture.run(["ls", "old.img"]).failed(4, &["no known format"]);
    fixture.run(["ls", "old.img", "--magic", "squashfs"]).failed(2, &["unknown magic"]);
    fixture.run(["unpack", "old.img", "out", "--magic", "sqsh", "-q"]).done();
    assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
    let digest = |args: &[&str]| {
        let run = fixture.run(args);
        run.done().text().split(' ').next().unwrap().to_owned()
    };
    assert_eq!(digest(&["digest", "old.img", "--magic", "sqsh"]), digest(&["digest", "out"]));
    fixture.run(["pack", "old.img", "new.sqfs", "-q"]).failed(4, &["neither"]);
    fixture.run(["pack", "old.img", "new.sqfs", "--source-magic", "sqsh", "-q"]).done();
    fixture.run(["repack", "old.img", "same.img", "--magic", "sqsh", "-q"]).done();
    for made in ["new.sqfs", "same.img"] {
        fixture.run(["diff", "rootfs", made]).done();
    }
    fixture
        .run(["pack", "rootfs", "new.sqfs", "--source-magic", "sqsh", "-q"])
        .failed(2, &["rootfs", "not an image"]);
    fixture.run(["pack", "old.img", "new.sqfs", "--source-magic", "sqs", "-q"]).failed(2, &["unknown magic"]);
}

#[test]
fn extents_cover_a_file_and_lie_in_the_image() {
    let fixture = Fixture::with_tree();
    let sparse = std::fs::File::create(fixture.path("rootfs/sparse")).unwrap();
    sparse.set_len(3 << 20).unwrap();
    for options in [
        &["-f", "squashfs", "--codec", "zstd"][..],
        &["-f", "squashfs", "--codec", "none"],
        &["-f", "erofs", "--codec", "lz4hc"],
        &["-f", "erofs", "--codec", "none"],
        &["-f", "squashfs-legacy", "-O", "version=3.1"],
        &["-f", "cramfs"],
        &["-f", "iso9660", "--codec", "none"],
        &["-f", "iso9660", "--codec", "gzip"],
    ] {
        let pack = [&["pack", "rootfs", "image", "-q", "--lossy"], options].concat();
        assert_eq!(fixture.run(pack).code, Some(0), "{options:?}");
        let len = fixture.bytes("image").len() as u64;
        let paths = ["usr/bin/tool", "etc/os-release", "sparse", "etc", "bin"];
        let stat = [&["stat", "--extents", "--json", "image"], &paths[..]].concat();
        let rows = fixture.run(stat).json();
        for (row, path) in rows.as_array().unwrap().iter().zip(paths) {
            let extents = row["extents"].as_array().unwrap();
            if row["type"] != "file" {
                assert!(extents.is_empty(), "{options:?} {row}");
                continue;
            }
            let mut end = 0;
            for extent in extents {
                let number = |key: &str| extent[key].as_u64().unwrap_or_else(|| panic!("{key}: {extent}"));
                assert_eq!(number("from"), end, "{options:?} {path}");
                end += number("length");
                if extent["hole"] != true {
                    assert!(number("offset") + number("stored_bytes") <= len, "{options:?} {extent}");
                    assert!(extent["codec"].is_string(), "{extent}");
                }
            }
            assert_eq!(end, row["size"].as_u64().unwrap(), "{options:?} {path}");
        }
        let codec = &rows[0]["extents"][0]["codec"];
        let expected = match options {
            [_, "squashfs", _, "zstd"] => "zstd",
            [_, "erofs", _, "lz4hc"] => "lz4",
            [_, "squashfs-legacy", ..] | [_, "cramfs"] | [_, "iso9660", _, "gzip"] => "gzip",
            _ => "none",
        };
        assert_eq!(codec, expected, "{options:?}");
        let text = fixture.run(["stat", "--extents", "image", "usr/bin/tool"]);
        let last = text.done().text().lines().last().unwrap().to_owned();
        assert!(last.contains("300,000") && last.contains("0x"), "{options:?}: {last}");
    }
}

#[test]
fn info_begins_with_counts_and_the_ratio() {
    let fixture = Fixture::with_tree();
    for format in ["squashfs", "erofs", "cramfs", "iso9660", "squashfs-legacy"] {
        let pack = ["pack", "rootfs", "image", "-q", "--lossy", "-f", format];
        assert_eq!(fixture.run(pack).code, Some(0), "{format}");
        let run = fixture.run(["info", "image"]);
        let lines: Vec<&str> = run.done().text().lines().collect();
        assert!(lines[0].starts_with("Format ") && lines[1].starts_with("Content "), "{format}: {lines:?}");
        assert!(
            lines[1].contains("7 directories") && lines[1].contains("2 symbolic links"),
            "{format}: {lines:?}"
        );
        assert!(
            lines[2].starts_with("Uncompressed ") && lines[2].ends_with(" bytes)"),
            "{format}: {lines:?}"
        );
        assert!(lines[3].starts_with("Ratio ") && lines[3].contains(" to 1 "), "{format}: {lines:?}");
        let json = fixture.run(["info", "--json", "image"]).json();
        let counts = &json["counts"];
        let names = ["files", "hard_links"].map(|key| counts[key].as_u64().unwrap());
        // Formats without links have the second name as a file of its own.
        assert!(names == [4, 1] || names == [5, 0], "{format}: {counts}");
        assert_eq!((&counts["directories"], &counts["symlinks"]), (&7.into(), &2.into()), "{format}");
        let bytes = 300_000 * (2 + u64::from(names[1] == 0)) + 5_000 + 13;
        assert_eq!(counts["file_bytes"], bytes, "{format}");
        let ratio = bytes as f64 / fixture.bytes("image").len() as f64;
        assert!((counts["ratio"].as_f64().unwrap() - ratio).abs() < 0.05 * ratio, "{format}: {counts}");
    }
    // A filesystem with free space has no ratio.
    if let Some(mkfs) = packfs_testkit::peer("mkfs.ext4") {
        std::fs::File::create(fixture.path("disk")).unwrap().set_len(4 << 20).unwrap();
        let mut command = mkfs.command(&[&"-q", &"-d", &fixture.path("rootfs"), &fixture.path("disk")]);
        assert!(command.status().unwrap().success());
        assert!(!fixture.run(["info", "disk"]).done().text().contains("Ratio"));
        assert_eq!(
            fixture.run(["info", "--json", "disk"]).json()["counts"]["ratio"],
            serde_json::Value::Null
        );
    }
    fixture.write("none/empty", "");
    fixture.run(["pack", "none", "image", "-q"]).done();
    let text = fixture.run(["info", "image"]).done().text().to_owned();
    assert!(text.contains("1 file, 1 directory\n") && text.contains("Ratio"), "{text}");
    assert_eq!(fixture.run(["info", "--json", "image"]).json()["counts"]["ratio"], serde_json::Value::Null);
}

#[test]
fn a_path_that_is_missing_gets_the_one_that_was_meant() {
    let fixture = Fixture::with_image();
    for (path, meant) in [
        ("etc/os-relaese", "etc/os-release"),
        ("ect/os-release", "etc"),
        ("USR/bin/tool", "usr"),
        ("usr/bin/tol", "usr/bin/tool"),
        ("/usr/share/doc/readme", "usr/share/doc/README"),
        ("usr/share/do", "usr/share/doc"),
    ] {
        for verb in [
            &["cat", "root.sqfs"][..],
            &["stat", "root.sqfs"],
            &["ls", "root.sqfs"],
            &["unpack", "root.sqfs", "out"],
        ] {
            let run = fixture.run([verb, &[path]].concat());
            run.failed(1, &["no such path", &format!("hint: did you mean \"{meant}")]);
        }
    }
    // The names that follow are there.
    fixture.run(["cat", "root.sqfs", "ect/os-release"]).failed(1, &["did you mean \"etc/os-release\"?"]);
    for path in ["nothing/like/it", "etc/zzzzzz", "empty/os-release"] {
        for verb in ["cat", "stat", "ls"] {
            let run = fixture.run([verb, "root.sqfs", path]);
            run.failed(1, &["no such path"]);
            assert!(!run.stderr.contains("did you mean"), "{}", run.stderr);
        }
    }
}
