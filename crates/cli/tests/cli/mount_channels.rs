//! Channels between the kernel and a server of FUSE mounts: `/dev/fuse` and io_uring.

use crate::fixture::{CHANNEL, Fixture, words};
use crate::mounting::{Place, can_mount};
use packfs_testkit::UringSwitch;
use std::fs;
use std::process::Command;

/// A folder with an image, and a place for its mount.
fn packed() -> (Fixture, Place) {
    let fixture = Fixture::new();
    fixture.write("tree/file", words(300_000));
    fixture.run(["pack", "tree", "root.erofs", "-q"]).done();
    let place = Place::new(&fixture, "at");
    (fixture, place)
}

#[test]
fn mounts_work_through_io_uring_as_through_the_device() {
    // This test runs the others, and them only.
    if std::env::var_os(CHANNEL).is_some() || !can_mount() {
        return;
    }
    let Some(_switch) = UringSwitch::turn(true) else { return };
    let mut tests = Command::new(std::env::current_exe().unwrap());
    let output = tests.args(["mounting::", "mount_stress::"]).env(CHANNEL, "uring").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn io_uring_is_used_where_it_is_available() {
    if !can_mount() {
        return;
    }
    for (is_on, channel) in [(true, "uring"), (false, "classic")] {
        let Some(_switch) = UringSwitch::turn(is_on) else { return };
        let (fixture, place) = packed();
        let mounted = fixture.run(["mount", "-o", "channel=auto", "root.erofs", "at"]);
        mounted.done();
        assert_eq!((mounted.text(), &*mounted.stderr), ("", ""), "{channel}");
        assert_eq!(listed(&fixture, &place)["channel"], channel);
        let table = fixture.run(["mount", "--list"]);
        let row = table.text().lines().find(|line| line.contains(place.path().to_str().unwrap())).unwrap();
        assert_eq!(row.ends_with(", io_uring"), is_on, "{row}");
        assert!(fs::read(place.path().join("file")).unwrap() == words(300_000), "{channel}");
        fixture.run(["umount", "at"]).done();
        place.wait_until_gone();
    }
}

fn listed(fixture: &Fixture, place: &Place) -> serde_json::Value {
    let list = fixture.run(["mount", "--list", "--json"]).json();
    let rows = list.as_array().unwrap();
    rows.iter().find(|row| row["mount_point"] == place.path().to_str().unwrap()).cloned().unwrap()
}

#[test]
fn a_channel_that_is_missing_is_refused_and_leaves_nothing() {
    if !can_mount() {
        return;
    }
    let Some(_switch) = UringSwitch::turn(false) else { return };
    let (fixture, place) = packed();
    let refused = fixture.run(["mount", "--channel", "uring", "root.erofs", "at"]);
    refused.failed(4, &["FUSE over io_uring", "the kernel does not offer it", "enable_uring"]);
    assert!(!place.is_mounted());
    fixture.run(["mount", "--channel", "pipe", "root.erofs", "at"]).failed(2, &["auto, classic or uring"]);
    fixture.run(["mount", "--kernel", "--channel", "auto", "root.erofs", "at"]).failed(2, &["--channel"]);
}

/// Requests are spread over the processors, and each thread serves several of them.
#[test]
fn one_thread_serves_the_queues_of_all_processors() {
    if !can_mount() {
        return;
    }
    let Some(_switch) = UringSwitch::turn(true) else { return };
    let (fixture, place) = packed();
    fixture.run(["mount", "--fuse", "--channel", "uring", "--threads", "1", "root.erofs", "at"]).done();
    let file = place.path().join("file");
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let file = file.clone();
            std::thread::spawn(move || assert!(fs::read(file).unwrap() == words(300_000)))
        })
        .collect();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    fixture.run(["umount", "at"]).done();
}
