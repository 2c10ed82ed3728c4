//! Images read under a root hash: as they are, changed, at a URL, and with a signed root hash.

use crate::fixture::{Fixture, assert_same_files};
use crate::mounting::Place;
use packfs_testkit::{RangeServer, Reply, skip};
use std::path::Path;

/// A folder with an EROFS image, its tree and root hash, and the signature of that.
struct Trusted {
    fixture: Fixture,
    root_hash: String,
}

fn trusted() -> Trusted {
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    fixture.run(["verity", "root.erofs", "--root-hash-file", "root.erofs.roothash"]).done();
    fixture.run(["sign", "--new-key", "key", "--no-password", "-q"]).done();
    fixture.run(["sign", "root.erofs.roothash", "-s", "key", "-q"]).done();
    let root_hash = String::from_utf8(fixture.bytes("root.erofs.roothash")).unwrap();
    Trusted { fixture, root_hash }
}

/// Changes one bit of every block of the image before its tree.
fn change_data(fixture: &Fixture) {
    let mut bytes = fixture.bytes("root.erofs");
    let tree = bytes.windows(8).rposition(|window| window == b"verity\0\0").unwrap();
    bytes[..tree].chunks_mut(4096).for_each(|block| block[1000] ^= 1);
    fixture.write("root.erofs", bytes);
}

#[test]
fn an_image_is_read_under_its_root_hash() {
    let Trusted { fixture, root_hash } = trusted();
    for trust in [["--root-hash", &root_hash], ["--trust", "key.pub"]] {
        let with = |args: &[&str]| fixture.run([args, &trust[..]].concat());
        with(&["unpack", "root.erofs", "out", "-q"]).done();
        assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
        std::fs::remove_dir_all(fixture.path("out")).unwrap();
        with(&["check", "--data", "-q", "root.erofs"]).done();
        let sandboxed = with(&["cat", "--sandbox", "root.erofs", "etc/os-release"]);
        assert!(sandboxed.stdout.starts_with(b"NAME="), "{}", sandboxed.text());
        with(&["pack", "root.erofs", "other.sqfs", "-q"]).done();
        fixture.run(["diff", "other.sqfs", "rootfs", "-q"]).done();
        with(&["pack", "rootfs", "other.sqfs", "-q"]).failed(2, &["a directory, not an image"]);
        with(&["cat", "root.sqfs", "etc/os-release"]).failed(1, &[]);
    }
    fixture.run(["cat", "root.sqfs", "a", "--root-hash", &root_hash]).failed(1, &["no hash tree"]);
    fixture.run(["cat", "root.erofs", "a", "--root-hash", "ab"]).failed(2, &["64 hexadecimal digits"]);
    let long = root_hash.repeat(2);
    fixture.run(["cat", "root.erofs", "a", "--root-hash", &long]).failed(2, &["64 bytes", "32 needed"]);
}

#[test]
fn a_changed_block_is_never_used() {
    let Trusted { fixture, root_hash } = trusted();
    change_data(&fixture);
    for trust in [["--root-hash", &root_hash], ["--trust", "key.pub"]] {
        for args in [&["ls", "root.erofs"][..], &["unpack", "root.erofs", "out"], &["info", "root.erofs"]] {
            let run = fixture.run([args, &trust[..]].concat());
            run.failed(3, &["does not belong to the root hash"]);
        }
    }
    let mut hash = root_hash.into_bytes();
    hash[0] = if hash[0] == b'0' { b'1' } else { b'0' };
    let other = String::from_utf8(hash).unwrap();
    let run = fixture.run(["ls", "root.erofs", "--root-hash", &other]);
    run.failed(3, &["may be that of another image"]);
    // Its signature is no longer valid.
    fixture.write("root.erofs.roothash", other);
    fixture.run(["ls", "root.erofs", "--trust", "key.pub"]).failed(3, &["is not what was signed"]);
    fixture.run(["sign", "--new-key", "another", "--no-password", "-q"]).done();
    fixture.run(["ls", "root.erofs", "--trust", "another.pub"]).failed(1, &["made with key"]);
    fixture.write("root.erofs.roothash", "a".repeat(10_000));
    fixture.run(["ls", "root.erofs", "--trust", "key.pub"]).failed(3, &["at most 4096"]);
    fixture.run(["ls", "oci-layout:x", "--trust", "key.pub"]).failed(2, &["digests"]);
}

#[test]
fn a_server_cannot_change_what_it_serves() {
    let Trusted { fixture, root_hash } = trusted();
    let text = |name: &str| String::from_utf8(fixture.bytes(name)).unwrap();
    let beside = [text("root.erofs.roothash.minisig"), text("root.erofs.roothash")];
    let server = |bytes| {
        let beside = beside.clone();
        RangeServer::with(bytes, move |request| match request.path.rsplit_once('.') {
            Some((_, "minisig")) => Reply::Status(200, Vec::new(), beside[0].clone()),
            Some((_, "roothash")) => Reply::Status(200, Vec::new(), beside[1].clone()),
            _ => Reply::Right,
        })
    };
    let honest = server(fixture.bytes("root.erofs"));
    change_data(&fixture);
    let changed = server(fixture.bytes("root.erofs"));
    for trust in [["--root-hash", &root_hash], ["--trust", "key.pub"]] {
        let cat = |server: &RangeServer| {
            let url = server.url("/root.erofs");
            fixture.run([&["cat", &url, "etc/os-release", "--disk-cache", "0"], &trust[..]].concat())
        };
        cat(&honest).done();
        cat(&changed).failed(3, &["does not belong to the root hash"]);
    }
}

#[test]
fn a_mount_fails_where_a_block_was_changed() {
    if !Path::new("/dev/fuse").exists() {
        return skip("/dev/fuse is missing");
    }
    let Trusted { fixture, root_hash } = trusted();
    let place = Place::new(&fixture, "mnt");
    let mount = ["mount", "root.erofs", "mnt", "--root-hash", &root_hash];
    let run = fixture.run([&mount[..], &["--kernel"]].concat());
    assert!(run.failed(if packfs_testkit::is_root() { 4 } else { 1 }, &["kernel"]).stdout.is_empty());
    fixture.run(mount).done();
    let file = place.path().join("etc/os-release");
    assert!(place.is_mounted() && std::fs::read(&file).is_ok());
    fixture.run(["umount", "mnt"]).done();
    place.wait_until_gone();
    change_data(&fixture);
    fixture.run(mount).failed(3, &["does not belong to the root hash"]);
}
