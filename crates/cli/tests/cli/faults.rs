//! The program when the system fails it: full disks, failing calls, no memory, and being killed.
//! Success is only said of what is right, and a name is never that of half an image.

use crate::fixture::{Fixture, Run, words};
use packfs_testkit::{Compare, Mount, Random, Snapshot, is_root, skip, snapshot_dir};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FORMATS: [&str; 2] = ["squashfs", "erofs"];

/// A folder with a tree, and an image of it that was made undisturbed.
fn packed(format: &str) -> (Fixture, Vec<u8>) {
    let fixture = Fixture::with_tree();
    fixture.run(["pack", "rootfs", "right", "-f", format, "-q", "-j", "1"]).done();
    let right = fixture.bytes("right");
    (fixture, right)
}

/// The words that pack it again.
fn packing(format: &str) -> Vec<String> {
    ["pack", "rootfs", "image", "-f", format, "-q", "-j", "1"].map(str::to_owned).to_vec()
}

/// A finished image is right; one that is not finished has no name. Returns whether it is there.
#[track_caller]
fn judge(fixture: &Fixture, right: &[u8], run: &Run, what: &str) -> bool {
    let image = std::fs::read(fixture.path("image"));
    match run.code {
        Some(0) => assert!(image.as_deref().is_ok_and(|image| image == right), "{what}: success, but wrong"),
        _ => assert!(image.is_err(), "{what}: {:?}, but an image", run.code),
    }
    let _ = std::fs::remove_file(fixture.path("image"));
    let others: Vec<String> = fixture
        .names()
        .into_iter()
        .filter(|name| !["rootfs", "right", "trace"].contains(&name.as_str()))
        .collect();
    assert!(others.is_empty(), "{what}: {others:?} is left");
    image.is_ok()
}

/// Runs the program under a shell that sets limits first.
fn limited(fixture: &Fixture, limits: &str, args: &[String]) -> Run {
    let script = format!("{limits}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_packfs")).args(args);
    command.current_dir(fixture.path("")).stdin(Stdio::null());
    Run::of(command.output().unwrap())
}

#[test]
fn a_file_that_may_not_grow_is_an_error_at_every_length() {
    for format in FORMATS {
        let (fixture, right) = packed(format);
        let blocks = right.len().div_ceil(512);
        let mut refused = 0;
        for length in (0..=blocks + 8).step_by(blocks.div_ceil(12)) {
            let run = limited(&fixture, &format!("trap '' XFSZ; ulimit -f {length}"), &packing(format));
            refused += usize::from(!judge(&fixture, &right, &run, &format!("{format} {length}")));
        }
        assert!(refused > 8, "{format}: {refused}");
    }
}

#[test]
fn a_full_disk_is_an_error_at_every_size() {
    if !is_root() {
        return skip("mounting needs root");
    }
    for format in FORMATS {
        let (fixture, right) = packed(format);
        let mut outcomes = [0, 0];
        for pages in (2..right.len() / 4096 + 16).step_by(3) {
            let disk = Mount::memory(pages as u64 * 4096).unwrap();
            let image = disk.path().join("image");
            let run = fixture.run([
                "pack".as_ref(),
                "rootfs".as_ref(),
                image.as_os_str(),
                "-f".as_ref(),
                format.as_ref(),
                "-q".as_ref(),
                "-j".as_ref(),
                "1".as_ref(),
            ]);
            let names = std::fs::read_dir(disk.path()).unwrap().count();
            match run.code {
                Some(0) => assert!(std::fs::read(image).unwrap() == right, "{format} {pages}"),
                code => {
                    assert_eq!((code, names), (Some(1), 0), "{format} {pages}: {}", run.stderr);
                    assert!(run.stderr.contains("disk is full"), "{}", run.stderr);
                }
            }
            outcomes[usize::from(run.code == Some(0))] += 1;
        }
        assert!(outcomes[0] > 0 && outcomes[1] > 0, "{format}: {outcomes:?}");

        let unpacked = snapshot_dir(&fixture.path("rootfs"));
        for pages in [2, 20, 60, 100, 140, 1000] {
            let disk = Mount::memory(pages * 4096).unwrap();
            let target = disk.path().join("target");
            let run = fixture.run(["unpack".as_ref(), "right".as_ref(), target.as_os_str(), "-q".as_ref()]);
            match run.code {
                Some(0) => {
                    unpacked.assert_same(&snapshot_dir(&target), compare(), &format!("{format} {pages}"))
                }
                code => assert_eq!(code, Some(1), "{format} {pages}: {}", run.stderr),
            }
            assert_eq!(run.code == Some(0), pages == 1000, "{format} {pages}: {}", run.stderr);
        }
    }
}

