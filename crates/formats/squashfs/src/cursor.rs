//! Sequential reads of records across metadata blocks.
//!
//! Invariant: a cursor only moves forward, and never past the end of its table. Independent of
//! record types.

use crate::blocks::{Block, Metadata};
use crate::endian::Endian;
use crate::fault::MetadataFault;
use crate::place::Place;
use crate::stored::{Region, SQUASHFS_METADATA_SIZE};
use packfs_core::{Error, Result, u32_of, usize_of};
use packfs_format::{OnDisk, filled, structure, units::*};
use std::mem::size_of;
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Position in metadata: offset of a block in the image, and an offset within the decoded block, at
/// most its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    pub(crate) at: u64,
    pub(crate) offset: u32,
}

pub(crate) struct Cursor<'a> {
    metadata: &'a Metadata,
    region: Region,
    what: &'static str,
    at: u64,
    offset: usize,
    block: Arc<Block>,
}

impl Metadata {
    /// Returns a cursor at `offset` of the block that starts `block` bytes after the start of
    /// `region`; `what` names the structure for messages.
    pub(crate) fn cursor(
        &self,
        region: Region,
        what: &'static str,
        block: u64,
        offset: u32,
    ) -> Result<Cursor<'_>> {
        let at = region.start.plus(block);
        Cursor::new(self, region, what, Position { at, offset })
    }
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at a `position` read from an image: it must be inside a block.
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

    /// Returns a cursor at the position of another one, which may be the end of a block.
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

    #[inline]
    pub(crate) fn endian(&self) -> Endian {
        self.metadata.endian()
    }

    /// Names the structure that follows, for messages.
    #[inline]
    pub(crate) fn reading(&mut self, what: &'static str) {
        self.what = what;
    }

    #[inline]
    pub(crate) fn place(&self) -> Place {
        Place { what: self.what, at: self.at, within: Some(u32_of(self.offset as u64)) }
    }

    /// Inside a block or at its end.
    #[inline]
    pub(crate) fn position(&self) -> Position {
        Position { at: self.at, offset: u32_of(self.offset as u64) }
    }

    /// Moves to the next block at the end of the current one, so that the position is that of the
    /// next byte.
    #[inline]
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.rest().is_empty() && self.block.next < self.region.end { self.step() } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        self.block.bytes.within(self.offset..)
    }

    #[inline]
    fn pass(&mut self, len: usize) {
        self.offset = self.offset.plus(len);
    }

    fn step(&mut self) -> Result<()> {
        self.at = self.block.next;
        self.block = self.metadata.block(&self.region, self.at)?;
        self.offset = 0;
        Ok(())
    }

    #[inline]
    pub(crate) fn read<T: OnDisk + FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned>(
        &mut self,
    ) -> Result<T> {
        if let Some(record) = structure(self.rest(), 0) {
            self.pass(size_of::<T>());
            return Ok(record);
        }
        filled(|bytes| self.read_bytes(bytes))
    }

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

    /// Reads `len` bytes; memory grows only as data is read.
    pub(crate) fn read_vec(&mut self, len: u32) -> Result<Vec<u8>> {
        let mut left = len as usize;
        let mut bytes = Vec::with_capacity(left.min(SQUASHFS_METADATA_SIZE));
        while left > 0 {
            self.fill_rest(left as u64)?;
            let rest = self.rest();
            let part = rest.len().min(left);
            bytes.extend_from_slice(rest.within(..part));
            self.pass(part);
            left = left.minus(part);
        }
        Ok(bytes)
    }

    pub(crate) fn skip(&mut self, mut len: u64) -> Result<()> {
        while len > 0 {
            self.fill_rest(len)?;
            let part = (self.rest().len() as u64).min(len);
            self.pass(usize_of(part));
            len = len.minus(part);
        }
        Ok(())
    }

    /// Ensures that the current block has a byte left; `wanted` is for the message.
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
