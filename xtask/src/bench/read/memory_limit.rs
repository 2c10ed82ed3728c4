//! Equal memory for both programs: one control group for the program, its readers and the pages the kernel keeps for them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::bench::scratch::PREFIX;
use crate::failure::{Failure, Result};
use crate::mounts;

/// For decoded blocks, page cache and the programs themselves.
pub const LEN_MAX: u64 = 256 << 20;

/// A control group with a limit; removed when dropped.
pub struct MemoryLimit {
    dir: PathBuf,
}

/// Where the two generations of control groups have their memory controller, and how the limit is called there.
const PLACES: [(&str, &str); 3] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    ("/sys/fs/cgroup", "memory.max"),
    ("/sys/fs/cgroup/unified", "memory.max"),
];

impl MemoryLimit {
    /// Fails where this machine lets nobody set one.
    pub fn new() -> Result<Self> {
        let mut tried = vec![];
        for (parent, file) in PLACES {
            let parent = Path::new(parent);
            for dir in mounts::left_over(parent, PREFIX) {
                // Whoever is still in it keeps it.
                let _ = std::fs::remove_dir(dir);
            }
            let dir = parent.join(format!("{PREFIX}{}", std::process::id()));
            if std::fs::create_dir(&dir).is_err() {
                continue;
            }
            let limit = Self { dir };
            let path = limit.dir.join(file);
            match path.exists().then(|| std::fs::write(&path, LEN_MAX.to_string())) {
                Some(Ok(())) => {
                    mounts::remove_on_signals(&limit.dir);
                    return Ok(limit);
                }
                Some(Err(error)) => tried.push(format!("{}: {error}", path.display())),
                None => tried.push(format!("{}: not there", path.display())),
            }
        }
        let tried = if tried.is_empty() { "no control groups".to_owned() } else { tried.join("; ") };
        Err(Failure::new(format!("memory cannot be limited: {tried}")))
    }

    /// Takes a running process in; what it gets from now on counts.
    pub fn add(&self, process: u32) -> Result<()> {
        let file = self.dir.join("cgroup.procs");
        std::fs::write(&file, process.to_string()).map_err(|error| Failure::io("write", &file, error))
    }

    /// The file a process writes `0` to in order to get in by itself, before it does anything.
    pub fn door(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // The last process may just be leaving.
        let start = Instant::now();
        while std::fs::remove_dir(&self.dir).is_err() && start.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
