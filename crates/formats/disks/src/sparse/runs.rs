//! Ranges of the disk and their contents.

use packfs_core::Result;
use packfs_format::units::*;
use std::ops::Range;

/// Contents of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Stored(u64),
    Fill([u8; 4]),
    Zeros,
    /// Zeros, unless another file of a split image contains it.
    Skipped,
}

/// Adjacent chunks with the same contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) end: u64,
    pub(super) holds: Holds,
}

impl Holds {
    /// Returns the contents after `len` bytes.
    fn after(self, len: u64) -> Holds {
        match self {
            Holds::Stored(at) => Holds::Stored(at.plus(len)),
            other => other,
        }
    }
}

/// Appends a range. Stored ones are separated by a header.
pub(super) fn push(runs: &mut Vec<Run>, end: u64, holds: Holds) {
    match runs.last_mut() {
        Some(last) if last.holds == holds && !matches!(holds, Holds::Stored(_)) => last.end = end,
        _ => runs.push(Run { end, holds }),
    }
}

/// Overlays the ranges of a file, whose stored bytes have moved by `base`, up to the same end.
/// Skipped ranges remain as they were.
pub(super) fn put_over(below: &[Run], over: &[Run], base: u64) -> Vec<Run> {
    let (mut joined, mut at) = (Vec::new(), 0_u64);
    let (mut lower, mut upper) = (below.iter().peekable(), over.iter().peekable());
    let (mut lower_start, mut upper_start) = (0_u64, 0_u64);
    while let (Some(one), Some(other)) = (lower.peek(), upper.peek()) {
        let end = one.end.min(other.end);
        let holds = match other.holds {
            Holds::Skipped => one.holds.after(at.minus(lower_start)),
            holds => holds.after(at.minus(upper_start).plus(base)),
        };
        push(&mut joined, end, holds);
        at = end;
        if lower.next_if(|run| run.end == end).is_some() {
            lower_start = end;
        }
        if upper.next_if(|run| run.end == end).is_some() {
            upper_start = end;
        }
    }
    joined
}

pub(super) fn each_run(
    runs: &[Run],
    range: Range<u64>,
    visit: &mut dyn FnMut(Range<u64>, u64, Holds) -> Result<bool>,
) -> Result<()> {
    let first = runs.partition_point(|run| run.end <= range.start);
    let mut start = first.checked_sub(1).and_then(|before| runs.get(before)).map_or(0, |run| run.end);
    for run in runs.iter().skip(first) {
        if start >= range.end {
            break;
        }
        let part = start.max(range.start)..run.end.min(range.end);
        if !visit(part, start, run.holds)? {
            break;
        }
        start = run.end;
    }
    Ok(())
}
