//! Metadata blocks: found, decoded once, kept for a while, and read across by a cursor.
//!
//! Owns the only place where this crate reads and decodes bytes of an image. Invariant: a block lies wholly inside the
//! table it is read for, and decodes to 1 to 8,192 bytes; a cursor moves forwards only. Knows no record.

use crate::bits::{Endian, Fields};
use crate::corruption::{Corruption, Place};
use crate::disk::{SQUASHFS_COMPRESSED_BIT, SQUASHFS_MARKER_BYTE, SQUASHFS_METADATA_SIZE};
use packfs_codec::Decoders;
use packfs_core::codec::Algorithm;
use packfs_core::{Error, Image, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// A range of the image that holds the metadata blocks of one table, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// What a block of it is called in messages.
    pub(crate) block_name: &'static str,
    /// Offset of its first block in the image.
    pub(crate) start: u64,
    /// Where it ends.
    pub(crate) end: u64,
}

impl Region {
    /// Most bytes that all its blocks can decode to, given that a block takes at least 3 bytes of the image.
    pub(crate) fn decoded_len_max(&self) -> u64 {
        ((self.end - self.start) / 3 + 1).saturating_mul(SQUASHFS_METADATA_SIZE as u64)
    }
}

/// Length of the longer header.
const HEADER_LEN_MAX: usize = 3;

/// How the word in front of each metadata block looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderForm {
    pub(crate) endian: Endian,
    /// Whether a marker follows the word, as [`crate::disk::SQUASHFS_CHECK`] says.
    pub(crate) marked: bool,
}

impl HeaderForm {
    pub(crate) fn len(self) -> usize {
        if self.marked { HEADER_LEN_MAX } else { HEADER_LEN_MAX - 1 }
    }
}

/// A metadata block as it is stored.
pub(crate) struct StoredBlock {
    bytes: [u8; HEADER_LEN_MAX + SQUASHFS_METADATA_SIZE],
    start: usize,
    end: usize,
    pub(crate) compressed: bool,
    /// Where the next block starts in the image.
    pub(crate) next: u64,
}

impl StoredBlock {
    /// Reads the block of `region` that starts at `at`.
    pub(crate) fn read(image: &dyn Image, form: HeaderForm, region: &Region, at: u64) -> Result<StoredBlock> {
        let place = Place::at(region.block_name, at);
        let header_len = form.len();
        if at < region.start || at >= region.end || region.end - at < header_len as u64 {
            return Err(outside(region, at));
        }
        let mut bytes = [0; HEADER_LEN_MAX + SQUASHFS_METADATA_SIZE];
        let readable = (region.end - at).min((header_len + SQUASHFS_METADATA_SIZE) as u64) as usize;
        image.read_exact_at(at, &mut bytes[..readable])?;
        let word = form.endian.u16([bytes[0], bytes[1]]);
        let stored_len = word & !SQUASHFS_COMPRESSED_BIT;
        // Zero stands for 32,768, which no block of metadata has.
        if stored_len == 0 || usize::from(stored_len) > SQUASHFS_METADATA_SIZE {
            return Err(Corruption::MetadataLength { place, found: stored_len }.into());
        }
        if form.marked && bytes[2] != SQUASHFS_MARKER_BYTE {
            return Err(Corruption::Marker { place, found: bytes[2] }.into());
        }
        let end = header_len + usize::from(stored_len);
        let next = at + end as u64;
        if end > readable {
            return Err(Corruption::MetadataOverrun { place, end: next, limit: region.end }.into());
        }
        let compressed = word & SQUASHFS_COMPRESSED_BIT == 0;
        Ok(StoredBlock { bytes, start: header_len, end, compressed, next })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

/// A decoded block.
#[derive(Debug)]
pub(crate) struct Block {
    /// 1 to 8,192 bytes.
    pub(crate) bytes: Vec<u8>,
    /// Where the next block starts in the image.
    pub(crate) next: u64,
}

const SHARDS: usize = 16;
/// 16 shards of 32 blocks of 8 KiB make 4 MiB.
const SHARD_BLOCKS: usize = 32;

#[derive(Default)]
struct Shard {
    clock: u64,
    /// Offset in the image, when last used, the block.
    blocks: Vec<(u64, u64, Arc<Block>)>,
}

impl Shard {
    fn get(&mut self, at: u64) -> Option<Arc<Block>> {
        self.clock += 1;
        let clock = self.clock;
        let row = self.blocks.iter_mut().find(|row| row.0 == at)?;
        row.1 = clock;
        Some(Arc::clone(&row.2))
    }

    fn put(&mut self, at: u64, block: &Arc<Block>) {
        let row = (at, self.clock, Arc::clone(block));
        if self.blocks.len() < SHARD_BLOCKS {
            self.blocks.push(row);
        } else if let Some(oldest) = self.blocks.iter_mut().min_by_key(|row| row.1) {
            *oldest = row;
        }
    }
}

/// Reads the metadata blocks of one image, from any thread.
pub(crate) struct Metadata {
    image: Arc<dyn Image>,
    form: HeaderForm,
    algorithm: Algorithm,
    decoders: Mutex<Vec<Decoders>>,
    shards: [Mutex<Shard>; SHARDS],
}

impl Metadata {
    pub(crate) fn new(image: Arc<dyn Image>, form: HeaderForm, algorithm: Algorithm) -> Self {
        Metadata { image, form, algorithm, decoders: Mutex::default(), shards: Default::default() }
    }

    /// The image beneath.
    pub(crate) fn image(&self) -> &dyn Image {
        &*self.image
    }

    /// The block of `region` that starts at `at`.
    pub(crate) fn block(&self, region: &Region, at: u64) -> Result<Arc<Block>> {
        // Neighbouring blocks are a few KiB apart: folding in higher bits spreads them over all shards.
        let shard = &self.shards[((at ^ (at >> 6) ^ (at >> 12)) % SHARDS as u64) as usize];
        if let Some(block) = lock(shard).get(at) {
            // The block may have been read for another table, whose end is not this one's.
            return if at < region.start || block.next > region.end {
                Err(outside(region, at))
            } else {
                Ok(block)
            };
        }
        let block = Arc::new(self.decode(region, at)?);
        lock(shard).put(at, &block);
        Ok(block)
    }

    fn decode(&self, region: &Region, at: u64) -> Result<Block> {
        let stored = StoredBlock::read(&*self.image, self.form, region, at)?;
        let bytes = match stored.compressed {
            true => self.decompress(Place::at(region.block_name, at), stored.bytes())?,
            false => stored.bytes().to_vec(),
        };
        Ok(Block { bytes, next: stored.next })
    }

    fn decompress(&self, place: Place, stored: &[u8]) -> Result<Vec<u8>> {
        let mut decoders = lock(&self.decoders).pop().unwrap_or_default();
        let mut bytes = vec![0; SQUASHFS_METADATA_SIZE];
        let decoded = decoders.decompress(self.algorithm, stored, &mut bytes);
        lock(&self.decoders).push(decoders);
        let len = decoded.map_err(|reason| Corruption::MetadataDecode {
            place,
            algorithm: self.algorithm,
            reason,
        })?;
        if len == 0 {
            return Err(Corruption::MetadataEmpty { place }.into());
        }
        bytes.truncate(len);
        Ok(bytes)
    }

    /// A cursor at `offset` of the block that starts `block` bytes behind the start of `region`; `what` is what it is
    /// going to read, for messages.
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

fn outside(region: &Region, at: u64) -> Error {
    let place = Place::at(region.block_name, at);
    Corruption::MetadataPosition { place, start: region.start, end: region.end }.into()
}

/// A lock that a panic elsewhere does not take away: what it guards is only a cache.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place in metadata: a block's offset in the image, and an offset within the decoded block, at most its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    pub(crate) at: u64,
    pub(crate) offset: u32,
}

/// Reads records one behind the other, over the ends of blocks.
pub(crate) struct Cursor<'a> {
    metadata: &'a Metadata,
    region: Region,
    what: &'static str,
    at: u64,
    offset: usize,
    block: Arc<Block>,
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
        Corruption::MetadataOffset { place, found, len: self.block.bytes.len() as u32 }.into()
    }

