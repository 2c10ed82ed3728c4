//! The cache of remote images on disk where it is hard on it: servers of mounts that are killed, a
//! full disk, and two mounts of one object.

use crate::fixture::{Fixture, Run, assert_same_files};
use crate::mounting::{Place, can_mount, server_pid, wait_for};
use packfs_testkit::{Random, RangeServer, Reply, is_root, skip};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MIB: usize = 1 << 20;

/// Files of noise, so that the image is as long as they are, and an image of them.
fn noisy() -> Fixture {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("rootfs")).unwrap();
    for number in 0..4 {
        let noise = Random::new(number + 1).noise(2 * MIB);
        fs::write(fixture.path("rootfs").join(format!("file-{number}")), noise).unwrap();
    }
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    fixture
}

/// Blocks of the cache, all of which match their checksums.
#[track_caller]
fn good_blocks(fixture: &Fixture) -> u64 {
    let list = fixture.run(["cache", "verify", "--json"]).json();
    let sum = |key: &str| list.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("bad_blocks"), 0, "{list}");
    sum("good_blocks")
}

#[test]
fn servers_that_are_killed_while_they_cache_leave_a_sound_cache() {
    if !can_mount() {
        return;
    }
    let fixture = noisy();
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    // Answers break off at places that are never those of blocks.
    let server = RangeServer::with(fixture.bytes("root.erofs"), move |request| {
        if slow.load(Ordering::Relaxed) && request.number % 2 == 1 {
            Reply::Short(100_000)
        } else {
            Reply::Right
        }
    });
    let url = server.url("/root.erofs");
    for round in 0..4 {
        let place = Place::new(&fixture, "at");
        fixture.run(["mount", "--fuse", &url, "at"]).done();
        let pid = server_pid(&fixture, &place);
        let before = server.requests().len();
        let file = place.path().join(format!("file-{round}"));
        let reader = std::thread::spawn(move || fs::read(file));
        // In the middle of it, a little further on in each round.
        wait_for("requests", || server.requests().len() > before + round || reader.is_finished());
        kill_process(pid, Signal::KILL).unwrap();
        // It may have been read before that.
        if let Ok(bytes) = reader.join().unwrap() {
            assert!(bytes == fs::read(fixture.path("rootfs").join(format!("file-{round}"))).unwrap());
        }
        wait_for("the kernel to notice", || fs::read_dir(place.path()).is_err());
        fixture.run(["umount", "at"]).done();
        assert!(good_blocks(&fixture) > 0);
    }
    is_slow.store(false, Ordering::Relaxed);
    let run = fixture.run(["tar", "--stats", &url]);
    let stats: serde_json::Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    assert!(stats["remote_cached_bytes"].as_u64().unwrap() > 0, "{stats}");
    let place = Place::new(&fixture, "at");
    fixture.run(["mount", "--fuse", &url, "at"]).done();
    assert_same_files(&fixture.path("rootfs"), place.path());
    fixture.run(["umount", "at"]).done();
    assert_eq!(good_blocks(&fixture), (fixture.bytes("root.erofs").len() as u64).div_ceil(64 << 10));
}

#[test]
fn two_mounts_of_one_object_share_the_cache() {
    if !can_mount() {
        return;
    }
    let fixture = noisy();
    let server = RangeServer::new(fixture.bytes("root.erofs"));
    let url = server.url("/root.erofs");
    let places = ["one", "two"].map(|name| Place::new(&fixture, name));
    for name in ["one", "two"] {
        fixture.run(["mount", "--fuse", &url, name]).done();
    }
    // Each file by both at once, and in both orders.
    std::thread::scope(|scope| {
        for (index, place) in places.iter().enumerate() {
            let fixture = &fixture;
            scope.spawn(move || {
                for step in 0..4 {
                    let name = format!("file-{}", if index == 0 { step } else { 3 - step });
                    let expected = fs::read(fixture.path("rootfs").join(&name)).unwrap();
                    assert!(fs::read(place.path().join(&name)).unwrap() == expected, "{name}");
                }
            });
        }
    });
    for (name, place) in ["one", "two"].iter().zip(&places) {
        fixture.run(["umount", name]).done();
        place.wait_until_gone();
    }
    assert_eq!(good_blocks(&fixture), (fixture.bytes("root.erofs").len() as u64).div_ceil(64 << 10));
    // All of it is there, for a process without the server, too.
    drop(server);
    fixture.run(["unpack", "--offline", &url, "out", "-q"]).done();
    assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
}

/// A filesystem of its own for the cache; unmounted when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one; skips the test if that is not possible.
    fn new(fixture: &Fixture, size: &str) -> Option<Self> {
        let at = fixture.path(size);
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&at).stderr(Stdio::null());
        if !is_root() || !mount.status().is_ok_and(|status| status.success()) {
            skip("a small disk takes root, who may mount a tmpfs");
            return None;
        }
        Some(SmallDisk(at))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_costs_blocks_and_no_bytes() {
    let fixture = noisy();
    let server = RangeServer::new(fixture.bytes("root.erofs"));
    let url = server.url("/root.erofs");
    // There is room for some blocks, for a header at most, and for nothing at all.
    for size in ["3M", "16k", "4k"] {
        let Some(disk) = SmallDisk::new(&fixture, size) else { return };
        if size == "4k" {
            fs::write(disk.path().join("full"), [1; 4096]).unwrap();
        }
        let run = |args: &[&str]| {
            let mut command = fixture.command(args);
            Run::of(command.env("XDG_CACHE_HOME", disk.path()).output().unwrap())
        };
        for round in 0..2 {
            let out = format!("out-{size}-{round}");
            run(&["unpack", &url, &out, "-q"]).done();
            assert_same_files(&fixture.path("rootfs"), &fixture.path(&out));
        }
        let list = run(&["cache", "verify", "--json"]).json();
        for row in list.as_array().unwrap() {
            assert_eq!(row["bad_blocks"], 0, "{size}: {list}");
        }
        let good = list[0]["good_blocks"].as_u64().unwrap_or(0);
        assert_eq!(good > 0, size == "3M", "{list}");
        if !can_mount() {
            continue;
        }
        let place = Place::new(&fixture, &format!("at-{size}"));
        run(&["mount", "--fuse", &url, place.path().to_str().unwrap()]).done();
        assert_same_files(&fixture.path("rootfs"), place.path());
        run(&["umount", place.path().to_str().unwrap()]).done();
        place.wait_until_gone();
    }
}
