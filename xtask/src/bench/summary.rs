//! Many samples of one command as one figure each: medians, which one disturbed run does not move.

use std::time::Duration;

use super::measure::Sample;

/// The middle of what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub wall: Duration,
    pub cpu: Duration,
    /// The largest of all runs, in bytes: a limit has to hold for every run.
    pub memory_peak: u64,
    pub output_len: Option<u64>,
}

impl Summary {
    /// None without samples.
    pub fn of(samples: &[Sample]) -> Option<Self> {
        Some(Self {
            wall: median(samples.iter().map(|sample| sample.wall))?,
            cpu: median(samples.iter().map(Sample::cpu))?,
            memory_peak: samples.iter().map(|sample| sample.memory_peak).max()?,
            output_len: samples.iter().filter_map(|sample| sample.output_len).max(),
        })
    }
}

/// The middle one, or the mean of the two in the middle.
fn median(durations: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut sorted: Vec<_> = durations.collect();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted[middle - 1] + upper) / 2) }
}

/// How many times as long: `ours / theirs`.
pub fn ratio(ours: Duration, theirs: Duration) -> f64 {
    ours.as_secs_f64() / theirs.as_secs_f64()
}

/// How many times as large: `ours / theirs`.
pub fn len_ratio(ours: u64, theirs: u64) -> f64 {
    ours as f64 / theirs as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(values: &[u64]) -> Option<Duration> {
        median(values.iter().copied().map(Duration::from_millis))
    }

    #[test]
    fn takes_the_middle_of_an_odd_number() {
        assert_eq!(millis(&[30, 10, 9000, 20, 15]), Some(Duration::from_millis(20)));
    }

    #[test]
    fn takes_the_mean_of_the_middle_two_of_an_even_number() {
        assert_eq!(millis(&[10, 40, 20, 9000]), Some(Duration::from_millis(30)));
    }

    #[test]
    fn has_no_median_of_nothing() {
        assert_eq!(millis(&[]), None);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn keeps_the_largest_memory_and_the_median_time() {
        let sample = |wall, memory_peak| Sample {
            wall: Duration::from_millis(wall),
            user: Duration::from_millis(2 * wall),
            system: Duration::from_millis(wall),
            memory_peak,
            output_len: Some(7),
        };
        let summary = Summary::of(&[sample(1, 50), sample(3, 70), sample(2, 60)]).unwrap();
        let wanted = Summary {
            wall: Duration::from_millis(2),
            cpu: Duration::from_millis(6),
            memory_peak: 70,
            output_len: Some(7),
        };
        assert_eq!(summary, wanted);
    }

    #[test]
    fn divides_ours_by_theirs() {
        assert!((ratio(Duration::from_secs(1), Duration::from_secs(4)) - 0.25).abs() < 1e-9);
        assert!((len_ratio(99, 100) - 0.99).abs() < 1e-9);
    }
}
