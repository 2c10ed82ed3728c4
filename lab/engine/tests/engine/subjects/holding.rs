//! A process that holds a folder, mounts and loop devices when it ends: killed, and stopped.
//!
//! The process is this test program, told by a variable to play that part.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use packfs_lab::process::{Confinement, Invocation, Output, run};
use packfs_lab::scratch::{BlockFile, Scratch, undo_all};
use rustix::mount::MountFlags;

use super::tree::{Fixture, assert_nothing_left, loop_devices_on};
use super::{Workshop, has_all, recipe, subjects};

/// Variable with the parent of its folder; `PARENT/stop` makes it undo all and end.
const PARENT: &str = "PACKFS_LAB_TEST_HOLD";

/// The part that is played in the other process; alone it does nothing.
#[test]
fn holds_resources_until_stopped() {
    let Some(parent) = std::env::var_os(PARENT).map(PathBuf::from) else { return };
    let (fixture, scratch) = (Fixture::below(&parent), Scratch::new(&parent).unwrap());
    let workshop = Workshop { scratch, fixture, subjects: subjects() };
    let _held = hold(&workshop);
    // Something runs, too.
    std::thread::spawn(|| run(&Invocation::new("sleep").arg("1000"), &Output::Null, &[]));
    std::thread::sleep(Duration::from_millis(50));
    std::fs::write(parent.join("ready"), "").unwrap();
    while !parent.join("stop").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let failures = undo_all();
    drop(workshop.fixture);
    // As a program that was stopped by a signal: nothing is dropped.
    std::process::exit(if failures.is_empty() { 77 } else { 1 });
}

/// An image mounted by the kernel and by FUSE, and a written file system.
fn hold(workshop: &Workshop) -> Vec<Box<dyn std::any::Any>> {
    let Workshop { scratch, subjects, .. } = workshop;
    let image = scratch.path("image");
    workshop.make("mksquashfs:squashfs:gzip:1", &image);
    let mut held: Vec<Box<dyn std::any::Any>> = vec![];
    for reader in ["kernel", "squashfuse_ll"] {
        let at = workshop.folder(reader);
        held.push(Box::new(
            subjects.reader(reader).unwrap().mount("squashfs", &image, &at, &Confinement::default()).unwrap(),
        ));
    }
    let disk = BlockFile::new(&scratch.path("disk"), 64 << 20).unwrap();
    let ext4 = subjects.writable("ext4").unwrap();
    let recipe = recipe("mkfs.ext4:ext4");
    ext4.make(&recipe, disk.device()).unwrap();
    held.push(Box::new(
        ext4.mount(&recipe, disk.device(), &workshop.folder("ext4"), MountFlags::empty()).unwrap(),
    ));
    held.push(Box::new(disk));
    held
}

/// The other process, once it holds everything.
struct Holder {
    parent: tempfile::TempDir,
    child: Child,
    /// Its session's folder.
    dir: PathBuf,
}

impl Holder {
    /// None where something is not here that should be.
    fn start() -> Option<Self> {
        if !has_all(&subjects()) {
            return None;
        }
        let parent = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "subjects::holding::holds_resources_until_stopped", "--nocapture"])
            .env(PARENT, parent.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while !parent.path().join("ready").exists() {
            assert_eq!(child.try_wait().unwrap(), None, "it ended early");
            assert!(start.elapsed() < Duration::from_secs(120), "it is never ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        let dir = parent.path().join(format!("packfs-lab-{}", child.id()));
        Some(Self { parent, child, dir })
    }
}

#[test]
fn what_a_killed_session_left_is_gone_at_the_next_start() {
    let Some(Holder { parent, mut child, dir }) = Holder::start() else { return };
    assert_eq!(loop_devices_on(&dir).len(), 2);
    // Another that starts meanwhile leaves it alone.
    drop(Scratch::new(parent.path()).unwrap());
    assert!(dir.join("kernel/large").exists());

    child.kill().unwrap();
    child.wait().unwrap();
    assert!(dir.join("kernel/large").exists(), "the kernel keeps mounts");
    let next = Scratch::new(parent.path()).unwrap();
    assert_nothing_left(&dir);
    drop(next);
    let names = std::fs::read_dir(parent.path()).unwrap().flatten().map(|entry| entry.file_name());
    let folders: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("packfs-lab-")).collect();
    assert!(folders.is_empty(), "{folders:?}");
}

#[test]
fn a_stopped_session_undoes_everything_by_itself() {
    let Some(Holder { parent, mut child, dir }) = Holder::start() else { return };
    std::fs::write(parent.path().join("stop"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(77));
    assert_nothing_left(&dir);
}
