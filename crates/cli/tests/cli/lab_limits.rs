//! The lab's `--cpus`: what runs within the limit and what does not, the record of it, and that no
//! control group is left.

use crate::fixture::{Fixture, Run};
use packfs_testkit::{is_root, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs of this name write down who is in their control group, and then do what they are for.
const TELLING: &str = r#"#!/bin/sh
PATH=${PATH#*:}
export PATH
if [ "$1" != --version ]; then
    group=$(sed -n 's/.*\(packfs-[0-9]*-[0-9]*\)$/\1/p' /proc/self/cgroup | head -n 1)
    for process in /proc/[0-9]*; do
        if grep -qs "/$group\$" "$process/cgroup"; then
            { echo "${group:-no group}: $(tr '\0' ' ' < "$process/cmdline")" >> LOG; } 2> /dev/null
        fi
    done
fi
exec NAME "$@"
"#;

/// Returns true if this machine can limit processor time, as the program reports.
fn has_groups(fixture: &Fixture) -> bool {
    fixture.run(["lab", "list"]).text().contains("(--cpus): 0.01 to ")
}

/// Control groups that a process made.
fn groups_of(process: u32) -> Vec<PathBuf> {
    let (mut found, mut left) = (vec![], vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(dir) = left.pop() {
        // Others come and go.
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&format!("packfs-{process}-")) {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
    found
}

/// `packfs lab run rootfs` with its output and scratch in the fixture.
fn session(fixture: &Fixture, args: &[&str]) -> Command {
    std::fs::create_dir_all(fixture.path("scratch")).unwrap();
    let all = ["lab", "run", "rootfs", "--output", "out", "--scratch", "scratch", "--device", "disk"];
    let mut command = fixture.command(all.iter().chain(args));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A search path whose first folder holds `names` that tell.
fn telling(fixture: &Fixture, names: &[&str], log: &Path) -> OsString {
    let folder = fixture.path("bin");
    std::fs::create_dir(&folder).unwrap();
    for name in names {
        let script = TELLING.replace("LOG", log.to_str().unwrap()).replace("NAME", name);
        std::fs::write(folder.join(name), script).unwrap();
        std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut path = folder.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    path
}

#[test]
fn makers_readers_and_servers_run_within_the_limit_and_the_lab_does_not() {
    let fixture = Fixture::with_tree();
    if !is_root() || !has_groups(&fixture) {
        return skip("only root drops caches, and this takes control groups");
    }
    let log = fixture.path("log");
    let subjects = ["--subject", "packfs:squashfs:gzip:1", "--subject", "tar:tar:none"];
    let work = ["--workload", "build", "--workload", "list", "--reader", "packfs-fuse", "--runs", "1"];
    let args = [&subjects[..], &work].concat();
    let mut command = session(&fixture, &[&args[..], &["--cpus", "0.5"]].concat());
    let child = command.env("PATH", telling(&fixture, &["ls", "cat", "tar"], &log)).spawn().unwrap();
    let id = child.id();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(0), "{}", run.stderr);

    let told = std::fs::read_to_string(&log).unwrap();
    assert!(told.lines().all(|line| line.starts_with(&format!("packfs-{id}-"))), "{told}");
    for inside in ["tar --create", "ls -lR", "mount --fuse"] {
        assert!(told.contains(inside), "{inside}: {told}");
    }
    assert!(!told.contains(" lab run "), "{told}");
    assert_eq!(groups_of(id), Vec::<PathBuf>::new());

    let results: serde_json::Value = serde_json::from_slice(&fixture.bytes("out/results.json")).unwrap();
    let limit = &results["settings"]["cpu_limit"];
    assert_eq!(limit["cpus"], 0.5);
    let by = format!("0.5 processors by {}", limit["way"].as_str().unwrap());
    assert!(by.contains("cgroup v"), "{by}");
    let read = |name: &str| String::from_utf8(fixture.bytes(&format!("out/{name}"))).unwrap();
    assert!(run.text().contains(&by) && read("report.md").contains("0.5 processors by cgroup v"));
    assert!(read("report.html").contains(&format!("with {by}")));
    let csv = read("report.csv");
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().ends_with(",cpus,device_requests"), "{csv}");
    // No device is simulated, so its requests are not counted.
    assert!(lines.all(|line| line.ends_with(",0.5,")), "{csv}");
    // A machine with less than one processor has one, so makers get one thread.
    let builds = results["measurements"].as_array().unwrap().iter().filter(|it| it["workload"] == "build");
    assert_eq!(builds.map(|it| it["jobs"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(1)]);

    // Another limit, or none, is another session.
    for other in [&["--cpus", "0.7"][..], &["--jobs", "1"]] {
        let run = Run::of(session(&fixture, &[&args[..], other].concat()).output().unwrap());
        run.failed(1, &["another session", "its programs had 0.5 processors", "hint: "]);
    }
}

#[test]
fn a_stopped_session_leaves_no_control_group() {
    let fixture = Fixture::with_tree();
    if !is_root() || !has_groups(&fixture) {
        return skip("only root drops caches, and this takes control groups");
    }
    let subject = ["--subject", "packfs:squashfs:gzip:1", "--reader", "packfs-fuse", "--workload", "list"];
    let args = [&subject[..], &["--runs", "1000", "--cpus", "0.5"]].concat();
    let mut child = session(&fixture, &args).stdout(Stdio::null()).spawn().unwrap();
    let results = fixture.path("out/results.json");
    let runs = || std::fs::read_to_string(&results).unwrap_or_default().matches("\"wall\"").count();
    while runs() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let id = child.id();
    assert_eq!(groups_of(id).len(), 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(!run.stderr.contains("warning: "), "{}", run.stderr);
    assert_eq!(groups_of(id), Vec::<PathBuf>::new());
}

#[test]
fn nothing_is_measured_without_a_requested_limit() {
    let fixture = Fixture::with_tree();
    let args = ["lab", "run", "rootfs", "--output", "out", "--workload", "image-size", "--cpus", "0.5"];
    let subject = ["--subject", "packfs:squashfs:gzip:1"];
    let run = fixture.measure_as_nobody(args.iter().chain(&subject));
    // Users of some systems may make control groups of their own.
    if run.code == Some(0) {
        let results: serde_json::Value = serde_json::from_slice(&fixture.bytes("out/results.json")).unwrap();
        assert_eq!(results["settings"]["cpu_limit"]["cpus"], 0.5);
        return;
    }
    run.failed(1, &["no control group gives 0.5", "hint: ", "taskset"]);
    assert!(!fixture.path("out").exists());
}
