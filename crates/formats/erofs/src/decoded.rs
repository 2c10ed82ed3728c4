//! Decoded blocks of metadata: of the metabox, of compressed directories, and of prefixes in the
//! packed inode.
//!
//! Owns a small bounded cache of them and the only code of this crate that decodes anything. File
//! data never passes here.

use crate::corruption::{Corruption, Place};
use packfs_codec::BlockRef;
use packfs_codec::Decoders;
use packfs_core::Result;
use packfs_format::units::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of the cache; one block is kept whatever its length.
const KEPT_LEN_MAX: usize = 8 << 20;

#[derive(Default)]
struct Kept {
    /// The most recently used block is the last.
    blocks: Vec<(BlockRef, Arc<[u8]>)>,
    len: usize,
}

#[derive(Default)]
pub(crate) struct DecodedBlocks {
    kept: Mutex<Kept>,
    decoders: Mutex<Vec<Decoders>>,
}

impl DecodedBlocks {
    fn get(&self, block: &BlockRef) -> Option<Arc<[u8]>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let index = kept.blocks.iter().rposition(|(found, _)| found == block)?;
        let row = kept.blocks.remove(index);
        let bytes = Arc::clone(&row.1);
        kept.blocks.push(row);
        Some(bytes)
    }

    pub(crate) fn clear(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Kept::default();
        *self.decoders.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
    }

    fn put(&self, block: BlockRef, bytes: &Arc<[u8]>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.blocks.iter().any(|(found, _)| *found == block) {
            return;
        }
        let mut len = kept.len.plus(bytes.len());
        while !kept.blocks.is_empty() && len > KEPT_LEN_MAX {
            let (_, oldest) = kept.blocks.remove(0);
            len = len.minus(oldest.len());
        }
        kept.len = len;
        kept.blocks.push((block, Arc::clone(bytes)));
    }

    /// Returns a decoded block; `read` fills its stored bytes and returns their number.
    pub(crate) fn decoded(
        &self,
        block: &BlockRef,
        read: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<Arc<[u8]>> {
        if let Some(bytes) = self.get(block) {
            return Ok(bytes);
        }
        let bytes: Arc<[u8]> = self.decode(block, read)?.into();
        self.put(*block, &bytes);
        Ok(bytes)
    }

    fn decode(&self, block: &BlockRef, read: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
        let mut stored = vec![0; block.stored_len as usize];
        let len = read(&mut stored)?;
        if len < stored.len() {
            let place = Place::at("block of metadata", block.offset);
            let end = end_of(block.offset, len as u64);
            return Err(place.outside("the image", block.offset, u64::from(block.stored_len), end));
        }
        let Some(algorithm) = block.algorithm else { return Ok(stored) };
        let mut decoded = vec![0; block.decoded_len as usize];
        let idle = self.decoders.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decoders = idle.unwrap_or_default();
        let outcome = decoders.decompress_block(algorithm, block, &stored, &mut decoded);
        self.decoders.lock().unwrap_or_else(PoisonError::into_inner).push(decoders);
        let offset = block.offset;
        let len = outcome.map_err(|reason| Corruption::Decode { offset, algorithm, reason })?;
        if len != decoded.len() {
            let (found, expected) = (len as u64, decoded.len() as u64);
            return Err(Corruption::DecodedLength { offset, found, expected }.into());
        }
        Ok(decoded)
    }
}
