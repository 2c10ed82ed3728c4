//! Sources: a directory on the host, and the entries that every reader must find.

use packfs_testkit::{Random, Snapshot, odd_tree, snapshot_dir, write_dir};
use std::path::{Path, PathBuf};

/// A folder that goes away when dropped: in memory where the host has room there, as thousands of
/// files are made and removed for every image.
pub fn room() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.unwrap()
}

/// A directory, with all that is known of it.
pub struct Source {
    path: PathBuf,
    pub expected: Snapshot,
    /// Removes the directory, if it is ours.
    _made: Option<tempfile::TempDir>,
}

impl Source {
    /// A directory of the host.
    pub fn of(path: &Path) -> Self {
        Source { path: path.into(), expected: snapshot_dir(path), _made: None }
    }

    /// The odd tree around blocks of 64 KiB, with files that fill clusters of 1 MiB.
    pub fn odd() -> Self {
        let folder = room();
        let (tree, contents) = odd_tree(64 << 10, true);
        write_dir(&tree, &contents, folder.path());
        // mkfs.erofs adds attributes to directories that hold overlayfs's sign for what is deleted.
        std::fs::remove_file(folder.path().join("dev/char-0-0")).unwrap();
        let mut random = Random::new(9);
        let (text, noise) = (random.text(5 << 20), random.noise(2 << 20));
        let mixed = [&noise[..700_000], &text[..2_000_000], &noise[..300_001]].concat();
        for (name, bytes) in [("large-text", &text), ("large-noise", &noise), ("large-mixed", &mixed)] {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let at = std::time::UNIX_EPOCH + std::time::Duration::new(1_600_000_000, 0);
        let fraction = std::time::Duration::from_nanos(123_456_789);
        for changed in ["dev", "large-text", "large-noise", "large-mixed", ""] {
            let opened = std::fs::File::open(folder.path().join(changed)).unwrap();
            let seconds = std::time::Duration::from_secs(changed.len() as u64);
            opened.set_modified(at + seconds + fraction).unwrap();
        }
        let expected = snapshot_dir(folder.path());
        Source { path: folder.path().into(), expected, _made: Some(folder) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
