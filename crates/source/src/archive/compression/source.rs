//! Compressed bytes that can be read and peeked at.

use super::Watched;
use std::io::{self, BufRead, Read};

/// A buffered reader whose [`peek`](Source::peek) extends its buffer.
pub(super) struct Source {
    reader: Watched,
    buffer: Vec<u8>,
    read: usize,
}

impl Source {
    pub(super) fn new(reader: Watched) -> Self {
        Source { reader, buffer: Vec::new(), read: 0 }
    }

    /// Fewer before the end.
    pub(super) fn peek(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.read < len && self.fill()? > 0 {}
        let rest = &self.buffer[self.read..];
        Ok(&rest[..rest.len().min(len)])
    }

    pub(super) fn into_rest(mut self) -> Box<dyn Read + Send> {
        self.buffer.drain(..self.read);
        Box::new(io::Cursor::new(self.buffer).chain(self.reader.reader))
    }

    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.read);
        self.read = 0;
        let start = self.buffer.len();
        self.buffer.resize(start + super::PART_LEN, 0);
        let outcome = loop {
            match self.reader.read(&mut self.buffer[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        self.buffer.truncate(start + *outcome.as_ref().unwrap_or(&0));
        outcome
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(buf)?;
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.read == self.buffer.len() {
            self.fill()?;
        }
        Ok(&self.buffer[self.read..])
    }

    fn consume(&mut self, len: usize) {
        self.read = (self.read + len).min(self.buffer.len());
    }
}
