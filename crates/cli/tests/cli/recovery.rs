//! `packfs protect` and `packfs repair`: what is lost comes back byte for byte, or it is said that
//! it does not.

use crate::fixture::Fixture;
use packfs_testkit::Random;
use std::os::unix::fs::{FileExt, PermissionsExt};

fn with_noise(len: usize) -> (Fixture, Vec<u8>) {
    let fixture = Fixture::new();
    let bytes = Random::new(5).noise(len);
    fixture.write("image", &bytes);
    (fixture, bytes)
}

fn overwrite(fixture: &Fixture, name: &str, at: u64, len: usize) {
    let file = std::fs::File::options().write(true).open(fixture.path(name)).unwrap();
    file.write_all_at(&vec![0x55; len], at).unwrap();
}

#[test]
fn repairs_up_to_the_requested_loss_and_refuses_more() {
    let (fixture, bytes) = with_noise(100 * 4096 + 77);
    let told = fixture.run(["protect", "image", "--percent", "10"]);
    assert!(told.done().text().contains("repairs up to 11 of 101 blocks of 4.0 KiB"), "{}", told.text());
    fixture.run(["repair", "image", "--dry-run"]).done();
    // One burst, and the last block, which is short.
    overwrite(&fixture, "image", 7 * 4096 + 5, 9 * 4096);
    overwrite(&fixture, "image", 100 * 4096 + 76, 1);
    let damaged = fixture.bytes("image");
    let look = fixture.run(["repair", "image", "-n"]);
    assert_eq!(look.code, Some(3));
    assert_eq!(look.text(), "lost: 11 blocks of 101 of 4.0 KiB; up to 11 can be repaired\n");
    assert!(fixture.bytes("image") == damaged);
    fixture.run(["repair", "image", "-o", "repaired", "-q"]).done();
    assert!(fixture.bytes("repaired") == bytes && fixture.bytes("image") == damaged);
    std::fs::copy(fixture.path("image"), fixture.path("other")).unwrap();
    fixture.run(["repair", "other", "--recovery", "image.rec", "--in-place"]).done();
    assert!(fixture.bytes("other") == bytes);
    std::fs::set_permissions(fixture.path("image"), PermissionsExt::from_mode(0o640)).unwrap();
    let told = fixture.run(["repair", "image"]);
    assert_eq!(told.done().text(), "repaired: 11 blocks of 101 of 4.0 KiB\n");
    assert!(fixture.bytes("image") == bytes);
    let mode = std::fs::metadata(fixture.path("image")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(fixture.run(["repair", "image"]).done().text(), "intact: nothing is lost\n");

    overwrite(&fixture, "image", 4096 * 20, 12 * 4096);
    let damaged = fixture.bytes("image");
    for way in
        [&["repair", "image"][..], &["repair", "image", "--in-place"], &["repair", "image", "-o", "new"]]
    {
        fixture.run(way).failed(3, &["12 of 101 blocks", "only 11"]);
        assert!(fixture.bytes("image") == damaged);
    }
    assert_eq!(fixture.names(), ["image", "image.rec", "other", "repaired"]);
}

#[test]
fn repairs_truncated_and_grown_images() {
    let (fixture, bytes) = with_noise(50 * 4096);
    fixture.run(["protect", "image", "-p", "20", "-o", "rec", "-q"]).done();
    let file = std::fs::File::options().write(true).open(fixture.path("image")).unwrap();
    file.set_len(41 * 4096 + 1).unwrap();
    fixture.run(["repair", "image", "-r", "rec", "--in-place", "-q"]).done();
    assert!(fixture.bytes("image") == bytes);
    // What was appended later is not protected, and stays.
    let root = fixture.run(["verity", "image", "-q"]);
    let with_tree = fixture.bytes("image");
    overwrite(&fixture, "image", 0, 4096);
    let run = fixture.run(["repair", "image", "-r", "rec"]);
    assert!(run.done().text().contains("after the protected bytes are unchanged"), "{}", run.text());
    assert!(fixture.bytes("image") == with_tree);
    fixture.run(["verity", "--verify", "image", "--root-hash", root.text().trim()]).done();
}

#[test]
fn check_lists_undamaged_files_and_the_repair_command() {
    let fixture = Fixture::with_image();
    let whole = fixture.run(["check", "--repair-hints", "root.sqfs"]);
    assert!(whole.done().text().contains("sound"), "{}", whole.text());
    fixture.run(["protect", "root.sqfs", "-q", "-p", "30"]).done();
    // The superblock is 96 bytes, data begins behind it: some file cannot be read any more.
    let extents = fixture.run(["stat", "root.sqfs", "usr/bin/tool", "--json"]).json();
    assert!(extents[0]["stored_bytes"].as_u64().unwrap() > 0);
    overwrite(&fixture, "root.sqfs", 200, 64);
    let run = fixture.run(["check", "--repair-hints", "root.sqfs"]);
    assert_eq!(run.code, Some(3));
    for words in ["can be read", "packfs unpack", "packfs repair"] {
        assert!(run.text().contains(words), "no {words:?} in: {}", run.text());
    }
    let json = fixture.run(["check", "--repair-hints", "root.sqfs", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let damaged = json["damaged_paths"].as_array().unwrap();
    assert!(!damaged.is_empty() && json["damaged_files"].as_u64() == Some(damaged.len() as u64), "{json}");
    assert_eq!(json["recovery"]["repairable"], true);
    fixture.run(["repair", "root.sqfs", "-q"]).done();
    fixture.run(["check", "--data", "root.sqfs", "-q"]).done();
    overwrite(&fixture, "root.sqfs.rec", 0, 1 << 20);
    overwrite(&fixture, "root.sqfs", 200, 64);
    let run = fixture.run(["check", "--repair-hints", "root.sqfs"]);
    assert!(run.code == Some(3) && run.text().contains("no page of an index"), "{}", run.text());
}

#[test]
fn refuses_input_that_cannot_be_protected_or_repaired() {
    let (fixture, _) = with_noise(5000);
    fixture.run(["repair", "image"]).failed(1, &["image.rec"]);
    fixture.run(["protect", "missing"]).failed(1, &["missing"]);
    assert_eq!(fixture.run(["protect", "image", "--percent", "0"]).code, Some(2));
    fixture.run(["repair", "image", "--recovery", "image"]).failed(3, &["no page of an index"]);
    fixture.write("empty", "");
    fixture.run(["protect", "empty"]).failed(2, &["0 bytes"]);
    assert_eq!(fixture.names(), ["empty", "image"]);
}
