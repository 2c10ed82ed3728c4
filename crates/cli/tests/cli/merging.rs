//! `packfs merge`: options, output, and exit codes.

use crate::fixture::Fixture;

/// Two images with `etc/hosts` in both.
fn two_images(fixture: &Fixture) {
    for (image, text) in [("a.sqfs", "a"), ("b.sqfs", "b")] {
        let (hosts, own) = (format!("file /etc/hosts data={text}"), format!("file /{text} data={text}"));
        fixture
            .run(["pack", "rootfs", image, "-q", "--exclude", "**", "--add", &hosts, "--add", &own])
            .done();
    }
}

#[test]
fn images_are_laid_over_each_other_or_mounted() {
    let fixture = Fixture::with_tree();
    two_images(&fixture);
    let merged = fixture.run(["merge", "a.sqfs", "--at", "opt/b=b.sqfs", "-o", "m.sqfs"]);
    assert!(merged.done().text().contains("of 2 images"), "{}", merged.text());
    assert_eq!(fixture.run(["cat", "m.sqfs", "etc/hosts"]).text(), "a");
    assert_eq!(fixture.run(["cat", "m.sqfs", "opt/b/etc/hosts"]).text(), "b");
    fixture.run(["merge", "a.sqfs", "b.sqfs", "-o", "m.sqfs", "--on-conflict", "last", "-q"]).done();
    assert_eq!(fixture.run(["cat", "m.sqfs", "etc/hosts"]).text(), "b");
    fixture.run(["check", "--data", "-q", "m.sqfs"]).done();
}

#[test]
fn exit_codes_tell_conflicts_from_wrong_and_unsupported_images() {
    let fixture = Fixture::with_tree();
    two_images(&fixture);
    let before = fixture.names();
    fixture
        .run(["merge", "a.sqfs", "b.sqfs", "-o", "m.sqfs"])
        .failed(1, &["\"etc/hosts\"", "a.sqfs", "b.sqfs"]);
    fixture.run(["merge", "--at", "b.sqfs", "-o", "m.sqfs"]).failed(2, &["PREFIX=IMAGE"]);
    fixture.run(["pack", "rootfs", "c.sqfs", "-q", "--codec", "zstd"]).done();
    fixture.run(["merge", "a.sqfs", "c.sqfs", "-o", "m.sqfs"]).failed(2, &["codec", "packfs repack"]);
    fixture.run(["pack", "rootfs", "d.iso", "-q"]).done();
    fixture.run(["merge", "d.iso", "-o", "m.sqfs"]).failed(4, &["iso9660"]);
    let bytes = std::fs::read(fixture.path("c.sqfs")).unwrap();
    std::fs::write(fixture.path("short.sqfs"), &bytes[..bytes.len() / 2]).unwrap();
    fixture.run(["merge", "short.sqfs", "-o", "m.sqfs"]).failed(3, &["short.sqfs"]);
    let mut after = fixture.names();
    after.retain(|name| !["c.sqfs", "d.iso", "short.sqfs"].contains(&&**name));
    assert_eq!(after, before);
}
