//! Reads of structures: bytes at an offset through a cache, and descriptors with verified tags.

use crate::corruption::{Corruption, Place};
use crate::crc::crc;
use crate::disk::Tag;
use packfs_core::{Image, Result, range_at, usize_of};
use packfs_format::{BlockCache, structure, units::*};
use std::sync::Arc;
use zerocopy::IntoBytes;

const CHUNK_LEN: u64 = 16 << 10;
const KEPT_MAX: usize = 8 << 20;

pub(crate) struct Blocks {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) block_len: u32,
    chunks: BlockCache<Vec<u8>>,
}

impl Blocks {
    pub(crate) fn new(image: Arc<dyn Image>, block_len: u32) -> Self {
        Blocks { image, block_len, chunks: BlockCache::new(KEPT_MAX) }
    }

    pub(crate) fn at(&self, block: u64) -> u64 {
        block.times(self.block_len.into())
    }

    pub(crate) fn count(&self) -> u64 {
        self.image.len().quotient(self.block_len.into())
    }

    /// Errors: a range of a structure or of data that exceeds the image.
    pub(crate) fn check_range(&self, place: Place, len: u64) -> Result<()> {
        let end = self.image.len();
        match place.at.checked_add(len) {
            Some(found) if found <= end => Ok(()),
            _ => Err(Corruption::Range { place, len, end }.into()),
        }
    }

    pub(crate) fn read(&self, place: Place, buf: &mut [u8]) -> Result<()> {
        self.check_range(place, buf.len() as u64)?;
        let (mut at, mut rest) = (place.at, buf);
        while !rest.is_empty() {
            let (number, within) = (at / CHUNK_LEN, usize_of(at % CHUNK_LEN));
            let chunk = self.chunks.get_or(number, || self.chunk(number))?;
            let from = chunk.within(within..);
            let len = from.len().min(rest.len());
            let (part, behind) = rest.split_at_mut(len);
            part.copy_from_slice(from.within(..len));
            // The range was checked before.
            let step = len.max(1) as u64;
            (at, rest) = (at.plus(step), behind);
        }
        Ok(())
    }

    /// Returns the tag at `place`, whatever it contains.
    pub(crate) fn tag(&self, place: Place) -> Result<Tag> {
        let mut tag = Tag::default();
        self.read(place, tag.as_mut_bytes())?;
        Ok(tag)
    }

    fn chunk(&self, number: u64) -> Result<(Vec<u8>, usize)> {
        let start = number.times(CHUNK_LEN);
        let end = range_at(start, CHUNK_LEN).end.min(self.image.len());
        let mut bytes = vec![0; usize_of(end.minus(start))];
        self.image.read_exact_at(start, &mut bytes)?;
        let len = bytes.len();
        Ok((bytes, len))
    }

    /// Reads the block at `place`, whose tag must have right checksums, one of these identifiers,
    /// and this location.
    pub(crate) fn tagged(&self, place: Place, location: u32, idents: &[u16]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize_of(self.block_len.into())];
        self.read(place, &mut bytes)?;
        let tag = verified(place, &bytes)?;
        let found = tag.tag_ident.get();
        let wanted = idents.first().copied().unwrap_or(0);
        if !idents.is_empty() && !idents.contains(&found) {
            return Err(Corruption::Ident { place, found, wanted }.into());
        }
        let found = tag.tag_location.get();
        if found == location {
            Ok(bytes)
        } else {
            Err(Corruption::Location { place, found, wanted: location }.into())
        }
    }
}

/// Returns the tag at the start of a descriptor; its checksums must be right.
pub(crate) fn verified(place: Place, bytes: &[u8]) -> Result<Tag> {
    let short = || Corruption::Range { place, len: size_of::<Tag>() as u64, end: bytes.len() as u64 };
    let tag: Tag = structure(bytes, 0).ok_or_else(short)?;
    let head = bytes.within(..size_of::<Tag>());
    let sum = head.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let (found, computed) = (tag.tag_checksum, sum.wrapping_sub(tag.tag_checksum));
    if found != computed {
        return Err(Corruption::Checksum { place, found, computed }.into());
    }
    if !tag.has_version() {
        return Err(Corruption::Version { place, found: tag.desc_version.get() }.into());
    }
    let found = tag.desc_crc_length.get();
    let body = bytes.within(size_of::<Tag>()..);
    let Some(covered) = body.get(..found.into()) else {
        return Err(Corruption::CrcLength { place, found, max: body.len() }.into());
    };
    let (found, computed) = (tag.desc_crc.get(), crc(covered));
    if found == computed { Ok(tag) } else { Err(Corruption::Crc { place, found, computed }.into()) }
}
