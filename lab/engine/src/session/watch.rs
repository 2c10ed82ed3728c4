//! Observer of a session, and the forecast of its end.

use std::collections::HashMap;
use std::time::Duration;

use super::plan::{Cell, Plan};
use super::steps::Step;

/// Told what happens; asked whether to stop.
pub trait Watch: Sync {
    /// A line about what was done, or is about to be.
    fn note(&self, line: &str);

    /// True if the session is to end as soon as it can. From then on failures are not the
    /// subjects'.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Forecasts the rest of a session by what its steps took so far.
#[derive(Debug, Default)]
pub(super) struct Forecast {
    cells: HashMap<usize, Mean>,
    workloads: HashMap<(crate::workload::Workload, String), Mean>,
    makes: Mean,
    runs: Mean,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, seconds: f64) {
        self.sum += seconds;
        self.count += 1;
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl Forecast {
    /// Notes what a step took, with all that goes with it.
    pub(super) fn add(&mut self, plan: &Plan, step: Step, took: Duration) {
        let seconds = took.as_secs_f64();
        match step {
            Step::Make { .. } => self.makes.add(seconds),
            Step::Remove { .. } => {}
            Step::Run { cell, .. } => {
                self.cells.entry(cell).or_default().add(seconds);
                self.workloads.entry(kind(&plan.cells[cell])).or_default().add(seconds);
                self.runs.add(seconds);
            }
        }
    }

    /// Seconds that these steps take, by the nearest that is known: the cell's own runs, its
    /// workload's on its device, any. None before anything ran.
    pub(super) fn left(&self, plan: &Plan, steps: &[Step]) -> Option<f64> {
        self.runs.value()?;
        let of = |step: &Step| match *step {
            Step::Make { .. } => self.makes.value(),
            Step::Remove { .. } => None,
            Step::Run { cell, .. } => {
                let own = self.cells.get(&cell).and_then(|mean| mean.value());
                let like = || self.workloads.get(&kind(&plan.cells[cell])).and_then(|mean| mean.value());
                own.or_else(like).or(self.runs.value())
            }
        };
        Some(steps.iter().filter_map(of).sum())
    }
}

fn kind(cell: &Cell) -> (crate::workload::Workload, String) {
    (cell.workload, cell.device.clone())
}

/// `40 s`, `3 min`, `2 h 5 min`.
pub(super) fn spell_seconds(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e9).round() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Recipe;
    use crate::workload::Workload;

    #[test]
    fn forecasts_by_the_nearest_that_is_known() {
        let cell = |workload| Cell {
            tree: "t".into(),
            recipe: Recipe::default(),
            reader: None,
            workload,
            device: "d".into(),
            jobs: None,
        };
        let cells = [Workload::List, Workload::List, Workload::Decode].map(cell).into();
        let plan = Plan { cells, ..Plan::default() };
        let mut forecast = Forecast::default();
        let run = |cell| Step::Run { cell, round: 0 };
        assert_eq!(forecast.left(&plan, &[run(0)]), None);
        forecast.add(&plan, run(0), Duration::from_secs(10));
        forecast.add(&plan, Step::Make { subject: 0 }, Duration::from_secs(100));
        forecast.add(&plan, run(2), Duration::from_secs(2));
        assert_eq!(forecast.left(&plan, &[run(0), run(1), run(2)]), Some(22.0));
        assert_eq!(
            forecast.left(&plan, &[Step::Make { subject: 1 }, Step::Remove { subject: 0 }]),
            Some(100.0)
        );
    }

    #[test]
    fn times_are_printed_with_suitable_units() {
        assert_eq!([0.4, 99.0, 101.0, 7500.0].map(spell_seconds), ["0 s", "99 s", "2 min", "2 h 5 min"]);
    }
}
