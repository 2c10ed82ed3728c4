//! Verbs over images at URLs, and the cache.

use crate::fixture::{Fixture, Run, assert_same_files};
use crate::mounting::Place;
use packfs_testkit::{Random, RangeServer, Reply, skip};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn served(fixture: &Fixture) -> RangeServer {
    RangeServer::new(fixture.bytes("root.sqfs"))
}

#[test]
fn every_verb_reads_a_url_as_it_reads_a_file() {
    let fixture = Fixture::with_image();
    let server = served(&fixture);
    let url = server.url("/root.sqfs");
    let pairs: [&[&str]; 9] = [
        &["ls", "-lR", "IMAGE"],
        &["stat", "IMAGE", "etc/os-release"],
        &["cat", "IMAGE", "usr/bin/tool"],
        &["tar", "IMAGE"],
        &["info", "IMAGE"],
        &["info", "--space", "IMAGE"],
        &["info", "--scan", "IMAGE"],
        &["check", "--data", "-q", "IMAGE"],
        &["digest", "IMAGE", "--json"],
    ];
    for args in pairs {
        let with =
            |image: &str| fixture.run(args.iter().map(|&arg| if arg == "IMAGE" { image } else { arg }));
        let (remote, local) = (with(&url), with("root.sqfs"));
        remote.done();
        let without_name = |run: &Run| run.stdout.clone();
        let text = |run: &Run| String::from_utf8_lossy(&without_name(run)).replace(&url, "root.sqfs");
        assert!(text(&remote) == text(&local), "{args:?}: {}\n{}", text(&remote), text(&local));
    }
    fixture.run(["unpack", &url, "out", "-q"]).done();
    assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
    fixture.run(["diff", &url, "rootfs", "-q"]).done();
    fixture.run(["pack", &url, "other.erofs", "-q"]).done();
    fixture.run(["diff", "other.erofs", &url, "-q"]).done();
}

#[test]
fn secrets_of_a_url_are_not_printed() {
    let fixture = Fixture::with_image();
    let server = served(&fixture);
    let url = server.url_as("user:secret", "/root.sqfs?signature=secret");
    for args in [
        ["info", &url, "--json"],
        ["info", &url, "--compression"],
        ["digest", &url, "--json"],
        ["digest", &url, "-q"],
        ["info", &url, "--scan"],
    ] {
        let run = fixture.run(args);
        run.done();
        assert!(!run.text().contains("secret"), "{}", run.text());
    }
    let run = fixture.run(["cat", &url, "nothing"]);
    assert!(!run.failed(1, &["nothing"]).stderr.contains("secret"));
    let list = fixture.run(["cache", "ls"]);
    assert!(!list.text().contains("secret") && list.text().contains("/root.sqfs?signature=..."));
}

#[test]
fn the_cache_is_listed_verified_and_removed() {
    let fixture = Fixture::with_image();
    let server = served(&fixture);
    let url = server.url("/root.sqfs");
    assert_eq!(fixture.run(["cache", "ls"]).text(), "nothing is cached\n");
    fixture.run(["cat", &url, "etc/os-release"]).done();
    let list = fixture.run(["cache", "ls", "--json"]).json();
    assert_eq!((list[0]["url"].as_str(), list.as_array().unwrap().len()), (Some(&*url), 1));
    assert_eq!(fixture.run(["cache", "verify", "--json"]).json()[0]["bad_blocks"], 0);
    drop(server);
    let offline = fixture.run(["cat", "--offline", &url, "etc/os-release"]);
    assert_eq!(offline.done().text(), "NAME=example\n");
    fixture.run(["cache", "rm", "http://host/other"]).failed(1, &["not in the cache", "packfs cache ls"]);
    fixture.run(["cache", "rm", &url]).done();
    fixture.run(["cat", "--offline", &url, "etc/os-release"]).failed(1, &["not in the cache"]);
    fixture.run(["cache", "rm"]).code.filter(|&code| code == 2).unwrap();
    fixture.run(["cache", "rm", "--all"]).done();
}

