//! Reading of structures: bytes at an offset with a memory of what was read last, and descriptors
//! with verified tags.

use crate::corruption::{Corruption, Place};
use crate::crc::crc;
use crate::disk::{Tag, structure};
use packfs_core::{Image, Result, range_at, usize_of};
use packfs_format::BlockCache;
use std::sync::Arc;

/// Bytes of one read.
const CHUNK_LEN: u64 = 16 << 10;
/// Bytes that are kept.
const KEPT_MAX: usize = 8 << 20;

/// An image in blocks of one length.
pub(crate) struct Blocks {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) block_len: u32,
    chunks: BlockCache<Vec<u8>>,
}

impl Blocks {
    pub(crate) fn new(image: Arc<dyn Image>, block_len: u32) -> Self {
        Blocks { image, block_len, chunks: BlockCache::new(KEPT_MAX) }
    }

    /// Returns the offset of a block of the volume.
    pub(crate) fn at(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_len.into())
    }

    /// Returns the number of whole blocks of the image.
    pub(crate) fn count(&self) -> u64 {
        self.image.len().checked_div(self.block_len.into()).unwrap_or(0)
    }

    /// Checks that `len` bytes of a structure, or of data, lie within the image.
    pub(crate) fn check_range(&self, place: Place, len: u64) -> Result<()> {
        let end = self.image.len();
        match place.at.checked_add(len) {
            Some(found) if found <= end => Ok(()),
            _ => Err(Corruption::Range { place, len, end }.into()),
        }
    }

    /// Fills `buf` with the bytes at `place`.
    pub(crate) fn read(&self, place: Place, buf: &mut [u8]) -> Result<()> {
        self.check_range(place, buf.len() as u64)?;
        let (mut at, mut rest) = (place.at, buf);
        while !rest.is_empty() {
            let (number, within) = (at / CHUNK_LEN, usize_of(at % CHUNK_LEN));
            let chunk = self.chunks.get_or(number, || self.chunk(number))?;
            let from = chunk.get(within..).unwrap_or_default();
            let len = from.len().min(rest.len());
            let (part, behind) = rest.split_at_mut(len);
            part.copy_from_slice(from.get(..len).unwrap_or_default());
            // The image was long enough a moment ago.
            let step = len.max(1) as u64;
            (at, rest) = (at.saturating_add(step), behind);
        }
        Ok(())
    }

    /// Returns true if a tag was written at `place`, damaged or not.
    pub(crate) fn is_written(&self, place: Place) -> Result<bool> {
        let mut tag = [0; size_of::<Tag>()];
        if self.check_range(place, tag.len() as u64).is_err() {
            return Ok(true);
        }
        self.read(place, &mut tag)?;
        Ok(tag != [0; size_of::<Tag>()])
    }

    fn chunk(&self, number: u64) -> Result<(Vec<u8>, usize)> {
        let start = number.saturating_mul(CHUNK_LEN);
        let end = range_at(start, CHUNK_LEN).end.min(self.image.len());
        let mut bytes = vec![0; usize_of(end.saturating_sub(start))];
        self.image.read_exact_at(start, &mut bytes)?;
        let len = bytes.len();
        Ok((bytes, len))
    }

    /// Reads the block at `place` with a tag whose checksums hold, of one of these identifiers and
    /// at this location.
    pub(crate) fn tagged(&self, place: Place, location: u32, idents: &[u16]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize_of(self.block_len.into())];
        self.read(place, &mut bytes)?;
        let tag = verified(place, &bytes)?;
        let (found, wanted) = (tag.tag_ident.get(), idents.first().copied().unwrap_or(0));
        if !idents.is_empty() && !idents.contains(&found) {
            return Err(Corruption::Ident { place, found, wanted }.into());
        }
        let found = tag.tag_location.get();
        match found == location {
            true => Ok(bytes),
            false => Err(Corruption::Location { place, found, wanted: location }.into()),
        }
    }
}

/// Returns the tag at the start of a descriptor, whose checksums hold.
pub(crate) fn verified(place: Place, bytes: &[u8]) -> Result<Tag> {
    let short = || Corruption::Range { place, len: size_of::<Tag>() as u64, end: bytes.len() as u64 };
    let tag: Tag = structure(bytes, 0).ok_or_else(short)?;
    let head = bytes.get(..size_of::<Tag>()).unwrap_or_default();
    let sum = head.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let (found, computed) = (tag.tag_checksum, sum.wrapping_sub(tag.tag_checksum));
    if found != computed {
        return Err(Corruption::Checksum { place, found, computed }.into());
    }
    if !matches!(tag.desc_version.get(), 2 | 3) {
        return Err(Corruption::Version { place, found: tag.desc_version.get() }.into());
    }
    let (found, body) = (tag.desc_crc_length.get(), bytes.get(size_of::<Tag>()..).unwrap_or_default());
    let Some(covered) = body.get(..found.into()) else {
        return Err(Corruption::CrcLength { place, found, max: body.len() }.into());
    };
    let (found, computed) = (tag.desc_crc.get(), crc(covered));
    match found == computed {
        true => Ok(tag),
        false => Err(Corruption::Crc { place, found, computed }.into()),
    }
}
