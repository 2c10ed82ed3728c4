//! Runs of one workload as one figure each.

use super::workload::{Figure, Sample};

/// The middle of what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Seconds, reads a second or megabytes a second: what the workload compares.
    pub value: f64,
    /// Seconds of processor time of the readers.
    pub reader_cpu: f64,
    /// The same of the program that serves; None for the kernel's own mount.
    pub daemon_cpu: Option<f64>,
    /// The largest of all runs, in bytes: a limit has to hold for every run.
    pub memory_peak: Option<u64>,
}

impl Summary {
    /// None without samples.
    pub fn of(samples: &[Sample], figure: Figure) -> Option<Self> {
        Some(Self {
            value: median(samples.iter().map(|sample| sample.value(figure)))?,
            reader_cpu: median(samples.iter().map(|sample| sample.reader_cpu.as_secs_f64()))?,
            daemon_cpu: median(
                samples.iter().filter_map(|sample| sample.daemon_cpu).map(|cpu| cpu.as_secs_f64()),
            ),
            memory_peak: samples.iter().filter_map(|sample| sample.memory_peak).max(),
        })
    }
}

/// The middle one, or the mean of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<_> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn takes_the_middle_of_times_and_the_largest_memory() {
        let sample = |millis, memory_peak| Sample {
            wall: Duration::from_millis(millis),
            reader_cpu: Duration::from_millis(2 * millis),
            memory_peak,
            ..Sample::default()
        };
        let samples = [sample(1000, Some(5)), sample(9000, Some(7)), sample(3000, Some(6))];
        let wanted = Summary { value: 3.0, reader_cpu: 6.0, daemon_cpu: None, memory_peak: Some(7) };
        assert_eq!(Summary::of(&samples, Figure::Wall), Some(wanted));
        assert_eq!(Summary::of(&[], Figure::Wall), None);
    }
}
