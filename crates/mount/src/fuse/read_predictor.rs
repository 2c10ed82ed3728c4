//! Predicts if files that are looked up will be read: true while programs open one file after the
//! other, false while they only list files.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

const AWAITED_MAX: usize = 8;
/// Score from which files are expected to be read.
const SCORE_MIN: u32 = 8;
/// Greatest score, so that predictions adapt.
const SCORE_MAX: u32 = 16;
/// Penalty for a file that was looked up and not read.
const COST: u32 = 2;

/// Races may change scores slightly, which only affects speed.
#[derive(Default)]
pub(crate) struct ReadPredictor {
    /// Node ids; 0 means none.
    awaited: [AtomicU64; AWAITED_MAX],
    next: AtomicUsize,
    score: AtomicU32,
}

impl ReadPredictor {
    /// Returns true if the file is expected to be read.
    pub(crate) fn looked_up(&self, node: u64) -> bool {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % AWAITED_MAX;
        if self.awaited[index].swap(node, Ordering::Relaxed) != 0 {
            let score = self.score.load(Ordering::Relaxed);
            self.score.store(score.saturating_sub(COST), Ordering::Relaxed);
        }
        self.score.load(Ordering::Relaxed) >= SCORE_MIN
    }

    pub(crate) fn read(&self, node: u64) {
        let awaited = self.awaited.iter().find(|awaited| awaited.load(Ordering::Relaxed) == node);
        if let Some(awaited) = awaited {
            awaited.store(0, Ordering::Relaxed);
            let score = self.score.load(Ordering::Relaxed);
            self.score.store((score + 1).min(SCORE_MAX), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicts_reads_after_lookups_that_led_to_reads() {
        let read_predictor = ReadPredictor::default();
        let told: Vec<bool> = (1..=20)
            .map(|node| {
                let told = read_predictor.looked_up(node);
                read_predictor.read(node);
                read_predictor.read(node);
                told
            })
            .collect();
        let wanted: Vec<bool> = (0..20).map(|count| count >= SCORE_MIN).collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn predicts_no_reads_after_lookups_alone() {
        let read_predictor = ReadPredictor::default();
        (1..100).for_each(|node| assert!(!read_predictor.looked_up(node)));
        for node in 100..200 {
            read_predictor.looked_up(node);
            read_predictor.read(node);
        }
        let expected = (200..300).filter(|&node| read_predictor.looked_up(node)).count();
        assert!(expected <= AWAITED_MAX + (SCORE_MAX / COST) as usize, "{expected}");
    }
}
