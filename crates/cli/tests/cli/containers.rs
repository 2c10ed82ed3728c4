//! Images within images, and images anywhere.

use crate::fixture::{Fixture, assert_same_files};

#[test]
fn what_is_wrapped_opens_at_once_and_from_outside() {
    let fixture = Fixture::with_image();
    fixture.run(["pack", "root.sqfs", "root.cloop", "--block-size", "4K", "-q"]).done();
    let inside = fixture.run(["ls", "-R", "root.sqfs"]);
    assert_eq!(fixture.run(["ls", "-R", "root.cloop"]).done().text(), inside.done().text());
    assert_eq!(fixture.run(["ls", "--outer", "root.cloop"]).done().text(), "disk.img\n");
    fixture.run(["check", "--data", "root.cloop", "-q"]).done();
    fixture.run(["unpack", "--outer", "root.cloop", "disk", "-q"]).done();
    assert!(fixture.bytes("disk/disk.img") == fixture.bytes("root.sqfs"));
    let info = fixture.run(["info", "--json", "root.cloop"]).json();
    assert_eq!(info["format"], "squashfs");
    assert_eq!(info["within"][0]["format"], "cloop");
    assert_eq!(fixture.run(["info", "--json", "--outer", "root.cloop"]).json()["facts"]["version"], "2.0");
}

#[test]
fn a_tree_is_wrapped_as_an_image_of_the_format_that_is_named() {
    let fixture = Fixture::with_tree();
    fixture.run(["pack", "rootfs", "root.cloop", "-O", "inner=erofs", "--codec", "xz", "-q"]).done();
    assert_eq!(fixture.run(["info", "--json", "root.cloop"]).json()["format"], "erofs");
    fixture.run(["unpack", "root.cloop", "out", "-q"]).done();
    assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
    fixture
        .run(["pack", "rootfs", "x.cloop", "-O", "version=2.0", "--codec", "xz"])
        .failed(2, &["only gzip"]);
    assert_eq!(fixture.names(), ["out", "root.cloop", "rootfs"]);
}

#[test]
fn a_scan_lists_images_and_where_they_are() {
    let fixture = Fixture::with_image();
    let image = fixture.bytes("root.sqfs");
    let blob = [&vec![0xff; 0x1_2345][..], &image, &[0xff; 999], &image].concat();
    fixture.write("firmware.bin", &blob);
    let second = 0x1_2345 + image.len() + 999;
    let json = fixture.run(["info", "--scan", "--json", "firmware.bin"]).json();
    assert_eq!(json["size"], blob.len());
    let found = json["found"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{json}");
    assert_eq!((&found[0]["offset"], &found[1]["offset"]), (&0x1_2345.into(), &second.into()));
    assert_eq!(found[0]["size"], image.len());
    assert_eq!((&found[0]["format"], &found[0]["version"]), (&"squashfs".into(), &"4.0".into()));
    let text = fixture.run(["info", "--scan", "firmware.bin"]);
    let lines: Vec<&str> = text.done().text().lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].contains("0x12345") && lines[1].ends_with("squashfs 4.0"), "{lines:?}");
    // An offset that was found is one that other verbs take, and so does the scan.
    let listed = fixture.run(["ls", "--offset", "0x12345", "firmware.bin"]);
    assert_eq!(listed.done().text(), fixture.run(["ls", "root.sqfs"]).text());
    let rest = fixture.run(["info", "--scan", "--json", "--offset", "0x12346", "firmware.bin"]).json();
    assert_eq!(rest["found"][0]["offset"], second);
    fixture.write("nothing", [0xff; 5000]);
    assert_eq!(fixture.run(["info", "--scan", "nothing"]).done().text(), "no images\n");
    fixture.run(["info", "--scan", "--space", "firmware.bin"]).failed(2, &["cannot be used with"]);
}

/// A disk with an MBR and these partitions, from sector 8 on.
fn disk(partitions: &[&[u8]]) -> Vec<u8> {
    let mut disk = vec![0; 4096];
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    for (row, bytes) in partitions.iter().enumerate() {
        let first = u32::try_from(disk.len() / 512).unwrap();
        let count = u32::try_from(bytes.len().div_ceil(512)).unwrap();
        let entry = &mut disk[446 + 16 * row..][..16];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry[12..].copy_from_slice(&count.to_le_bytes());
        disk.extend_from_slice(bytes);
        disk.resize(disk.len().next_multiple_of(512), 0);
    }
    disk
}

