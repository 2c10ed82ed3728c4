//! Time to make the image.

use super::size::{Pair, Whole};
use serde::Serialize;

/// Time lost between threads, at the ends of stages.
const NOT_PARALLEL: f64 = 1.1;

/// Time to make an image.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Build {
    /// Seconds of all processors.
    pub cpu: f64,
    /// Seconds on as many processors as this process may use.
    pub wall: f64,
}

/// Forecasts the whole: the quick codec's time, and the candidate's additional time on the samples.
pub(crate) fn forecast(whole: &Whole, pairs: &[Pair], jobs: usize) -> Build {
    let sum = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>();
    let more = sum(|pair| pair.candidate.cpu) - sum(|pair| pair.reference.cpu);
    let sampled = sum(|pair| pair.reference.data_len as f64);
    let times = if sampled > 0.0 { whole.packed.data_len as f64 / sampled } else { 0.0 };
    let cpu = (whole.packed.cpu + more * times).max(whole.packed.cpu * 0.1) * whole.times;
    of_cpu(cpu, jobs)
}

pub(crate) fn of_cpu(cpu: f64, jobs: usize) -> Build {
    let jobs = jobs.max(1) as f64;
    Build { cpu, wall: if jobs > 1.0 { cpu / jobs * NOT_PARALLEL } else { cpu } }
}
