//! What was measured of mounts beside what was to be reached.

use super::session::{Measured, Outcome};
use super::target::{self, Bound, Opponent};
use crate::bench::judge::mebibytes;

/// One limit and where packfs is.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub against: &'static str,
    pub what: &'static str,
    pub found: f64,
    pub bound: Bound,
}

impl Verdict {
    pub fn is_met(&self) -> bool {
        self.bound.holds(self.found)
    }
}

/// One verdict for each limit the case has and that was measured.
pub fn judge(outcome: &Outcome) -> Vec<Verdict> {
    let Some(packfs) = &outcome.packfs else { return vec![] };
    let against = outcome.opponents.iter().filter_map(|(opponent, rival)| {
        let bound = bound(outcome, *opponent)?;
        let what = target::figure_name(outcome.case.workload.figure());
        Some(Verdict { against: rival.name, what, found: ratio(packfs, rival), bound })
    });
    against.chain(memory(packfs)).collect()
}

pub fn bound(outcome: &Outcome, opponent: Opponent) -> Option<Bound> {
    target::of(outcome.case.workload, outcome.case.format, opponent)
}

fn memory(packfs: &Measured) -> Option<Verdict> {
    let found = mebibytes(packfs.summary.memory_peak?);
    Some(Verdict {
        against: "the limit",
        what: "MiB",
        found,
        bound: Bound::AtMost(mebibytes(target::MEMORY_MAX)),
    })
}

/// packfs to its rival, in the figure that is compared.
pub fn ratio(packfs: &Measured, rival: &Measured) -> f64 {
    packfs.summary.value / rival.summary.value
}

/// `met`, or each limit that is not; `-` where there is none.
pub fn spell(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return "-".to_owned();
    }
    let missed: Vec<_> = verdicts
        .iter()
        .filter(|verdict| !verdict.is_met())
        .map(|verdict| {
            let Verdict { against, what, found, bound } = verdict;
            format!("{what} {found:.3} not {} against {against}", bound.spelled())
        })
        .collect();
    if missed.is_empty() { "met".to_owned() } else { format!("missed: {}", missed.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::read::case::select;
    use crate::bench::read::summary::Summary;

    fn measured(name: &'static str, value: f64, memory_peak: Option<u64>) -> Measured {
        let summary = Summary { value, reader_cpu: 0.0, daemon_cpu: None, memory_peak };
        Measured { name, how: "", command: String::new(), samples: vec![], summary }
    }

    fn verdict(work: &str, ours: f64, theirs: f64, kernel: f64) -> String {
        verdict_with(work, ours, theirs, kernel, 100 << 20)
    }

    fn verdict_with(work: &str, ours: f64, theirs: f64, kernel: f64, memory: u64) -> String {
        let case = select(&[work.to_owned()], &["squashfs".to_owned()], &[]).unwrap().mount[0];
        let outcome = Outcome {
            case,
            packfs: Some(measured("packfs", ours, Some(memory))),
            opponents: vec![
                (Opponent::Fuse, measured("squashfuse_ll", theirs, None)),
                (Opponent::Kernel, measured("kernel", kernel, None)),
            ],
        };
        spell(&judge(&outcome))
    }

    #[test]
    fn judges_time_against_both() {
        assert_eq!(verdict("mount-tar", 0.6, 1.0, 0.7), "met");
        assert_eq!(verdict("mount-tar", 0.6, 1.0, 0.6), "missed: wall 1.000 not < 1.00 against kernel");
    }

    #[test]
    fn judges_rates_the_other_way_round() {
        assert_eq!(verdict("mount-random4k", 1500.0, 1000.0, 9999.0), "met");
        let missed = verdict("mount-sequential", 150.0, 100.0, 100.0);
        assert_eq!(missed, "missed: MB/s 1.500 not >= 2.00 against squashfuse_ll");
    }

    #[test]
    fn judges_memory_after_every_work() {
        assert_eq!(verdict("mount-memory", 1.0, 1.0, 1.0), "met");
        let missed = verdict_with("mount-memory", 1.0, 1.0, 1.0, 200 << 20);
        assert_eq!(missed, "missed: MiB 200.000 not <= 104.00 against the limit");
    }
}
