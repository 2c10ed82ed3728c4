//! Whether files that are looked up are about to be read: so it is where programs open one file
//! after the other, and not where they only look what there is.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Files that were looked up and may still be read, at most.
const AWAITED_MAX: usize = 8;
/// From here on files are expected to be read.
const SCORE_MIN: u32 = 8;
/// Experience beyond this does not count: habits change.
const SCORE_MAX: u32 = 16;
/// What a file costs that was looked up and not read.
const COST: u32 = 2;

/// See the module. Counts may be a little wrong where threads meet; nothing but speed depends on
/// them.
#[derive(Default)]
pub(crate) struct Foresight {
    /// Node ids; 0: none.
    awaited: [AtomicU64; AWAITED_MAX],
    next: AtomicUsize,
    score: AtomicU32,
}

impl Foresight {
    /// Hears of a file that was looked up; whether it will be read, as far as those before tell.
    pub(crate) fn looked_up(&self, node: u64) -> bool {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % AWAITED_MAX;
        if self.awaited[index].swap(node, Ordering::Relaxed) != 0 {
            let score = self.score.load(Ordering::Relaxed);
            self.score.store(score.saturating_sub(COST), Ordering::Relaxed);
        }
        self.score.load(Ordering::Relaxed) >= SCORE_MIN
    }

    /// Hears of a file that is read from its beginning.
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
    fn who_reads_what_he_looks_up_will_do_so_again() {
        let foresight = Foresight::default();
        let told: Vec<bool> = (1..=20)
            .map(|node| {
                let told = foresight.looked_up(node);
                foresight.read(node);
                foresight.read(node);
                told
            })
            .collect();
        let wanted: Vec<bool> = (0..20).map(|count| count >= SCORE_MIN).collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn who_only_looks_is_soon_taken_for_that() {
        let foresight = Foresight::default();
        (1..100).for_each(|node| assert!(!foresight.looked_up(node)));
        for node in 100..200 {
            foresight.looked_up(node);
            foresight.read(node);
        }
        let expected = (200..300).filter(|&node| foresight.looked_up(node)).count();
        assert!(expected <= AWAITED_MAX + (SCORE_MAX / COST) as usize, "{expected}");
    }
}
