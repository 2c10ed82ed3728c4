//! A compressed file in logical clusters of one block: in each either one cluster starts, or one
//! continues.

use super::super::file_map::{FileMap, Form};
use crate::disk::{self, DELTA_MAX, LclusterIndex, Z_EROFS_LI_D0_CBLKCNT};
use zerocopy::IntoBytes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Compressed,
    Part,
    Inline {
        compressed: bool,
    },
    Fragment(u64),
    /// The file ends within the block.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Offset in the file.
    pub start: u64,
    pub kind: Kind,
    pub block: u32,
    pub blocks: u16,
    pub second: bool,
}

impl Head {
    /// One of `Z_EROFS_LCLUSTER_TYPE_*`.
    pub(super) fn cluster_type(&self) -> u8 {
        match self.kind {
            Kind::Plain | Kind::End | Kind::Inline { compressed: false } => disk::Z_EROFS_LCLUSTER_TYPE_PLAIN,
            _ if self.second => disk::Z_EROFS_LCLUSTER_TYPE_HEAD2,
            _ => disk::Z_EROFS_LCLUSTER_TYPE_HEAD1,
        }
    }

    /// True if [`Head::block`] is valid.
    pub(super) fn has_address(&self) -> bool {
        matches!(self.kind, Kind::Plain | Kind::Compressed | Kind::Part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// Head of its cluster.
    pub head: Head,
    /// Distance to that head; 0 if it is in this logical cluster.
    pub back: u64,
    /// Distance to the next head.
    pub forward: u64,
}

#[derive(Debug)]
pub(super) struct Heads {
    rows: Vec<Head>,
    slot_count: u64,
    pub block_bits: u32,
    /// True if any compressed cluster is longer than a block: each then records its length.
    pub big: bool,
}

impl Heads {
    /// Returns the heads of a file, or `None` if it needs extents: it has holes, blocks beyond
    /// 2^32, several clusters that start in one block, or clusters too long for an entry.
    pub(super) fn new(map: &FileMap, block_bits: u32) -> Option<Self> {
        let block_len = 1 << block_bits;
        let mut rows = Vec::with_capacity(map.pieces.len() + 1);
        for piece in &map.pieces {
            let block = u32::try_from(piece.offset >> block_bits).ok()?;
            let blocks = u16::try_from(piece.stored_len.div_ceil(block_len)).unwrap_or(u16::MAX);
            let kind = match piece.form {
                Form::Plain => {
                    for (count, start) in
                        (piece.start..piece.start + piece.len).step_by(block_len as usize).enumerate()
                    {
                        let block = block + count as u32;
                        rows.push(Head { start, kind: Kind::Plain, block, blocks: 1, second: false });
                    }
                    continue;
                }
                Form::Compressed => Kind::Compressed,
                Form::Part => Kind::Part,
                Form::Hole => return None,
                Form::Inline { compressed } => Kind::Inline { compressed },
                Form::Fragment(offset) => Kind::Fragment(offset),
            };
            let blocks = match kind {
                Kind::Fragment(_) => 0,
                Kind::Inline { .. } => 1,
                _ => blocks,
            };
            rows.push(Head { start: piece.start, kind, block, blocks, second: piece.second });
        }
        let ends_within = map.size & u64::from(block_len - 1) != 0;
        if ends_within && rows.last().is_some_and(|last| last.start >> block_bits < map.size >> block_bits) {
            rows.push(Head { start: map.size, kind: Kind::End, block: 0, blocks: 0, second: false });
        }
        let big = rows.iter().any(|head| head.has_address() && head.blocks > 1);
        let heads = Heads { rows, slot_count: map.size.div_ceil(u64::from(block_len)), block_bits, big };
        heads.have_room().then_some(heads)
    }

    /// True if each head has a separate logical cluster, and a second one for its length if that is
    /// more than a block.
    fn have_room(&self) -> bool {
        let has_room = |(index, head): (usize, &Head)| {
            let lcn = head.start >> self.block_bits;
            let next = self.rows.get(index + 1).map_or(self.slot_count, |next| next.start >> self.block_bits);
            let slots_min = if head.has_address() && head.blocks > 1 { 2 } else { 1 };
            head.blocks <= DELTA_MAX && next >= lcn + slots_min
        };
        self.rows.iter().enumerate().all(has_room)
    }

    pub(super) fn slot_count(&self) -> u64 {
        self.slot_count
    }

    pub(super) fn block_count(&self) -> u64 {
        self.rows.iter().filter(|head| head.has_address()).map(|head| u64::from(head.blocks)).sum()
    }

    pub(super) fn rows(&self) -> &[Head] {
        &self.rows
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.rows.iter().enumerate().flat_map(|(index, &head)| {
            let first = head.start >> self.block_bits;
            let next = self.rows.get(index + 1).map_or(self.slot_count, |next| next.start >> self.block_bits);
            (first..next).map(move |lcn| Slot { head, back: lcn - first, forward: next - lcn })
        })
    }

    /// Returns the value instead of the distance to the head: the length of a big cluster, in the
    /// first entry after the head.
    pub(super) fn block_count_word(&self, slot: &Slot) -> Option<u16> {
        (self.big && slot.back == 1).then_some(Z_EROFS_LI_D0_CBLKCNT | slot.head.blocks)
    }

    pub(super) fn cluster_offset(&self, head: &Head) -> u16 {
        (head.start & ((1 << self.block_bits) - 1)) as u16
    }

    /// Appends 8-byte entries.
    pub(super) fn write_full(&self, out: &mut Vec<u8>) {
        for slot in self.slots() {
            let entry = match slot.back {
                0 => {
                    let part = if slot.head.kind == Kind::Part { disk::Z_EROFS_LI_PARTIAL_REF } else { 0 };
                    let address = match slot.head.kind {
                        Kind::Fragment(offset) => (offset >> 32) as u32,
                        _ => slot.head.block,
                    };
                    LclusterIndex {
                        di_advise: (u16::from(slot.head.cluster_type()) | part).into(),
                        di_clusterofs: self.cluster_offset(&slot.head).into(),
                        di_u: address.into(),
                    }
                }
                back => {
                    let delta = |distance: u64| distance.min(DELTA_MAX.into()) as u32;
                    let first = self.block_count_word(&slot).map_or(delta(back), u32::from);
                    LclusterIndex {
                        di_advise: u16::from(disk::Z_EROFS_LCLUSTER_TYPE_NONHEAD).into(),
                        di_clusterofs: 0.into(),
                        di_u: (first | delta(slot.forward) << 16).into(),
                    }
                }
            };
            out.extend_from_slice(entry.as_bytes());
        }
    }
}
