//! `pack`, and what goes wrong with it.

use crate::fixture::{Fixture, Run, assert_same_files, words};
use packfs_testkit::{Compare, Mount, Random, is_root, skip, snapshot_dir};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn packs_and_prints_savings_and_a_mount_command() {
    let fixture = Fixture::with_tree();
    let run = fixture.run(["pack", "rootfs", "root.sqfs"]);
    let text = run.done().text();
    assert!(text.contains("4 files became"), "{text}");
    assert!(text.contains("duplicate file stored once"), "{text}");
    let mount = if is_root() {
        "sudo mount -t squashfs -o loop,ro root.sqfs /mnt"
    } else {
        "mkdir -p mnt && packfs mount root.sqfs mnt"
    };
    assert!(text.contains(mount), "{text}");
    assert_eq!(fixture.names(), ["root.sqfs", "rootfs"]);
}

/// Options of pack, and the driver that mounts what they make.
const DRIVERS: [(&[&str], Option<&str>); 13] = [
    (&["--format", "squashfs"], Some("squashfs")),
    (&["--format", "squashfs", "--codec", "lzma"], None),
    (&["--format", "squashfs-legacy"], None),
    (&["--format", "erofs"], Some("erofs")),
    (&["--format", "cramfs", "-O", "endian=little"], native("little")),
    (&["--format", "cramfs", "-O", "endian=big"], native("big")),
    (&["--format", "iso9660"], Some("iso9660")),
    (&["--format", "iso9660", "--codec", "gzip", "-O", "zisofs=1"], Some("iso9660")),
    (&["--format", "iso9660", "--codec", "gzip", "-O", "zisofs=2"], None),
    (&["--format", "iso9660", "--codec", "none", "-O", "zisofs=2"], Some("iso9660")),
    (&["--format", "cloop"], None),
    (&["--format", "cloop", "-O", "inner=squashfs"], None),
    (&["--format", "cloop", "-O", "inner=iso9660"], None),
];

const fn native(order: &str) -> Option<&'static str> {
    if cfg!(target_endian = "big") == (order.len() == "big".len()) { Some("cramfs") } else { None }
}

#[test]
fn advises_a_mount_that_the_user_and_the_kernel_can_make() {
    let fixture = Fixture::with_tree();
    for (options, driver) in DRIVERS {
        let pack = [&["pack", "rootfs", "image", "--lossy", "--json"], options].concat();
        for run in [fixture.run(&pack), fixture.run_as_nobody(&pack)] {
            assert_eq!(run.code, Some(0), "{options:?}: {}", run.stderr);
            let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
            assert_eq!(report["driver"], serde_json::json!(driver), "{options:?}");
        }
        let advice =
            |run: Run| serde_json::from_slice::<serde_json::Value>(&run.stdout).unwrap()["mount"].clone();
        if is_root() {
            let expected = match driver {
                Some(driver) => format!("sudo mount -t {driver} -o loop,ro image /mnt"),
                None => "packfs mount image /mnt".into(),
            };
            assert_eq!(advice(fixture.run(&pack)), expected, "{options:?}");
        }
        let expected = "mkdir -p mnt && packfs mount image mnt";
        assert_eq!(advice(fixture.run_as_nobody(&pack)), expected, "{options:?}");
    }
    let pack = ["pack", "rootfs", "a b.erofs", "-O", "device=a.blob", "--json"];
    let report: serde_json::Value = serde_json::from_slice(&fixture.run_as_nobody(pack).stdout).unwrap();
    assert_eq!(report["mount"], "mkdir -p mnt && packfs mount --device a.blob 'a b.erofs' mnt");
}

#[test]
fn is_silent_when_quiet_and_draws_no_bars_when_piped() {
    let fixture = Fixture::with_tree();
    assert_eq!(fixture.run(["pack", "rootfs", "a.sqfs", "--quiet"]).done().text(), "");
    let text = fixture.run(["pack", "rootfs", "b.sqfs"]).done().text().to_owned();
    assert!(!text.contains('\x1b') && !text.contains('\r'), "{text}");
}

