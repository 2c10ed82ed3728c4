//! Clusters of an index, from heads to runs.
//!
//! Owns the search for a cluster's head and end. Invariant: each search goes in one direction, so
//! it takes no more steps than the index has entries.

use super::lclusters::{Entries, Entry, HeadKind};
use super::map_header::IndexHead;
use super::stored::{Piece, PieceForm, PieceFrom};
use super::{RunFrom, Runs};
use crate::corruption::Allowed;
use crate::disk::*;
use crate::raw::RawInode;
use crate::reader::Reader;
use packfs_codec::BlockRef;
use packfs_core::{Result, len_of, range_at};
use packfs_format::units::*;
use std::ops::{ControlFlow, Range};

#[derive(Clone, Copy, Debug)]
struct Head {
    index: u64,
    kind: HeadKind,
    start: u32,
    block: u32,
    partial: bool,
}

impl Head {
    fn new(index: u64, entry: Entry) -> Option<Head> {
        match entry {
            Entry::Head { kind, start, block, partial } => Some(Head { index, kind, start, block, partial }),
            Entry::Later { .. } => None,
        }
    }

    /// Offset in the file.
    fn offset(&self, bits: u32) -> u64 {
        self.index << bits | u64::from(self.start)
    }
}

struct Cluster {
    head: Head,
    logical: Range<u64>,
    /// `None` if no entry contains it.
    blocks: Option<u16>,
    /// Set if the next logical cluster belongs wholly to the cluster; its entry then contains the
    /// number of blocks.
    goes_on: bool,
    next: Option<Head>,
}

/// Facts of index entries other than the positions of clusters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EntryFacts {
    /// The first logical cluster with a head that an earlier entry's distance skips: kernels that
    /// search for the end of a cluster by distances miss it.
    pub(crate) missed: Option<u64>,
    pub(crate) second: bool,
}

impl Reader {
    /// See [`Reader::runs`].
    pub(super) fn index_runs(&self, raw: &RawInode, index: &IndexHead, runs: &mut Runs<'_>) -> Result<()> {
        let mut entries = Entries::new(self, raw, index);
        let mut head = Some(find_head(&mut entries, index, runs.range.start)?);
        while let Some(found) = head {
            let cluster = follow(&mut entries, index, raw.size, found)?;
            if self.cluster_runs(raw, index, &entries, &cluster, runs)?.is_break() {
                break;
            }
            head = cluster.next;
        }
        Ok(())
    }

    /// True if the cluster after the inode is uncompressed and starts within a block.
    pub(crate) fn has_plain_inline_cluster(&self, raw: &RawInode, index: &IndexHead) -> Result<bool> {
        let mut entries = Entries::new(self, raw, index);
        let head = find_head(&mut entries, index, left(raw.size, 1))?;
        let offset = head.offset(index.lcluster_bits);
        Ok(head.kind == HeadKind::Plain && self.geometry.in_block(offset) != 0)
    }

    pub(crate) fn entry_facts(&self, raw: &RawInode, index: &IndexHead) -> Result<EntryFacts> {
        let mut entries = Entries::new(self, raw, index);
        let mut facts = EntryFacts::default();
        let mut led_to = 0;
        for at in 0..index.lcluster_count {
            match entries.get(at)? {
                Entry::Head { kind, .. } => {
                    facts.second |= kind == HeadKind::Head2;
                    if led_to > at {
                        facts.missed.get_or_insert(at);
                    }
                }
                Entry::Later { forward, .. } => {
                    led_to = led_to.max(at.plus(forward.unwrap_or(0).into()));
                }
            }
        }
        Ok(facts)
    }

