//! Tree blocks, checked once and then searched by bisection.
//!
//! Invariant: keys rise, and the data of items fill the end of a leaf without a gap.

use crate::corruption::Corruption;
use crate::disk::{DiskKey, Header, ItemHead, KeyPtr, LEVELS_MAX};
use crate::key::{Key, Uuid};
use packfs_core::Result;
use packfs_format::{OnDisk, structure, units::*};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

pub(crate) const HEADER_LEN: usize = size_of::<Header>();
const ITEM_LEN: usize = size_of::<ItemHead>();
const POINTER_LEN: usize = size_of::<KeyPtr>();

pub(crate) struct Node {
    pub(crate) at: u64,
    pub(crate) level: u8,
    pub(crate) generation: u64,
    pub(crate) owner: u64,
    pub(crate) count: usize,
    bytes: Box<[u8]>,
}

impl Node {
    /// Parses a block whose checksum was verified.
    pub(crate) fn parse(bytes: Box<[u8]>, at: u64, uuids: &[Uuid], sector_len: u32) -> Result<Node> {
        let cut = Corruption::NodeOwner { at, figure: "ends within its header" };
        let head: Header = structure(&bytes, 0).ok_or(cut)?;
        let found = head.bytenr.get();
        if found != at {
            return Err(Corruption::NodeFigure { at, figure: "own address", found, wanted: at }.into());
        }
        if !uuids.contains(&Uuid(head.fsid)) {
            return Err(Corruption::NodeOwner { at, figure: "belongs to another filesystem" }.into());
        }
        let level = head.level;
        if level >= LEVELS_MAX {
            let found = level.into();
            let wanted = u64::from(LEVELS_MAX).minus(1);
            return Err(Corruption::NodeFigure { at, figure: "level", found, wanted }.into());
        }
        let entry_len = if level == 0 { ITEM_LEN } else { POINTER_LEN };
        let count_max = bytes.len().minus(HEADER_LEN).quotient(entry_len);
        let count = head.nritems.get() as usize;
        if count > count_max || level > 0 && count == 0 {
            let (found, wanted) = (count as u64, count_max as u64);
            return Err(Corruption::NodeFigure { at, figure: "number of items", found, wanted }.into());
        }
        let (generation, owner) = (head.generation.get(), head.owner.get());
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
        let mut end = self.bytes.len().minus(HEADER_LEN) as u64;
        let first = self.count.times(ITEM_LEN) as u64;
        for slot in 0..self.count {
            let item = self.item_head(slot);
            let start = u64::from(item.offset.get());
            let len = u64::from(item.size.get());
            if start.plus(len) != end || start < first {
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

    pub(crate) fn weight(&self) -> usize {
        self.bytes.len().plus(size_of::<Node>())
    }

    /// Returns the item, pointer, or key of a slot; `slot` is below `count`.
    fn entry<T: Default + OnDisk + FromBytes + KnownLayout + Immutable + Unaligned>(&self, slot: usize) -> T {
        let len = if self.level == 0 { ITEM_LEN } else { POINTER_LEN };
        // The constructor checked that all slots are within the block.
        structure(&self.bytes, slot.times(len).plus(HEADER_LEN)).unwrap_or_default()
    }

    fn item_head(&self, slot: usize) -> ItemHead {
        self.entry(slot)
    }

    /// `slot` is below `count`.
    pub(crate) fn key(&self, slot: usize) -> Key {
        Key::of(&self.entry::<DiskKey>(slot))
    }

    /// Returns the address and generation of a child block.
    pub(crate) fn pointer(&self, slot: usize) -> (u64, u64) {
        let pointer: KeyPtr = self.entry(slot);
        (pointer.blockptr.get(), pointer.generation.get())
    }

    pub(crate) fn item_at(&self, slot: usize) -> usize {
        (self.item_head(slot).offset.get() as usize).plus(HEADER_LEN)
    }

    pub(crate) fn item(&self, slot: usize) -> &[u8] {
        let start = self.item_at(slot);
        let end = start.plus(self.item_head(slot).size.get() as usize);
        self.bytes.within(start..end)
    }

    pub(crate) fn below(&self, key: &Key) -> usize {
        let (mut low, mut high) = (0_usize, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) < *key {
                low = middle.plus(1);
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the slot of the last key that is not above `key`; the first slot if all are above.
    pub(crate) fn floor(&self, key: &Key) -> usize {
        let below = self.below(key);
        if below < self.count && self.key(below) == *key { below } else { left(below, 1) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