#[test]
fn the_summary_is_a_json_object_with_the_documented_keys() {
    let fixture = Fixture::with_tree();
    let json = fixture.run(["pack", "rootfs", "root.sqfs", "--codec", "zstd:3", "--json"]).json();
    for key in [
        "image",
        "format",
        "codec",
        "image_size",
        "nodes",
        "files",
        "file_bytes",
        "data_bytes",
        "metadata_bytes",
        "duplicate_files",
        "duplicate_bytes",
        "run_files",
        "run_bytes",
        "duplicate_tails",
        "duplicate_tail_bytes",
        "hole_bytes",
        "fragment_blocks",
        "fragment_decodes",
        "fragment_read_bytes",
        "path_order_decodes",
        "walk_ratio",
        "fragment_bytes",
        "fragment_stored_bytes",
        "plain_bytes",
        "classes",
        "stages",
        "suggestions",
        "seconds",
        "sections",
        "losses",
        "skipped",
        "mount",
    ] {
        assert!(!json[key].is_null(), "{key}: {json}");
    }
    assert_eq!(json["format"], "squashfs");
    assert_eq!(json["codec"], "zstd:3");
    assert_eq!(json["image_size"], fixture.bytes("root.sqfs").len());
    assert_eq!(json["duplicate_files"], 1);
}

#[test]
fn the_format_comes_from_its_name_then_the_extension_then_is_squashfs() {
    let fixture = Fixture::with_tree();
    for args in [
        &["pack", "rootfs", "x.img", "-q"][..],
        &["pack", "rootfs", "x.img", "-q", "--format", "squashfs"],
        &["pack", "rootfs", "x.squashfs", "-q"],
    ] {
        fixture.run(args).done();
        assert_eq!(&fixture.bytes(args[2])[..4], b"hsqs");
    }
}

#[test]
fn a_tar_an_image_and_a_manifest_pack_to_the_same_image() {
    let fixture = Fixture::with_image();
    let image = fixture.bytes("root.sqfs");
    // None of the names says what is in the file.
    fixture.run(["tar", "root.sqfs", "-o", "t.bin", "-q"]).done();
    fixture.run(["pack", "t.bin", "from-tar.sqfs", "-q"]).done();
    assert!(fixture.bytes("from-tar.sqfs") == image, "tar");

    let tar = fixture.bytes("t.bin");
    fixture.run_with_input(["pack", "-", "from-stdin.sqfs", "-q"], &tar).done();
    assert!(fixture.bytes("from-stdin.sqfs") == image, "standard input");

    std::fs::copy(fixture.path("root.sqfs"), fixture.path("i.bin")).unwrap();
    fixture.run(["pack", "i.bin", "from-image.sqfs", "-q"]).done();
    assert!(fixture.bytes("from-image.sqfs") == image, "image");
}

#[test]
fn a_manifest_of_an_image_describes_the_same_tree() {
    let fixture = Fixture::with_image();
    let manifest = fixture.run(["info", "--manifest", "root.sqfs"]);
    fixture.write("rootfs/manifest", manifest.done().text());
    let run = fixture.run(["pack", "rootfs/manifest", "m.sqfs", "-q"]);
    run.done();
    std::fs::remove_file(fixture.path("rootfs/manifest")).unwrap();
    let list = |image| fixture.run(["ls", "-lR", image]).done().text().to_owned();
    assert_eq!(list("m.sqfs"), list("root.sqfs"));
}

#[test]
fn the_same_source_gives_the_same_bytes_with_any_number_of_threads() {
    let fixture = Fixture::with_tree();
    for jobs in ["1", "2", "16"] {
        fixture.run(["pack", "rootfs", &format!("{jobs}.sqfs"), "--jobs", jobs, "-q"]).done();
    }
    assert!(fixture.bytes("1.sqfs") == fixture.bytes("2.sqfs"));
    assert!(fixture.bytes("1.sqfs") == fixture.bytes("16.sqfs"));
}

#[test]
fn source_date_epoch_clamps_times_and_dates_the_image() {
    let fixture = Fixture::with_tree();
    let output = fixture
        .command(["pack", "rootfs", "x.sqfs", "-q"])
        .env("SOURCE_DATE_EPOCH", "86400")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = fixture.run(["ls", "-R", "--json", "x.sqfs"]).json();
    assert!(rows.as_array().unwrap().iter().all(|row| row["mtime"] == 86400), "{rows}");
    let dated = fixture.bytes("x.sqfs")[8..12].to_vec();
    assert_eq!(dated, 86400u32.to_le_bytes());
    fixture.run(["pack", "rootfs", "y.sqfs", "-q", "--made-at", "7"]).done();
    assert_eq!(fixture.bytes("y.sqfs")[8..12], 7u32.to_le_bytes());

    let bad =
        fixture.command(["pack", "rootfs", "z.sqfs"]).env("SOURCE_DATE_EPOCH", "soon").output().unwrap();
    assert_eq!(bad.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("SOURCE_DATE_EPOCH"));
}

