//! Gathers small pieces into large writes: headers and small files are copied, large pieces are
//! written from their own memory.
//!
//! Composing and writing can run on two threads: chunks are passed in order through a bounded
//! channel.

use packfs_core::{Error, Result, ResultExt};
use packfs_read::SharedBytes;
use std::fs::File;
use std::io::{ErrorKind, IoSlice, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Length of a chunk that is ready to be written.
const CHUNK_LEN_MAX: usize = 512 << 10;
/// Most pieces in one chunk: the limit of `writev`.
const PARTS_MAX: usize = 512;
/// Longer pieces are written from their own memory instead of being copied.
const DIRECT_LEN_MIN: usize = 32 << 10;
/// Most chunks in the channel.
const WAITING_MAX: usize = 4;
/// Record of GNU tar: the archive's length is a multiple of it.
const RECORD_LEN: u64 = 10_240;

#[derive(Default)]
pub(super) struct Chunk {
    gathered: Vec<u8>,
    parts: Vec<Part>,
    len: usize,
}

enum Part {
    Gathered(Range<usize>),
    Shared(SharedBytes),
}

impl Chunk {
    fn bytes<'a>(&'a self, part: &'a Part) -> &'a [u8] {
        match part {
            Part::Gathered(range) => self.gathered.get(range.clone()).unwrap_or_default(),
            Part::Shared(bytes) => bytes,
        }
    }

    fn write_to(&self, out: &mut dyn Write) -> Result<()> {
        let slices = self.parts.iter().map(|part| IoSlice::new(self.bytes(part)));
        let mut slices: Vec<IoSlice<'_>> = slices.collect();
        let mut slices = &mut slices[..];
        // Skips leading empty slices.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match out.write_vectored(slices) {
                Ok(0) => return Err(Error::io("cannot write the archive", ErrorKind::WriteZero.into())),
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("cannot write the archive", error)),
            }
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.gathered.clear();
        self.parts.clear();
        self.len = 0;
    }
}

enum Target<'a> {
    Out(&'a mut dyn Write),
    /// The writing thread returns chunks for reuse.
    Writer(SyncSender<Chunk>, Receiver<Chunk>),
    /// Written beyond the end of a file: skipped ranges are zeros.
    Place(&'a File, u64),
}

pub(super) struct Output<'a> {
    target: Target<'a>,
    chunk: Chunk,
    /// Includes the current chunk.
    len: u64,
}

impl<'a> Output<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Output { target: Target::Out(out), chunk: Chunk::default(), len: 0 }
    }

    /// The file must end at `at`.
    pub(super) fn at(out: &'a File, at: u64) -> Self {
        Output { target: Target::Place(out, at), chunk: Chunk::default(), len: 0 }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn gather(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let gathered = &mut self.chunk.gathered;
        let start = gathered.len();
        fill(gathered);
        let end = gathered.len();
        match self.chunk.parts.last_mut() {
            Some(Part::Gathered(range)) => range.end = end,
            _ => self.chunk.parts.push(Part::Gathered(start..end)),
        }
        self.added(end - start)
    }

    pub(super) fn write(&mut self, bytes: &SharedBytes) -> Result<()> {
        if bytes.len() < DIRECT_LEN_MIN {
            return self.gather(|gathered| gathered.extend_from_slice(bytes));
        }
        self.chunk.parts.push(Part::Shared(bytes.clone()));
        self.added(bytes.len())
    }

    fn added(&mut self, len: usize) -> Result<()> {
        self.len += len as u64;
        self.chunk.len += len;
        let is_full = self.chunk.len >= CHUNK_LEN_MAX || self.chunk.parts.len() >= PARTS_MAX;
        if is_full { self.flush() } else { Ok(()) }
    }

    /// A hole in a file, which other threads may fill.
    pub(super) fn zeros(&mut self, mut count: u64) -> Result<()> {
        if matches!(self.target, Target::Place(..)) {
            self.flush()?;
        }
        if let Target::Place(_, at) = &mut self.target {
            *at = at.saturating_add(count);
            self.len = self.len.saturating_add(count);
            return Ok(());
        }
        while count > 0 {
            let part = count.min(CHUNK_LEN_MAX as u64);
            self.gather(|gathered| gathered.resize(gathered.len() + part as usize, 0))?;
            count -= part;
        }
        Ok(())
    }

    /// Two blocks of zeros, then up to a whole record. Returns the archive's length.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.zeros(2 * super::header::BLOCK_LEN as u64)?;
        self.zeros(self.len.next_multiple_of(RECORD_LEN) - self.len)?;
        self.flush()?;
        Ok(self.len)
    }

    fn flush(&mut self) -> Result<()> {
        match &mut self.target {
            Target::Out(out) => {
                self.chunk.write_to(*out)?;
                self.chunk.clear();
            }
            Target::Writer(full, empty) => {
                let next = empty.try_recv().unwrap_or_default();
                let chunk = std::mem::replace(&mut self.chunk, next);
                // The writer has stopped, and returns its error.
                full.send(chunk)
                    .map_err(|_| Error::failed("cannot write the archive: the writer has stopped"))?;
            }
            Target::Place(out, at) => {
                for part in &self.chunk.parts {
                    let bytes = self.chunk.bytes(part);
                    write_at(out, *at, bytes)?;
                    *at = at.saturating_add(bytes.len() as u64);
                }
                self.chunk.clear();
            }
        }
        Ok(())
    }
}

