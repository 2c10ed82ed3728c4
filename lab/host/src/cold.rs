//! Nothing of what was read in memory, but all of the programs that are about to read.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// File of the kernel that drops caches.
pub const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Writes everything out and has the kernel forget what it read: pages, names, inodes. What is
/// mounted or open keeps its own; mounts are to be made anew.
///
/// Errors: this process may not; only root may, and not within every container.
pub fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    std::fs::write(DROP_CACHES, "3")
}

/// Reads the files that a running process has mapped, itself and its libraries: else it would be
/// loaded from the disk again while time is taken.
pub fn load_mapped(process: u32) {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    mapped_files(&maps).iter().for_each(|path| load(path));
}

/// Reads a file, and forgets what it says. What cannot be read is no worse off.
pub fn load(path: &Path) {
    let _ = File::open(path).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
}

/// The sixth field, where it is a path; see `proc_pid_maps(5)`.
fn mapped_files(maps: &str) -> Vec<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5));
    let mut paths: Vec<_> = paths.filter(|path| path.starts_with('/')).map(PathBuf::from).collect();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_files_a_process_has_mapped() {
        let maps = "55d0-55d1 r--p 00000000 fe:00 131 /usr/bin/cat\n\
            55d1-55d2 r-xp 00001000 fe:00 131 /usr/bin/cat\n\
            7ffc-7ffd rw-p 00000000 00:00 0 [stack]\n\
            7ffe-7fff rw-p 00000000 00:00 0\n";
        assert_eq!(mapped_files(maps), [PathBuf::from("/usr/bin/cat")]);
    }
}