#[test]
fn shapes_what_it_packs() {
    let fixture = Fixture::with_tree();
    fixture
        .run([
            "pack",
            "rootfs",
            "x.sqfs",
            "-q",
            "--exclude",
            "usr/share/**",
            "--root-owned",
            "--file-mode",
            "0600",
            "--dir-mode",
            "0700",
            "--mtime",
            "@5",
            "--prefix",
            "top",
        ])
        .done();
    let rows = fixture.run(["ls", "-R", "--json", "x.sqfs"]).json();
    let row = |path: &str| rows.as_array().unwrap().iter().find(|row| row["path"] == path).cloned();
    let tool = row("top/usr/bin/tool").expect("packed below the prefix");
    assert_eq!((&tool["uid"], &tool["gid"], &tool["mtime"]), (&0.into(), &0.into(), &5.into()));
    assert_eq!(tool["mode"], "0600");
    assert_eq!(row("top/usr").unwrap()["mode"], "0700");
    assert!(row("top/usr/share/doc/README").is_none());
}

#[test]
fn replaces_an_image_only_when_the_new_one_is_complete() {
    let fixture = Fixture::with_image();
    let before = fixture.bytes("root.sqfs");
    fixture.write("bad.tar", vec![b'x'; 3000]);
    assert_ne!(fixture.run(["pack", "bad.tar", "root.sqfs"]).code, Some(0));
    assert!(fixture.bytes("root.sqfs") == before);
    assert_eq!(fixture.names(), ["bad.tar", "root.sqfs", "rootfs"]);
    fixture.run(["pack", "rootfs", "root.sqfs", "-q", "--codec", "none"]).done();
    assert!(fixture.bytes("root.sqfs") != before);
}

#[test]
fn a_source_that_is_missing_or_unknown_fails() {
    let fixture = Fixture::new();
    fixture.run(["pack", "nowhere", "x.sqfs"]).failed(1, &["nowhere", "No such file"]);
    // By its name it was a tree once.
    fixture.write("noise.tar", words(5000));
    fixture
        .run(["pack", "noise.tar", "x.sqfs"])
        .failed(4, &["noise.tar", "neither a directory", "--as-file"]);
    assert_eq!(fixture.names(), ["noise.tar"]);
}

#[test]
fn an_output_that_cannot_be_written_fails_and_is_named() {
    let fixture = Fixture::with_tree();
    fixture.run(["pack", "rootfs", "no/such/dir/x.sqfs"]).failed(1, &["no/such/dir"]);
    fixture.run(["pack", "rootfs", "rootfs"]).failed(2, &["rootfs"]);
}