    /// Says what is read from here on, for messages.
    pub(crate) fn reading(&mut self, what: &'static str) {
        self.what = what;
    }

    /// Where the cursor is, for messages.
    pub(crate) fn place(&self) -> Place {
        Place { what: self.what, at: self.at, within: Some(self.offset as u32) }
    }

    /// Where the cursor is: inside a block or at its end.
    pub(crate) fn position(&self) -> Position {
        Position { at: self.at, offset: self.offset as u32 }
    }

    /// Goes on to the next block if this one is at its end, so that the position is that of the next byte.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.rest().is_empty() && self.block.next < self.region.end { self.step() } else { Ok(()) }
    }

    /// What is left of the current block.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.block.bytes[self.offset..]
    }

    /// Goes on to the next block.
    fn step(&mut self) -> Result<()> {
        self.at = self.block.next;
        self.block = self.metadata.block(&self.region, self.at)?;
        self.offset = 0;
        Ok(())
    }

    /// Reads one record of `N` bytes.
    pub(crate) fn fields<const N: usize>(&mut self) -> Result<Fields<N>> {
        let mut record = [0; N];
        self.read_bytes(&mut record)?;
        Ok(Fields::new(record, self.metadata.form.endian))
    }

    /// Fills `buf`.
    pub(crate) fn read_bytes(&mut self, buf: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < buf.len() {
            self.fill_rest((buf.len() - filled) as u64)?;
            let rest = self.rest();
            let len = rest.len().min(buf.len() - filled);
            buf[filled..filled + len].copy_from_slice(&rest[..len]);
            filled += len;
            self.offset += len;
        }
        Ok(())
    }

    /// Reads `len` bytes; memory grows only as the image really yields them.
    pub(crate) fn read_vec(&mut self, len: u32) -> Result<Vec<u8>> {
        let len = len as usize;
        let mut bytes = Vec::with_capacity(len.min(SQUASHFS_METADATA_SIZE));
        while bytes.len() < len {
            self.fill_rest((len - bytes.len()) as u64)?;
            let rest = self.rest();
            let part = rest.len().min(len - bytes.len());
            bytes.extend_from_slice(&rest[..part]);
            self.offset += part;
        }
        Ok(bytes)
    }

    /// Moves on by `len` bytes.
    pub(crate) fn skip(&mut self, mut len: u64) -> Result<()> {
        while len > 0 {
            self.fill_rest(len)?;
            let part = (self.rest().len() as u64).min(len);
            self.offset += part as usize;
            len -= part;
        }
        Ok(())
    }

    /// Makes sure that the current block has a byte left; `wanted` bytes are still to come, for the message.
    fn fill_rest(&mut self, wanted: u64) -> Result<()> {
        if self.offset < self.block.bytes.len() {
            return Ok(());
        }
        if self.block.next >= self.region.end {
            return Err(Corruption::RecordEnd { place: self.place(), wanted, limit: self.region.end }.into());
        }
        self.step()
    }
}