/// Images of SquashFS have no fractions of seconds.
fn compare() -> Compare {
    Compare { dir_links: false, ..Compare::default() }
}

#[test]
fn too_little_memory_is_never_taken_for_success() {
    for format in FORMATS {
        let (fixture, right) = packed(format);
        let mut done = 0;
        for kib in [4_000, 8_000, 12_000, 16_000, 24_000, 32_000, 48_000, 64_000, 128_000, 2_000_000] {
            let run = limited(&fixture, &format!("ulimit -c 0; ulimit -v {kib}"), &packing(format));
            done += usize::from(judge(&fixture, &right, &run, &format!("{format} {kib} KiB")));
        }
        assert!(done > 0, "{format}");
    }
}

/// Directories are read ahead, but not when few files may be open.
#[test]
fn few_open_files_are_enough_for_many_directories() {
    let fixture = Fixture::with_tree();
    (0..200).for_each(|dir| fixture.write(&format!("rootfs/many/{dir}/file"), "text"));
    for limit in [24, 128, 1024] {
        let run = limited(&fixture, &format!("ulimit -n {limit}"), &packing("squashfs"));
        assert_eq!(run.code, Some(0), "{limit}: {}", run.stderr);
        std::fs::remove_file(fixture.path("image")).unwrap();
    }
}

/// Kills the program at some time of its run; then there is no image, or a whole one.
#[test]
fn whenever_it_is_killed_there_is_no_half_image() {
    let mut random = Random::new(9);
    for format in FORMATS {
        let fixture = Fixture::with_tree();
        fixture.write("rootfs/more", words(6_000_000));
        let start = Instant::now();
        fixture.run(packing(format)).done();
        let took = start.elapsed();
        let right = fixture.bytes("image");
        for round in 0..16 {
            fixture.write("image", "old");
            let mut child = fixture.command(packing(format)).stderr(Stdio::null()).spawn().unwrap();
            let late = took.as_micros() as u64 * 11 / 10;
            std::thread::sleep(Duration::from_micros(random.below(late.max(1))));
            child.kill().unwrap();
            let done = child.wait().unwrap().success();
            let image = fixture.bytes("image");
            assert!(image == right || !done && image == b"old", "{format} {round}: {} bytes", image.len());
            // Where files without a name are known, nothing is left.
            let left =
                fixture.names().into_iter().filter(|name| !["rootfs", "image"].contains(&name.as_str()));
            let left: Vec<String> = left.collect();
            assert!(left.iter().all(|name| name.ends_with(".packfs-tmp")), "{left:?}");
            left.iter().for_each(|name| std::fs::remove_file(fixture.path(name)).unwrap());
        }
    }
}

/// The program with one call of the system failing: the n-th of its name. Tells what came of it, or
/// `None` if there is no n-th.
struct Injection<'a> {
    fixture: &'a Fixture,
    strace: PathBuf,
    call: &'a str,
    /// The fault in strace's words.
    fault: &'a str,
}

impl Injection<'_> {
    fn run(&self, n: u64, args: &[String]) -> Option<Run> {
        let trace = self.fixture.path("trace");
        let mut command = Command::new(&self.strace);
        command.args(["-f", "-qq", "--seccomp-bpf", "-o"]).arg(&trace);
        command.args(["-e".into(), format!("trace={}", self.call)]);
        command.args(["-e".into(), format!("inject={}:{}:when={n}", self.call, self.fault)]);
        command.arg(env!("CARGO_BIN_EXE_packfs")).args(args).current_dir(self.fixture.path(""));
        let run = Run::of(command.stdin(Stdio::null()).output().unwrap());
        let seen = std::fs::read_to_string(&trace).unwrap_or_default();
        let _ = std::fs::remove_file(&trace);
        let injected = seen.contains("INJECTED");
        if !injected {
            // Nothing failed, so all of it is there.
            let _ = std::fs::remove_file(self.fixture.path("image"));
            let _ = std::fs::remove_dir_all(self.fixture.path("target"));
        }
        injected.then_some(run)
    }
}

