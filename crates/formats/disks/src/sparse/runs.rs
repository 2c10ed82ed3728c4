//! Stretches of the disk, and what they hold.

use packfs_core::Result;
use std::ops::Range;

/// Contents of a stretch of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Stored(u64),
    Fill([u8; 4]),
    Zeros,
    /// Nothing: zeros, unless another file of a split image has it.
    Skipped,
}

/// Chunks that hold the same, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Its end on the disk.
    pub(super) end: u64,
    pub(super) holds: Holds,
}

impl Holds {
    /// Returns the same from so many bytes on.
    fn after(self, len: u64) -> Holds {
        match self {
            Holds::Stored(at) => Holds::Stored(at.saturating_add(len)),
            other => other,
        }
    }
}

/// Adds a stretch of the disk. Those that are stored have a head between them.
pub(super) fn push(runs: &mut Vec<Run>, end: u64, holds: Holds) {
    match runs.last_mut() {
        Some(last) if last.holds == holds && !matches!(holds, Holds::Stored(_)) => last.end = end,
        _ => runs.push(Run { end, holds }),
    }
}

/// Puts the stretches of a file, whose stored bytes have moved by `base`, over others, up to the
/// same end. What it skips stays as it was.
pub(super) fn put_over(below: &[Run], over: &[Run], base: u64) -> Vec<Run> {
    let (mut joined, mut at) = (Vec::new(), 0_u64);
    let (mut lower, mut upper) = (below.iter().peekable(), over.iter().peekable());
    let (mut lower_start, mut upper_start) = (0_u64, 0_u64);
    while let (Some(one), Some(other)) = (lower.peek(), upper.peek()) {
        let end = one.end.min(other.end);
        let holds = match other.holds {
            Holds::Skipped => one.holds.after(at.saturating_sub(lower_start)),
            holds => holds.after(at.saturating_sub(upper_start).saturating_add(base)),
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

/// Calls `visit` for the runs in a range of the disk.
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
