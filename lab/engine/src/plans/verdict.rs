//! Figures of a session held against the targets of its plan.

use super::file::{Case, Side};
use super::target::{Figure, Limit};
use crate::lookup::Lookup;
use crate::report::figure;
use crate::results::{self, Results, Spread, Table, Unit};
use crate::session::Cell;
use crate::workload::Need;

/// Outcome of the targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    /// Number of targets that were met.
    pub met: usize,
    /// Each target that was missed, in a line.
    pub missed: Vec<String>,
    /// Each case that could not be judged, with the reason.
    pub skipped: Vec<String>,
    rows: Vec<Vec<results::Cell>>,
}

/// Judges each case on each of its devices, or on `devices` if there are any.
pub fn judge(cases: &[Case], devices: &[String], results: &Results) -> Verdicts {
    judged(cases, devices, results).0
}

pub(super) fn judged(cases: &[Case], devices: &[String], results: &Results) -> (Verdicts, Vec<Cell>) {
    let (found, mut verdicts) = (Lookup::new(results), Verdicts::default());
    for case in cases {
        // The length of an image does not depend on the device.
        let devices = if devices.is_empty() { &case.devices[..] } else { devices };
        for device in if case.workload.is_timed() { devices } else { &devices[..devices.len().min(1)] } {
            verdicts.judge(case, device, results.settings.jobs, &found);
        }
    }
    (verdicts, found.into_cells())
}

/// Looks up a figure of one side of a case; the reason for a missing one names the side.
fn look_up(figure: Figure, side: &Side, cell: Cell, found: &Lookup<'_>) -> results::Cell {
    let cell = match figure {
        Figure::OfRun(figure) => found.of_runs(cell, figure),
        Figure::Size if !cell.workload.is_timed() => found.size(&side.tree, &side.recipe),
        Figure::Size => match found.of_runs(cell, |_| None) {
            results::Cell::Empty => found.stored(&side.tree, &side.recipe).unwrap_or(results::Cell::Empty),
            missing => missing,
        },
    };
    match cell {
        results::Cell::Missing(why) => results::Cell::Missing(format!("{}: {why}", side.label())),
        cell => cell,
    }
}

impl Verdicts {
    /// Returns true if every target that was judged was met, and one was.
    pub fn are_met(&self) -> bool {
        self.met > 0 && self.missed.is_empty()
    }

    /// Judges a case on a device, limit by limit, up to the first side that was not measured.
    fn judge(&mut self, case: &Case, device: &str, jobs: Option<u32>, found: &Lookup<'_>) {
        // The length of an image does not depend on the device.
        let on = if case.workload.is_timed() { format!(" on {device}") } else { String::new() };
        let name = format!("{}{on}", case.label());
        let cell = |side: &Side| Cell {
            tree: side.tree.clone(),
            recipe: side.recipe.clone(),
            reader: side.reader.clone(),
            workload: case.workload,
            device: device.to_owned(),
            jobs: jobs.filter(|_| case.workload.need() == Need::Maker),
        };
        let entries = found.tree(&case.packfs.tree).map_or(0, |tree| tree.files + tree.dirs + tree.others);
        for limit in case.target.limits(entries) {
            let side = |side: &Side| look_up(limit.kind.figure, side, cell(side), found);
            let ours = side(&case.packfs);
            let rival = case.rival.as_ref().filter(|_| limit.absolute.is_none()).map(side);
            let against = limit.absolute.map(results::Cell::exact).or(rival).unwrap_or(results::Cell::Empty);
            match (ours, against) {
                (results::Cell::Figure(ours), results::Cell::Figure(against)) if against.median != 0.0 => {
                    self.add(&name, &limit, &ours, against.median);
                }
                (results::Cell::Missing(why), _) if found.has_failed(&cell(&case.packfs)) => {
                    self.missed.push(format!("{name}: {why}"));
                    return self.add_empty_row(&name, why);
                }
                (results::Cell::Missing(why), _) | (_, results::Cell::Missing(why)) => {
                    return self.skip(&name, why);
                }
                _ => self.skip(&name, format!("{}: no figure was measured", limit.kind.what)),
            }
        }
    }

    fn add(&mut self, name: &str, limit: &Limit, ours: &Spread, against: f64) {
        // Of absolute limits the worst run counts.
        let ours = if limit.absolute.is_some() { ours.max } else { ours.median };
        let (what, most, ratio) = (limit.kind.what, limit.most, ours / against);
        let is_met = ratio <= most;
        if is_met {
            self.met += 1;
        } else {
            self.missed.push(format!("{name}: {what} {ratio:.3}, at most {most:.3}"));
        }
        let text = |text: &str| results::Cell::Text(text.into());
        self.rows.push(vec![
            text(name),
            text(what),
            text(&figure(against, limit.kind.unit)),
            text(&figure(ours, limit.kind.unit)),
            results::Cell::exact(ratio),
            results::Cell::exact(most),
            text(if is_met { "met" } else { "missed" }),
        ]);
    }

