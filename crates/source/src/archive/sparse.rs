//! Maps of sparse members: the ranges of the file that are stored, in order.

use std::ops::Range;

/// Linux's limit of a file's length, in bytes.
const LEN_MAX: u64 = i64::MAX as u64;

/// Ranges are in order and disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SparseMap {
    pub len: u64,
    pub runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub file: Range<u64>,
    pub stored: u64,
}

impl SparseMap {
    /// `numbers` alternates offsets and lengths. Errors name the fault.
    pub(crate) fn new(numbers: &[u64], len: u64, stored_len: u64) -> Result<Self, String> {
        if len > LEN_MAX {
            return Err(format!("its length with holes is {len}: at most {LEN_MAX} allowed"));
        }
        if !numbers.len().is_multiple_of(2) {
            return Err("its sparse map ends in the middle of an entry".into());
        }
        let mut runs = Vec::with_capacity(numbers.len() / 2);
        let (mut last_end, mut stored) = (0, 0);
        for pair in numbers.chunks_exact(2) {
            let end = pair[0].checked_add(pair[1]).filter(|&end| pair[0] >= last_end && end <= len);
            let Some(end) = end else {
                return Err(format!(
                    "its sparse map has {} bytes at {}; they must follow byte {last_end} and end by {len}",
                    pair[1], pair[0]
                ));
            };
            if pair[1] > 0 {
                runs.push(Run { file: pair[0]..end, stored });
                stored += pair[1];
                last_end = end;
            }
        }
        if stored != stored_len {
            return Err(format!("its sparse map adds up to {stored} bytes, but {stored_len} are stored"));
        }
        Ok(SparseMap { len, runs })
    }

    pub(crate) fn run_behind(&self, offset: u64) -> Option<&Run> {
        self.runs.get(self.runs.partition_point(|run| run.file.end <= offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_must_rise_stay_inside_and_add_up() {
        assert!(SparseMap::new(&[0, 10, 20, 5, 100, 0], 100, 15).is_ok());
        for (numbers, len, stored_len) in [
            (&[0, 10, 5, 5][..], 100, 15),
            (&[0, 101], 100, 101),
            (&[u64::MAX, 2], u64::MAX, 2),
            (&[0, 10], 100, 11),
            (&[0], 100, 0),
        ] {
            assert!(SparseMap::new(numbers, len, stored_len).is_err(), "{numbers:?}");
        }
    }

    #[test]
    fn finds_the_run_that_an_offset_is_in_or_before() {
        let map = SparseMap::new(&[10, 10, 30, 10], 50, 20).unwrap();
        let starts: Vec<Option<u64>> =
            [0, 10, 19, 20, 39, 40].map(|at| map.run_behind(at).map(|run| run.file.start)).into();
        assert_eq!(starts, [Some(10), Some(10), Some(10), Some(30), Some(30), None]);
    }
}
