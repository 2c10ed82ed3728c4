//! Facts that explain figures measured here.

/// Facts of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its own name for itself; `unknown` without one.
    pub processor: String,
    /// Number of threads that run at the same time.
    pub processor_count: usize,
    /// All its memory; 0 if unknown.
    pub memory_bytes: u64,
    /// Name and release: `Linux 6.1.0`.
    pub kernel: String,
    /// The distribution and its version; `unknown` if it does not say.
    pub system: String,
}

impl Facts {
    /// Looks them up: `/proc/cpuinfo`, `/proc/meminfo`, os-release(5), uname(2).
    pub fn look_up() -> Self {
        let uname = rustix::system::uname();
        Self {
            processor: value_in("/proc/cpuinfo", "model name", ':'),
            // The product has this, too, but nothing of it is in here.
            processor_count: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: bytes_of(&value_in("/proc/meminfo", "MemTotal", ':')),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            system: value_in("/etc/os-release", "PRETTY_NAME", '=').replace('"', ""),
        }
    }
}

/// Bytes of `2048 kB`, which the kernel counts in units of 1024.
fn bytes_of(text: &str) -> u64 {
    let kibibytes: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    kibibytes.saturating_mul(1024)
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
    fn memory_is_printed_in_units_of_1024() {
        assert_eq!(bytes_of("24689000 kB"), 24_689_000 * 1024);
        assert_eq!(bytes_of("unknown"), 0);
    }

    #[test]
    fn this_machine_has_memory_and_a_kernel() {
        let facts = Facts::look_up();
        assert!(facts.memory_bytes > 1 << 20 && facts.kernel.starts_with("Linux "), "{facts:?}");
        assert!(facts.processor_count > 0, "{facts:?}");
    }
}
