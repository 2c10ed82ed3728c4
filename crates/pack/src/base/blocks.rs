//! Reads and checks blocks of the base image. Lengths claimed by the image are limited before
//! anything is allocated.

use super::{Base, Match};
use packfs_codec::BlockRef;
use packfs_codec::Decoders;
use packfs_core::{Error, Result};
use packfs_format::Extent;
use std::ops::{ControlFlow, Range};

/// Longest block accepted, stored or decoded.
const LEN_MAX: u32 = 64 << 20;
/// Most extents in one range of a file; files with more are not reused.
const EXTENTS_MAX: usize = 1 << 16;

pub(crate) struct BaseReader<'a> {
    base: &'a Base,
    decoders: Decoders,
    stored: Vec<u8>,
    decoded: Vec<u8>,
}

impl<'a> BaseReader<'a> {
    pub(crate) fn new(base: &'a Base) -> Self {
        BaseReader { base, decoders: Decoders::new(), stored: Vec::new(), decoded: Vec::new() }
    }

    /// Empty if there are too many.
    pub(crate) fn extents(&self, file: Match, range: Range<u64>) -> Result<Vec<Extent>> {
        let mut extents = Vec::new();
        self.base.volume.extents(file.id, range.start..range.end.min(file.len), &mut |extent| {
            extents.push(extent);
            if extents.len() > EXTENTS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if extents.len() > EXTENTS_MAX {
            extents.clear();
        }
        Ok(extents)
    }

    pub(crate) fn stored(&mut self, block: &BlockRef) -> Result<&[u8]> {
        if block.stored_len > LEN_MAX || block.decoded_len > LEN_MAX {
            let fault = format!("block at {:#x}: longer than {LEN_MAX} bytes", block.offset);
            return Err(Error::corrupt(self.base.image.name(), fault));
        }
        let end = block.offset.saturating_add(u64::from(block.stored_len));
        if end > self.base.image.len() {
            let fault = format!("block at {:#x}: reaches beyond the image", block.offset);
            return Err(Error::corrupt(self.base.image.name(), fault));
        }
        self.stored.resize(block.stored_len as usize, 0);
        self.base.image.read_exact_at(block.offset, &mut self.stored)?;
        Ok(&self.stored)
    }

    /// A prefix is decoded only as far as needed.
    pub(crate) fn decode(&mut self, block: &BlockRef) -> Result<(&[u8], &[u8])> {
        self.stored(block)?;
        let corrupt = |what: String| {
            Error::corrupt(self.base.image.name(), format!("block at {:#x}: {what}", block.offset))
        };
        self.decoded.resize(block.decoded_len as usize, 0);
        let len = match block.algorithm {
            None => {
                self.decoded.clone_from(&self.stored);
                self.decoded.len()
            }
            Some(algorithm) => self
                .decoders
                .decompress_block(algorithm, block, &self.stored, &mut self.decoded)
                .map_err(|fault| corrupt(fault.to_string()))?,
        };
        if !block.allows_len(len) {
            return Err(corrupt(format!("decodes to {len} bytes, {} expected", block.decoded_len)));
        }
        self.decoded.truncate(len);
        Ok((&self.stored, &self.decoded))
    }

    pub(crate) fn plain(&mut self, offset: u64, len: u64) -> Result<&[u8]> {
        // A length above u32 exceeds `LEN_MAX`, so the saturated value is refused too.
        self.stored(&BlockRef::stored(offset, u32::try_from(len).unwrap_or(u32::MAX)))
    }
}
