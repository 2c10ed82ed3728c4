//! The parts of files and their stored positions, looked up on all threads.
//!
//! Limits the number of rows in memory. Rows are not sorted here.

use crate::Wanted;
use crate::block;
use crate::engine::ReadEngine;
use crate::piece_sink::PieceSink;
use packfs_codec::BlockRef;
use packfs_core::{Error, Progress, Result};
use packfs_format::{Extent, ExtentFrom, units::*};
use std::cmp::{Ordering, Reverse};
use std::ops::{ControlFlow, Range};

/// Most rows at a time.
const ROWS_MAX: usize = 1 << 18;
/// Uncompressed data is split into pieces of this length.
const STORED_PIECE_LEN: u64 = 1 << 20;
/// Fewer files than this are not worth a thread.
const FILES_MIN: usize = 256;
/// Most files that one thread looks up before results are merged.
const SHARE_LEN_MAX: usize = 16 << 10;

#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) block: BlockRef,
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) file: u32,
    pub(crate) offset: u64,
}

impl Row {
    pub(crate) fn stored(&self) -> Range<u64> {
        block::stored_range(&self.block)
    }

    /// Sorts the longest of several prefixes of one block first: decoding that one is enough.
    pub(crate) fn by_place(&self, other: &Row) -> Ordering {
        let key = |row: &Row| {
            let block = &row.block;
            let stored = (block.stored_len, block.algorithm, block.zero_padded);
            (stored, Reverse(block.decoded_len), block.decodes_to, row.start, row.file, row.offset)
        };
        self.block.offset.cmp(&other.block.offset).then_with(|| key(self).cmp(&key(other)))
    }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct At {
    pub(crate) file: usize,
    offset: u64,
}

#[derive(Default)]
struct Share {
    rows: Vec<Row>,
    /// Length of the data of each file, or the error of looking it up.
    outcomes: Vec<(usize, Result<u64>)>,
    next: usize,
}

impl ReadEngine {
    /// Returns at least one row if any are left, at most [`ROWS_MAX`].
    pub(crate) fn rows_from(
        &self,
        files: &[Wanted],
        at: &mut At,
        sink: &mut impl PieceSink,
        progress: &dyn Progress,
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        while at.file < files.len() && rows.len() < ROWS_MAX {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            if at.offset == 0 {
                self.look_up_together(files, at, &mut rows, sink)?;
            }
            let Some(wanted) = files.get(at.file) else { break };
            let (next, data_len) = self.look_up_file(at.file, wanted, at.offset, &mut rows, ROWS_MAX);
            if at.offset == 0 && wanted.len > 0 {
                announce(sink, at.file, data_len)?;
            } else if let Err(error) = data_len {
                sink.failed(at.file, error)?;
            }
            *at = if next < wanted.len {
                At { file: at.file, offset: next }
            } else {
                At { file: at.file + 1, offset: 0 }
            };
        }
        Ok(rows)
    }

    /// Stops after the first file with very many rows.
    fn look_up_together(
        &self,
        files: &[Wanted],
        at: &mut At,
        rows: &mut Vec<Row>,
        sink: &mut impl PieceSink,
    ) -> Result<()> {
        let left = files.len() - at.file;
        let share_count = self.jobs().min(left / FILES_MIN);
        if share_count < 2 {
            return Ok(());
        }
        let share_len = left.div_ceil(share_count).min(SHARE_LEN_MAX);
        let rows_max = ROWS_MAX.minus(rows.len()) / share_count;
        let ranges = (0..share_count).map(|index| {
            let start = at.file + index * share_len;
            start.min(files.len())..(start + share_len).min(files.len())
        });
        let shares: Vec<(Share, usize)> = std::thread::scope(|scope| {
            let threads: Vec<_> = ranges
                .map(|range| {
                    let end = range.end;
                    (scope.spawn(move || self.look_up_share(files, range, rows_max)), end)
                })
                .collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Share>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(|(thread, end)| (join(thread), end)).collect()
        });
        for (share, end) in shares {
            for (file, outcome) in share.outcomes {
                announce(sink, file, outcome)?;
            }
            rows.extend(share.rows);
            at.file = share.next;
            if share.next < end {
                break;
            }
        }
        Ok(())
    }

    fn look_up_share(&self, files: &[Wanted], range: Range<usize>, rows_max: usize) -> Share {
        let mut share = Share { next: range.start, ..Share::default() };
        for file in range {
            let before = share.rows.len();
            let wanted = &files[file];
            let (next, outcome) = self.look_up_file(file, wanted, 0, &mut share.rows, rows_max);
            if next < wanted.len {
                share.rows.truncate(before);
                break;
            }
            if wanted.len > 0 {
                share.outcomes.push((file, outcome));
            }
            share.next = file + 1;
        }
        share.rows.sort_unstable_by(Row::by_place);
        share
    }

    /// Adds as many as fit. Returns the position to continue at, and the length of the data after
    /// `from`.
    fn look_up_file(
        &self,
        file: usize,
        wanted: &Wanted,
        from: u64,
        rows: &mut Vec<Row>,
        rows_max: usize,
    ) -> (u64, Result<u64>) {
        let before = rows.len();
        let (mut data_len, mut next) = (0_u64, wanted.len);
        let outcome = self.volume.extents(wanted.id, from..wanted.len, &mut |extent| {
            if !matches!(extent.from, ExtentFrom::Hole) {
                data_len = end_of(data_len, extent.len);
            }
            let end = extent.range().end;
            if next == wanted.len {
                let done = push_rows(file as u32, &extent, rows, rows_max);
                next = if done < end { done } else { wanted.len };
            }
            // The whole file is measured first, however many rows fit.
            if from > 0 && next < wanted.len { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match outcome {
            Ok(()) => (next, Ok(data_len)),
            Err(error) => {
                rows.truncate(before);
                (wanted.len, Err(error))
            }
        }
    }
}

fn announce(sink: &mut impl PieceSink, file: usize, data_len: Result<u64>) -> Result<()> {
    match data_len {
        Ok(data_len) => sink.expect(file, data_len),
        Err(error) => sink.failed(file, error)?,
    }
    Ok(())
}

/// Adds as many as fit; returns the end of the last one in the file.
fn push_rows(file: u32, extent: &Extent, rows: &mut Vec<Row>, rows_max: usize) -> u64 {
    let end = extent.range().end;
    match extent.from {
        _ if rows.len() >= rows_max => return extent.offset,
        ExtentFrom::Hole => {}
        ExtentFrom::Block { block, start } => {
            // An extent is never longer than its block.
            rows.push(Row {
                block,
                start,
                len: extent.len.min(u64::from(u32::MAX)) as u32,
                file,
                offset: extent.offset,
            });
        }
        ExtentFrom::Stored(at) => {
            let mut done = 0;
            while done < extent.len {
                if rows.len() >= rows_max {
                    return extent.offset + done;
                }
                let len = (extent.len - done).min(STORED_PIECE_LEN) as u32;
                let offset = end_of(at, done);
                let block = BlockRef::stored(offset, len);
                rows.push(Row { block, start: 0, len, file, offset: extent.offset + done });
                done += u64::from(len);
            }
        }
    }
    end
}
