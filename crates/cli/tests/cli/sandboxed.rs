//! `--sandbox`: the same output, from a process that can do less.

use crate::fixture::{Fixture, Run, assert_same_files};
use packfs_testkit::{Compare, as_nobody, is_root, odd_tree, skip, snapshot_dir, write_dir};
use std::fs;
use std::io::Write;
use std::time::SystemTime;

/// Returns true if this kernel supports the whole sandbox; reports a skip if not.
fn is_whole(fixture: &Fixture) -> bool {
    let run = fixture.run(["info", "root.sqfs", "--sandbox"]);
    let whole = run.stderr == "sandbox: landlock, seccomp\n";
    if !whole {
        skip(&format!("this kernel's sandbox is not whole: {}", run.stderr));
    }
    whole
}

fn with_both_images() -> Fixture {
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    fixture.run(["pack", "rootfs", "zstd.sqfs", "-q", "--codec", "zstd:3"]).done();
    fixture.run(["tar", "root.sqfs", "-o", "root.tar", "-q"]).done();
    let tar = fixture.bytes("root.tar");
    fixture.write("root.tar.gz", gzip(&fixture, &tar));
    fixture
}

fn gzip(fixture: &Fixture, bytes: &[u8]) -> Vec<u8> {
    fixture.write("plain", bytes);
    let output = std::process::Command::new("gzip").arg("-c").arg(fixture.path("plain")).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[track_caller]
fn same(with: &Run, without: &Run) {
    assert_eq!((with.code, with.stderr.as_str()), (without.code, "sandbox: landlock, seccomp\n"));
    assert!(with.stdout == without.stdout, "{}", String::from_utf8_lossy(&with.stdout));
}

#[test]
fn every_reading_verb_prints_the_same_in_the_sandbox() {
    let fixture = with_both_images();
    if !is_whole(&fixture) {
        return;
    }
    for image in ["root.sqfs", "zstd.sqfs", "root.erofs"] {
        let verbs: &[&[&str]] = &[
            &["ls", "-lR", image],
            &["ls", "-R", "--json", image],
            &["cat", image, "usr/bin/tool", "bin/same"],
            &["stat", image, "usr/bin/tool", "bin"],
            &["info", "--space", image],
            &["info", "--manifest", image],
            &["check", "--data", image, "--jobs", "4"],
            &["tar", image],
            &["tar", image, "--jobs", "1"],
            &["diff", image, "rootfs"],
            &["diff", "rootfs", image, "--json"],
            &["diff", image, "root.tar"],
            &["diff", "root.tar.gz", image],
        ];
        for verb in verbs {
            // The zone is read from the system's own files, which must stay in reach.
            let run = |options: &[&str]| fixture.run(verb.iter().chain(options));
            same(&run(&["--sandbox=require"]), &run(&[]));
        }
        let from_stdin = |options: &[&str]| {
            fixture.run_with_input(["diff", "-", image].iter().chain(options), &fixture.bytes("root.tar.gz"))
        };
        same(&from_stdin(&["--sandbox"]), &from_stdin(&[]));
    }
}

#[test]
fn what_is_written_is_the_same() {
    let fixture = with_both_images();
    if !is_whole(&fixture) {
        return;
    }
    for image in ["root.sqfs", "zstd.sqfs", "root.erofs"] {
        for (index, jobs) in ["1", "4"].into_iter().enumerate() {
            let target = format!("{image}.{index}");
            fixture.run(["unpack", image, &target, "--sandbox=require", "--jobs", jobs, "--sync"]).ended(0);
            assert_same_files(&fixture.path("rootfs"), &fixture.path(&target));
            fixture.run(["diff", "rootfs", &target, "-q"]).done();
        }
        fs::create_dir(fixture.path("tars")).unwrap();

        fixture.run(["tar", image, "-o", "tars/new.tar", "--sandbox=require", "--jobs", "4"]).ended(0);
        assert!(fixture.bytes("tars/new.tar") == fixture.run(["tar", image]).stdout);
        assert_eq!(fs::read_dir(fixture.path("tars")).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(fixture.path("tars")).unwrap();
    }
}

/// Owners, devices, attributes of every kind, set-id bits: into a new directory, and one that
/// others may write to.
#[test]
fn an_odd_tree_comes_out_the_same() {
    let fixture = Fixture::with_image();
    if !is_whole(&fixture) {
        return;
    }
    let (tree, contents) = odd_tree(4096, is_root());
    fs::create_dir(fixture.path("odd")).unwrap();
    write_dir(&tree, &contents, &fixture.path("odd"));
    for image in ["odd.sqfs", "odd.erofs"] {
        assert_eq!(fixture.run(["pack", "odd", image, "-q", "--lossy"]).code, Some(0), "{image}");
        for (target, others) in [("new", false), ("shared", true)] {
            let [inside, plain] = ["inside", "plain"].map(|kind| format!("{image}.{target}.{kind}"));
            if others {
                for dir in [&inside, &plain] {
                    fs::create_dir(fixture.path(dir)).unwrap();
                    // Of one time, as both are compared below.
                    let mut old = fs::File::create(fixture.path(dir).join("old")).unwrap();
                    old.write_all(b"old").unwrap();
                    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
                }
            }
            let unpack = |dir: &str, options: &[&str]| {
                let run =
                    fixture.run(["unpack", image, dir, "-q", "--existing", "merge"].iter().chain(options));
                assert_eq!(run.code, Some(0), "{}", run.stderr);
            };
            unpack(&inside, &["--sandbox=require"]);
            unpack(&plain, &[]);
            snapshot_dir(&fixture.path(&inside)).assert_same(
                &snapshot_dir(&fixture.path(&plain)),
                Compare::ALL,
                &inside,
            );
        }
    }
}

#[test]
fn an_unprivileged_user_unpacks_in_the_sandbox() {
    as_nobody(|| {
        let fixture = Fixture::with_image();
        if is_whole(&fixture) {
            fixture.run(["unpack", "root.sqfs", "out", "--sandbox=require"]).ended(0);
            assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
        }
    });
}

/// Digests, signatures, hash trees, recovery data: what is compared with an image is no more to be
/// trusted than the image.
#[test]
fn every_comparing_verb_prints_the_same_in_the_sandbox() {
    let fixture = with_both_images();
    if !is_whole(&fixture) {
        return;
    }
    let all = ["digest", "root.sqfs", "root.erofs", "root.tar", "root.tar.gz", "rootfs"];
    fixture.write("list", &fixture.run(all).done().stdout);
    let manifest = fixture.run(["info", "--manifest", "root.sqfs"]).stdout;
    fixture.write("written/manifest", manifest);
    fixture.run(["sign", "--new-key", "key", "--no-password", "-q"]).done();
    fixture.run(["sign", "root.erofs", "-s", "key", "-q"]).done();
    fixture.run(["verity", "zstd.sqfs", "--hash-file", "tree", "--root-hash-file", "hash", "-q"]).done();
    fixture.run(["verity", "root.erofs", "-q"]).done();
    fixture.run(["protect", "root.sqfs", "-q", "-p", "30"]).done();
    let verbs: &[&[&str]] = &[
        &all,
        &["digest", "--json", "--depth", "2", "root.sqfs", "--jobs", "4"],
        &["digest", "--check-list", "list"],
        &["digest", "--facts", "none", "written/manifest"],
        &["verify", "root.erofs", "-p", "key.pub"],
        &["verify", "rootfs/etc/os-release", "--signature", "root.erofs.minisig", "-p", "key.pub"],
        &["verity", "--verify", "root.erofs"],
        &["verity", "--verify", "root.erofs", "--json", "--jobs", "4"],
        &["verity", "--verify", "zstd.sqfs", "--hash-file", "tree", "--root-hash-file", "hash"],
        &["verity", "--fs", "root.erofs", "root.sqfs"],
        &["check", "--repair-hints", "root.sqfs"],
        &["check", "--repair-hints", "root.sqfs", "--json"],
        &["repair", "root.sqfs", "--dry-run", "--jobs", "4"],
        &["repair", "root.sqfs", "-n", "--recovery", "root.sqfs.rec", "--json"],
    ];
    for verb in verbs {
        let run = |options: &[&str]| fixture.run(verb.iter().chain(options));
        let (with, without) = (run(&["--sandbox=require"]), run(&[]));
        assert_eq!((with.code, &with.stdout), (without.code, &without.stdout), "{verb:?}: {}", with.stderr);
        assert_eq!(with.stderr, format!("sandbox: landlock, seccomp\n{}", without.stderr), "{verb:?}");
    }
    let run = fixture.run(["verity", "root.sqfs", "--sandbox"]);
    run.failed(2, &["in a sandbox"]);
}

#[test]
fn images_are_repaired_and_copied_in_the_sandbox() {
    let fixture = Fixture::with_image();
    if !is_whole(&fixture) {
        return;
    }
    fixture.run(["protect", "root.sqfs", "-q", "-p", "30"]).done();
    fixture.run(["sign", "--new-key", "key", "--no-password", "-q"]).done();
    fixture.run(["sign", "root.sqfs", "-s", "key", "-q"]).done();
    let whole = fixture.bytes("root.sqfs");
    let mut damaged = whole.clone();
    damaged[200..300].fill(0x55);
    fs::create_dir(fixture.path("beside")).unwrap();
    let names = fixture.names();
    for (way, repaired) in [
        (&["-o", "beside/repaired", "--jobs", "4"][..], "beside/repaired"),
        (&["--in-place"], "root.sqfs"),
        (&[], "root.sqfs"),
    ] {
        fixture.write("root.sqfs", &damaged);
        let run = fixture.run(["repair", "root.sqfs", "--sandbox=require"].iter().chain(way));
        assert_eq!(run.code, Some(0), "{way:?}: {}", run.stderr);
        assert!(fixture.bytes(repaired) == whole, "{way:?}");
        assert_eq!(fixture.names(), names, "{way:?}");
    }
    let verify = ["verify", "root.sqfs", "-p", "key.pub", "--sandbox=require", "-o", "beside/copy"];
    fixture.write("root.sqfs", &damaged);
    let run = fixture.run(verify);
    assert_eq!(run.code, Some(3));
    assert!(run.stderr.contains("not what was signed"), "{}", run.stderr);
    assert!(!fixture.path("beside/copy").exists());
    fixture.write("root.sqfs", &whole);
    assert_eq!(fixture.run(verify).code, Some(0));
    assert!(fixture.bytes("beside/copy") == whole);
    assert_eq!(fs::read_dir(fixture.path("beside")).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn errors_are_those_of_a_run_without_it() {
    let fixture = Fixture::with_image();
    fixture.write("damaged", &fixture.bytes("root.sqfs")[..2000]);
    for args in [["ls", "not there"], ["check", "damaged"], ["ls", "rootfs/etc/os-release"]] {
        let (with, without) = (fixture.run(args.iter().chain(&["--sandbox"])), fixture.run(args));
        assert_eq!(with.code, without.code);
        assert!(with.stderr.ends_with(&without.stderr), "{}\n{}", with.stderr, without.stderr);
    }
    fixture.run(["unpack", "not there", "out", "--sandbox"]).failed(1, &["not there"]);
    assert!(!fixture.path("out").exists());
    fixture.run(["ls", "root.sqfs", "--sandbox=perhaps"]).failed(2, &["perhaps", "require"]);
}

#[test]
fn it_can_be_stopped() {
    let fixture = Fixture::with_image();
    if !is_whole(&fixture) {
        return;
    }
    fixture.stop_while_it_waits(["diff", "-", "root.sqfs", "--sandbox"]);
}
