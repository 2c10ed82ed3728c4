//! Results of a session, from the lines of its journal.

use super::entry::Entry;
use super::plan::{Cell, subject_id};
use crate::results::{Measurement, Missing, Results, Run, SCHEMA};

/// All that was measured, but for the tables.
pub(super) fn results(entries: &[Entry]) -> Results {
    let mut results = Results { schema: SCHEMA.into(), ..Results::default() };
    let mut cells: Vec<Cell> = Vec::new();
    let mut runs: Vec<Vec<(u32, &String, Run)>> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Plan(plan) => {
                results.title.clone_from(&plan.title);
                results.settings = plan.settings.clone();
                results.trees = plan.trees.iter().map(|tree| tree.facts.clone()).collect();
                results.missing.clone_from(&plan.missing);
                cells.clone_from(&plan.cells);
                runs = vec![Vec::new(); cells.len()];
            }
            Entry::Machine(machine) => {
                let started = std::mem::take(&mut results.machine.started);
                results.machine = machine.clone();
                if !started.is_empty() {
                    results.machine.started = started;
                }
            }
            Entry::Program(program) if !results.programs.contains(program) => {
                results.programs.push(program.clone());
            }
            Entry::Device(device) if !results.devices.contains(device) => {
                results.devices.push(device.clone())
            }
            Entry::Program(_) | Entry::Device(_) | Entry::Counted { .. } => {}
            Entry::Subject(subject) => {
                results.subjects.retain(|known| known.id != subject.id);
                results.subjects.push(subject.clone());
            }
            Entry::Run { cell, round, command, run } => {
                if let Some(runs) = runs.get_mut(*cell) {
                    runs.push((*round, command, *run));
                }
            }
            Entry::Missing { missing, .. } if !results.missing.contains(missing) => {
                results.missing.push(missing.clone());
            }
            Entry::Missing { .. } => {}
        }
    }
    for (cell, mut runs) in cells.iter().zip(runs) {
        runs.sort_by_key(|(round, ..)| *round);
        let Some((_, command, _)) = runs.first() else { continue };
        results.measurements.push(Measurement {
            workload: cell.workload.name().into(),
            subject: subject_id(&cell.tree, &cell.recipe),
            reader: cell.reader.clone(),
            device: cell.device.clone(),
            jobs: cell.jobs,
            command: (*command).clone(),
            runs: runs.iter().map(|(_, _, run)| *run).collect(),
        });
    }
    results.missing.retain(|missing| !is_measured_later(entries, missing));
    results
}

/// True if what was missing was there after all, in a later attempt.
fn is_measured_later(entries: &[Entry], missing: &Missing) -> bool {
    let is_it = |entry: &Entry| matches!(entry, Entry::Missing { missing: found, .. } if found == missing);
    let Some(place) = entries.iter().rposition(is_it) else { return false };
    let Entry::Missing { cells, .. } = &entries[place] else { return false };
    entries[place..].iter().any(|entry| match entry {
        Entry::Run { cell, .. } | Entry::Counted { cell } => cells.contains(cell),
        Entry::Subject(subject) => subject.id == missing.what,
        _ => false,
    })
}
