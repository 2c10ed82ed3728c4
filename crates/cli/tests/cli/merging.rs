//! `packfs merge`: options, output, and exit codes.

use crate::fixture::Fixture;
use std::process::Command;

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
    fixture.write("short.sqfs", &bytes[..bytes.len() / 2]);
    fixture.run(["merge", "short.sqfs", "-o", "m.sqfs"]).failed(3, &["short.sqfs"]);
    let mut after = fixture.names();
    after.retain(|name| !["c.sqfs", "d.iso", "short.sqfs"].contains(&&**name));
    assert_eq!(after, before);
}

#[test]
fn more_images_than_open_files_need_a_higher_limit() {
    let fixture = Fixture::with_tree();
    two_images(&fixture);
    let merge = |limits: &str| {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{limits}; exec \"$0\" \"$@\"")).arg(env!("CARGO_BIN_EXE_packfs"));
        shell.args(["merge", "-o", "many.sqfs"]);
        for index in 0..100 {
            shell.arg("--at").arg(format!("{index}=a.sqfs"));
        }
        shell.current_dir(fixture.path(".")).output().unwrap()
    };
    let output = merge("ulimit -Sn 50");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fixture.run(["cat", "many.sqfs", "99/etc/hosts"]).text(), "a");
    let output = merge("ulimit -n 50");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("ulimit -Hn"), "{said}");
}

#[test]
fn the_named_kernel_has_to_read_the_images() {
    let fixture = Fixture::with_tree();
    two_images(&fixture);
    fixture.run(["merge", "a.sqfs", "-o", "m.sqfs", "--kernel", "6.18"]).done();
    fixture.run(["merge", "a.sqfs", "-o", "m", "--kernel", "2.6.28"]).failed(2, &["kernel=2.6.28"]);
    fixture.run(["pack", "rootfs", "a.erofs", "-q"]).done();
    fixture
        .run(["merge", "a.erofs", "-o", "m", "--kernel", "5.15"])
        .failed(2, &["a.erofs", "needs Linux 6.1"]);
    fixture.run(["merge", "a.erofs", "-o", "m", "--kernel", "old"]).failed(2, &["kernel=old"]);
    fixture.run(["merge", "a.erofs", "-o", "m", "--kernel", "6.18", "-q"]).done();
    fixture.run(["check", "--data", "-q", "m"]).done();
}