#[test]
fn an_unreadable_file_fails_without_keep_going() {
    let fixture = Fixture::with_tree();
    let secret = fixture.path("rootfs/etc/secret");
    std::fs::write(&secret, "x").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o000)).unwrap();
    let run = fixture.run_as_nobody(["pack", "rootfs", "x.sqfs"]);
    run.failed(1, &["etc/secret", "Permission denied"]);
    assert!(!fixture.path("x.sqfs").exists());
    let run = fixture.run_as_nobody(["pack", "rootfs", "x.sqfs", "-q", "--keep-going"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("etc/secret"), "{}", run.stderr);
    let json = fixture.run_as_nobody(["pack", "rootfs", "y.sqfs", "--keep-going", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["skipped"].as_array().map(Vec::len), Some(1), "{json}");
    fixture.run(["check", "--data", "x.sqfs"]).done();
}

#[test]
fn an_image_inside_a_file_is_found_at_its_offset() {
    let fixture = Fixture::with_tree();
    fixture.write("firmware", vec![0xa5; 5000]);
    let run = fixture.run(["pack", "rootfs", "firmware", "--offset", "8K"]);
    assert!(run.done().text().contains("offset=8192"), "{}", run.text());
    assert!(fixture.bytes("firmware").starts_with(&[0xa5; 5000]));
    fixture.run(["unpack", "--offset", "0x2000", "firmware", "out", "-q"]).done();
    assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
    fixture.run(["pack", "firmware", "again.sqfs", "--source-offset", "8K", "-q"]).done();
    fixture.run(["diff", "again.sqfs", "rootfs"]).done();
}

#[test]
fn losses_are_reported_once_with_a_count_for_every_source_and_format() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("tree")).unwrap();
    for name in ["tree/a", "tree/b", "tree"] {
        if name != "tree" {
            fixture.write(name, name);
        }
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_500);
        fs::File::open(fixture.path(name)).unwrap().set_modified(time).unwrap();
    }
    fs::hard_link(fixture.path("tree/a"), fixture.path("tree/z")).unwrap();
    fixture.run(["pack", "tree", "tree.erofs", "-q"]).done();
    fixture.run(["tar", "tree.erofs", "-o", "tree.tar", "-q"]).done();
    fixture.write("tree/manifest", fixture.run(["info", "--manifest", "tree.erofs"]).stdout);
    let fractions = "warning: lost: times lose their fractions of a second (\"/\" and 2 more)\n";
    fixture.run(["unpack", "tree.erofs", "again", "-q"]).done();
    for source in ["tree.erofs", "tree.tar", "tree/manifest", "again"] {
        for format in ["squashfs", "iso9660"] {
            let run = fixture.run(["pack", source, "image", "-q", "--format", format]);
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), fractions), "{source} to {format}");
        }
        let run = fixture.run(["pack", source, "image", "-q", "--format", "cramfs"]);
        let links = "hard links become separate files, which share their data (\"a\")";
        let told = format!("warning: lost: {links}\nwarning: lost: times become 1970 (\"/\" and 2 more)\n");
        assert_eq!((run.code, run.stderr), (Some(0), told), "{source}");
    }
}

#[test]
fn what_cramfs_has_no_place_for_is_refused_at_once() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("tree")).unwrap();
    let long = "n".repeat(253);
    fs::write(fixture.path("tree").join(&long), "").unwrap();
    for name in ["one", "two"] {
        fs::File::create(fixture.path("tree").join(name)).unwrap().set_len(16 << 20).unwrap();
    }
    for lossy in [&[][..], &["--lossy"]] {
        let run = fixture.run([&["pack", "tree", "x.cramfs"], lossy].concat());
        run.failed(1, &["(\"one\", \"two\")", &long, "bytes that cramfs holds", "--exclude"]);
        assert!(!fixture.path("x.cramfs").exists());
    }
}

#[test]
fn losses_of_a_conversion_are_reported_before_writing() {
    let fixture = Fixture::with_tree();
    let manifest = "#packfs-manifest 1\ndir / mode=0755\nfifo /old mode=0600 mtime=-5\n";
    fixture.write("m", manifest);
    fixture.run(["pack", "m", "a.erofs", "-q"]).done();
    let before = fixture.names();
    let run = fixture.run(["pack", "a.erofs", "b.sqfs"]);
    run.failed(
        1,
        &["cannot pack this source as squashfs", "times before 1970 become 1970", "\"old\"", "hint: --lossy"],
    );
    assert_eq!(fixture.names(), before);
    let run = fixture.run(["pack", "a.erofs", "b.sqfs", "--lossy", "-q"]).ended(0);
    assert!(run.stderr.contains("warning: lost: times before 1970 become 1970"), "{}", run.stderr);
    let rows = fixture.run(["stat", "b.sqfs", "old", "--json"]).json();
    assert_eq!(rows[0]["mtime"], 0, "{rows}");
}

#[test]
fn the_report_names_classes_stages_and_what_is_stored() {
    let fixture = Fixture::with_tree();
    let run = fixture.run(["pack", "rootfs", "root.sqfs", "--report"]);
    let text = run.done().text();
    for words in ["space by class:", "names and inodes", "time: order"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = fixture.run(["pack", "rootfs", "again.sqfs", "--json"]).json();
    let classes = json["classes"].as_array().unwrap();
    let sum = |key: &str| classes.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("files") + json["duplicate_files"].as_u64().unwrap(), 4);
    let bytes = json["file_bytes"].as_u64().unwrap();
    assert!(sum("bytes") <= bytes + json["duplicate_bytes"].as_u64().unwrap(), "{json}");
}

