//! The epoch of an image, chosen so that as many inodes as possible can be compact and keep their
//! time.
//!
//! A compact inode has the image's nanoseconds and, before Linux 6.15, the image's epoch as its
//! time; since then 32 bits of seconds after the epoch. An inode with any other time is extended.

use packfs_core::{Timestamp, Tree};
use packfs_format::units::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub epoch: i64,
    pub nanos: u32,
    /// True if compact inodes store seconds after the epoch.
    pub wide: bool,
    pub kept: bool,
}

impl Times {
    pub(super) fn new(tree: &Tree, epoch: Option<i64>, wide: bool, kept: bool, made_at: i64) -> Self {
        if !kept {
            return Times { epoch: epoch.unwrap_or(made_at), nanos: 0, wide, kept };
        }
        let times = || tree.nodes().map(|(_, node)| node.meta.mtime);
        let best = if wide { best_range(times(), epoch) } else { most_frequent(times(), epoch) };
        Times { epoch: epoch.unwrap_or(best.seconds), nanos: best.nanos, wide, kept }
    }

    /// Returns the stored time of a compact inode; `None` if it does not fit.
    pub(super) fn compact(&self, time: Timestamp) -> Option<u32> {
        if !self.kept {
            return Some(0);
        }
        let after = time.seconds.checked_sub(self.epoch).filter(|_| time.nanos == self.nanos)?;
        if self.wide { u32::try_from(after).ok() } else { (after == 0).then_some(0) }
    }

    pub(super) fn stored(&self, time: Timestamp) -> Timestamp {
        if self.kept { time } else { Timestamp { seconds: self.epoch, nanos: self.nanos } }
    }
}

/// Returns the most frequent time; of equally frequent ones the earliest.
fn most_frequent(times: impl Iterator<Item = Timestamp>, epoch: Option<i64>) -> Timestamp {
    let mut times: Vec<Timestamp> =
        times.filter(|time| epoch.is_none_or(|epoch| time.seconds == epoch)).collect();
    times.sort_unstable();
    // `max_by_key` returns the last of equal ones.
    let best = times.chunk_by(|a, b| a == b).rev().max_by_key(|group| group.len());
    best.and_then(|group| group.first().copied()).unwrap_or_default()
}

/// Returns the start of the 2^32 seconds, with nanoseconds, that contain most times; of equally
/// good ones the earliest.
fn best_range(times: impl Iterator<Item = Timestamp>, epoch: Option<i64>) -> Timestamp {
    let mut times: Vec<Timestamp> = times.collect();
    times.sort_unstable_by_key(|time| (time.nanos, time.seconds));
    let (mut best, mut best_count) = (Timestamp::default(), 0);
    for group in times.chunk_by(|a, b| a.nanos == b.nanos) {
        let mut end = 0;
        for (start, &time) in group.iter().enumerate() {
            let first = epoch.unwrap_or(time.seconds);
            let within = |other: &Timestamp| {
                other.seconds.checked_sub(first).is_some_and(|after| after <= i64::from(u32::MAX))
            };
            while group.get(end).is_some_and(within) {
                end += 1;
            }
            let skipped = group.partition_point(|other| other.seconds < first).max(start);
            let count = left(end, skipped);
            if count > best_count {
                (best, best_count) = (Timestamp { seconds: first, nanos: time.nanos }, count);
            }
            if epoch.is_some() {
                break;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanos: u32) -> Timestamp {
        Timestamp { seconds, nanos }
    }

    #[test]
    fn the_most_frequent_time_is_the_epoch_where_small_inodes_have_no_other() {
        let times = [at(5, 0), at(9, 7), at(9, 7), at(9, 0), at(5, 0), at(5, 0)];
        assert_eq!(most_frequent(times.into_iter(), None), at(5, 0));
        assert_eq!(most_frequent(times.into_iter(), Some(9)), at(9, 7));
    }

    #[test]
    fn a_range_takes_in_as_many_as_it_can_before_1970_and_after_2106() {
        let far = i64::from(u32::MAX) + 1;
        let times = [at(-100, 0), at(0, 0), at(far, 0), at(far + 1, 0), at(far + 2, 0), at(3, 1)];
        assert_eq!(best_range(times.into_iter(), None), at(far, 0));
        assert_eq!(best_range(times[..2].iter().copied(), None), at(-100, 0));
        let times = Times { epoch: -100, nanos: 0, wide: true, kept: true };
        assert_eq!(times.compact(at(0, 0)), Some(100));
        assert_eq!(times.compact(at(-101, 0)), None);
        assert_eq!(times.compact(at(far, 0)), None);
        assert_eq!(times.compact(at(0, 1)), None);
    }

    #[test]
    fn without_a_range_only_the_epoch_is_stored() {
        let times = Times { epoch: 100, nanos: 5, wide: false, kept: true };
        assert_eq!(times.compact(at(100, 5)), Some(0));
        assert_eq!(times.compact(at(101, 5)), None);
        assert_eq!(times.compact(at(100, 0)), None);
    }
}