/// The program that makes calls fail or take long, if it may.
pub fn strace() -> Option<PathBuf> {
    let found = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join("strace"))
        .find(|at| at.exists());
    let works = found.filter(|at| {
        let traced = Command::new(at).args(["-qq", "-o", "/dev/null", "true"]).status();
        traced.is_ok_and(|status| status.success())
    });
    if works.is_none() {
        skip("calls are changed by strace, which is not here or may not trace");
    }
    works
}

/// The first calls all, later ones fewer.
fn next(n: u64, all: u64) -> u64 {
    if n < all { n + 1 } else { n + n / 3 + 1 }
}

#[test]
fn whichever_call_fails_the_image_is_right_or_not_there() {
    let Some(strace) = strace() else { return };
    for format in FORMATS {
        let (fixture, right) = packed(format);
        let (mut runs, mut refused) = (0, 0);
        for (call, fault, all) in [
            ("pwrite64", "error=EIO", 20),
            ("pwrite64", "error=ENOSPC", 1),
            // Says that a byte was written which was not: only reading back can tell.
            ("pwrite64", "retval=1", 20),
            ("fdatasync", "error=EIO", 4),
            ("linkat", "error=EIO", 4),
            ("rename", "error=EACCES", 4),
            ("pread64", "error=EIO", 6),
            ("getdents64", "error=EIO", 3),
            ("lseek", "error=EIO", 2),
            ("fstat", "error=EIO", 2),
            ("openat", "error=EMFILE", 4),
            ("mmap", "error=ENOMEM", 2),
            ("clone3", "error=EAGAIN", 2),
        ] {
            let injection = Injection { fixture: &fixture, strace: strace.clone(), call, fault };
            let mut n = 1;
            while let Some(run) = injection.run(n, &packing(format)) {
                let what = format!("{format} {call} {n} {fault}");
                runs += 1;
                refused += usize::from(!judge(&fixture, &right, &run, &what));
                n = next(n, all);
            }
        }
        assert!(runs > 20 && refused > 10, "{format}: {runs} {refused}");
    }
}

#[test]
fn after_any_failed_call_files_are_correct_or_reported() {
    let Some(strace) = strace() else { return };
    let (fixture, _) = packed("squashfs");
    let right = snapshot_dir(&fixture.path("rootfs"));
    let args = ["unpack", "right", "target", "-q", "-j", "1", "--strict"].map(str::to_owned);
    let mut told = 0;
    for (call, fault, all) in [
        ("pwrite64", "error=ENOSPC", 4),
        ("write", "error=EIO", 4),
        ("pread64", "error=EIO", 4),
        ("mkdirat", "error=EIO", 3),
        ("linkat", "error=EIO", 2),
        ("symlinkat", "error=EIO", 2),
        ("openat", "error=EIO", 4),
        ("fchmod", "error=EPERM", 2),
        ("utimensat", "error=EIO", 2),
        ("ftruncate", "error=EIO", 2),
    ] {
        let injection = Injection { fixture: &fixture, strace: strace.clone(), call, fault };
        let mut n = 1;
        while let Some(run) = injection.run(n, &args) {
            let what = format!("{call} {n} {fault}");
            let target = fixture.path("target");
            match run.code {
                Some(0) => right.assert_same(&snapshot_dir(&target), compare(), &what),
                _ => told += usize::from(no_file_is_wrong(&right, &target, &what)),
            }
            let _ = std::fs::remove_dir_all(&target);
            n = next(n, all);
        }
    }
    assert!(told > 10, "{told}");
}

/// Asserts that the files present are right; others may be missing.
#[track_caller]
fn no_file_is_wrong(right: &Snapshot, target: &Path, what: &str) -> bool {
    if target.exists() {
        for (path, row) in snapshot_dir(target).0 {
            let same = right.0.get(&path).is_some_and(|right| right.content == row.content);
            assert!(same, "{what}: {:?} is wrong", String::from_utf8_lossy(&path));
        }
    }
    true
}
