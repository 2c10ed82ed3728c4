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
    std::fs::write(fixture.path("firmware.bin"), &blob).unwrap();
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
    std::fs::write(fixture.path("nothing"), [0xff; 5000]).unwrap();
    assert_eq!(fixture.run(["info", "--scan", "nothing"]).done().text(), "no images\n");
    fixture.run(["info", "--scan", "--space", "firmware.bin"]).failed(2, &["cannot be used with"]);
}
