//! Place, time and method of a session in words: the same in every report.

use crate::report::figures;
use crate::report::summary::{DISTURBED, summaries};
use crate::results::{
    CpuLimit, DeviceFacts, Measurement, Results, Run, Settings, Simulation, TreeFacts, Unit,
};

/// A run of whose requests a simulated device answered more than this part late, by more than this
/// part of its time, says more of this machine than of the device.
const LATE: f64 = 0.05;

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

/// Returns the method.
pub fn method(results: &Results) -> Vec<Line> {
    let settings = &results.settings;
    let mut lines = vec![
        ("Command", settings.command.clone()),
        ("Quick run", quick(settings).to_owned()),
        ("Runs", runs(settings)),
        ("Seed of random choices", settings.seed.to_string()),
        ("Processor limit", settings.cpu_limit.as_ref().map(limit).unwrap_or_default()),
        ("Noise", noise(results)),
        ("Simulated devices", simulation(results)),
    ];
    lines.retain(|(_, text)| !text.is_empty());
    lines
}

/// Warning about the figures of a quick run, for its head; empty for a full one.
fn quick(settings: &Settings) -> &'static str {
    if settings.quick {
        "--quick: fewer cells, smaller trees and fewer runs than a full session has; figures are rough, and not those of a full one"
    } else {
        ""
    }
}

fn runs(settings: &Settings) -> String {
    let count = figures::counted(u64::from(settings.runs), "measured run");
    let how = match settings.warm_ups() {
        0 => "none before it",
        _ => "after those that warm up; figures are medians, with the smallest and the largest",
    };
    format!("{count} of each cell, {how}")
}

/// Returns the programs' limit of processors, and the threads without it.
fn limit(limit: &CpuLimit) -> String {
    let outside =
        "the kernel's own threads, such as those of loop devices and most decoding of EROFS, had all";
    format!("{} for programs and FUSE servers; {outside}", limit.spelled())
}

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

/// Returns the faithfulness of simulated devices to their models; nothing without any.
fn simulation(results: &Results) -> String {
    let is_told = |cell: &&Measurement| cell.runs.iter().any(|run| run.simulation.is_some());
    let cells: Vec<_> = results.measurements.iter().filter(is_told).collect();
    let runs = cells.iter().flat_map(|cell| &cell.runs).filter_map(|run| run.simulation.as_ref());
    let Some(worst) = runs.map(Simulation::late_share).max_by(f64::total_cmp) else {
        return String::new();
    };
    let all = figures::counted(cells.len() as u64, "cell");
    let count =
        |is_it: &dyn Fn(&Run) -> bool| cells.iter().filter(|cell| cell.runs.iter().any(is_it)).count();
    let how = |is_it: fn(&Simulation) -> bool| count(&|run| run.simulation.as_ref().is_some_and(is_it));
    let share = figures::figure(worst, Unit::Percent);
    let mut text =
        format!("at most {share} of the requests of a run were answered late (by more than 0.1 ms)");
    let warnings = [
        (
            count(&|run| run.fell_behind(LATE)),
            format!(
                "it was more than {0}, by more than {0} of the run's time: this machine did not keep up with the model",
                figures::figure(LATE, Unit::Percent)
            ),
        ),
        (
            how(|it| !it.in_memory),
            "what the device held was not in memory, so another had a part in it".into(),
        ),
        (
            how(|it| it.refused_attributes > 0),
            "the kernel did not take all attributes of the queue (`packfs lab devices --check` tells which)"
                .into(),
        ),
    ];
    for (found, why) in warnings.into_iter().filter(|(found, _)| *found > 0) {
        text += &format!("; in {found} of {all} {why}");
    }
    text
}

/// Returns how much was measured, of which trees, on how many processors.
pub fn headline(results: &Results) -> String {
    let trees: Vec<_> = results.trees.iter().map(|it| format!("{} ({})", it.id, tree(it))).collect();
    let limit = results.settings.cpu_limit.as_ref();
    format!(
        "{}{} of {}{}{}",
        if results.settings.quick { "A quick run, whose figures are rough: " } else { "" },
        figures::counted(results.measurements.len() as u64, "measurement"),
        figures::counted(results.subjects.len() as u64, "subject"),
        if trees.is_empty() { String::new() } else { format!(" holding {}", trees.join("; ")) },
        limit.map_or_else(String::new, |limit| format!(", with {}", limit.spelled())),
    )
}

/// Returns the contents of a tree.
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

/// Returns the description of a device.
pub fn device(device: &DeviceFacts) -> String {
    format!("{}{}", device.description, if device.simulated { " (simulated)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_simulated_devices_that_differ_from_their_profile() {
        let cell = |simulation| Measurement {
            workload: "tar-read".into(),
            subject: String::new(),
            reader: None,
            device: "sd".into(),
            jobs: None,
            command: String::new(),
            runs: vec![Run { wall: 10.0, simulation, ..Run::default() }],
        };
        let said = |simulations: &[Option<Simulation>]| {
            let measurements = simulations.iter().copied().map(cell).collect();
            simulation(&Results { measurements, ..Results::default() })
        };
        assert_eq!(said(&[None]), "");
        let good =
            Simulation { requests: 1000, late: 10, lateness: 0.1, in_memory: true, ..Simulation::default() };
        let all_well = said(&[None, Some(good)]);
        assert!(all_well.contains("at most 1") && !all_well.contains("; in "), "{all_well}");
        let late = Simulation { late: 200, lateness: 2.0, ..good };
        let elsewhere = Simulation { in_memory: false, refused_attributes: 2, ..good };
        let told = said(&[None, Some(good), Some(late), Some(elsewhere)]);
        assert!(told.contains("; in 1 of 3 cells it was more than 5"), "{told}");
        assert!(told.contains("; in 1 of 3 cells what the device held was not in memory"), "{told}");
        assert!(told.contains("; in 1 of 3 cells the kernel did not take"), "{told}");
    }

    #[test]
    fn a_single_run_is_not_reported_as_a_median() {
        let of = |count| runs(&Settings { runs: count, ..Settings::default() });
        assert_eq!(of(1), "1 measured run of each cell, none before it");
        assert!(of(2).contains("warm up") && of(2).contains("medians"));
    }
}
