//! Blocks of the base that belong to a single file, and the comparison with the source that allows
//! copying them.

use super::matches::Trust;
use super::{BaseReader, KeptBlocks, Reuse};
use crate::context::Context;
use crate::digest_log::PieceDigest;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{ContentDigest, NodeId};
use packfs_format::{Blocks, Extent, ExtentFrom, StoredBlock};
use std::ops::Range;
use std::sync::atomic::Ordering;

pub(crate) struct OldBlocks<'a> {
    reuse: &'a Reuse<'a, KeptBlocks>,
    reader: BaseReader<'a>,
    algorithm: Algorithm,
    holes: bool,
    /// Extents of the range looked up last, in order.
    extents: Vec<Extent>,
    trust: Trust,
}

impl<'a> OldBlocks<'a> {
    /// `None` without a base, or if blocks are not compressed.
    pub(crate) fn new(
        context: &'a Context<'a, Blocks>,
        reuse: Option<&'a Reuse<'a, KeptBlocks>>,
    ) -> Option<Self> {
        let reuse = reuse?;
        let algorithm = context.plan.data.block_codec.as_ref()?.algorithm();
        let reader = BaseReader::new(reuse.base);
        let holes = context.plan.holes;
        Some(OldBlocks { reuse, reader, algorithm, holes, extents: Vec::new(), trust: Trust::Neither })
    }

    /// Unreadable parts of the base are not used.
    pub(crate) fn look_up(&mut self, node: NodeId, range: Range<u64>) {
        self.extents.clear();
        let found = self.reuse.match_of(node).filter(|_| !range.is_empty());
        if let Some(found) = found {
            self.trust = found.trust;
            self.extents = self.reader.extents(found, range).unwrap_or_default();
        }
    }

    pub(crate) fn copy_unread(
        &mut self,
        offset: u64,
        len: u32,
        out: &mut Vec<u8>,
        digest: &mut PieceDigest,
    ) -> Option<StoredBlock> {
        if self.trust == Trust::Neither {
            return None;
        }
        match self.at(offset, len)? {
            ExtentFrom::Hole => self.holes.then(|| {
                digest.add_zeros(len.into());
                StoredBlock::HOLE
            }),
            ExtentFrom::Stored(at) => {
                let plain = count_damage(self.reuse, self.reader.plain(at, len.into()))?;
                out.extend_from_slice(plain);
                digest.add(plain);
                self.reuse.copied.add(u64::from(len));
                Some(StoredBlock { stored_len: len, compressed: false })
            }
            ExtentFrom::Block { block, .. } => {
                let (stored, decoded) = match self.trust {
                    Trust::Blind => {
                        let stored = count_damage(self.reuse, self.reader.stored(&block))?;
                        (stored, None)
                    }
                    _ => {
                        let (stored, decoded) = count_damage(self.reuse, self.reader.decode(&block))?;
                        (stored, Some(decoded))
                    }
                };
                match decoded {
                    Some(decoded) => digest.add(decoded),
                    None => digest.skip(ContentDigest::Nothing),
                }
                out.extend_from_slice(stored);
                self.reuse.copied.add(u64::from(block.stored_len));
                Some(StoredBlock { stored_len: block.stored_len, compressed: true })
            }
        }
    }

    pub(crate) fn copy_same(&mut self, offset: u64, raw: &[u8], out: &mut Vec<u8>) -> Option<StoredBlock> {
        match self.at(offset, raw.len() as u32)? {
            ExtentFrom::Hole => None,
            ExtentFrom::Stored(at) => {
                let plain = self.reader.plain(at, raw.len() as u64);
                if count_damage(self.reuse, plain)? != raw {
                    return None;
                }
                out.extend_from_slice(raw);
                self.reuse.copied.add(raw.len() as u64);
                Some(StoredBlock { stored_len: raw.len() as u32, compressed: false })
            }
            ExtentFrom::Block { block, .. } => {
                let decoded = self.reader.decode(&block);
                let (stored, decoded) = count_damage(self.reuse, decoded)?;
                if decoded != raw {
                    return None;
                }
                out.extend_from_slice(stored);
                self.reuse.copied.add(u64::from(block.stored_len));
                Some(StoredBlock { stored_len: block.stored_len, compressed: true })
            }
        }
    }

    /// `None` unless the base cut these bytes into the same blocks.
    fn at(&self, offset: u64, len: u32) -> Option<ExtentFrom> {
        let index = self.extents.partition_point(|extent| extent.offset <= offset).checked_sub(1)?;
        let extent = self.extents.get(index)?;
        let skipped = offset - extent.offset;
        if skipped.checked_add(u64::from(len))? > extent.len {
            return None;
        }
        Some(match extent.from {
            ExtentFrom::Hole => ExtentFrom::Hole,
            ExtentFrom::Stored(at) => ExtentFrom::Stored(at.checked_add(skipped)?),
            from @ ExtentFrom::Block { block, start: 0 } => {
                let is_whole = skipped == 0 && extent.len == u64::from(len);
                (is_whole && self.is_usable(&block, len)).then_some(from)?
            }
            ExtentFrom::Block { .. } => return None,
        })
    }

    fn is_usable(&self, block: &BlockRef, len: u32) -> bool {
        block.decoded_len == len
            && block.decodes_to == DecodedLen::Exactly
            && !block.zero_padded
            && block.algorithm == Some(self.algorithm)
            // A compressed block must be shorter than its bytes, or readers refuse it.
            && (1..len).contains(&block.stored_len)
    }
}

/// The block is compressed again; the count is reported at the end.
fn count_damage<T>(reuse: &Reuse<'_, KeptBlocks>, found: packfs_core::Result<T>) -> Option<T> {
    if found.is_err() {
        reuse.damaged.fetch_add(1, Ordering::Relaxed);
    }
    found.ok()
}
