//! Place and time of a measurement, and an empty page cache.

use std::path::Path;

use packfs::mount::table;
use packfs_host::{Facts, cold};

use crate::results::{Machine, Missing};

/// Returns the facts of this machine, for images in `scratch`; it started now.
pub fn here(scratch: &Path) -> Machine {
    let Facts { processor, processor_count, memory_bytes, kernel, system } = Facts::look_up();
    Machine {
        processor,
        processor_count: u32::try_from(processor_count).unwrap_or(u32::MAX),
        memory_bytes,
        kernel,
        system,
        scratch: place_of(scratch),
        started: now(),
        finished: None,
    }
}

/// The time, UTC, as RFC 3339 spells it.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Writes everything out and has the kernel forget what it read: pages, names, inodes.
///
/// Errors: this process may not; only root may, and not within every container.
pub fn drop_caches() -> Result<(), Missing> {
    cold::drop_caches().map_err(|error| Missing {
        what: "drop_caches".into(),
        why: format!("{} cannot be written: {error}; only root may, with sudo", cold::DROP_CACHES),
    })
}

/// `ext4 on /dev/vda`.
fn place_of(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mounts = table::read().unwrap_or_default();
    // The last of those with the longest path: it lies on top.
    let at = mounts.iter().filter(|mounted| dir.starts_with(&mounted.at));
    let at = at.max_by_key(|mounted| mounted.at.as_os_str().len());
    at.map_or_else(|| "unknown".to_owned(), |at| format!("{} on {}", at.fs_type, at.source.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_place_and_a_time() {
        let machine = here(Path::new("/proc"));
        assert_eq!(machine.scratch, "proc on proc");
        assert!(machine.started.ends_with('Z') && machine.started.len() == 20, "{}", machine.started);
    }
}
