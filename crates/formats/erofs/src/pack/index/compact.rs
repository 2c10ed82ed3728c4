//! Indexes of 4 and 2 bytes per logical cluster: packs of entries that share one block number.
//!
//! A reader computes a head's block by adding the blocks of earlier heads to the pack's number.
//! Therefore all clusters of a pack must be contiguous; otherwise the file cannot have such an
//! index.

use super::heads::{Heads, Kind, Slot};
use crate::disk::{
    self, COMPACT_2B_PACK_COUNT, COMPACT_2B_PACK_LEN, COMPACT_4B_PACK_COUNT, COMPACT_4B_PACK_LEN,
    COMPACT_LO_BITS_MIN, DELTA_MAX,
};

/// Number of entries of each size: 4-byte ones up to a multiple of 32 bytes, 2-byte ones, and
/// 4-byte ones for the rest.
struct Parts {
    first: u64,
    two_bytes: u64,
    rest: u64,
}

fn parts(index_start: u64, slot_count: u64, two_bytes: bool) -> Parts {
    let first = disk::compacted_4b_initial(index_start);
    if !two_bytes || first >= slot_count {
        return Parts { first: 0, two_bytes: 0, rest: slot_count };
    }
    let two_bytes = (slot_count - first) / COMPACT_2B_PACK_COUNT * COMPACT_2B_PACK_COUNT;
    Parts { first, two_bytes, rest: slot_count - first - two_bytes }
}

/// Length of an index that starts at `index_start`; the last pack is complete.
pub(super) fn len(index_start: u64, slot_count: u64, two_bytes: bool) -> u64 {
    let parts = parts(index_start, slot_count, two_bytes);
    let fours = parts.first / COMPACT_4B_PACK_COUNT + parts.rest.div_ceil(COMPACT_4B_PACK_COUNT);
    fours * COMPACT_4B_PACK_LEN + parts.two_bytes / COMPACT_2B_PACK_COUNT * COMPACT_2B_PACK_LEN
}

/// Returns `None` if a compact index is impossible, else true if 2-byte entries make it shorter.
pub(super) fn allowed(heads: &Heads, index_start: u64) -> Option<bool> {
    if heads.block_bits > disk::COMPACT_2B_LCLUSTERBITS_MAX {
        return None;
    }
    let fits = |kind: &Kind| match kind {
        Kind::Part => false,
        Kind::Fragment(offset) => *offset <= u64::from(u32::MAX),
        _ => true,
    };
    if !heads.rows().iter().all(|head| fits(&head.kind)) {
        return None;
    }
    let shorter = len(index_start, heads.slot_count(), true) < len(index_start, heads.slot_count(), false);
    let told =
        |two_bytes: &bool| packs(heads, index_start, *two_bytes).all(|pack| base(heads, &pack).is_some());
    [true, false].into_iter().filter(|&two_bytes| !two_bytes || shorter).find(told)
}

pub(super) fn write(out: &mut Vec<u8>, heads: &Heads, index_start: u64, two_bytes: bool) {
    for pack in packs(heads, index_start, two_bytes) {
        write_pack(out, heads, &pack);
    }
}

/// Entries of a pack, which may be fewer than its capacity at the end of a file.
struct Pack {
    slots: Vec<Slot>,
    room: u64,
}

impl Pack {
    fn len(&self) -> u64 {
        if self.room == COMPACT_4B_PACK_COUNT { COMPACT_4B_PACK_LEN } else { COMPACT_2B_PACK_LEN }
    }
}

fn packs(heads: &Heads, index_start: u64, two_bytes: bool) -> impl Iterator<Item = Pack> + '_ {
    let parts = parts(index_start, heads.slot_count(), two_bytes);
    let (mut at, mut slots) = (0, heads.slots());
    std::iter::from_fn(move || {
        let in_twos = (parts.first..parts.first + parts.two_bytes).contains(&at);
        let room = if in_twos { COMPACT_2B_PACK_COUNT } else { COMPACT_4B_PACK_COUNT };
        at += room;
        let slots: Vec<Slot> = slots.by_ref().take(room as usize).collect();
        (!slots.is_empty()).then_some(Pack { slots, room })
    })
}

/// Returns the block number of a pack from which a reader computes all heads; `None` if no such
/// number exists.
fn base(heads: &Heads, pack: &Pack) -> Option<u32> {
    let mut base = None;
    // Blocks that a reader has added at this slot.
    let mut added: u32 = if heads.big { 0 } else { 1 };
    for (index, slot) in pack.slots.iter().enumerate() {
        if slot.back == 0 && slot.head.has_address() {
            let own = slot.head.block.wrapping_sub(added);
            if *base.get_or_insert(own) != own {
                return None;
            }
        }
        added += match (heads.big, slot.back) {
            (false, 0) => 1,
            (true, 0) if pack.slots.get(index + 1).is_some_and(|next| next.back == 0) => 1,
            (true, 1) => u32::from(slot.head.blocks),
            _ => 0,
        };
    }
    // A cluster that started in the last slot of the previous pack stores its length here: it is
    // added first.
    if heads.big && pack.slots[0].back == 1 && pack.slots[0].head.has_address() {
        let own = pack.slots[0].head.block;
        return (*base.get_or_insert(own) == own).then_some(own);
    }
    Some(base.unwrap_or(0))
}

fn write_pack(out: &mut Vec<u8>, heads: &Heads, pack: &Pack) {
    let lo_bits = heads.block_bits.max(COMPACT_LO_BITS_MIN);
    let entry_bits = (pack.len() as u32 - 4) * 8 / pack.room as u32;
    let at = out.len();
    out.resize(at + pack.len() as usize, 0);
    let bytes = &mut out[at..];
    for (index, slot) in pack.slots.iter().enumerate() {
        let (cluster_type, lo) = match slot.back {
            0 => (slot.head.cluster_type(), heads.cluster_offset(&slot.head)),
            back => {
                let delta = |distance: u64| distance.min(DELTA_MAX.into()) as u16;
                // The last entry of a pack contains the distance forward, so that readers need not
                // read the next pack to find it.
                let distance = if index as u64 + 1 == pack.room { slot.forward } else { back };
                let lo = heads.block_count_word(slot).unwrap_or(delta(distance));
                (disk::Z_EROFS_LCLUSTER_TYPE_NONHEAD, lo)
            }
        };
        let entry = u32::from(cluster_type) << lo_bits | u32::from(lo);
        put_bits(bytes, index as u32 * entry_bits, entry);
    }
    let base = base(heads, pack).unwrap_or(0);
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&base.to_le_bytes());
}

/// Sets bits of a bit string, lowest first.
fn put_bits(bytes: &mut [u8], bit: u32, value: u32) {
    let shifted = u64::from(value) << (bit % 8);
    for (byte, part) in bytes[bit as usize / 8..].iter_mut().zip(shifted.to_le_bytes()) {
        *byte |= part;
    }
}
