//! The lab: sessions on a tiny tree, wrong usage, and that nothing is left of one that was stopped.

use crate::fixture::{Fixture, Run};
use packfs_testkit::{is_root, peer, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

/// `packfs lab ...` in the fixture, with its scratch there, too.
fn lab(fixture: &Fixture, args: &[&str]) -> Run {
    std::fs::create_dir_all(fixture.path("scratch")).unwrap();
    let scratch = fixture.path("scratch").into_os_string();
    let args = args.iter().map(OsString::from);
    let all: Vec<_> = ["lab".into()].into_iter().chain(args).chain(["--scratch".into(), scratch]).collect();
    fixture.run(all)
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the mounts below a folder.
fn mounted_below(folder: &Path) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let folder = folder.to_string_lossy().into_owned();
    table.lines().filter(|line| line.contains(&folder)).map(str::to_owned).collect()
}

const TWO: [&str; 4] =
    ["--subject", "packfs:squashfs:zstd:3:128K", "--subject", "mksquashfs:squashfs:gzip:1:128K"];

#[test]
fn a_session_measures_builds_and_reads_by_the_kernel_and_fuse() {
    if !is_root() {
        return skip("only root mounts by the kernel");
    }
    if peer("mksquashfs").is_none() {
        return;
    }
    let fixture = Fixture::with_tree();
    let rest =
        ["--workload", "image-size", "--workload", "build", "--workload", "sequential-data", "--runs", "1"];
    let args = [&["run", "rootfs", "--output", "out"], &TWO[..], &rest].concat();
    lab(&fixture, &args).ended(0);
    let results: serde_json::Value = serde_json::from_slice(&fixture.bytes("out/results.json")).unwrap();
    let measurements = results["measurements"].as_array().unwrap();
    // Two are built, and each is read in two ways.
    assert_eq!(measurements.len(), 6, "{results:#}");
    assert!(measurements.iter().all(|found| found["runs"].as_array().unwrap().len() == 1));
    let bytes = &measurements.last().unwrap()["runs"][0]["bytes"];
    // Hard links count once.
    assert_eq!(bytes.as_u64(), results["trees"][0]["bytes"].as_u64());
    assert_eq!(results["subjects"].as_array().unwrap().len(), 2);
    assert_eq!(names(&fixture.path("scratch")), [""; 0]);
    assert!(mounted_below(&fixture.path("scratch")).is_empty());
    // Asked again, it has nothing left to do.
    let again = lab(&fixture, &[&args[..], &["--resume"]].concat()).ended(0);
    assert!(
        again.stderr.contains("goes on with the session") && !again.stderr.contains("[1/"),
        "{}",
        again.stderr
    );
    // Another plan does not take its folder.
    let other = [&["run", "rootfs", "--output", "out"], &TWO[..], &["--workload", "build"]].concat();
    lab(&fixture, &other).failed(1, &["another session", "hint: ", "--output"]);
    // The reports come from the document again.
    let shown = fixture.run(["lab", "report", "out/results.json", "--format", "markdown"]);
    assert!(shown.done().text().contains("packfs squashfs zstd:3 128K"));
}

#[test]
fn a_stopped_session_leaves_its_results_and_nothing_else() {
    if !is_root() {
        return skip("only root mounts by the kernel");
    }
    let fixture = Fixture::with_tree();
    std::fs::create_dir(fixture.path("scratch")).unwrap();
    let args = [
        "lab",
        "run",
        "rootfs",
        "--output",
        "out",
        "--scratch",
        "scratch",
        "--runs",
        "1000",
        "--workload",
        "list",
        "--subject",
        "packfs:squashfs:zstd:3:128K",
    ];
    let mut child = fixture.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Whatever it is at by then: a run, a mount, or in between.
    let results = fixture.path("out/results.json");
    let runs = || std::fs::read_to_string(&results).unwrap_or_default().matches("\"wall\"").count();
    while runs() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(run.stderr.contains("error: stopped") && run.stderr.contains("hint: "), "{}", run.stderr);
    assert_eq!(names(&fixture.path("scratch")), [""; 0]);
    assert!(mounted_below(&fixture.path("scratch")).is_empty());
    let results: serde_json::Value = serde_json::from_slice(&fixture.bytes("out/results.json")).unwrap();
    assert!(results["missing"].as_array().unwrap().iter().all(|row| row["what"] != results["cells"][0]));
    assert_eq!(names(&fixture.path("out")), ["results.json"]);
}

#[test]
fn what_cannot_be_measured_is_named_and_is_no_failure() {
    let fixture = Fixture::with_tree();
    let subjects = ["--subject", "mkfs.none:none:zstd", "--subject", "packfs:squashfs:gzip:1"];
    let rest = ["--workload", "image-size", "--output", "out", "--runs", "1"];
    lab(&fixture, &[&["run", "rootfs"], &subjects[..], &rest].concat()).ended(0);
    let results: serde_json::Value = serde_json::from_slice(&fixture.bytes("out/results.json")).unwrap();
    let missing = results["missing"].as_array().unwrap();
    assert!(missing.iter().any(|row| row["what"] == "mkfs.none none zstd of rootfs"), "{missing:#?}");
    assert_eq!(results["subjects"].as_array().unwrap().len(), 1);
}

#[test]
fn reports_wrong_usage_of_the_lab() {
    let fixture = Fixture::with_tree();
    for (args, code, words) in [
        (&["lab"][..], 2, &["packfs lab"][..]),
        (&["lab", "run"], 2, &["<TREE>"]),
        (&["lab", "run", "nowhere"], 1, &["nowhere", "packfs lab tree"]),
        (&["lab", "run", "rootfs", "--subject", "packfs"], 2, &["MAKER:FORMAT"]),
        (&["lab", "run", "rootfs", "--workload", "sleep"], 2, &["sleep"]),
        (&["lab", "run", "rootfs", "--device", "floppy"], 2, &["floppy"]),
        (&["lab", "run", "rootfs", "--quick", "--full"], 2, &["--full"]),
        (&["lab", "run", "rootfs", "--runs", "0"], 2, &["--runs"]),
        (&["lab", "run", "rootfs", "--cpus", "half"], 2, &["--cpus"]),
        (&["lab", "run", "rootfs", "--cpus", "0"], 2, &["0 processors", "0.01 to "]),
        (&["lab", "seed", "gentle", "--cpus", "nan"], 2, &["processors", "0.01 to "]),
        (&["lab", "run", "rootfs", "--resume", "--output", "none"], 1, &["no session to go on with"]),
        (&["lab", "run", "rootfs", "--scratch", "no/such/folder"], 1, &["no/such/folder"]),
        (&["lab", "seed", "minix"], 2, &["minix"]),
        (&["lab", "seed", "gentle", "--part", "0"], 2, &["--part", "1M"]),
        (&["lab", "seed", "gentle", "--tree", "linux=rootfs"], 2, &["desktop"]),
        (&["lab", "tree", "suse", "x"], 2, &["suse"]),
        (&["lab", "tree", "large", "x"], 2, &["--from"]),
        (&["lab", "tree", "large", "rootfs", "--from", "rootfs"], 1, &["exists already"]),
        (&["lab", "report", "rootfs/etc/os-release"], 3, &[]),
        (&["lab", "report", "out.json", "--format", "pdf"], 2, &["pdf"]),
    ] {
        let run = fixture.run(args);
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
        for word in words {
            assert!(run.stderr.contains(word), "{args:?}: no {word:?} in {}", run.stderr);
        }
    }
}

#[test]
fn every_part_of_the_lab_has_help_with_examples() {
    let fixture = Fixture::new();
    for part in ["run", "seed", "tree", "report", "list"] {
        let run = fixture.run(["lab", part, "--help"]);
        assert!(run.done().text().contains("Examples:\n"), "{part}");
    }
    let listed = fixture.run(["lab", "list"]);
    for word in ["makers: packfs ", "sequential-metadata", "hdd", "(--cpus): "] {
        assert!(listed.done().text().contains(word), "{word}: {}", listed.text());
    }
    let documents = fixture.run(["lab", "seed"]);
    assert!(documents.done().text().contains("squashfs21: Squashfs 2.1"));
    assert!(fixture.run(["lab", "tree"]).done().text().contains("debootstrap --variant=minbase"));
}

#[test]
fn one_large_file_is_the_same_each_time() {
    let fixture = Fixture::with_tree();
    let len = || std::fs::metadata(fixture.path("one/large.tar")).unwrap().len();
    fixture.run(["lab", "tree", "large", "one", "--from", "rootfs"]).ended(0);
    assert!(len() >= 203 << 20);
    let read = fixture.run(["lab", "pread", "one/large.tar", "--order", "random", "--bytes", "1048576"]);
    assert!(read.done().text().ends_with(" 1048576\n"), "{}", read.text());
}
