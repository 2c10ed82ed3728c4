//! Records read one after the other, over the ends of metadata blocks.
//!
//! Invariant: a cursor moves forwards only, and never after the end of its table. Knows no record.

use crate::blocks::{Block, Metadata};
use crate::endian::Endian;
use crate::fault::MetadataFault;
use crate::place::Place;
use crate::stored::{Region, SQUASHFS_METADATA_SIZE};
use packfs_core::{Error, Result, u32_of, usize_of};
use std::mem::size_of;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// A place in metadata: a block's offset in the image, and an offset within the decoded block, at
/// most its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    /// Start of the block in the image.
    pub(crate) at: u64,
    /// Offset within the decoded block.
    pub(crate) offset: u32,
}

/// Reads records one after the other, over the ends of blocks.
pub(crate) struct Cursor<'a> {
    metadata: &'a Metadata,
    region: Region,
    what: &'static str,
    at: u64,
    offset: usize,
    block: Arc<Block>,
}

impl Metadata {
    /// A cursor at `offset` of the block that starts `block` bytes after the start of `region`;
    /// `what` is what it is going to read, for messages.
    pub(crate) fn cursor(
        &self,
        region: Region,
        what: &'static str,
        block: u64,
        offset: u32,
    ) -> Result<Cursor<'_>> {
        let at = region.start.saturating_add(block);
        Cursor::new(self, region, what, Position { at, offset })
    }
}

impl<'a> Cursor<'a> {
    /// A cursor at `position`, which an image named: it has to lie inside a block.
    pub(crate) fn new(
        metadata: &'a Metadata,
        region: Region,
        what: &'static str,
        position: Position,
    ) -> Result<Self> {
        let cursor = Cursor::resume(metadata, region, what, position)?;
        if cursor.rest().is_empty() {
            return Err(cursor.beyond(position.offset));
        }
        Ok(cursor)
    }

    /// A cursor where another one was: at the end of a block at most.
    pub(crate) fn resume(
        metadata: &'a Metadata,
        region: Region,
        what: &'static str,
        position: Position,
    ) -> Result<Self> {
        let block = metadata.block(&region, position.at)?;
        let (len, offset) = (block.bytes.len(), position.offset as usize);
        let cursor = Cursor { metadata, region, what, at: position.at, offset: offset.min(len), block };
        if offset > len { Err(cursor.beyond(position.offset)) } else { Ok(cursor) }
    }

    fn beyond(&self, found: u32) -> Error {
        let place = Place::at(self.region.block_name, self.at);
        MetadataFault::MetadataOffset { place, found, len: u32_of(self.block.bytes.len() as u64) }.into()
    }

    /// The byte order of the image.
    #[inline]
    pub(crate) fn endian(&self) -> Endian {
        self.metadata.endian()
    }

    /// Says what is read from here on, for messages.
    #[inline]
    pub(crate) fn reading(&mut self, what: &'static str) {
        self.what = what;
    }

    /// Returns the cursor's place, for messages.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        Place { what: self.what, at: self.at, within: Some(u32_of(self.offset as u64)) }
    }

    /// Returns the cursor's position: inside a block or at its end.
    #[inline]
    pub(crate) fn position(&self) -> Position {
        Position { at: self.at, offset: u32_of(self.offset as u64) }
    }

    /// Goes on to the next block if this one is at its end, so that the position is that of the
    /// next byte.
    #[inline]
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.rest().is_empty() && self.block.next < self.region.end { self.step() } else { Ok(()) }
    }

    /// Returns the rest of the current block.
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        self.block.bytes.get(self.offset..).unwrap_or_default()
    }

    /// Moves on within the current block.
    #[inline]
    fn pass(&mut self, len: usize) {
        self.offset = self.offset.saturating_add(len);
    }

    /// Goes on to the next block.
    fn step(&mut self) -> Result<()> {
        self.at = self.block.next;
        self.block = self.metadata.block(&self.region, self.at)?;
        self.offset = 0;
        Ok(())
    }

    /// Reads one record.
    #[inline]
    pub(crate) fn read<T: FromBytes + IntoBytes>(&mut self) -> Result<T> {
        if let Ok((record, _)) = T::read_from_prefix(self.rest()) {
            self.pass(size_of::<T>());
            return Ok(record);
        }
        let mut record = T::new_zeroed();
        self.read_bytes(record.as_mut_bytes())?;
        Ok(record)
    }

    /// Fills `buf`.
    #[inline]
    pub(crate) fn read_bytes(&mut self, mut buf: &mut [u8]) -> Result<()> {
        while !buf.is_empty() {
            self.fill_rest(buf.len() as u64)?;
            let rest = self.rest();
            let (room, further) = buf.split_at_mut(rest.len().min(buf.len()));
            if let Some(part) = rest.get(..room.len()) {
                room.copy_from_slice(part);
            }
            self.pass(room.len());
            buf = further;
        }
        Ok(())
    }

    /// Reads `len` bytes; memory grows only as the image really yields them.
    pub(crate) fn read_vec(&mut self, len: u32) -> Result<Vec<u8>> {
        let mut left = len as usize;
        let mut bytes = Vec::with_capacity(left.min(SQUASHFS_METADATA_SIZE));
        while left > 0 {
            self.fill_rest(left as u64)?;
            let rest = self.rest();
            let part = rest.len().min(left);
            bytes.extend_from_slice(rest.get(..part).unwrap_or_default());
            self.pass(part);
            left = left.saturating_sub(part);
        }
        Ok(bytes)
    }

    /// Moves on by `len` bytes.
    pub(crate) fn skip(&mut self, mut len: u64) -> Result<()> {
        while len > 0 {
            self.fill_rest(len)?;
            let part = (self.rest().len() as u64).min(len);
            self.pass(usize_of(part));
            len = len.saturating_sub(part);
        }
        Ok(())
    }

    /// Makes sure that the current block has a byte left; `wanted` bytes are still to come, for the
    /// message.
    #[inline]
    fn fill_rest(&mut self, wanted: u64) -> Result<()> {
        if self.offset < self.block.bytes.len() {
            return Ok(());
        }
        if self.block.next >= self.region.end {
            return Err(
                MetadataFault::RecordEnd { place: self.place(), wanted, limit: self.region.end }.into()
            );
        }
        self.step()
    }
}
