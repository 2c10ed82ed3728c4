//! Large writes out of small pieces: headers are gathered, file data goes out as it is.

use packfs_core::{Error, Result, ResultExt};
use std::io::{ErrorKind, IoSlice, Write};

/// How much is gathered before it is written.
const GATHERED_LEN_MAX: usize = 512 << 10;
/// From this length on, bytes are written from where they lie instead of being copied first.
const DIRECT_LEN_MIN: usize = 64 << 10;
/// GNU tar's record: the whole archive is a multiple of it.
const RECORD_LEN: u64 = 10_240;

/// The archive under way.
pub(super) struct Output<'a> {
    out: &'a mut dyn Write,
    gathered: Vec<u8>,
    /// Bytes so far, gathered ones included.
    len: u64,
}

impl<'a> Output<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Output { out, gathered: Vec::with_capacity(GATHERED_LEN_MAX + DIRECT_LEN_MIN), len: 0 }
    }

    /// Appends whatever `fill` appends.
    pub(super) fn gather(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let before = self.gathered.len();
        fill(&mut self.gathered);
        self.len += (self.gathered.len() - before) as u64;
        if self.gathered.len() >= GATHERED_LEN_MAX {
            return self.flush_with(&[]);
        }
        Ok(())
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() < DIRECT_LEN_MIN {
            return self.gather(|gathered| gathered.extend_from_slice(bytes));
        }
        self.len += bytes.len() as u64;
        self.flush_with(bytes)
    }

    /// Appends so many zeros.
    pub(super) fn zeros(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            let part = count.min(GATHERED_LEN_MAX as u64);
            self.gather(|gathered| gathered.resize(gathered.len() + part as usize, 0))?;
            count -= part;
        }
        Ok(())
    }

    /// Ends the archive: two blocks of zeros, then up to a whole record. Returns its length.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.zeros(2 * super::header::BLOCK_LEN as u64)?;
        self.zeros(self.len.next_multiple_of(RECORD_LEN) - self.len)?;
        self.flush_with(&[])?;
        self.out.flush().or_io(|| "cannot write the archive")?;
        Ok(self.len)
    }

    /// Writes what is gathered and `bytes` after it, in one call where the system takes it.
    fn flush_with(&mut self, bytes: &[u8]) -> Result<()> {
        let (mut first, mut second) = (&self.gathered[..], bytes);
        while !first.is_empty() || !second.is_empty() {
            let count = match self.out.write_vectored(&[IoSlice::new(first), IoSlice::new(second)]) {
                Ok(0) => {
                    return Err(Error::io("cannot write the archive", ErrorKind::WriteZero.into()));
                }
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io("cannot write the archive", error)),
            };
            let from_first = count.min(first.len());
            first = first.get(from_first..).unwrap_or_default();
            second = second.get(count - from_first..).unwrap_or_default();
        }
        self.gathered.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes at most 1000 bytes at a time.
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

    #[test]
    fn keeps_the_order_of_small_and_large_pieces_and_fills_the_last_record() {
        let mut slow = Slow(Vec::new());
        let mut expected = Vec::new();
        let mut output = Output::new(&mut slow);
        for (index, len) in [10, 70_000, 3, 600_000, 65_535, 0, 65_536].into_iter().enumerate() {
            let piece = vec![index as u8 + 1; len];
            output.write(&piece).unwrap();
            expected.extend_from_slice(&piece);
        }
        output.zeros(1_000_000).unwrap();
        expected.resize(expected.len() + 1_000_000 + 1024, 0);
        expected.resize(expected.len().next_multiple_of(10_240), 0);
        assert_eq!(output.finish().unwrap(), expected.len() as u64);
        assert!(slow.0 == expected);
    }
}