#[test]
fn statistics_count_requests() {
    let fixture = Fixture::with_image();
    let server = served(&fixture);
    let run = fixture.run(["cat", "--stats", "--disk-cache", "0", &server.url("/a"), "etc/os-release"]);
    let stats: serde_json::Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&stats["remote_requests"], &stats["remote_rounds"]), (&2.into(), &1.into()));
    assert_eq!(server.requests().len(), 2);
    assert_eq!(fixture.run(["cache", "ls"]).text(), "nothing is cached\n");
}

#[test]
fn errors_say_what_to_do() {
    let fixture = Fixture::with_image();
    let server = RangeServer::with(fixture.bytes("root.sqfs"), |request| match request.path.as_str() {
        "/none" => Reply::Status(404, vec![], String::new()),
        "/closed" => Reply::Status(403, vec![], String::new()),
        "/whole" => Reply::Status(200, vec![], "x".repeat(2 << 20)),
        "/text" => Reply::Status(200, vec![], "<html>".into()),
        _ => Reply::Right,
    });
    let ls = |path: &str| fixture.run(["ls", &server.url(path)]);
    ls("/none").failed(1, &["no such object", "hint:"]);
    ls("/closed").failed(1, &["refuses access", "netrc"]);
    ls("/whole").failed(1, &["status 200", "range requests"]);
    ls("/text").failed(4, &["/text"]);
    fixture.run(["ls", "ftp://host/a"]).failed(2, &["ftp", "s3://BUCKET/KEY"]);
    fixture.run(["ls", "s3://bucket"]).failed(2, &["s3://BUCKET/KEY"]);
    fixture.run(["ls", "--sandbox", &server.url("/a")]).failed(2, &["network", "--sandbox"]);
    fixture.run(["unpack", "--sandbox", &server.url("/a"), "out"]).failed(2, &["network"]);
    fixture.run(["check", "--repair-hints", &server.url("/a")]).failed(2, &["needs a file"]);
}

#[test]
fn a_mount_fails_reads_that_the_server_does_not_answer_and_goes_on() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("rootfs")).unwrap();
    // The second one is longer than what is fetched ahead of the first one's end.
    for (name, len) in [("a", 6 << 20), ("b", 24 << 20)] {
        let noise = Random::new(len as u64).noise(len);
        fs::write(fixture.path("rootfs").join(name), noise).unwrap();
    }
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    let is_silent = Arc::new(AtomicBool::new(false));
    let silent = Arc::clone(&is_silent);
    let server = RangeServer::with(fixture.bytes("root.erofs"), move |_| {
        if silent.load(Ordering::Relaxed) { Reply::Silent(Duration::from_secs(20)) } else { Reply::Right }
    });
    let place = Place::new(&fixture, "mnt");
    let url = server.url_as("user:secret", "/root.erofs");
    let mut command = fixture.command(["mount", "--disk-cache", "0", &url, "mnt"]);
    let run = Run::of(command.env("PACKFS_REMOTE_TIMEOUT", "1").output().unwrap());
    if run.code != Some(0) && !fs::exists("/dev/fuse").unwrap() {
        skip("/dev/fuse is missing");
        return;
    }
    run.done();
    let list = fixture.run(["mount", "--list"]);
    assert!(list.text().contains(&server.url("/root.erofs")) && !list.text().contains("secret"));
    let (a, b) = (fixture.path("mnt/a"), fixture.path("mnt/b"));
    assert!(fs::read(&a).unwrap() == fs::read(fixture.path("rootfs/a")).unwrap());
    is_silent.store(true, Ordering::Relaxed);
    let error = fs::read(&b).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}");
    assert_eq!(fs::metadata(&b).unwrap().len(), 24 << 20);
    is_silent.store(false, Ordering::Relaxed);
    assert!(fs::read(&b).unwrap() == fs::read(fixture.path("rootfs/b")).unwrap());
    // An image that changes is an error until it is mounted again.
    fixture.run(["umount", "mnt"]).done();
    place.wait_until_gone();
}
