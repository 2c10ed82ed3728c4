//! `packfs verity`: trees that veritysetup accepts, digests that fsverity prints, and damage that
//! is found.

use crate::fixture::Fixture;
use packfs_testkit::{Peer, Random, peer};
use std::os::unix::fs::FileExt;

/// Runs a peer's tool in the folder; whether it was content, and what it printed.
fn run(tool: &Peer, fixture: &Fixture, args: &[&str]) -> (bool, String) {
    let output = tool.command(&[]).args(args).current_dir(fixture.path("")).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// So many bytes, the same for each length.
fn noise(len: usize) -> Vec<u8> {
    Random::new(len as u64).noise(len)
}

/// Changes one byte of a file.
fn damage(fixture: &Fixture, name: &str, at: u64) {
    let file = std::fs::File::options().read(true).write(true).open(fixture.path(name)).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn veritysetup_accepts_trees_appended_and_beside() {
    let Some(veritysetup) = peer("veritysetup") else { return };
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    // With one block there is no tree; with 129 of them its root has two below it.
    for (name, len) in [("one", 4096), ("full", 128 << 12), ("more", 129 << 12), ("deep", 16_500 << 12)] {
        fixture.write(name, noise(len));
    }
    let ways: [(&str, &[&str]); 8] = [
        ("root.sqfs", &[]),
        ("root.erofs", &["--algorithm", "sha512"]),
        ("root.sqfs", &["--block-size", "1024"]),
        ("root.erofs", &["--block-size", "4096", "--hash-block-size", "512", "--salt", "-"]),
        ("one", &["--salt", "0123456789abcdef"]),
        ("full", &["--block-size", "512", "--hash-block-size", "4096", "--algorithm", "sha512"]),
        ("more", &["--uuid", "01234567-89ab-cdef-0123-456789abcdef"]),
        ("deep", &[]),
    ];
    for (image, options) in ways {
        let beside = ["verity", image, "--hash-file", "tree", "--root-hash-file", "root.hash"];
        fixture.run([&beside, options].concat()).done();
        let root = String::from_utf8(fixture.bytes("root.hash")).unwrap();
        let accepted = run(&veritysetup, &fixture, &["verify", image, "tree", &root]);
        assert!(accepted.0, "{image} {options:?}: {}", accepted.1);
        let first = fixture.bytes("tree");
        fixture.run([&beside, options, &["-j", "1"]].concat()).done();
        assert!(fixture.bytes("tree") == first, "{image} {options:?}");
        // veritysetup makes the same tree of the same salt.
        let json =
            fixture.run([&["verity", image, "--hash-file", "tree", "--json"], options].concat()).json();
        let text = |key: &str| json[key].as_str().unwrap().to_owned();
        let salt = if text("salt").is_empty() { "-".to_owned() } else { text("salt") };
        let (data, hash) = (json["data_block_size"].to_string(), json["hash_block_size"].to_string());
        let (algorithm, uuid) = (text("algorithm"), text("uuid"));
        let made = run(
            &veritysetup,
            &fixture,
            &[
                "format",
                image,
                "theirs",
                "--salt",
                &salt,
                "--uuid",
                &uuid,
                "--hash",
                &algorithm,
                "--data-block-size",
                &data,
                "--hash-block-size",
                &hash,
            ],
        );
        assert!(made.0 && made.1.contains(&root), "{image} {options:?}: {}", made.1);
        assert!(fixture.bytes("theirs") == first, "{image} {options:?}");
        std::fs::remove_file(fixture.path("theirs")).unwrap();

        std::fs::copy(fixture.path(image), fixture.path("with-tree")).unwrap();
        let appended = fixture.run([&["verity", "with-tree", "--json"], options].concat()).json();
        let root = appended["root_hash"].as_str().unwrap();
        let offset = format!("--hash-offset={}", appended["hash_offset"]);
        let accepted = run(&veritysetup, &fixture, &["verify", "with-tree", "with-tree", root, &offset]);
        assert!(accepted.0, "{image} {options:?}: {}", accepted.1);
        fixture.run(["verity", "--verify", "with-tree", "--root-hash", root]).done();
    }
}

#[test]
fn an_image_with_a_tree_stays_an_image() {
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    for image in ["root.sqfs", "root.erofs"] {
        let before = fixture.bytes(image);
        let digest = fixture.run(["digest", image]).text().to_owned();
        let root = fixture.run(["verity", image, "-q"]);
        assert_eq!(root.done().text().trim().len(), 64);
        assert!(fixture.bytes(image).starts_with(&before));
        assert_eq!(fixture.run(["digest", image]).done().text(), digest);
        let check = fixture.run(["check", "--data", "--json", image]).json();
        let findings = check["findings"].as_array().unwrap();
        assert!(check["sound"] == true && findings.len() == 1, "{check}");
        assert!(findings[0]["fault"].as_str().unwrap().contains("dm-verity"), "{check}");
        fixture.run(["verity", image]).failed(1, &["it has one at"]);
    }
}

#[test]
fn damage_in_data_tree_or_root_hash_is_found() {
    let fixture = Fixture::new();
    fixture.write("image", noise(300 << 12));
    let root = fixture.run(["verity", "image", "-q"]);
    let root = root.done().text().trim();
    let verify = ["verity", "--verify", "image", "--root-hash", root];
    let told = fixture.run(["verity", "--verify", "image"]);
    assert!(told.done().text().contains(root), "{}", told.text());
    fixture.run(verify).done();
    let tree_at = 300 << 12;
    for (at, words) in [
        ((7 << 12) + 5, "1 block of 4096 bytes with other contents, the first at 0x7000"),
        // The root's block, a block of hashes of data, and what lies unused behind the last hash.
        (tree_at + 4096, "the hash tree does not agree with itself"),
        (tree_at + 2 * 4096 + 3, "the hash tree does not agree with itself"),
        (tree_at + 5 * 4096 - 1, "the hash tree does not agree with itself"),
    ] {
        damage(&fixture, "image", at);
        let run = fixture.run(verify);
        assert_eq!(run.code, Some(3), "{at:#x}: {}", run.text());
        assert!(run.text().contains(words), "{at:#x}: {}", run.text());
        let json = fixture.run([&verify[..], &["--json"]].concat());
        assert_eq!(json.code, Some(3));
        damage(&fixture, "image", at);
    }
    let other = root.replace(['0', '1'], "2");
    let run = fixture.run(["verity", "--verify", "image", "--root-hash", &other]);
    assert!(run.code == Some(3) && run.text().contains("the tree has the root hash"), "{}", run.text());
    fixture.run(["verity", "--verify", "image", "--root-hash", "00"]).failed(2, &["root hash"]);
    // A superblock with figures that no tree has.
    let file = std::fs::File::options().write(true).open(fixture.path("image")).unwrap();
    file.write_all_at(&[7], tree_at + 64).unwrap();
    let there = format!("{tree_at}");
    fixture.run(["verity", "--verify", "image", "--hash-offset", &there]).failed(3, &["data blocks of"]);
    fixture.run(verify).failed(1, &["no hash tree"]);
}

#[test]
fn images_that_cannot_have_a_tree_are_refused_and_stay_as_they_are() {
    let fixture = Fixture::new();
    fixture.write("odd", noise(5000));
    fixture.run(["verity", "odd", "--hash-file", "tree"]).failed(2, &["5000 bytes"]);
    fixture.run(["verity", "odd", "--block-size", "1000"]).failed(2, &["1000"]);
    fixture.run(["verity", "odd", "--salt", "123"]).failed(2, &["salt"]);
    fixture.run(["verity", "odd", "--uuid", "123"]).failed(2, &["UUID"]);
    fixture.run(["verity", "odd", "odd"]).failed(2, &["several images"]);
    fixture.run(["verity", "missing"]).failed(1, &["missing"]);
    assert!(fixture.bytes("odd") == noise(5000));
    assert_eq!(fixture.names(), ["odd"]);
    // Appended, the tree fills it up first.
    let root = fixture.run(["verity", "odd", "-q"]);
    fixture.run(["verity", "--verify", "odd", "--root-hash", root.done().text().trim()]).done();
    assert_eq!(fixture.bytes("odd").len(), 8192 + 2 * 4096);
    fixture.write("empty", "");
    fixture.run(["verity", "empty"]).failed(2, &["0 bytes"]);
    assert_eq!(fixture.bytes("empty").len(), 0);
}

#[test]
fn fs_verity_digests_are_those_of_fsverity() {
    let Some(fsverity) = peer("fsverity") else { return };
    let fixture = Fixture::new();
    for (name, len) in [
        ("empty", 0),
        ("byte", 1),
        ("block", 4096),
        ("full", 128 << 12),
        ("more", (128 << 12) + 1),
        ("deep", (16_384 << 12) + 77),
    ] {
        fixture.write(name, noise(len));
    }
    let names = ["empty", "byte", "block", "full", "more", "deep"];
    for (ours, theirs) in [
        (&[][..], &[][..]),
        (&["--algorithm", "sha512"], &["--hash-alg=sha512"]),
        (&["--block-size", "1K", "--salt", "0011223344"], &["--block-size=1024", "--salt=0011223344"]),
    ] {
        let expected = run(&fsverity, &fixture, &[&["digest"], theirs, &names].concat());
        assert!(expected.0, "{}", expected.1);
        assert_eq!(
            fixture.run([&["verity", "--fs"], ours, &names].concat()).done().text(),
            expected.1,
            "{ours:?}"
        );
    }
    fixture.run(["verity", "--fs", "--block-size", "512", "byte"]).failed(2, &["512"]);
}
