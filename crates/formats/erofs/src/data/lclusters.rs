//! Entries of an index, full or compact.
//!
//! Owns the packing of compact entries. Invariant: a returned [`Entry`] is either a head with an
//! offset inside its logical cluster, or follows a head at a distance of at least 1.

use super::map_header::{IndexHead, PackPlace};
use crate::corruption::{Allowed, Corruption, Place};
use crate::disk::*;
use crate::figures::low_bits;
use crate::raw::RawInode;
use crate::reader::Reader;
use packfs_core::{Result, usize_of};
use packfs_format::units::*;
use std::mem::size_of;

const PACK_MAX: usize = usize_of(COMPACT_2B_PACK_COUNT);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadKind {
    Plain,
    Head1,
    Head2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A cluster starts here.
    Head {
        kind: HeadKind,
        /// Offset in the logical cluster.
        start: u32,
        block: u32,
        /// Only the start of the decoded cluster is referred to.
        partial: bool,
    },
    /// A cluster continues.
    Later {
        /// Distance in logical clusters to the head, or to an entry nearer to it.
        back: u32,
        /// Only directly after the head: stored blocks of the cluster; 0 if it is in the packed
        /// inode.
        blocks: Option<u16>,
        /// Distance to the next head, if stored. Unused here, but kernels rely on it.
        forward: Option<u32>,
    },
}

pub(crate) struct Entries<'a> {
    reader: &'a Reader,
    head: &'a IndexHead,
    place: Place,
    pack_first: u64,
    pack_len: usize,
    pack: [Entry; PACK_MAX],
}

