//! Where, when and how a session was measured, in words: the same in every report.

use crate::report::figures;
use crate::report::summary::{DISTURBED, summaries};
use crate::results::{CpuLimit, DeviceFacts, Results, Settings, TreeFacts, Unit};

/// A label and what it says.
pub type Line = (&'static str, String);

/// The machine and the time; what is not known stays away.
pub fn machine(results: &Results) -> Vec<Line> {
    let machine = &results.machine;
    let finished = machine.finished.as_ref();
    let mut lines = vec![
        (
            "Processor",
            format!(
                "{} ({})",
                machine.processor,
                figures::counted(u64::from(machine.processor_count), "processor")
            ),
        ),
        (
            "Memory",
            if machine.memory_bytes == 0 { String::new() } else { figures::length(machine.memory_bytes) },
        ),
        ("Kernel", machine.kernel.clone()),
        ("System", machine.system.clone()),
        ("Images lay on", machine.scratch.clone()),
        ("Started", machine.started.clone()),
        (
            "Finished",
            finished.cloned().unwrap_or_else(|| "not yet: the session goes on, or was broken off".into()),
        ),
    ];
    lines.retain(|(_, text)| !text.is_empty());
    lines
}

/// How it was measured.
pub fn method(results: &Results) -> Vec<Line> {
    let settings = &results.settings;
    let mut lines = vec![
        ("Command", settings.command.clone()),
        ("Runs", runs(settings)),
        ("Seed of random choices", settings.seed.to_string()),
        ("Processor limit", settings.cpu_limit.as_ref().map(limit).unwrap_or_default()),
        ("Noise", noise(results)),
    ];
    lines.retain(|(_, text)| !text.is_empty());
    lines
}

/// How often each cell was measured, and what its figures are.
fn runs(settings: &Settings) -> String {
    let count = figures::counted(u64::from(settings.runs), "measured run");
    let how = match settings.warm_ups() {
        0 => "none before it",
        _ => "after those that warm up; figures are medians, with the smallest and the largest",
    };
    let quick = if settings.quick { "; cut down to minutes (--quick)" } else { "" };
    format!("{count} of each cell, {how}{quick}")
}

/// What programs had of the processors, and who had all of them.
fn limit(limit: &CpuLimit) -> String {
    let outside =
        "the kernel's own threads, such as those of loop devices and most decoding of EROFS, had all";
    format!("{} for programs and FUSE servers; {outside}", limit.spelled())
}

/// How much others disturbed the runs.
fn noise(results: &Results) -> String {
    let summaries = summaries(results);
    let Some(worst) = summaries.iter().max_by(|one, other| one.disturbed.total_cmp(&other.disturbed)) else {
        return String::new();
    };
    let disturbed = summaries.iter().filter(|summary| summary.disturbed > DISTURBED).count();
    let share = figures::figure(worst.disturbed, Unit::Percent);
    let worst = format!("others took at most {share} of the processors during a run");
    match disturbed {
        0 => worst,
        _ => format!(
            "{worst}; in {disturbed} of {} it was more than {}",
            figures::counted(summaries.len() as u64, "cell"),
            figures::figure(DISTURBED, Unit::Percent)
        ),
    }
}

/// What a tree holds.
pub fn tree(tree: &TreeFacts) -> String {
    format!(
        "{}, {}, {} else, {}",
        figures::counted(tree.files, "file"),
        match tree.dirs {
            1 => "1 directory".into(),
            dirs => format!("{} directories", figures::count(dirs)),
        },
        figures::count(tree.others),
        figures::length(tree.bytes)
    )
}

/// What a device is.
pub fn device(device: &DeviceFacts) -> String {
    format!("{}{}", device.description, if device.simulated { " (simulated)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_run_is_not_said_to_be_the_middle_of_several() {
        let of = |count| runs(&Settings { runs: count, ..Settings::default() });
        assert_eq!(of(1), "1 measured run of each cell, none before it");
        assert!(of(2).contains("warm up") && of(2).contains("medians"));
    }
}