#[test]
fn what_an_image_is_to_be_good_at_sets_what_was_left_open() {
    let fixture = Fixture::with_tree();
    for (format, goal, codec) in [
        ("squashfs", "size", "xz:9,extreme,bcj=auto"),
        ("squashfs", "build", "zstd:3"),
        ("squashfs", "balanced", "gzip:9"),
        ("erofs", "size", "lzma:9,extreme"),
        ("erofs", "build", "lz4"),
        ("erofs", "read", "lz4hc:12"),
    ] {
        let args = ["pack", "rootfs", "x.img", "--json", "--format", format, "--optimize", goal];
        assert_eq!(fixture.run(args).json()["codec"], codec, "{format} {goal}");
    }
    let args = ["pack", "rootfs", "x.img", "--json", "--optimize", "size", "--codec", "zstd:1"];
    assert_eq!(fixture.run(args).json()["codec"], "zstd:1");
    fixture.run(["pack", "rootfs", "x.img", "--optimize", "beauty"]).failed(2, &["beauty", "balanced"]);
    fixture.run(["pack", "rootfs", "x.img", "--effort", "some"]).failed(2, &["some", "max"]);
    fixture.run(["pack", "rootfs", "x.img", "--min-gain", "99"]).failed(2, &["99"]);
}

#[test]
fn what_hardly_shrinks_is_stored_unless_it_is_wanted_compressed() {
    let fixture = Fixture::with_tree();
    // A fiftieth of it is zeros.
    let mut random = packfs_testkit::Random::new(7);
    let bytes: Vec<u8> = (0..50).flat_map(|_| [random.noise(2_560), vec![0; 52]].concat()).collect();
    fixture.write("rootfs/film", &bytes);
    for format in ["squashfs", "erofs"] {
        let plain = |args: &[&str]| {
            let all = [&["pack", "rootfs", "x.img", "--json", "--codec", "zstd:3", "--format", format], args];
            fixture.run(all.concat()).json()["plain_bytes"].as_u64().unwrap()
        };
        assert!(plain(&[]) >= bytes.len() as u64 / 2, "{format}");
        assert!(plain(&["--min-gain", "0"]) < bytes.len() as u64 / 2, "{format}");
    }
}

/// Files that are alike lie apart in the tree: likeness moves them together where a codec gains by
/// it, and nothing where none does.
#[test]
fn what_is_stored_as_it_is_stays_in_the_order_of_the_tree() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("mixed")).unwrap();
    let mut random = Random::new(31);
    let kinds: Vec<Vec<u8>> = (0..6).map(|_| random.noise(1200)).collect();
    for number in 0..48 {
        let bytes = [&kinds[number % 6][..], &random.noise(40)].concat();
        fixture.write(&format!("mixed/{number:02}"), bytes);
    }
    let pack = |codec: &str, order: &str| {
        let args = ["pack", "mixed", "x.sqfs", "-q", "-c", codec, "-b", "4K", "--order", order];
        fixture.run(args).done();
        fixture.bytes("x.sqfs")
    };
    assert!(pack("zstd:3", "similarity").len() < pack("zstd:3", "path").len());
    assert!(pack("none", "similarity") == pack("none", "path"));
}

#[test]
fn a_search_gives_the_same_bytes_with_any_number_of_threads() {
    let fixture = Fixture::with_tree();
    std::fs::copy(std::env::current_exe().unwrap(), fixture.path("rootfs/program")).unwrap();
    let cut = std::fs::File::options().write(true).open(fixture.path("rootfs/program")).unwrap();
    cut.set_len(1_000_001).unwrap();
    for codec in ["xz:1,bcj=auto", "gzip", "zstd:3"] {
        for jobs in ["1", "16"] {
            let image = format!("{jobs}.sqfs");
            let args = ["pack", "rootfs", &image, "-q", "--effort", "max", "--codec", codec, "--jobs", jobs];
            fixture.run(args).done();
        }
        assert!(fixture.bytes("1.sqfs") == fixture.bytes("16.sqfs"), "{codec}");
        fixture.run(["diff", "rootfs", "16.sqfs", "-q"]).done();
    }
}

#[test]
fn short_memory_costs_threads_and_never_changes_the_image() {
    let fixture = Fixture::with_tree();
    for (image, codec) in [("root.sqfs", "xz"), ("root.erofs", "lzma")] {
        let pack =
            |args: &[&str]| fixture.run(["pack", "rootfs", image, "-q", "-c", codec].iter().chain(args));
        pack(&["-j", "8"]).done();
        let free = fixture.bytes(image);
        pack(&["-j", "8", "--memory", "512M"]).done();
        assert!(fixture.bytes(image) == free, "{codec}");
        pack(&["--memory", "4M"]).failed(1, &["within 4 MiB of memory", "hint"]);
        assert!(fixture.bytes(image) == free, "what was there before stays");
    }
}