impl<'a> Entries<'a> {
    pub(crate) fn new(reader: &'a Reader, raw: &RawInode, head: &'a IndexHead) -> Self {
        let place = raw.place.of("cluster index of the inode");
        let pack = [Entry::Later { back: 1, blocks: None, forward: None }; PACK_MAX];
        Entries { reader, head, place, pack_first: 0, pack_len: 0, pack }
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn fault(&self, fault: &'static str) -> Corruption {
        Corruption::Fault { place: self.place, fault }
    }

    /// Errors: `Corrupt`, also for an index after the end of the file.
    pub(crate) fn get(&mut self, index: u64) -> Result<Entry> {
        if index >= self.head.lcluster_count {
            return Err(self.fault("a cluster continues after the end of the file").into());
        }
        if !self.head.compact {
            return self.full(index);
        }
        if let Some(entry) = self.of_pack(index) {
            return Ok(entry);
        }
        self.load_pack(index)?;
        self.of_pack(index).ok_or_else(|| self.fault("an entry outside of its pack").into())
    }

    fn of_pack(&self, index: u64) -> Option<Entry> {
        let slot = index.checked_sub(self.pack_first)?;
        self.pack.get(..self.pack_len)?.get(usize_of(slot)).copied()
    }

    fn full(&self, index: u64) -> Result<Entry> {
        let at = nth_at(self.head.at, index, size_of::<LclusterIndex>() as u64);
        let raw: LclusterIndex = self.reader.read_struct(at, self.place)?;
        let (advise, word) = (raw.di_advise.get(), raw.di_u.get());
        let kind = (advise & Z_EROFS_LI_LCLUSTER_TYPE_MASK) as u8;
        if kind == Z_EROFS_LCLUSTER_TYPE_NONHEAD {
            return self.later((word & 0xffff) as u16, Some(word >> 16));
        }
        let partial = advise & Z_EROFS_LI_PARTIAL_REF != 0;
        self.head_entry(kind, u32::from(raw.di_clusterofs.get()), word, partial)
    }

    fn head_entry(&self, kind: u8, start: u32, block: u32, partial: bool) -> Result<Entry> {
        let kind = match kind {
            Z_EROFS_LCLUSTER_TYPE_PLAIN => HeadKind::Plain,
            Z_EROFS_LCLUSTER_TYPE_HEAD1 => HeadKind::Head1,
            _ => HeadKind::Head2,
        };
        if start >> self.head.lcluster_bits != 0 {
            let allowed = Allowed::AtMost(low_bits(self.head.lcluster_bits));
            return Err(self.place.figure("start in a logical cluster", start, allowed));
        }
        Ok(Entry::Head { kind, start, block, partial })
    }

    /// Decodes a distance, or the number of stored blocks.
    fn later(&self, delta: u16, forward: Option<u32>) -> Result<Entry> {
        if delta & Z_EROFS_LI_D0_CBLKCNT != 0 {
            if self.head.big == [false; 2] {
                return Err(self.fault("a block count, but clusters have one block each").into());
            }
            let blocks = delta & !Z_EROFS_LI_D0_CBLKCNT;
            return Ok(Entry::Later { back: 1, blocks: Some(blocks), forward });
        }
        match delta {
            0 => Err(self.fault("a distance of 0 to the head of a cluster").into()),
            _ => Ok(Entry::Later { back: u32::from(delta), blocks: None, forward }),
        }
    }

    fn load_pack(&mut self, index: u64) -> Result<()> {
        let PackPlace { at, len, first, count, entry_bits } = self.head.pack_place(index);
        let mut bytes = [0; usize_of(COMPACT_2B_PACK_LEN)];
        let room = bytes.within_mut(..usize_of(len));
        self.reader.read_metadata(at, room, self.place)?;
        let word = |at: usize| {
            let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let base = word(usize_of(len).minus(size_of::<u32>()));
        // Entries after the end of the file are undefined.
        let used = usize_of(self.head.lcluster_count.minus(first)).min(count);
        let lo_bits = self.head.lcluster_bits.max(COMPACT_LO_BITS_MIN);
        let mut raw = [(0_u8, 0_u16); PACK_MAX];
        for (bit, raw) in (0..).step_by(entry_bits).zip(raw.iter_mut().take(used)) {
            let value = word(bit / 8) >> (bit % 8);
            *raw = ((value >> lo_bits & 3) as u8, (value & !(u32::MAX << lo_bits) & 0xffff) as u16);
        }
        self.pack_len = 0;
        let mut decoded = self.pack;
        self.decode_pack(raw.within(..used), count, base, &mut decoded)?;
        (self.pack, self.pack_first, self.pack_len) = (decoded, first, used);
        Ok(())
    }

    /// Converts the slots of a pack to entries. Blocks are counted from the pack's base: each head
    /// takes one, or the number in the entry after it.
    fn decode_pack(
        &self,
        raw: &[(u8, u16)],
        slot_count: usize,
        base: u32,
        out: &mut [Entry; PACK_MAX],
    ) -> Result<()> {
        let big = self.head.big[0];
        // Without big clusters the base is the block before that of the first head.
        let mut block = if big { base } else { base.wrapping_add(1) };
        let mut before: Option<u32> = None;
        for (following, (&(kind, lo), out)) in (1..).zip(raw.iter().zip(out.iter_mut())) {
            if kind != Z_EROFS_LCLUSTER_TYPE_NONHEAD {
                *out = self.head_entry(kind, u32::from(lo), block, false)?;
                let next = raw.get(following).filter(|_| big);
                let counted = next.is_some_and(|&(kind, lo)| {
                    kind == Z_EROFS_LCLUSTER_TYPE_NONHEAD && lo & Z_EROFS_LI_D0_CBLKCNT != 0
                });
                block = block.wrapping_add(u32::from(!counted));
                before = Some(0);
                continue;
            }
            let is_count = lo & Z_EROFS_LI_D0_CBLKCNT != 0;
            *out = if following == slot_count && !is_count {
                // The last slot contains the distance forward; its distance back follows from the
                // slot before.
                let back = before.ok_or_else(|| self.fault("a pack without a head or distance"))?;
                Entry::Later { back: back.plus(1), blocks: None, forward: Some(u32::from(lo)) }
            } else {
                self.later(lo, None)?
            };
            if let Entry::Later { back, blocks, .. } = *out {
                before = Some(back);
                block = block.wrapping_add(u32::from(blocks.unwrap_or(0)));
            }
        }
        Ok(())
    }
}
