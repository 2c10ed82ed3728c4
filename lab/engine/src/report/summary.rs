//! Each cell of a session as a few figures, with what its subject is: what all reports are made of.

use std::collections::HashMap;

use crate::results::{Measurement, Results, Spread, Subject};

/// A run during which others took more of the processors than this was disturbed.
pub const DISTURBED: f64 = 0.05;

/// One cell.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    /// The runs.
    pub measurement: &'a Measurement,
    /// The subject; none if the document does not describe it.
    pub subject: Option<&'a Subject>,
    /// Seconds from start to end; none of no runs.
    pub wall: Option<Spread>,
    /// Processor seconds, in user mode and in the kernel.
    pub processor: Option<Spread>,
    /// Bytes a second as the user sees them.
    pub rate: Option<Spread>,
    /// Bytes that came from the device.
    pub device_bytes: Option<Spread>,
    /// Requests in which they came.
    pub device_requests: Option<Spread>,
    /// The largest of all runs, in bytes.
    pub memory_peak: Option<u64>,
    /// The largest share of all processors that others took during a run.
    pub disturbed: f64,
}

/// All cells, in the order of the document.
pub fn summaries(results: &Results) -> Vec<Summary<'_>> {
    let subjects: HashMap<&str, &Subject> = results.subjects.iter().map(|it| (it.id.as_str(), it)).collect();
    let processors = f64::from(results.machine.processor_count.max(1));
    results
        .measurements
        .iter()
        .map(|measurement| {
            let runs = &measurement.runs;
            Summary {
                measurement,
                subject: subjects.get(measurement.subject.as_str()).copied(),
                wall: Spread::of(runs.iter().map(|run| run.wall)),
                processor: Spread::of(runs.iter().map(|run| run.user + run.system)),
                rate: Spread::of(runs.iter().filter_map(|run| Some(as_figure(run.bytes?) / run.wall))),
                device_bytes: Spread::of(runs.iter().filter_map(|run| run.device_bytes).map(as_figure)),
                device_requests: Spread::of(runs.iter().filter_map(|run| run.device_requests).map(as_figure)),
                memory_peak: runs.iter().filter_map(|run| run.memory_peak).max(),
                disturbed: runs
                    .iter()
                    .map(|run| (run.noise.others_cpu + run.noise.stolen_cpu) / (run.wall * processors))
                    .filter(|share| share.is_finite())
                    // The kernel counts in hundredths of a second, so that of a shorter run more
                    // than all may seem taken.
                    .map(|share| share.min(1.0))
                    .fold(0.0, f64::max),
            }
        })
        .collect()
}

/// A length as a figure; above 2^53 the last digits are lost, which are not shown.
#[expect(clippy::cast_precision_loss, reason = "digits beyond those that are shown")]
pub fn as_figure(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Noise, Run};

    #[test]
    fn a_cell_without_runs_has_no_figures_and_a_subject_may_be_unknown() {
        let measurement = Measurement {
            workload: "build".into(),
            subject: "nobody's".into(),
            reader: None,
            device: "disk".into(),
            jobs: None,
            command: String::new(),
            runs: vec![],
        };
        let results = Results { measurements: vec![measurement], ..Results::default() };
        let summaries = summaries(&results);
        assert!(summaries[0].subject.is_none() && summaries[0].wall.is_none());
        assert_eq!(summaries[0].disturbed, 0.0);
    }

    #[test]
    fn rates_are_of_each_run_and_noise_is_a_share_of_all_processors() {
        let run = |wall, others_cpu| Run {
            wall,
            bytes: Some(100),
            noise: Noise { others_cpu, stolen_cpu: 0.0 },
            ..Run::default()
        };
        let measurement = Measurement {
            workload: "tar".into(),
            subject: String::new(),
            reader: None,
            device: "disk".into(),
            jobs: None,
            command: String::new(),
            runs: vec![run(1.0, 0.0), run(2.0, 1.0), run(4.0, 0.0), run(0.0, 1.0)],
        };
        let mut results = Results { measurements: vec![measurement], ..Results::default() };
        results.machine.processor_count = 2;
        let summary = &summaries(&results)[0];
        let rate = summary.rate.unwrap();
        assert_eq!((rate.min, rate.median, rate.max), (25.0, 50.0, 100.0));
        assert_eq!(summary.disturbed, 0.25);
        results.measurements[0].runs.push(run(0.001, 0.01));
        assert_eq!(summaries(&results)[0].disturbed, 1.0);
    }
}
