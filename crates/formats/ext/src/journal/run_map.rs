//! Changing runs of a file: ranges are removed and inserted.

use crate::run::Run;
use packfs_format::units::*;
use std::collections::BTreeMap;

/// Runs by first block, without overlaps.
#[derive(Debug, Default)]
pub(super) struct RunMap(BTreeMap<u64, Run>);

impl RunMap {
    /// Inserts a run, and removes the parts of others that it overlaps.
    pub(super) fn put(&mut self, run: Run) {
        self.cut(run.first, run.count);
        self.0.insert(run.first, run);
    }

    /// Removes a range of blocks.
    pub(super) fn cut(&mut self, first: u64, count: u64) {
        let end = first.plus(count);
        if let Some((_, before)) = self.0.range_mut(..first).next_back() {
            let whole = *before;
            before.count = before.count.min(first.minus(before.first));
            self.keep_behind(whole, end);
        }
        while let Some((at, run)) = self.0.range(first..end).next().map(|(at, run)| (*at, *run)) {
            self.0.remove(&at);
            self.keep_behind(run, end);
        }
    }

    fn keep_behind(&mut self, run: Run, end: u64) {
        let skip = end.minus(run.first);
        if let Some(count) = run.count.checked_sub(skip).filter(|count| *count > 0) {
            let first = run.first.plus(skip);
            let block = run.block.plus(skip);
            self.0.insert(first, Run { first, count, block, is_written: run.is_written });
        }
    }

    pub(super) fn into_runs(self) -> Vec<Run> {
        self.0.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_out_of_runs() {
        let run = |first, count, block| Run { first, count, block, is_written: true };
        let after = |cuts: &[(u64, u64)]| {
            let mut runs = RunMap::default();
            [run(0, 10, 100), run(20, 10, 200), run(30, 5, 300)].into_iter().for_each(|run| runs.put(run));
            cuts.iter().for_each(|(first, count)| runs.cut(*first, *count));
            runs.into_runs()
        };
        assert_eq!(after(&[(5, 20)]), [run(0, 5, 100), run(25, 5, 205), run(30, 5, 300)]);
        assert_eq!(after(&[(1, 2), (20, 15)]), [run(0, 1, 100), run(3, 7, 103)]);
        assert_eq!(after(&[(0, 100)]), []);
        assert_eq!(after(&[(35, 100), (10, 10)]).len(), 3);
    }

    #[test]
    fn many_changes_of_one_file_take_little_time() {
        let mut runs = RunMap::default();
        for index in 0..200_000_u64 {
            runs.put(Run { first: index * 2 % 200_001, count: 1, block: index, is_written: true });
        }
        assert_eq!(runs.into_runs().len(), 200_000);
    }
}
