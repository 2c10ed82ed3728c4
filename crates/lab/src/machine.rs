//! Where and when something is measured, and how its memory is made to forget.

use std::path::Path;

use packfs::mount::table;

use crate::results::{Machine, Missing};

/// What is known of this machine, for images that lie in `scratch`; it started now.
pub fn here(scratch: &Path) -> Machine {
    let uname = rustix::system::uname();
    Machine {
        processor: value_in("/proc/cpuinfo", "model name", ':'),
        processor_count: std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory_bytes(),
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        system: value_in("/etc/os-release", "PRETTY_NAME", '=').replace('"', ""),
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
    rustix::fs::sync();
    // Names and inodes hold pages, and some are only let go of once others are.
    std::fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| Missing {
        what: "drop_caches".into(),
        why: format!("/proc/sys/vm/drop_caches cannot be written: {error}; only root may, with sudo"),
    })
}

fn memory_bytes() -> u64 {
    let text = value_in("/proc/meminfo", "MemTotal", ':');
    let kibibytes: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    kibibytes.saturating_mul(1024)
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

fn value_in(file: &str, key: &str, separator: char) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    value_of(&text, key, separator).unwrap_or("unknown").to_owned()
}

/// The first value of `key` in lines of `key separator value`.
fn value_of<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(separator)?;
        (found.trim() == key).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_value_by_its_whole_key() {
        let text = "model\t\t: 17\nmodel name\t: Fast: 9\nmodel name\t: Other\n";
        assert_eq!(value_of(text, "model name", ':'), Some("Fast: 9"));
        assert_eq!(value_of(text, "name", ':'), None);
    }

    #[test]
    fn this_machine_has_memory_and_a_place() {
        let machine = here(Path::new("/proc"));
        assert!(machine.memory_bytes > 1 << 20 && machine.kernel.starts_with("Linux "), "{machine:?}");
        assert_eq!(machine.scratch, "proc on proc");
        assert!(machine.started.ends_with('Z') && machine.started.len() == 20, "{}", machine.started);
    }
}
