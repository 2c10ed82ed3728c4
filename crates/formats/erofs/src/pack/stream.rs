//! Metadata on its way out: written from front to back, handed on in large sections, hashed for the
//! image's id.

use packfs_core::{Error, Result};
use packfs_format::Section;
use xxhash_rust::xxh3::Xxh3;

/// Bytes gathered before they are handed on.
const SECTION_LEN: usize = 1 << 20;

/// Receiver of sections.
pub(super) type Put<'a> = &'a mut dyn FnMut(Section) -> Result<()>;

/// Metadata on its way out, at rising positions.
pub(super) trait Sink {
    /// Returns the position of the next byte.
    fn end(&self) -> u64;

    /// Appends zeros, then bytes.
    fn append(&mut self, zeros: usize, bytes: &[u8]) -> Result<()>;

    /// Writes bytes at a position, after zeros from the end of the bytes before.
    fn write_at(&mut self, position: u64, bytes: &[u8]) -> Result<()> {
        let zeros = position
            .checked_sub(self.end())
            .ok_or_else(|| Error::failed("metadata is laid out over other metadata"))?;
        self.append(zeros as usize, bytes)
    }
}

/// Metadata that is stored uncompressed. Positions are from the start of the image.
pub(super) struct Stream<'a> {
    put: Put<'a>,
    /// Name of the structure that is being written.
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

    /// Begins a structure of another name.
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

    /// Writes all that is left; the hash of everything, and who takes the other sections.
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
