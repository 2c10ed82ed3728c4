//! A block of a tree: checked once, then searched by halves.
//!
//! Invariant: keys rise, and the data of items fill the end of a leaf without a gap.

use crate::bytes::Fields;
use crate::corruption::Corruption;
use crate::disk::LEVELS_MAX;
use crate::key::{Key, Uuid};
use packfs_core::Result;

/// Bytes of the header of a block.
pub(crate) const HEADER_LEN: usize = 101;
/// Bytes of the header of an item in a leaf.
const ITEM_LEN: usize = 25;
/// Bytes of a pointer in an inner block.
const POINTER_LEN: usize = 33;

/// A checked block.
pub(crate) struct Node {
    /// Its logical address.
    pub(crate) at: u64,
    pub(crate) level: u8,
    pub(crate) generation: u64,
    /// The tree that it was written for.
    pub(crate) owner: u64,
    /// Number of items or pointers.
    pub(crate) count: usize,
    bytes: Box<[u8]>,
}

impl Node {
    /// Checks a block whose checksum is right.
    pub(crate) fn parse(bytes: Box<[u8]>, at: u64, uuids: &[Uuid], sector_len: u32) -> Result<Node> {
        let fields = Fields(&bytes);
        let found = fields.u64(0x30);
        if found != at {
            return Err(Corruption::NodeFigure { at, figure: "own address", found, wanted: at }.into());
        }
        if !uuids.contains(&Uuid(fields.array(0x20))) {
            return Err(Corruption::NodeOwner { at, figure: "belongs to another filesystem" }.into());
        }
        let level = fields.u8(0x64);
        if level >= LEVELS_MAX {
            let (found, wanted) = (level.into(), u64::from(LEVELS_MAX).saturating_sub(1));
            return Err(Corruption::NodeFigure { at, figure: "level", found, wanted }.into());
        }
        let entry_len = if level == 0 { ITEM_LEN } else { POINTER_LEN };
        let count_max = bytes.len().saturating_sub(HEADER_LEN).checked_div(entry_len).unwrap_or(0);
        let count = fields.u32(0x60) as usize;
        if count > count_max || level > 0 && count == 0 {
            let (found, wanted) = (count as u64, count_max as u64);
            return Err(Corruption::NodeFigure { at, figure: "number of items", found, wanted }.into());
        }
        let (generation, owner) = (fields.u64(0x50), fields.u64(0x58));
        let node = Node { at, level, generation, owner, count, bytes };
        node.check_keys()?;
        if level == 0 {
            node.check_items()?
        } else {
            node.check_pointers(sector_len)?
        }
        Ok(node)
    }

    fn check_keys(&self) -> Result<()> {
        let mut before = None;
        for slot in 0..self.count {
            let key = Some(self.key(slot));
            if key <= before {
                return Err(Corruption::NodeKeys { at: self.at, slot }.into());
            }
            before = key;
        }
        Ok(())
    }

    fn check_items(&self) -> Result<()> {
        let mut end = self.bytes.len().saturating_sub(HEADER_LEN) as u64;
        let first = self.count.saturating_mul(ITEM_LEN) as u64;
        for slot in 0..self.count {
            let fields = self.entry(slot);
            let (start, len) = (u64::from(fields.u32(17)), u64::from(fields.u32(21)));
            if start.saturating_add(len) != end || start < first {
                return Err(Corruption::NodeItem { at: self.at, slot, start, len, end }.into());
            }
            end = start;
        }
        Ok(())
    }

    fn check_pointers(&self, sector_len: u32) -> Result<()> {
        for slot in 0..self.count {
            let (found, _) = self.pointer(slot);
            if found == 0 || !found.is_multiple_of(sector_len.into()) {
                return Err(Corruption::NodePointer { at: self.at, slot, found }.into());
            }
        }
        Ok(())
    }

    /// Returns the memory that it takes, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.len().saturating_add(size_of::<Node>())
    }

    fn entry(&self, slot: usize) -> Fields<'_> {
        let len = if self.level == 0 { ITEM_LEN } else { POINTER_LEN };
        Fields(&self.bytes).from(slot.saturating_mul(len).saturating_add(HEADER_LEN))
    }

    /// Returns a key; `slot` is below the number of items.
    pub(crate) fn key(&self, slot: usize) -> Key {
        Key::read(self.entry(slot))
    }

    /// Returns the address and generation of the block that a pointer leads to.
    pub(crate) fn pointer(&self, slot: usize) -> (u64, u64) {
        let fields = self.entry(slot);
        (fields.u64(17), fields.u64(25))
    }

    /// Returns the offset of an item's data in the block.
    pub(crate) fn item_at(&self, slot: usize) -> usize {
        (self.entry(slot).u32(17) as usize).saturating_add(HEADER_LEN)
    }

    /// Returns the data of an item of a leaf.
    pub(crate) fn item(&self, slot: usize) -> &[u8] {
        let start = self.item_at(slot);
        let end = start.saturating_add(self.entry(slot).u32(21) as usize);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Returns the number of keys below `key`.
    pub(crate) fn below(&self, key: &Key) -> usize {
        let (mut low, mut high) = (0_usize, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) < *key {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the slot of the last key that is not above `key`; the first slot if all are above.
    pub(crate) fn floor(&self, key: &Key) -> usize {
        let below = self.below(key);
        match below < self.count && self.key(below) == *key {
            true => below,
            false => below.saturating_sub(1),
        }
    }

    /// Returns the bytes of the whole block.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
