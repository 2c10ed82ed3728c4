//! A small tree with what file systems get wrong, and what has to be gone afterwards.

use std::ffi::CString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use packfs_testkit::{Compare, is_root, snapshot_dir};

/// The tree as a directory and as a tar; gone when dropped.
pub struct Fixture {
    folder: tempfile::TempDir,
    pub dir: PathBuf,
    pub tar: PathBuf,
}

impl Fixture {
    /// On a disk, as users have it, and not in memory.
    pub fn new() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// Makes the tree in a folder that outlives this process.
    pub fn below(parent: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("lab-test-").tempdir_in(parent).unwrap();
        let (dir, tar) = (folder.path().join("tree"), folder.path().join("tree.tar"));
        std::fs::create_dir_all(dir.join("a/b/empty")).unwrap();
        let text: String = (0..40_000).map(|number| format!("line {} of {number}\n", number % 7)).collect();
        std::fs::write(dir.join("large"), &text).unwrap();
        std::fs::write(dir.join("a/small"), &text[..300]).unwrap();
        std::fs::write(dir.join("a/b/one byte"), "x").unwrap();
        std::fs::write(dir.join("a/nothing"), "").unwrap();
        let noise: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        std::fs::write(dir.join("noise"), noise).unwrap();
        std::fs::hard_link(dir.join("large"), dir.join("a/also large")).unwrap();
        symlink("../large", dir.join("a/link")).unwrap();
        std::fs::set_permissions(dir.join("a/small"), PermissionsExt::from_mode(0o4751)).unwrap();
        if is_root() {
            let device = rustix::fs::makedev(1, 3);
            let path = CString::new(dir.join("null").to_str().unwrap()).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o666);
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::CharacterDevice, mode, device)
                .unwrap();
            std::os::unix::fs::chown(dir.join("a/small"), Some(1000), Some(100)).unwrap();
        }
        let status = Command::new("tar").arg("cf").arg(&tar).arg("-C").arg(&dir).arg(".").status().unwrap();
        assert!(status.success());
        Self { folder, dir, tar }
    }

    /// Returns a parent for a session's folder.
    pub fn parent(&self) -> &Path {
        self.folder.path()
    }
}

/// Compares two directories by all that each of the programs keeps: not all have fractions of
/// seconds, times of links, and counts of directories' links.
pub fn assert_same(expected: &Path, found: &Path, who: &str) {
    // This one gives every name an inode number of its own.
    let hard_links = who != "squashfuse";
    let compare =
        Compare { symlink_times: false, dir_links: false, root: false, hard_links, ..Compare::default() };
    snapshot_dir(expected).assert_same(&snapshot_dir(found), compare, who);
}

/// A folder is gone, with all mounts and loop devices that were in it.
pub fn assert_nothing_left(dir: &Path) {
    assert!(!dir.exists(), "{dir:?} is still there");
    let mounts = packfs::mount::table::read().unwrap();
    let left: Vec<_> = mounts.iter().filter(|mounted| mounted.at.starts_with(dir)).collect();
    assert!(left.is_empty(), "{left:?}");
    let loops = loop_devices_on(dir);
    assert!(loops.is_empty(), "{loops:?}");
}

/// Loop devices whose file is, or was, in a folder.
pub fn loop_devices_on(dir: &Path) -> Vec<PathBuf> {
    let blocks = std::fs::read_dir("/sys/block").unwrap().flatten().map(|entry| entry.path());
    let is_on = |block: &PathBuf| {
        std::fs::read_to_string(block.join("loop/backing_file"))
            .is_ok_and(|file| Path::new(file.trim()).starts_with(dir))
    };
    blocks.filter(is_on).collect()
}
