//! Ranges of the inputs' data, and their offsets in the new image.

use packfs_core::{Error, Result};
use packfs_format::{Cluster, ClusterForm};
use std::ops::Range;

/// Ranges from this length on are aligned so that file systems can share their blocks: both offsets
/// have the same remainder by [`SHARED_BLOCK_LEN`].
const SHARED_LEN_MIN: u64 = 1 << 20;
/// Block of file systems that share blocks.
const SHARED_BLOCK_LEN: u64 = 4096;

/// Range of an input's data, and its new offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Index of the input.
    pub input: usize,
    /// Range in the input's data image.
    pub from: Range<u64>,
    /// Start in the new image.
    pub to: u64,
}

impl Move {
    /// Returns the length of the range.
    pub fn data_len(&self) -> u64 {
        self.from.end.saturating_sub(self.from.start)
    }
}

/// Ascending by new offset.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    rows: Vec<Move>,
    /// The last element is the number of rows.
    first: Vec<usize>,
    /// Bytes of no input, at the end of the data.
    pub fresh: Vec<u8>,
    pub fresh_at: u64,
    pub end: u64,
}

impl Moves {
    /// Assigns offsets from `start` on.
    pub(crate) fn new(ranges: Vec<Vec<Range<u64>>>, start: u64, aligned: bool) -> Self {
        let mut moves = Moves { end: start, ..Moves::default() };
        for (input, ranges) in ranges.into_iter().enumerate() {
            moves.first.push(moves.rows.len());
            for from in ranges {
                let len = from.end.saturating_sub(from.start);
                let past = from.start.wrapping_sub(moves.end) % SHARED_BLOCK_LEN;
                let gap = if !aligned && len >= SHARED_LEN_MIN { past } else { 0 };
                let to = moves.end.saturating_add(gap);
                moves.end = to.saturating_add(len);
                moves.rows.push(Move { input, from, to });
            }
        }
        moves.first.push(moves.rows.len());
        moves.fresh_at = moves.end;
        moves
    }

    pub(crate) fn rows(&self) -> &[Move] {
        &self.rows
    }

    pub(crate) fn end_of(&self, input: usize) -> u64 {
        let last = self.first.get(input.saturating_add(1)).and_then(|end| end.checked_sub(1));
        last.and_then(|last| self.rows.get(last)).map_or(0, |row| row.to.saturating_add(row.data_len()))
    }

    /// Errors: `Failed` for an offset outside all ranges.
    pub(crate) fn place(&self, input: usize, offset: u64) -> Result<u64> {
        let lost = || Error::failed(format!("internal: no place for data at {offset:#x}"));
        let (first, end) = (self.first.get(input), self.first.get(input.saturating_add(1)));
        let rows = first.zip(end).and_then(|(&first, &end)| self.rows.get(first..end)).ok_or_else(lost)?;
        let index = rows.partition_point(|row| row.from.start <= offset);
        let row = index.checked_sub(1).and_then(|index| rows.get(index)).ok_or_else(lost)?;
        let within = offset.saturating_sub(row.from.start);
        if within >= row.data_len() { Err(lost()) } else { Ok(row.to.saturating_add(within)) }
    }

    pub(crate) fn relocate(&self, cluster: &mut Cluster, input: usize) -> Result<()> {
        if cluster.form != ClusterForm::Hole {
            cluster.offset = self.place(input, cluster.offset)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_keep_their_place_within_a_range() {
        let moves = Moves::new(vec![vec![100..200, 300..310], vec![], vec![100..150]], 96, false);
        assert_eq!(
            moves.rows().iter().map(|row| (row.input, row.to)).collect::<Vec<_>>(),
            [(0, 96), (0, 196), (2, 206)]
        );
        assert_eq!(moves.place(0, 150).unwrap(), 146);
        assert_eq!(moves.place(0, 309).unwrap(), 205);
        assert_eq!(moves.place(2, 100).unwrap(), 206);
        assert_eq!(moves.end, 256);
        assert_eq!([0, 1, 2].map(|input| moves.end_of(input)), [206, 206, 256]);
        for (input, offset) in [(0, 99), (0, 200), (0, 310), (1, 100), (2, 150), (3, 0)] {
            assert!(moves.place(input, offset).is_err(), "{input} {offset}");
        }
    }

    #[test]
    fn long_ranges_keep_their_offset_within_a_block() {
        let ranges = vec![vec![96..5000], vec![96..(2 << 20)]];
        let moves = Moves::new(ranges.clone(), 96, false);
        assert_eq!((moves.rows()[0].to, moves.rows()[1].to % 4096), (96, 96));
        assert_eq!(Moves::new(ranges, 96, true).rows()[1].to, 5000);
    }
}
