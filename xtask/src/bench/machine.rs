//! Where and when a benchmark ran, as far as it explains its figures.

use std::process::Command;

use crate::shell;
use crate::workspace;

#[derive(Debug)]
pub struct Machine {
    pub processor: String,
    pub processor_count: usize,
    pub memory: String,
    pub kernel: String,
    pub system: String,
    /// UTC, `2026-11-21`.
    pub date: String,
    pub commit: String,
}

impl Machine {
    pub fn here() -> Self {
        let uname = rustix::system::uname();
        Self {
            processor: value_in("/proc/cpuinfo", "model name", ':'),
            processor_count: std::thread::available_parallelism().map_or(1, usize::from),
            memory: value_in("/proc/meminfo", "MemTotal", ':'),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            system: value_in("/etc/os-release", "PRETTY_NAME", '=').replace('"', ""),
            date: said(Command::new("date").args(["-u", "+%Y-%m-%d"])),
            commit: said(
                Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(workspace::root()),
            ),
        }
    }
}

/// How many processes were running or ready to, on average over the last minute: what else went on.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn said(command: &mut Command) -> String {
    shell::capture(command).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
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
    use super::value_of;

    #[test]
    fn finds_a_value_by_its_whole_key() {
        let text = "model\t\t: 17\nmodel name\t: Fast: 9\nmodel name\t: Other\n";
        assert_eq!(value_of(text, "model name", ':'), Some("Fast: 9"));
        assert_eq!(value_of(text, "name", ':'), None);
    }
}
