//! Blocks that a file has to itself in the base: which of them still hold what the
//! source holds.

use super::matches::Trust;
use super::{BaseReader, KeptBlocks, Reuse};
use crate::context::Context;
use crate::witness::Witness;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{NodeId, Witnessed};
use packfs_format::{Blocks, Extent, ExtentFrom, StoredBlock};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// One worker's view of the base.
pub(crate) struct OldBlocks<'a> {
    reuse: &'a Reuse<'a, KeptBlocks>,
    reader: BaseReader<'a>,
    algorithm: Algorithm,
    holes: bool,
    /// Those of the stretch that was looked up last, in order.
    extents: Vec<Extent>,
    trust: Trust,
}

impl<'a> OldBlocks<'a> {
    /// `None` if there is no base, or blocks are not compressed.
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

    /// Turns to a stretch of a file. What cannot be read of the base is not used.
    pub(crate) fn look_up(&mut self, node: NodeId, range: Range<u64>) {
        self.extents.clear();
        let found = self.reuse.match_of(node).filter(|_| !range.is_empty());
        if let Some(found) = found {
            self.trust = found.trust;
            self.extents = self.reader.extents(found, range).unwrap_or_default();
        }
    }

    /// Copies a block of which the source need not be read, if the base has it.
    pub(crate) fn copy_unread(
        &mut self,
        offset: u64,
        len: u32,
        out: &mut Vec<u8>,
        witness: &mut Witness,
    ) -> Option<StoredBlock> {
        if self.trust == Trust::Neither {
            return None;
        }
        match self.at(offset, len)? {
            ExtentFrom::Hole => self.holes.then(|| {
                witness.saw_zeros(len.into());
                StoredBlock::HOLE
            }),
            ExtentFrom::Stored(at) => {
                let plain = count_damage(self.reuse, self.reader.plain(at, len.into()))?;
                out.extend_from_slice(plain);
                witness.saw(plain);
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
                    Some(decoded) => witness.saw(decoded),
                    None => witness.missed(Witnessed::Nothing),
                }
                out.extend_from_slice(stored);
                self.reuse.copied.add(u64::from(block.stored_len));
                Some(StoredBlock { stored_len: block.stored_len, compressed: true })
            }
        }
    }

    /// Copies the block of the base that holds the same bytes, if it has one there.
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

    /// Where the base has these bytes of the file, if as they would be cut here.
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
            // A compressed block that is no shorter than its bytes would be refused.
            && (1..len).contains(&block.stored_len)
    }
}

/// What cannot be decoded is compressed anew, and told of in the end.
fn count_damage<T>(reuse: &Reuse<'_, KeptBlocks>, found: packfs_core::Result<T>) -> Option<T> {
    if found.is_err() {
        reuse.damaged.fetch_add(1, Ordering::Relaxed);
    }
    found.ok()
}
