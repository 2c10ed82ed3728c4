//! Output of metadata: written from front to back, passed on in large sections, and hashed for the
//! image's id.

use packfs_core::{Error, Result};
use packfs_format::Section;
use xxhash_rust::xxh3::Xxh3;

/// Bytes buffered before they are passed on.
const SECTION_LEN: usize = 1 << 20;

pub(super) type Put<'a> = &'a mut dyn FnMut(Section) -> Result<()>;

/// Output of metadata at rising positions.
pub(super) trait Sink {
    fn end(&self) -> u64;

    fn append(&mut self, zeros: usize, bytes: &[u8]) -> Result<()>;

    /// Writes bytes at a position, with zeros in the gap before them.
    fn write_at(&mut self, position: u64, bytes: &[u8]) -> Result<()> {
        let zeros = position
            .checked_sub(self.end())
            .ok_or_else(|| Error::failed("metadata is laid out over other metadata"))?;
        self.append(zeros as usize, bytes)
    }
}

/// Uncompressed metadata. Positions are those of the image.
pub(super) struct Stream<'a> {
    put: Put<'a>,
    /// Name of the current structure.
    owner: &'static str,
    /// Position of `buffer`.
    start: u64,
    buffer: Vec<u8>,
    hash: Xxh3,
}

impl<'a> Stream<'a> {
    pub(super) fn new(start: u64, put: Put<'a>) -> Self {
        Stream { put, owner: "metadata", start, buffer: Vec::new(), hash: Xxh3::new() }
    }

    /// Starts a structure with another name.
    pub(super) fn begin(&mut self, owner: &'static str) -> Result<()> {
        self.flush()?;
        self.owner = owner;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.buffer);
        self.hash.update(&bytes);
        let offset = self.start;
        self.start += bytes.len() as u64;
        (self.put)(Section { owner: self.owner, offset, bytes })
    }

    /// Flushes the buffer; returns the hash of everything, and the receiver.
    pub(super) fn finish(mut self) -> Result<(Xxh3, Put<'a>)> {
        self.flush()?;
        Ok((self.hash, self.put))
    }
}

impl Sink for Stream<'_> {
    fn end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    fn append(&mut self, zeros: usize, bytes: &[u8]) -> Result<()> {
        self.buffer.resize(self.buffer.len() + zeros, 0);
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= SECTION_LEN { self.flush() } else { Ok(()) }
    }
}
