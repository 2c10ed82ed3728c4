//! Where and when a benchmark ran, as far as it explains its figures.

use std::process::Command;

use packfs_host::Facts;

use crate::shell;
use crate::workspace;

#[derive(Debug)]
pub struct Machine {
    pub facts: Facts,
    /// UTC, `2026-11-21`.
    pub date: String,
    pub commit: String,
}

impl Machine {
    /// Looks it up.
    pub fn here() -> Self {
        Self {
            facts: Facts::look_up(),
            date: said(Command::new("date").args(["-u", "+%Y-%m-%d"])),
            commit: said(
                Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(workspace::root()),
            ),
        }
    }

    /// Processors and memory, for a line of a report.
    pub fn hardware(&self) -> String {
        let Facts { processor, processor_count, memory_bytes, .. } = &self.facts;
        format!("{processor_count} x {processor}, {:.1} GiB", *memory_bytes as f64 / f64::from(1 << 30))
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
