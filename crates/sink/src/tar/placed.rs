//! Writes an archive to a regular file with all threads: headers determine the position of
//! contents, so the thread that decodes a block writes its pieces there, in disk order.
//!
//! Invariant: the bytes equal those of an archive written in order. Padding and holes are skipped,
//! because they are beyond the file's end and read as zeros.

use super::output::{Output, write_at};
use super::{Archive, TarReport, Writing, header};
use crate::ready::{Opener, Ready};
use packfs_core::{Error, Result, ResultExt};
use packfs_read::PieceSink;
use rustix::fs::{FileType, OFlags};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::sync::OnceLock;

/// `None` unless the file supports positioned writes and ends at its current position.
pub(super) fn room_behind(mut out: &File) -> Option<u64> {
    let stat = rustix::fs::fstat(out).ok()?;
    let appends = rustix::fs::fcntl_getfl(out).ok()?.contains(OFlags::APPEND);
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || appends {
        return None;
    }
    let start = out.stream_position().ok()?;
    u64::try_from(stat.st_size).ok().filter(|&len| len <= start).map(|_| start)
}

pub(super) fn write(writing: &Writing<'_>, mut out: &File, start: u64) -> Result<TarReport> {
    let (places, ready) = (OnceLock::new(), Ready::default());
    let lay_out = |opener: Opener<'_>| {
        let mut archive = writing.archive(Output::at(out, start));
        let laid_out = archive.lay_out(start, writing)?;
        // Set once, here.
        let _ = places.set(laid_out);
        opener.open();
        archive.finish()
    };
    let outcome = std::thread::scope(|scope| {
        let opener = ready.opener();
        let laying_out = scope.spawn(move || lay_out(opener));
        let new_worker = || Ok(Worker { writing, out, places: &places, ready: Some(&ready) });
        let written = writing.engine.in_disk_order(&writing.wanted, writing.progress, &new_worker);
        let report = laying_out.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // An error in a header is the cause if contents could not be written.
        report.and_then(|report| written.map(|()| report))
    });
    let end = outcome.as_ref().map_or(start, |report| start + report.archive_len);
    let ended = out.set_len(end).and_then(|()| out.seek(SeekFrom::Start(end)));
    let report = outcome?;
    ended.or_io(|| "cannot write the archive").map(|_| report)
}

struct Place {
    start: u64,
    /// Stored ranges, if not all; each with the number of stored bytes before it.
    runs: Option<Vec<(Range<u64>, u64)>>,
}

impl Place {
    fn new(start: u64, runs: Option<Vec<Range<u64>>>) -> Self {
        let with_sums = |runs: Vec<Range<u64>>| {
            let mut sum = 0;
            let rows = runs.into_iter().map(|run| {
                let before = sum;
                sum += run.end - run.start;
                (run, before)
            });
            rows.collect()
        };
        Place { start, runs: runs.map(with_sums) }
    }

    /// `None` unless all `len` bytes from `offset` on are stored.
    fn of(&self, offset: u64, len: u64) -> Option<u64> {
        let Some(runs) = &self.runs else { return self.start.checked_add(offset) };
        let index = runs.partition_point(|(run, _)| run.end <= offset);
        let (run, before) = runs.get(index).filter(|(run, _)| run.contains(&offset))?;
        (len <= run.end - offset).then(|| self.start + before + (offset - run.start))
    }
}

impl Archive<'_, '_> {
    /// Returns the position of each file's contents.
    fn lay_out(&mut self, start: u64, writing: &Writing<'_>) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        loop {
            self.write_headers()?;
            let (Some(current), Some(wanted)) = (self.current.take(), writing.wanted.get(places.len()))
            else {
                return Ok(places);
            };
            if writing.progress.cancelled() {
                return Err(Error::cancelled());
            }
            let of_runs = |runs: &Vec<Range<u64>>| runs.iter().map(|run| run.end - run.start).sum();
            let len = current.runs.as_ref().map_or(wanted.len, of_runs);
            places.push(Place::new(start + self.output.len(), current.runs));
            self.output.zeros(len + header::padding(len) as u64)?;
        }
    }
}

struct Worker<'a> {
    writing: &'a Writing<'a>,
    out: &'a File,
    places: &'a OnceLock<Vec<Place>>,
    /// `None` once the positions are known.
    ready: Option<&'a Ready>,
}

impl PieceSink for Worker<'_> {
    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Some(ready) = self.ready.take() {
            ready.wait()?;
        }
        let place = self.places.get().and_then(|places| places.get(file_index));
        let at = place
            .and_then(|place| place.of(offset, bytes.len() as u64))
            .ok_or_else(|| Error::failed("cannot write the archive: contents without a place"))?;
        write_at(self.out, at, bytes)
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        Err(self.writing.name(file_index, error))
    }
}
