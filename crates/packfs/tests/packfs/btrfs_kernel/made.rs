//! Images that mkfs.btrfs makes and the kernel fills.

use packfs::{OpenOptions, Opened};
use packfs_core::Result;
use packfs_testkit::{LoopDevice, is_root, peer, skip, unmount};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Bytes of each device.
const DEVICE_LEN: u64 = 400 << 20;
/// Images that are made at a time.
const THREADS: usize = 3;

/// One image: its name, options of mkfs.btrfs and of the mount, and its devices.
#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub mkfs: &'static str,
    pub mount: &'static str,
    pub devices: usize,
}

/// An image in files.
pub struct Made {
    pub name: &'static str,
    pub devices: Vec<PathBuf>,
    _folder: tempfile::TempDir,
}

/// True if this machine mounts btrfs and has its tools; says so if not.
pub fn may_run() -> bool {
    let systems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !is_root() || !systems.contains("btrfs") {
        skip("mounting btrfs needs root and its driver");
        return false;
    }
    ["mkfs.btrfs", "btrfs", "setfattr", "setfacl", "fallocate"].iter().all(|name| peer(name).is_some())
}

/// Runs `work` for each row, a few at a time.
pub fn in_threads(rows: &[Row], work: impl Fn(&Row) + Sync) {
    let next = Mutex::new(rows.iter());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(row) = next.lock().unwrap().next() else { break };
                    work(row);
                }
            });
        }
    });
}

/// Runs a program; panics with what it printed if it fails.
#[track_caller]
pub fn run(program: &str, arguments: &[&str], paths: &[&Path]) {
    let output = Command::new(program).args(arguments).args(paths).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?} {paths:?}: {text}");
}

/// Makes an image, and has the kernel fill it with a script of this folder.
pub fn make(row: &Row, script: Option<&str>) -> Made {
    make_by("mkfs.btrfs", row, script)
}

/// Makes an image as [`make`] does, by a certain program.
pub fn make_by(mkfs: &str, row: &Row, script: Option<&str>) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let devices: Vec<PathBuf> =
        (0..row.devices).map(|index| folder.path().join(format!("device{index}"))).collect();
    for device in &devices {
        std::fs::File::create(device).unwrap().set_len(DEVICE_LEN).unwrap();
    }
    let options: Vec<&str> = ["-q", "-f"].into_iter().chain(row.mkfs.split_whitespace()).collect();
    run(mkfs, &options, &devices.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    let made = Made { name: row.name, devices, _folder: folder };
    if let Some(script) = script {
        let mount = made.mount(row.mount).unwrap_or_else(|e| panic!("{}: {e}", row.name));
        made.fill(&mount.path(), script);
    }
    made
}

impl Made {
    /// Returns it with other devices.
    pub fn with_devices(&self, devices: Vec<PathBuf>) -> Made {
        Made { name: self.name, devices, _folder: tempfile::tempdir().unwrap() }
    }

    /// Runs a script of this folder in a mount.
    pub fn fill(&self, at: &Path, script: &str) {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packfs/btrfs_kernel"));
        run("sh", &["-e"], &[&folder.join(format!("{script}.sh")), at]);
    }

    /// Mounts it, for writing if there are options.
    pub fn mount(&self, options: &str) -> Result<Mounted, String> {
        let loops = self.devices.iter().map(|path| LoopDevice::new(path)).collect::<Result<Vec<_>, _>>()?;
        let at = tempfile::tempdir().unwrap();
        let named = loops.iter().map(|device| format!(",device={}", device.path().display()));
        let options = if options.is_empty() { "ro" } else { options };
        let options = format!("{options}{}", named.collect::<String>());
        let mut mount = Command::new("mount");
        mount.args(["-t", "btrfs", "-o", &options]).arg(loops[0].path()).arg(at.path());
        let output = mount.output().unwrap();
        if output.status.success() {
            Ok(Mounted { at, _loops: loops })
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into())
        }
    }

    /// Opens it without some devices.
    pub fn open(&self, left_out: &[usize]) -> Result<Opened> {
        let devices = self.devices.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
        let mut paths = devices.map(|(_, path)| path);
        let first = paths.next().expect("a device");
        paths.fold(OpenOptions::new(), |options, path| options.device(path)).open(first)
    }
}

/// A mount and its loop devices.
pub struct Mounted {
    at: tempfile::TempDir,
    _loops: Vec<LoopDevice>,
}

impl Mounted {
    pub fn path(&self) -> PathBuf {
        self.at.path().into()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(self.at.path());
    }
}