    fn skip(&mut self, name: &str, reason: String) {
        self.skipped.push(format!("{name}: {reason}"));
        self.add_empty_row(name, reason);
    }

    fn add_empty_row(&mut self, name: &str, reason: String) {
        let mut row = vec![results::Cell::Text(name.into())];
        row.resize(6, results::Cell::Empty);
        row.push(results::Cell::Missing(reason));
        self.rows.push(row);
    }

    /// The table for reports.
    pub fn table(&self, title: &str) -> Table {
        let method = "packfs beside the rival or the limit; medians of all runs, of memory the most";
        let columns = [
            ("case", Unit::Text),
            ("what", Unit::Text),
            ("rival or limit", Unit::Text),
            ("packfs", Unit::Text),
            ("ratio", Unit::Ratio),
            ("at most", Unit::Ratio),
            ("target", Unit::Text),
        ];
        Table::new(title, method, &columns, self.rows.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::PlanFile;
    use crate::results::{Measurement, Missing, Run, Subject, TreeFacts};

    const PLAN: &str = "title = 't'\n[[case]]\ntree = 't'\nworkload = 'build'\npackfs = 'packfs:erofs'\n\
                        rival = 'mkfs.erofs:erofs'\nwall = 0.5\nsize = 1.0\nmemory_mib = 1\nmemory_per_entry = 1000";

    fn results(ours: Run, stored: [u64; 2]) -> Results {
        let id = |maker: &str| format!("{maker} erofs none of t");
        let measurement = |maker: &str, run| Measurement {
            workload: "build".into(),
            subject: id(maker),
            reader: None,
            device: "memory".into(),
            jobs: None,
            command: String::new(),
            runs: vec![run],
        };
        let subject = |maker: &str, len| Subject {
            id: id(maker),
            tree: "t".into(),
            recipe: crate::results::Recipe::default(),
            command: String::new(),
            stored_len: Some(len),
            usage: vec![],
        };
        let theirs = Run { wall: 2.0, ..Run::default() };
        let facts =
            TreeFacts { id: "t".into(), made_by: String::new(), files: 1000, dirs: 0, others: 0, bytes: 1 };
        Results {
            trees: vec![facts],
            measurements: vec![measurement("packfs", ours), measurement("mkfs.erofs", theirs)],
            subjects: vec![subject("packfs", stored[0]), subject("mkfs.erofs", stored[1])],
            ..Results::default()
        }
    }

    fn judged(results: &Results) -> Verdicts {
        judge(&PlanFile::parse("p", PLAN).unwrap().cases, &[], results)
    }

    #[test]
    fn targets_are_met_at_the_limit_and_missed_above_it() {
        let run = Run { wall: 1.0, memory_peak: Some((1 << 20) + 1_000_000), ..Run::default() };
        let met = judged(&results(run, [100, 100]));
        assert_eq!((met.met, met.missed.len(), met.skipped.len()), (3, 0, 0));
        let run = Run { wall: 1.1, memory_peak: Some((1 << 20) + 1_000_001), ..Run::default() };
        let missed = judged(&results(run, [101, 100]));
        assert_eq!((missed.met, missed.missed.len()), (0, 3));
        assert!(missed.missed[0].ends_with(" on memory: time 0.550, at most 0.500"), "{:?}", missed.missed);
        assert_eq!(missed.table("t").rows.len(), 3);
    }

    #[test]
    fn what_was_not_measured_is_skipped_with_the_reason() {
        let mut found = results(Run { wall: 1.0, ..Run::default() }, [1, 1]);
        found.measurements.pop();
        let missing = Missing { what: "mkfs.erofs".into(), why: "it is neither here nor there".into() };
        found.missing.push(missing);
        let verdicts = judged(&found);
        assert_eq!((verdicts.met, verdicts.missed.len()), (0, 0));
        assert!(verdicts.skipped[0].ends_with("mkfs.erofs erofs none: it is neither here nor there"));
        assert!(!verdicts.are_met(), "nothing was judged");
    }

    #[test]
    fn a_target_without_its_figure_is_skipped_and_not_met() {
        let verdicts = judged(&results(Run { wall: 1.0, ..Run::default() }, [1, 1]));
        assert_eq!((verdicts.met, verdicts.missed.len()), (2, 0));
        assert!(verdicts.skipped[0].ends_with("memory: no figure was measured"), "{:?}", verdicts.skipped);
    }

    #[test]
    fn an_image_that_packfs_does_not_make_is_a_missed_target() {
        let mut found = results(Run { wall: 1.0, ..Run::default() }, [1, 1]);
        found.measurements.remove(0);
        found.missing.push(Missing { what: "packfs erofs none of t".into(), why: "it ended with 1".into() });
        let verdicts = judged(&found);
        assert_eq!((verdicts.met, verdicts.skipped.len()), (0, 0));
        assert!(verdicts.missed[0].ends_with(": it ended with 1"), "{:?}", verdicts.missed);
    }
}