    pub(super) fn index_pieces(
        &self,
        raw: &RawInode,
        index: &IndexHead,
        visit: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<()> {
        let mut entries = Entries::new(self, raw, index);
        let mut head = Some(find_head(&mut entries, index, 0)?);
        while let Some(found) = head {
            let cluster = follow(&mut entries, index, raw.size, found)?;
            visit(self.piece(raw, index, &entries, &cluster)?)?;
            head = cluster.next;
        }
        Ok(())
    }

    fn piece(
        &self,
        raw: &RawInode,
        index: &IndexHead,
        entries: &Entries<'_>,
        cluster: &Cluster,
    ) -> Result<Piece> {
        let Cluster { head, logical, .. } = cluster;
        let is_last = logical.end == raw.size;
        let inline_len = index.inline_len.filter(|_| is_last);
        let from = if let Some(lower) = index.packed_at.filter(|_| is_last) {
            // Only full indexes have room for an offset above 4 GiB.
            let upper = if index.compact { 0 } else { u64::from(head.block) << 32 };
            PieceFrom::Packed(u64::from(lower) | upper)
        } else if let Some(inline_len) = inline_len {
            let at = index.end();
            self.check_inline(entries.place(), at, u64::from(inline_len))?;
            PieceFrom::Inline(range_at(at, u64::from(inline_len)))
        } else {
            PieceFrom::Stored(self.stored_cluster(index, entries, cluster)?)
        };
        let compressed = |algorithm| PieceForm::Compressed { algorithm, partial: head.partial };
        let form = match head.kind {
            HeadKind::Plain => {
                // mkfs.erofs does not rotate a tail after the inode, though kernels rotate it back:
                // the original data is returned, and the check reports it.
                let interlaced = index.interlaced && inline_len.is_none();
                if let PieceFrom::Stored(stored) | PieceFrom::Inline(stored) = &from {
                    self.check_plain(entries.place(), logical, stored, interlaced)?;
                }
                PieceForm::Plain { rotated: interlaced && self.geometry.in_block(logical.start) != 0 }
            }
            HeadKind::Head1 => compressed(index.algorithms[0]),
            HeadKind::Head2 => compressed(index.algorithms[1]),
        };
        Ok(Piece { logical: logical.clone(), from, form })
    }

    fn cluster_runs(
        &self,
        raw: &RawInode,
        index: &IndexHead,
        entries: &Entries<'_>,
        cluster: &Cluster,
        runs: &mut Runs<'_>,
    ) -> Result<ControlFlow<()>> {
        let Piece { logical, from, form } = self.piece(raw, index, entries, cluster)?;
        let (offset, len) = (logical.start, len_of(&logical));
        let (stored, is_inline) = match from {
            PieceFrom::Packed(at) => return Ok(runs.push(offset, len, RunFrom::Packed(at))),
            PieceFrom::Inline(stored) => (stored, true),
            PieceFrom::Stored(stored) => (stored, false),
        };
        match form {
            PieceForm::Compressed { algorithm, partial } => {
                let block: BlockRef = self.cluster_block(entries.place(), algorithm, stored, len, partial)?;
                Ok(runs.push(offset, len, RunFrom::Block(block, 0)))
            }
            PieceForm::Plain { .. } | PieceForm::Hole => {
                let interlaced = index.interlaced && !is_inline;
                self.plain_runs(entries.place(), logical, stored, interlaced, runs)
            }
        }
    }

    fn stored_cluster(
        &self,
        index: &IndexHead,
        entries: &Entries<'_>,
        cluster: &Cluster,
    ) -> Result<Range<u64>> {
        let head = &cluster.head;
        let big = if head.kind == HeadKind::Head1 { index.big[0] } else { index.big[1] };
        let blocks = match cluster.blocks {
            Some(0) if big => return Err(entries.fault("a cluster of 0 blocks").into()),
            Some(blocks) if big => u64::from(blocks),
            None if big && cluster.goes_on => {
                return Err(entries.fault("no entry says in how many blocks a cluster is stored").into());
            }
            _ => 1,
        };
        let len = blocks << self.geometry.block_bits;
        if len > u64::from(Z_EROFS_PCLUSTER_MAX_SIZE) {
            let allowed = Allowed::AtMost(u64::from(Z_EROFS_PCLUSTER_MAX_SIZE));
            return Err(entries.place().figure("stored length", len, allowed));
        }
        let address = u64::from(head.block) << self.geometry.block_bits;
        // The last block of an image may be truncated after its used part.
        let start = self.joined.locate(&self.geometry, 0, address, len, entries.place())?;
        Ok(range_at(start, len))
    }
}

fn find_head(entries: &mut Entries<'_>, index: &IndexHead, offset: u64) -> Result<Head> {
    let mut at = offset >> index.lcluster_bits;
    let mut entry = entries.get(at)?;
    if let Some(head) = Head::new(at, entry) {
        if head.offset(index.lcluster_bits) <= offset {
            return Ok(head);
        }
        at = at.checked_sub(1).ok_or_else(|| entries.fault("the first cluster does not start at 0"))?;
        entry = entries.get(at)?;
    }
    loop {
        let back = match entry {
            Entry::Head { kind, start, block, partial } => {
                return Ok(Head { index: at, kind, start, block, partial });
            }
            // `back` is never 0.
            Entry::Later { back, .. } => u64::from(back),
        };
        at = at.checked_sub(back).ok_or_else(|| entries.fault("a distance that reaches before the file"))?;
        entry = entries.get(at)?;
    }
}

/// Finds the end of a cluster, and its number of blocks.
fn follow(entries: &mut Entries<'_>, index: &IndexHead, size: u64, head: Head) -> Result<Cluster> {
    let bits = index.lcluster_bits;
    let mut blocks = None;
    let mut next = None;
    let mut goes_on = false;
    for (distance, at) in (0_u64..).zip(head.index..index.lcluster_count).skip(1) {
        match entries.get(at)? {
            Entry::Later { back, blocks: found, .. } => {
                if u64::from(back) > distance {
                    return Err(entries.fault("a distance that does not lead to the head").into());
                }
                goes_on = true;
                match found {
                    Some(found) if distance == 1 => blocks = Some(found),
                    Some(_) => return Err(entries.fault("a block count in the midst of a cluster").into()),
                    None => {}
                }
            }
            entry => {
                next = Head::new(at, entry);
                break;
            }
        }
    }
    let start = head.offset(bits);
    let end = next.map_or(size, |next| next.offset(bits)).min(size);
    if end <= start {
        return Err(entries.fault("a cluster that ends before it starts").into());
    }
    let next = next.filter(|_| end < size);
    Ok(Cluster { head, logical: start..end, blocks, goes_on, next })
}