/// Composes on a separate thread, and writes on this one.
pub(super) fn compose_aside<R: Send>(
    out: &mut dyn Write,
    compose: impl FnOnce(Output<'_>) -> Result<R> + Send,
) -> Result<R> {
    let (full, written) = (sync_channel::<Chunk>(WAITING_MAX), sync_channel::<Chunk>(WAITING_MAX + 2));
    let (full_in, full_out) = full;
    let (empty_in, empty_out) = written;
    std::thread::scope(|scope| {
        let composer = scope.spawn(move || {
            let target = Target::Writer(full_in, empty_out);
            compose(Output { target, chunk: Chunk::default(), len: 0 })
        });
        let mut outcome = Ok(());
        for mut chunk in full_out.iter() {
            outcome = chunk.write_to(out);
            if outcome.is_err() {
                break;
            }
            chunk.clear();
            // Fails only if the channel is full, when the chunk is not needed.
            let _ = empty_in.try_send(chunk);
        }
        drop(full_out);
        let composed = composer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.and(composed)
    })
}

pub(super) fn write_at(out: &File, at: u64, bytes: &[u8]) -> Result<()> {
    out.write_all_at(bytes, at).or_io(|| "cannot write the archive")
}

pub(super) fn flush(out: &mut dyn Write) -> Result<()> {
    out.flush().or_io(|| "cannot write the archive")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts at most 1000 bytes at a time.
    struct Slow(Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            let part = &buf[..buf.len().min(1000)];
            self.0.extend_from_slice(part);
            Ok(part.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Writes pieces of all lengths, and zeros; returns the expected archive and its length.
    fn compose(mut output: Output<'_>) -> Result<(Vec<u8>, u64)> {
        let mut expected = Vec::new();
        for (index, len) in [10, 70_000, 3, 600_000, 32_767, 0, 32_768, 1].into_iter().enumerate() {
            let piece = vec![index as u8 + 1; len];
            expected.extend_from_slice(&piece);
            if index % 2 == 0 {
                output.gather(|gathered| gathered.extend_from_slice(&piece))?;
            } else {
                output.write(&SharedBytes::from(piece))?;
            }
        }
        output.zeros(1_000_000)?;
        expected.resize(expected.len() + 1_000_000 + 1024, 0);
        expected.resize(expected.len().next_multiple_of(10_240), 0);
        Ok((expected, output.finish()?))
    }

    #[test]
    fn keeps_the_order_of_small_and_large_pieces_and_fills_the_last_record() {
        let mut slow = Slow(Vec::new());
        let (expected, len) = compose(Output::new(&mut slow)).unwrap();
        assert_eq!(len, expected.len() as u64);
        assert!(slow.0 == expected);
        let mut aside = Slow(Vec::new());
        assert_eq!(compose_aside(&mut aside, compose).unwrap().1, len);
        assert!(aside.0 == expected);
    }

    #[test]
    fn reports_write_errors_of_both_composers() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("no space"))
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        for outcome in [compose(Output::new(&mut Full)), compose_aside(&mut Full, compose)] {
            assert!(outcome.unwrap_err().to_string().contains("no space"));
        }
        let failed = compose_aside(&mut Slow(Vec::new()), |_| Err::<(), _>(Error::failed("composer")));
        assert_eq!(failed.unwrap_err().to_string(), "composer");
    }
}