#[test]
fn reports_the_partition_shown_of_several() {
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs/usr", "usr.erofs", "-q", "--lossy"]);
    let (root, usr) = (fixture.bytes("root.sqfs"), fixture.bytes("usr.erofs"));
    let junk = vec![0x5a; 9000];
    fixture.write("one", disk(&[&root]));
    fixture.run(["ls", "one"]).done();
    fixture.write("boot", disk(&[&junk, &root, &junk]));
    let listed = fixture.run(["ls", "root.sqfs"]).done().text().to_owned();
    let told = |run: &crate::fixture::Run, words: &[&str]| {
        assert_eq!(run.stderr.matches("warning: ").count(), 1, "{}", run.stderr);
        for word in words {
            assert!(run.stderr.contains(word), "no {word:?} in: {}", run.stderr);
        }
    };
    let shown = ["p1 (unknown), p2 (squashfs), p3 (unknown)", "p2 is shown", "--part NAME"];
    for args in [
        &["ls", "boot"][..],
        &["info", "--json", "boot"],
        &["stat", "boot", "etc"],
        &["cat", "boot", "etc/os-release"],
        &["check", "boot", "-q"],
        &["unpack", "boot", "out", "-q"],
        &["pack", "boot", "again.sqfs", "-q"],
        &["digest", "boot", "-q"],
        &["diff", "boot", "root.sqfs", "-q"],
    ] {
        let run = fixture.run(args);
        assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
        told(&run, &shown);
    }
    assert_eq!(fixture.run(["ls", "boot", "--part", "p2"]).done().text(), listed);
    assert_eq!(fixture.run(["ls", "boot", "--outer"]).done().text(), "p1\np2\np3\n");
    fixture.run(["pack", "boot", "again.sqfs", "-q", "--part", "2"]).done();
    fixture.run(["diff", "boot", "boot", "-q", "--part-a", "p2", "--part-b", "2"]).done();

    fixture.write("both", disk(&[&root, &usr]));
    let run = fixture.run(["ls", "both"]);
    told(&run, &["p1 (squashfs), p2 (erofs)", "none is chosen", "--part NAME"]);
    assert_eq!(run.text(), "p1\np2\n");
    assert_eq!(fixture.run(["ls", "both", "--part", "p1"]).done().text(), listed);
    fixture.write("junk", disk(&[&junk, &junk]));
    assert_eq!(fixture.run(["ls", "junk"]).done().text(), "p1\np2\n");
}

#[test]
fn a_disk_cut_short_gives_the_partitions_that_are_there() {
    let fixture = Fixture::with_image();
    let root = fixture.bytes("root.sqfs");
    let whole = disk(&[&root, &root]);
    let second = (4096 + root.len()).next_multiple_of(512);
    // The second partition begins after the end of the file, or ends there.
    for cut in [second - 512, second + 512] {
        fixture.write("cut", &whole[..cut]);
        let run = fixture.run(["ls", "cut", "--part", "p1"]);
        run.warned(&["partition 2: ends at"]);
        assert_eq!(run.text(), fixture.run(["ls", "root.sqfs"]).text());
        let run = fixture.run(["check", "cut", "--part", "p1"]).ended(3);
        assert!(run.text().contains("partition 2: ends at") && run.text().contains("not sound"));
        fixture.run(["cat", "cut", "p2", "--outer"]).failed(3, &["partition 2: ends at"]);
    }
    // A partition that a damaged table has no more is damage, not a wrong option.
    let mut odd = whole.clone();
    odd[446 + 16 + 12..446 + 32].fill(0);
    fixture.write("odd", &odd);
    fixture.run(["ls", "odd", "--part", "p2"]).failed(3, &["partition 2: type 0x83 without sectors"]);
    fixture.run(["ls", "odd", "--part", "p3"]).failed(3, &["no image \"p3\""]);
    fixture.write("whole", &whole);
    fixture.run(["ls", "whole", "--part", "p3"]).failed(2, &["no such image"]);
    fixture.run(["ls", "whole", "--partition-table", "gpt"]).failed(3, &["GPT header at 0x200"]);
    fixture.run(["ls", "whole", "--partition-table", "mbr", "--part", "p1"]).done();
    fixture.run(["ls", "root.sqfs", "--partition-table", "apm"]).failed(2, &["use mbr or gpt"]);
}

#[test]
fn diff_takes_an_offset_for_each_of_its_sides() {
    let fixture = Fixture::with_image();
    let image = fixture.bytes("root.sqfs");
    fixture.write("a", [&[0xff; 512][..], &image].concat());
    fixture.write("b", [&[0xff; 4096][..], &image].concat());
    fixture.run(["diff", "a", "b", "--offset-a", "512", "--offset-b", "4K", "-q"]).done();
    fixture.run(["diff", "a", "rootfs", "--offset", "0x200", "-q"]).done();
    fixture.run(["diff", "rootfs", "b", "--offset-b", "4096", "-q"]).done();
    fixture.run(["diff", "a", "b", "--offset-a", "512", "-q"]).failed(4, &["\"b\""]);
    fixture.run(["diff", "rootfs", "b", "--offset-a", "1", "--offset-b", "4K"]).failed(2, &["offset"]);
}

const BRIDGE: &[u8] = include_bytes!("../../../../testdata/legacy/udf-bridge.iso.zst");

#[test]
fn a_disc_of_two_formats_opens_as_udf_and_check_names_the_other() {
    let fixture = Fixture::new();
    fixture.write("win.iso", zstd::decode_all(BRIDGE).unwrap());
    let all = "README.TXT\nsetup.exe\nsources\n";
    assert_eq!(fixture.run(["ls", "win.iso"]).done().text(), all);
    let stub = fixture.run(["ls", "--part", "iso9660", "win.iso"]);
    assert_eq!((stub.code, stub.text()), (Some(0), "README.TXT\n"));
    assert!(stub.stderr.contains("the udf filesystem of the same image may hold other files"));
    for (part, other) in [("udf", "iso9660"), ("iso9660", "udf")] {
        let run = fixture.run(["check", "--part", part, "win.iso"]);
        let said = format!("{}{}", run.text(), run.stderr);
        assert!(said.contains(&format!("not checked: the {other} filesystem")), "{said}");
        assert!(!said.contains("sound"), "{said}");
        let report = fixture.run(["check", "--json", "--part", part, "win.iso"]);
        assert!(report.text().contains("\"sound\": false"), "{}", report.text());
    }
}
