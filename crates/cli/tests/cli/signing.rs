//! `packfs sign` and `packfs verify`, between each other and with minisign.

use crate::fixture::Fixture;
use packfs_testkit::{Peer, peer};
use std::os::unix::fs::PermissionsExt;

fn run(tool: &Peer, fixture: &Fixture, args: &[&str]) -> (bool, String) {
    let output = tool.command(&[]).args(args).current_dir(fixture.path("")).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// A folder with an image and keys without a password.
fn with_keys() -> Fixture {
    let fixture = Fixture::with_image();
    fixture.run(["sign", "--new-key", "key", "--no-password", "-q"]).done();
    fixture
}

#[test]
fn what_was_signed_is_verified_and_nothing_else_is() {
    let fixture = with_keys();
    let mode = std::fs::metadata(fixture.path("key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fixture.run(["sign", "--new-key", "key", "--no-password"]).failed(1, &["key"]);
    fixture.run(["sign", "root.sqfs", "-s", "key", "--comment", "release 1"]).done();
    let run = fixture.run(["verify", "root.sqfs", "-p", "key.pub"]);
    assert!(run.done().text().ends_with(": release 1\n"), "{}", run.text());
    let public = String::from_utf8(fixture.bytes("key.pub")).unwrap();
    let line = public.lines().nth(1).unwrap();
    let json = fixture.run(["verify", "root.sqfs", "-P", line, "--json", "-o", "copy"]).json();
    assert_eq!((json["verified"].as_bool(), json["comment"].as_str()), (Some(true), Some("release 1")));
    let image = fixture.bytes("root.sqfs");
    assert!(fixture.bytes("copy") == image);
    std::fs::remove_file(fixture.path("copy")).unwrap();

    let names = fixture.names();
    for at in [0, image.len() / 2, image.len() - 1] {
        let mut changed = image.clone();
        changed[at] ^= 1;
        fixture.write("root.sqfs", changed);
        fixture
            .run(["verify", "root.sqfs", "-p", "key.pub", "-o", "copy"])
            .failed(3, &["is not what was signed"]);
    }
    fixture.write("root.sqfs", &image[..image.len() - 1]);
    fixture.run(["verify", "root.sqfs", "-p", "key.pub"]).failed(3, &["is not what was signed"]);
    fixture.write("root.sqfs", &image);
    assert_eq!(fixture.names(), names);

    // Minisign's own comments have tabs between their parts.
    fixture.run(["sign", "root.sqfs", "-s", "key", "--comment", "timestamp:1\tfile:root.sqfs"]).done();
    let text = fixture.run(["verify", "root.sqfs", "-p", "key.pub"]).done().text().to_owned();
    assert!(text.contains("timestamp:1  file:root.sqfs"), "{text}");
    fixture.run(["sign", "root.sqfs", "-s", "key", "--comment", "release 1"]).done();
    // A comment that is not signed, a signature that is none, and one of another key.
    let signature = String::from_utf8(fixture.bytes("root.sqfs.minisig")).unwrap();
    let lines: Vec<&str> = signature.lines().collect();
    let spoilt = [
        signature.replace("release 1", "release 2"),
        lines[..3].join("\n"),
        String::new(),
        signature.replace(lines[3], "AAAA"),
        signature.replace(
            lines[3],
            &format!("{}{}", if lines[3].starts_with('e') { 'f' } else { 'e' }, &lines[3][1..]),
        ),
        signature.replace(lines[1], "RUQ="),
        "\u{e4}\n".repeat(4),
    ];
    for spoilt in spoilt {
        fixture.write("spoilt", &spoilt);
        fixture.run(["verify", "root.sqfs", "-p", "key.pub", "--signature", "spoilt"]).failed(3, &[]);
    }
    fixture.run(["sign", "--new-key", "other", "--no-password", "-q"]).done();
    fixture.run(["verify", "root.sqfs", "-p", "other.pub"]).failed(1, &["was made with key"]);
    fixture.run(["verify", "root.sqfs", "-P", "nonsense"]).failed(2, &["public key"]);
    fixture.run(["sign", "root.sqfs", "-s", "root.sqfs.minisig"]).failed(1, &["secret key"]);
    fixture.run(["sign", "root.sqfs", "-s", "key", "--comment", "two\nlines"]).failed(2, &["one line"]);
}

#[test]
fn minisign_and_packfs_verify_each_other() {
    let Some(minisign) = peer("minisign") else { return };
    let fixture = with_keys();
    fixture.run(["sign", "root.sqfs", "-s", "key", "-q"]).done();
    let theirs = run(&minisign, &fixture, &["-V", "-m", "root.sqfs", "-p", "key.pub"]);
    assert!(theirs.0 && theirs.1.contains("file:root.sqfs"), "{}", theirs.1);
    fixture.write("root.sqfs.minisig", "");
    let theirs = run(&minisign, &fixture, &["-S", "-m", "root.sqfs", "-s", "key", "-t", "theirs"]);
    assert!(theirs.0, "{}", theirs.1);
    let ours = fixture.run(["verify", "root.sqfs", "-p", "key.pub"]);
    assert!(ours.done().text().ends_with(": theirs\n"), "{}", ours.text());
    // The old kind of signature would have to be read into memory as a whole.
    let old = run(&minisign, &fixture, &["-S", "-l", "-m", "root.sqfs", "-s", "key", "-x", "old.minisig"]);
    assert!(old.0, "{}", old.1);
    fixture
        .run(["verify", "root.sqfs", "-p", "key.pub", "--signature", "old.minisig"])
        .failed(4, &["legacy"]);
}

#[test]
fn keys_with_passwords_need_them() {
    let fixture = Fixture::with_image();
    fixture.run(["sign", "--new-key", "key"]).failed(2, &["password"]);
    fixture.write("password", "correct horse\nsecond line\n");
    fixture.write("wrong", "battery staple\n");
    fixture.run(["sign", "--new-key", "key", "--password-file", "password", "-q"]).done();
    fixture.run(["sign", "root.sqfs", "-s", "key"]).failed(2, &["--password-file"]);
    fixture.run(["sign", "root.sqfs", "-s", "key", "--password-file", "wrong"]).failed(1, &["password"]);
    assert!(!fixture.path("root.sqfs.minisig").exists());
    fixture.run(["sign", "root.sqfs", "-s", "key", "--password-file", "password", "-q"]).done();
    fixture.run(["verify", "root.sqfs", "-p", "key.pub", "-q"]).done();
}

#[test]
fn a_key_that_minisign_made_without_a_password_signs() {
    let Some(minisign) = peer("minisign") else { return };
    let fixture = Fixture::with_tree();
    let made = run(&minisign, &fixture, &["-G", "-W", "-p", "their.pub", "-s", "their.key"]);
    assert!(made.0, "{}", made.1);
    fixture.run(["pack", "-q", "rootfs", "signed.sqfs"]).done();
    fixture.run(["sign", "-q", "signed.sqfs", "-s", "their.key"]).done();
    fixture.run(["verify", "-q", "signed.sqfs", "-p", "their.pub"]).done();
    let verified = run(&minisign, &fixture, &["-V", "-q", "-m", "signed.sqfs", "-p", "their.pub"]);
    assert!(verified.0, "{}", verified.1);

    // A digit of the checksum, which is all zeros in such a key.
    let text = std::fs::read_to_string(fixture.path("their.key")).unwrap();
    let at = text.lines().take(1).map(|line| line.len() + 1).sum::<usize>() + 200;
    let mut damaged = text.into_bytes();
    damaged[at] = if damaged[at] == b'B' { b'C' } else { b'B' };
    fixture.write("damaged.key", damaged);
    let refused = fixture.run(["sign", "signed.sqfs", "-s", "damaged.key"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("cannot use the secret key"), "{}", refused.stderr);
}
