//! What was measured beside what was to be reached.

use super::case::Case;
use super::summary::{Summary, len_ratio, ratio};
use super::target;

/// One limit and where we are.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub what: &'static str,
    pub found: f64,
    pub allowed: f64,
}

impl Verdict {
    pub fn is_met(&self) -> bool {
        self.found <= self.allowed
    }
}

/// One verdict for each limit the case has; `entries` is the size of its corpus.
pub fn judge(case: &Case, entries: u64, rival: &Summary, packfs: &Summary) -> Vec<Verdict> {
    let Some(target) = target::of(case) else { return vec![] };
    let mut verdicts =
        vec![Verdict { what: "wall", found: ratio(packfs.wall, rival.wall), allowed: target.wall_ratio_max }];
    let lens = (target.len_ratio_max, packfs.output_len, rival.output_len);
    if let (Some(allowed), Some(ours), Some(theirs)) = lens {
        verdicts.push(Verdict { what: "size", found: len_ratio(ours, theirs), allowed });
    }
    if let Some(memory) = target.memory_max {
        let allowed = mebibytes(memory.for_entries(entries));
        verdicts.push(Verdict { what: "MiB", found: mebibytes(packfs.memory_peak), allowed });
    }
    verdicts
}

pub fn mebibytes(len: u64) -> f64 {
    len as f64 / f64::from(1 << 20)
}

/// `met`, or each limit that is not.
pub fn spell(verdicts: &[Verdict]) -> String {
    let missed: Vec<_> = verdicts
        .iter()
        .filter(|verdict| !verdict.is_met())
        .map(|verdict| format!("{} {:.3} > {:.2}", verdict.what, verdict.found, verdict.allowed))
        .collect();
    if missed.is_empty() { "met".to_owned() } else { format!("missed: {}", missed.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::case::{Filter, select};

    fn summary(millis: u64, memory_peak: u64, output_len: u64) -> Summary {
        let wall = Duration::from_millis(millis);
        Summary { wall, cpu: wall, memory_peak, output_len: Some(output_len) }
    }

    fn verdict(label: &str, ours: Summary) -> String {
        let cases = select(&[], &Filter::default()).unwrap();
        let case = cases.iter().find(|case| case.label() == label).unwrap();
        spell(&judge(case, 1000, &summary(1000, 0, 1000), &ours))
    }

    #[test]
    fn is_met_at_the_limit_itself() {
        assert_eq!(verdict("pack debian squashfs zstd:15 128K", summary(1000, 1 << 20, 1000)), "met");
    }

    #[test]
    fn names_each_limit_that_is_missed() {
        let found = verdict("pack debian squashfs gzip:9 128K", summary(500, 300 << 20, 991));
        assert_eq!(found, "missed: wall 0.500 > 0.40, size 0.991 > 0.99, MiB 300.000 > 200.29");
    }

    #[test]
    fn judges_no_size_where_nothing_is_packed() {
        assert_eq!(verdict("unpack debian squashfs xz 128K", summary(900, 1 << 20, 5000)), "met");
    }
}
