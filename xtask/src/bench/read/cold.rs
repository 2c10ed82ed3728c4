//! Nothing of an image in memory, but all of the programs that read it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// Makes the kernel forget what it keeps of all files. Does nothing about mounts: those are made anew.
pub fn drop_caches() -> Result<()> {
    shell::run_quietly(&mut Command::new("sync"))?;
    let path = Path::new("/proc/sys/vm/drop_caches");
    std::fs::write(path, "3").map_err(|error| Failure::io("write", path, error))
}

/// Reads the files a running process has mapped, its own program and libraries among them, and `readers`: from a disk
/// they would else be loaded while time is taken.
pub fn load_programs(process: Option<u32>, readers: &[&str]) {
    let maps = process.and_then(|id| std::fs::read_to_string(format!("/proc/{id}/maps")).ok());
    let mapped = mapped_files(&maps.unwrap_or_default());
    for path in mapped.into_iter().chain(readers.iter().filter_map(|name| shell::find_program(name))) {
        // What cannot be read is no worse off.
        let _ = std::fs::File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
    }
}

/// proc(5): the sixth field, where it is a path.
fn mapped_files(maps: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
        .filter(|path| path.starts_with('/'))
        .map(PathBuf::from)
        .collect();
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
