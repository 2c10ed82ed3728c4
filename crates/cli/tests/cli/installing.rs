//! `integration/install/install.sh`, with a release of a program that is a script.

use crate::fixture::{Fixture, Run};
use crate::serve::Serving;
use packfs_testkit::peer;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integration/install/install.sh");

/// Programs that check signatures.
const CHECKERS: [&str; 2] = ["minisign", "openssl"];

/// A release of version 0.9.0 in the folder `release`, signed with the key in `key`, and folders of
/// programs: `tools` of busybox alone, and for each checker one that has it as well.
fn release() -> Option<Fixture> {
    let busybox = peer("busybox")?;
    let checkers = [peer("minisign")?, peer("openssl")?];
    let fixture = Fixture::new();
    for (folder, checker) in [("tools", None), ("minisign", Some(0)), ("openssl", Some(1))] {
        let folder = fixture.path(folder);
        std::fs::create_dir(&folder).unwrap();
        busybox.run(&[&"--install", &"-s", &folder]);
        // Some have an applet of this name.
        CHECKERS.iter().for_each(|name| drop(std::fs::remove_file(folder.join(name))));
        if let Some(checker) = checker {
            symlink(checkers[checker].command(&[]).get_program(), folder.join(CHECKERS[checker])).unwrap();
        }
    }
    add_version(&fixture, "0.9.0");
    sign(&fixture);
    Some(fixture)
}

fn add_version(fixture: &Fixture, version: &str) {
    let name = name_of(version);
    let program = format!("{name}/bin/packfs");
    fixture.write(&program, format!("#!/bin/sh\necho packfs {version}\n"));
    std::fs::set_permissions(fixture.path(&program), Permissions::from_mode(0o755)).unwrap();
    shell(fixture, &format!("mkdir -p release && tar -cf - {name} | gzip > release/{name}.tar.gz"));
}

fn sign(fixture: &Fixture) {
    shell(fixture, "cd release && sha256sum packfs* > SHA256SUMS");
    if !fixture.path("key").exists() {
        fixture.run(["sign", "--new-key", "key", "--no-password", "-q"]).done();
    }
    fixture.run(["sign", "release/SHA256SUMS", "-s", "key", "-q"]).done();
}

fn name_of(version: &str) -> String {
    format!("packfs-{version}-{}-unknown-linux-musl", std::env::consts::ARCH)
}

fn shell(fixture: &Fixture, line: &str) {
    assert!(Command::new("sh").args(["-ec", line]).current_dir(fixture.path("")).status().unwrap().success());
}

/// Runs the script by busybox's shell with the programs of a folder.
fn install(fixture: &Fixture, tools: &str, args: &[&str]) -> Run {
    let tools = fixture.path(tools);
    let mut ash = Command::new(tools.join("ash"));
    ash.arg(SCRIPT).args(args).current_dir(fixture.path("")).env("PATH", &tools);
    Run::of(ash.env("HOME", fixture.path("home")).output().unwrap())
}

const ARGS: [&str; 4] = ["--from", "release", "--key", "key.pub"];

fn installed(program: &Path) -> String {
    String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
}

#[test]
fn installs_the_only_or_a_named_version() {
    let Some(fixture) = release() else { return };
    for checker in CHECKERS {
        let run = install(&fixture, checker, &ARGS);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{checker}");
        assert!(run.text().starts_with("installed packfs 0.9.0 as "), "{}", run.text());
        let program = fixture.path("home/.local/bin/packfs");
        assert_eq!(installed(&program), "packfs 0.9.0\n");
        std::fs::remove_file(program).unwrap();
    }
    add_version(&fixture, "0.10.0");
    sign(&fixture);
    install(&fixture, "minisign", &ARGS).failed(1, &["has no packfs-0.10.0\n0.9.0-"]);
    let to = [&ARGS[..], &["--to", "bin", "--version", "v0.10.0"]].concat();
    assert_eq!(install(&fixture, "minisign", &to).code, Some(0));
    assert_eq!(installed(&fixture.path("bin/packfs")), "packfs 0.10.0\n");
    let missing = [&ARGS[..], &["--version", "1"]].concat();
    install(&fixture, "minisign", &missing).failed(1, &["has no", "packfs-1-"]);
}

#[test]
fn installs_from_a_server() {
    let Some(fixture) = release() else { return };
    fixture.run(["pack", "release", "release.sqfs", "-q"]).done();
    let serving = Serving::start(&fixture, &["release.sqfs"]);
    let url = format!("http://{}/", serving.address);
    let run = install(&fixture, "openssl", &["--from", &url, "--key", "key.pub", "--to", "bin"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let missing = install(&fixture, "openssl", &["--from", &format!("{url}none"), "--key", "key.pub"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("cannot read http://"), "{}", missing.stderr);
    assert_eq!(serving.stop().0, Some(0));
}

#[test]
fn refuses_a_flipped_bit_and_leaves_the_installed_program() {
    let Some(fixture) = release() else { return };
    fixture.write("home/.local/bin/packfs", "old");
    let archive = format!("release/{}.tar.gz", name_of("0.9.0"));
    // In the signature: of the file, the comment, and of both.
    let signature = "release/SHA256SUMS.minisig";
    let places = [("release/SHA256SUMS", 70), (signature, 70), (signature, 170), (signature, 240)];
    for checker in CHECKERS {
        for (file, at) in [&places[..], &[(archive.as_str(), 100)]].concat() {
            let whole = fixture.bytes(file);
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fixture.write(file, changed);
            let run = install(&fixture, checker, &ARGS);
            let reason = if file == archive { "is damaged" } else { "is not what was signed" };
            assert_eq!(run.code, Some(1), "{checker}: {file} {at}: {}", run.stderr);
            assert!(run.stderr.contains(reason), "{checker}: {file} {at}: {}", run.stderr);
            fixture.write(file, whole);
        }
        let (key, public) = (format!("{checker}.key"), format!("{checker}.key.pub"));
        fixture.run(["sign", "--new-key", &key, "--no-password", "-q"]).done();
        install(&fixture, checker, &["--from", "release", "--key", &public])
            .failed(1, &["is not what was signed with key RW"]);
    }
    let left: Vec<_> = std::fs::read_dir(fixture.path("home/.local/bin")).unwrap().collect();
    assert_eq!((left.len(), fixture.bytes("home/.local/bin/packfs")), (1, b"old".to_vec()));
}

#[test]
fn refuses_to_install_unsigned_programs_unless_told_to() {
    let Some(fixture) = release() else { return };
    install(&fixture, "tools", &ARGS).failed(1, &["neither minisign nor OpenSSL 3", "--no-signature"]);
    install(&fixture, "minisign", &["--from", "release"]).failed(1, &["no public key"]);
    install(&fixture, "minisign", &["--key", "key.pub"]).failed(1, &["names no repository"]);
    assert!(!fixture.path("home").exists());
    let unsigned = ["--from", "release", "--no-signature"];
    assert_eq!(install(&fixture, "tools", &unsigned).code, Some(0));
    let archive = format!("release/{}.tar.gz", name_of("0.9.0"));
    fixture.write(&archive, [fixture.bytes(&archive), vec![0]].concat());
    install(&fixture, "tools", &unsigned).failed(1, &["is damaged"]);
}