#[test]
fn erofs_of_tiny_files_gets_compact_metadata_where_its_kernel_reads_them_and_else_a_suggestion() {
    let fixture = Fixture::new();
    for number in 0..3000 {
        let folder = fixture.path(&format!("tree/{}", number / 100));
        std::fs::create_dir_all(&folder).unwrap();
        let record = format!("{{\"id\": {number}, \"label\": \"{:x}\"}}\n", number * 77_777);
        std::fs::write(folder.join(format!("record-{number}.json")), record).unwrap();
    }
    let pack = |image: &str, args: &[&str]| {
        fixture.run([&["pack", "tree", image, "--format", "erofs", "--json"], args].concat()).json()
    };
    let plain = pack("plain", &["--optimize", "read"]);
    let [suggestion] = &plain["suggestions"].as_array().unwrap()[..] else { panic!("{plain}") };
    let advised = suggestion.as_str().unwrap().split(':').next().unwrap();
    assert_eq!(advised, "--optimize read -O kernel=6.18");
    let compact = pack("compact", &advised.split(' ').collect::<Vec<_>>());
    assert_eq!(compact["suggestions"].as_array().unwrap().len(), 0, "{compact}");
    let len = |report: &Value| report["image_size"].as_u64().unwrap();
    assert!(len(&compact) * 2 < len(&plain), "{} of {}", len(&compact), len(&plain));
    fixture.run(["diff", "plain", "compact"]).done();
    if is_root() {
        let mount = Mount::new(&fixture.path("compact"), "erofs").unwrap();
        let compare = Compare { nanos: true, ..Compare::default() };
        snapshot_dir(&fixture.path("tree")).assert_same(&snapshot_dir(&mount.path()), compare, "compact");
    } else {
        skip("mounting needs root");
    }
    // Files of some length have no use for it.
    fixture.write("tree/large", vec![7; 16 << 20]);
    let large = pack("large", &["--optimize", "read", "-O", "kernel=6.18"]);
    assert!(!large["sections"].to_string().contains("compressed metadata"), "{large}");
    assert!(
        pack("small", &["--optimize", "size", "-O", "kernel=6.18"])["sections"]
            .to_string()
            .contains("compressed metadata")
    );
}

