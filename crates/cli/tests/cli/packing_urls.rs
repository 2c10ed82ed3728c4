//! Archives at URLs: packed as they come.

use crate::fixture::{Fixture, assert_same_files};
use packfs_testkit::{RangeServer, Reply};

#[test]
fn an_archive_at_a_url_is_packed_as_it_comes() {
    let fixture = Fixture::with_image();
    fixture.run(["tar", "root.sqfs", "-o", "root.tar"]).done();
    let packed = zstd::encode_all(&fixture.bytes("root.tar")[..], 1).unwrap();
    fixture.write("root.tar.zst", packed);
    for archive in ["root.tar", "root.tar.zst"] {
        for whole in [false, true] {
            let server = RangeServer::with(fixture.bytes(archive), move |request| match request.number {
                // A server that breaks off, with ranges or without.
                2 => Reply::Short(300),
                _ if whole => Reply::Whole,
                _ => Reply::Right,
            });
            let run = fixture.run(["pack", &server.url("/a"), "url.sqfs", "-q"]);
            assert_eq!(run.code, Some(0), "{archive} {whole}: {}", run.stderr);
            fixture.run(["unpack", "url.sqfs", "out", "-q", "--existing", "replace"]).done();
            assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
            std::fs::remove_dir_all(fixture.path("out")).unwrap();
        }
    }
}

#[test]
fn an_archive_at_a_url_that_is_cut_is_no_shorter_tree() {
    let fixture = Fixture::with_image();
    fixture.run(["tar", "root.sqfs", "-o", "root.tar"]).done();
    let server = RangeServer::with(fixture.bytes("root.tar"), |request| match request.number {
        0 | 1 => Reply::Right,
        2 => Reply::Short(2000),
        _ => Reply::Status(404, vec![], String::new()),
    });
    fixture.run(["pack", &server.url("/a.tar"), "url.sqfs", "-q"]).failed(1, &["/a.tar"]);
    assert!(!fixture.path("url.sqfs").exists());
    let missing = RangeServer::with(vec![], |_| Reply::Status(404, vec![], String::new()));
    fixture.run(["pack", &missing.url("/a.tar"), "url.sqfs", "-q"]).failed(1, &["no such object"]);
}