#[test]
fn reports_globs_without_matches_once() {
    let fixture = Fixture::with_tree();
    let warnings = |args: &[&str]| {
        let run = fixture.run([&["pack", "rootfs", "-q", "--format"], args].concat()).ended(0);
        std::fs::remove_file(fixture.path("x")).unwrap();
        let lines = run.said();
        lines.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let exclude =
        |globs: &[&'static str]| -> Vec<&str> { globs.iter().flat_map(|glob| ["--exclude", glob]).collect() };
    let list = |globs: &[&'static str]| warnings(&[&["squashfs", "x"][..], &exclude(globs)].concat());
    assert_eq!(list(&["README", "bin"]), Vec::<String>::new());
    assert_eq!(
        list(&["README", "no-such", "/wrong/place", "# comment"]),
        ["warning: globs that match nothing: \"/wrong/place\", \"no-such\""]
    );
    // An exception is a glob, too.
    assert_eq!(list(&["*", "!bin"]).len(), 0);
    assert_eq!(list(&["bin", "!no-such"]).len(), 1);
    assert!(warnings(&["squashfs", "x", "--include", "no-such"])[0].contains("\"no-such\""));
    assert_eq!(
        warnings(&["erofs", "x", "-O", "rule=*.no=none", "-O", "rule=**=lz4"]),
        ["warning: globs of -O rule without effect, as no file matches: \"*.no\""]
    );
}

#[test]
fn unexpected_whiteouts_are_reported_once() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.path("layer/etc")).unwrap();
    for name in ["layer/.wh.gone", "layer/etc/.wh..wh..opq"] {
        fixture.write(name, "");
    }
    let pack = |args: &[&str]| fixture.run([&["pack", "layer", "x.sqfs", "-q"], args].concat());
    let run = pack(&[]);
    assert_eq!((run.code, run.said().lines().count()), (Some(0), 1), "{}", run.stderr);
    assert!(
        run.said().starts_with("warning: 2 names begin with .wh.")
            && run.said().contains("--whiteouts overlayfs")
    );
    std::fs::remove_file(fixture.path("layer/.wh.gone")).unwrap();
    assert!(pack(&[]).said().starts_with("warning: 1 name begins with .wh. and is kept"));
    for spelling in ["keep", "overlayfs", "aufs"] {
        pack(&["--whiteouts", spelling]).done();
    }
}

#[test]
fn an_extension_that_means_no_format_is_refused_before_anything_is_written() {
    let fixture = Fixture::with_tree();
    let run = fixture.run(["pack", "rootfs", "root.hfs", "-q"]);
    run.failed(2, &["cannot choose a format for root.hfs: unknown extension .hfs", "--format", ".erofs"]);
    assert!(!fixture.path("root.hfs").exists());
    fixture.run(["pack", "rootfs", "root.hfs", "-q", "--format", "cramfs", "--lossy"]);
    assert!(fixture.path("root.hfs").exists());
    fixture.run(["pack", "rootfs", "root.erofs-lz4", "-q"]).done();
    fixture.run(["info", "root.erofs-lz4", "--json"]).done();
    assert_eq!(&fixture.bytes("root.erofs-lz4")[1024..1028], [0xe2, 0xe1, 0xf5, 0xe0]);
    // An image made of another keeps its format, whatever it is called.
    fixture.run(["repack", "root.erofs-lz4", "again.old", "-q"]).done();
    assert_eq!(&fixture.bytes("again.old")[1024..1028], [0xe2, 0xe1, 0xf5, 0xe0]);
}

#[test]
fn a_default_that_costs_something_is_told_once() {
    let fixture = Fixture::with_tree();
    let zisofs = "suggestion: --codec none: files are compressed by zisofs";
    let zstd = "suggestion: --codec zstd:3: smaller";
    for (image, args, words) in [
        ("a.iso", &[][..], Some(zisofs)),
        ("b.iso", &["--report"], Some(zisofs)),
        ("c.iso", &["--codec", "none"], None),
        ("d.iso", &["--codec", "gzip"], None),
        ("e.iso", &["-q"], None),
        ("f.erofs", &[], None),
        ("g.erofs", &["--kernel", "6.6"], None),
        ("h.erofs", &["--kernel", "6.12"], Some(zstd)),
        ("i.erofs", &["--kernel", "6.12", "--codec", "lz4hc"], None),
    ] {
        let run = fixture.run([&["pack", "rootfs", image], args].concat());
        let count = |words: &str| run.done().text().matches(words).count();
        for told in [zisofs, zstd] {
            assert_eq!(count(told), usize::from(words == Some(told)), "{image}: {}", run.text());
        }
    }
    let json = fixture.run(["pack", "rootfs", "j.iso", "--json"]).json();
    assert!(json["suggestions"].to_string().contains("zisofs"), "{json}");
}

#[test]
fn squashfs_for_a_kernel_has_what_that_kernel_reads() {
    let fixture = Fixture::with_tree();
    for (codec, kernel, since) in [
        ("lzo", "2.6.35", "2.6.36"),
        ("xz", "2.6.37", "2.6.38"),
        ("lz4hc", "3.18", "3.19"),
        ("zstd:3", "4.13", "4.14"),
    ] {
        let words = format!("needs Linux {since} or newer, this image is for Linux {kernel}");
        let pack =
            |kernel: &str| fixture.run(["pack", "rootfs", "k.sqfs", "--codec", codec, "--kernel", kernel]);
        pack(kernel).failed(2, &[&words, "gzip"]);
        pack(since).done();
        let bytes = fixture.bytes("k.sqfs");
        fixture.run(["pack", "rootfs", "k.sqfs", "--codec", codec]).done();
        assert!(bytes == fixture.bytes("k.sqfs"), "{codec}");
    }
    fixture.run(["pack", "rootfs", "k.sqfs", "--kernel", "2.6.29"]).done();
    fixture.run(["pack", "rootfs", "k.sqfs", "--kernel", "2.6.28"]).failed(2, &["from 2.6.29 on"]);
    fixture.run(["pack", "rootfs", "z.sqfs", "--codec", "zstd"]).done();
    let merge = |kernel: &str| {
        fixture.run([
            "merge",
            "z.sqfs",
            "z.sqfs",
            "-o",
            "m.sqfs",
            "--on-conflict",
            "last",
            "--kernel",
            kernel,
        ])
    };
    merge("4.13").failed(2, &["codec zstd needs Linux 4.14"]);
    merge("4.14").done();
}
