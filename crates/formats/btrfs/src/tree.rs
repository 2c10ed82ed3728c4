//! Search in a tree, and iteration over its items in the order of their keys.
//!
//! Invariant: levels fall on each step down, and keys rise from leaf to leaf, so every iteration
//! ends.

use crate::corruption::{Corruption, ItemPlace};
use crate::disk::LEVELS_MAX;
use crate::key::Key;
use crate::node::Node;
use crate::store::{Pointer, Store};
use crate::super_block::RootPlace;
use packfs_core::Result;
use packfs_format::{OnDisk, structure, units::*};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// A tree: its number, its root block, and changes that are not in it yet.
#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) id: u64,
    pub(crate) root: RootPlace,
    pub(crate) changes: Option<Arc<Changes>>,
}

/// Items that replace or complete those of a tree; `None` deletes one.
#[derive(Default)]
pub(crate) struct Changes(pub(crate) BTreeMap<Key, Option<Item>>);

pub(crate) struct Cursor<'s> {
    store: &'s Store,
    tree: u64,
    /// Blocks from the root down to a leaf, with the slot in each. Without a leaf at its end, the
    /// iteration is over, or resumes after a damaged block.
    path: Vec<(Arc<Node>, usize)>,
}

#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) tree: u64,
    pub(crate) key: Key,
    source: Source,
}

/// Owner of an item's bytes.
#[derive(Clone)]
enum Source {
    Leaf(Arc<Node>, usize),
    Made(Arc<[u8]>, Option<Origin>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Logical address of the tree block, and its generation.
    pub(crate) block: u64,
    pub(crate) generation: u64,
    /// Logical address of the item's data.
    pub(crate) at: u64,
}

impl Item {
    /// Returns an item that is not stored in a leaf.
    pub(crate) fn made(tree: u64, key: Key, bytes: Vec<u8>) -> Item {
        Item { tree, key, source: Source::Made(bytes.into(), None) }
    }

    /// Returns the item with a copy of its bytes, so that the tree block can be evicted.
    pub(crate) fn detached(&self) -> Item {
        let source = Source::Made(self.bytes().into(), self.origin());
        Item { source, ..*self }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.source {
            Source::Leaf(leaf, slot) => leaf.item(*slot),
            Source::Made(bytes, _) => bytes,
        }
    }

    pub(crate) fn place(&self) -> ItemPlace {
        ItemPlace { tree: self.tree, key: self.key }
    }

    pub(crate) fn origin(&self) -> Option<Origin> {
        match &self.source {
            Source::Leaf(leaf, slot) => {
                let at = leaf.at.plus(leaf.item_at(*slot) as u64);
                Some(Origin { block: leaf.at, generation: leaf.generation, at })
            }
            Source::Made(_, origin) => *origin,
        }
    }

    pub(crate) fn head<T: OnDisk + FromBytes + KnownLayout + Immutable + Unaligned>(&self) -> Result<T> {
        let (found, min) = (self.bytes().len(), size_of::<T>());
        let short = Corruption::Size { place: self.place(), found, min };
        Ok(structure(self.bytes(), 0).ok_or(short)?)
    }

    /// Errors: `Corrupt` if the item is shorter than `min`.
    pub(crate) fn bytes_of(&self, min: usize) -> Result<&[u8]> {
        let bytes = self.bytes();
        if bytes.len() < min {
            return Err(Corruption::Size { place: self.place(), found: bytes.len(), min }.into());
        }
        Ok(bytes)
    }
}

/// Logical addresses and the item with their checksums; `None` if they have none.
#[derive(Clone)]
pub(crate) struct SumRun {
    pub(crate) range: Range<u64>,
    pub(crate) item: Option<Item>,
}

pub(crate) type Logs = HashMap<u64, Arc<Changes>>;

impl Tree {
    pub(crate) fn new(id: u64, root: RootPlace) -> Tree {
        Tree { id, root, changes: None }
    }

    pub(crate) fn last_to(&self, store: &Store, key: &Key) -> Result<Option<Item>> {
        let Some(changes) = &self.changes else { return self.last_stored(store, key) };
        let added = changes.0.range(..=*key).rev().find_map(|(_, item)| item.clone());
        let mut stored = self.last_stored(store, key)?;
        loop {
            match (stored, &added) {
                (Some(item), Some(added)) if item.key <= added.key => break,
                (Some(item), _) if changes.0.contains_key(&item.key) => {
                    let Some(before) = item.key.before() else { break };
                    stored = self.last_stored(store, &before)?;
                }
                (Some(item), _) => return Ok(Some(item)),
                (None, _) => break,
            }
        }
        Ok(added)
    }

    fn last_stored(&self, store: &Store, key: &Key) -> Result<Option<Item>> {
        let mut cursor = Cursor::new(store, self.id);
        cursor.descend(self.root, key)?;
        if let Some((leaf, slot)) = cursor.path.last_mut() {
            *slot = leaf.floor(key);
        }
        Ok(cursor.item().filter(|item| item.key <= *key))
    }

    pub(crate) fn get(&self, store: &Store, key: &Key) -> Result<Option<Item>> {
        if let Some(item) = self.changes.as_ref().and_then(|changes| changes.0.get(key)) {
            return Ok(item.clone());
        }
        let item = self.last_stored(store, key)?;
        Ok(item.filter(|item| item.key == *key))
    }
}

impl<'s> Cursor<'s> {
    fn new(store: &'s Store, tree: u64) -> Cursor<'s> {
        Cursor { store, tree, path: Vec::new() }
    }

    /// Moves to the first item whose key is not below `key`. After an error, [`Cursor::advance`]
    /// resumes after the damaged block.
    fn seek(&mut self, root: RootPlace, key: &Key) -> Result<()> {
        self.descend(root, key)?;
        match self.path.last_mut() {
            Some((leaf, slot)) => {
                *slot = leaf.below(key);
                if *slot < leaf.count { Ok(()) } else { self.next_leaf() }
            }
            None => Ok(()),
        }
    }

    /// Moves to the last item of an object and a type whose offset is not above that of `key`, or
    /// to the first item after it. After an error, as [`Cursor::seek`].
    fn seek_floor(&mut self, root: RootPlace, key: &Key) -> Result<()> {
        self.descend(root, key)?;
        let Some((leaf, slot)) = self.path.last_mut() else { return Ok(()) };
        *slot = leaf.floor(key);
        let found = (*slot < leaf.count).then(|| leaf.key(*slot));
        match found {
            Some(found) if (found.object, found.kind) == (key.object, key.kind) || found >= *key => Ok(()),
            Some(_) => self.advance(),
            None => self.next_leaf(),
        }
    }

    fn descend(&mut self, root: RootPlace, key: &Key) -> Result<()> {
        if root.level >= LEVELS_MAX {
            return Err(Corruption::RootRange { id: self.tree, level: root.level }.into());
        }
        let mut node = self.store.node(&Pointer::root(self.tree, root))?;
        while node.level > 0 {
            let slot = node.floor(key);
            self.path.push((node, slot));
            node = self.child()?;
        }
        self.path.push((node, 0));
        Ok(())
    }

    fn child(&self) -> Result<Arc<Node>> {
        let Some((node, slot)) = self.path.last() else {
            return Err(Corruption::NoTree { id: self.tree }.into());
        };
        let next = slot.plus(1);
        let end = if next < node.count {
            Some(node.key(next))
        } else {
            // The bound of the block itself, which its parent stores.
            self.path.iter().rev().skip(1).find_map(|(parent, slot)| {
                let next = slot.plus(1);
                (next < parent.count).then(|| parent.key(next))
            })
        };
        let (at, generation) = node.pointer(*slot);
        self.store.node(&Pointer {
            at,
            level: node.level.minus(1),
            generation,
            tree: self.tree,
            first: Some(node.key(*slot)),
            end,
        })
    }

    pub(crate) fn item(&self) -> Option<Item> {
        let (leaf, slot) = self.path.last()?;
        (leaf.level == 0 && *slot < leaf.count).then(|| Item {
            tree: self.tree,
            key: leaf.key(*slot),
            source: Source::Leaf(Arc::clone(leaf), *slot),
        })
    }

    /// Moves to the next item. After an error, the next call resumes after the damaged block.
    pub(crate) fn advance(&mut self) -> Result<()> {
        match self.path.last_mut() {
            Some((node, slot)) if node.level == 0 => {
                *slot = slot.plus(1);
                if *slot < node.count { Ok(()) } else { self.next_leaf() }
            }
            _ => self.next_leaf(),
        }
    }

    fn next_leaf(&mut self) -> Result<()> {
        if self.path.last().is_some_and(|(node, _)| node.level == 0) {
            self.path.pop();
        }
        while let Some((node, slot)) = self.path.last_mut() {
            *slot = slot.plus(1);
            if *slot < node.count {
                return self.first_leaf();
            }
            self.path.pop();
        }
        Ok(())
    }

    fn first_leaf(&mut self) -> Result<()> {
        loop {
            let node = self.child()?;
            let level = node.level;
            self.path.push((node, 0));
            if level == 0 {
                return Ok(());
            }
        }
    }
}

/// Iterator over the items of a range of keys. Damaged blocks give one error each.
pub(crate) struct Items<'s> {
    cursor: Cursor<'s>,
    end: Key,
    /// Outcome of the search for the first item; `None` before it.
    found: Option<Result<()>>,
    changes: Option<Arc<Changes>>,
    /// Lower bound of the changes that were not returned yet.
    from: Key,
    /// Stored item that was read but not returned.
    waiting: Option<Item>,
}

impl Tree {
    /// Both bounds are included.
    pub(crate) fn items<'s>(&self, store: &'s Store, start: Key, end: Key) -> Items<'s> {
        let mut cursor = Cursor::new(store, self.id);
        let found = Some(cursor.seek(self.root, &start));
        let changes = self.changes.clone();
        Items { cursor, end, found, changes, from: start, waiting: None }
    }

    /// Returns the items of one object and one type, beginning with the last one whose offset is
    /// not above `from`.
    pub(crate) fn items_around<'s>(
        &self,
        store: &'s Store,
        object: u64,
        kind: u8,
        from: u64,
    ) -> Result<Items<'s>> {
        let key = Key::new(object, kind, from);
        let end = Key::new(object, kind, u64::MAX);
        if self.changes.is_none() {
            let mut cursor = Cursor::new(store, self.id);
            let found = Some(cursor.seek_floor(self.root, &key));
            return Ok(Items { cursor, end, found, changes: None, from: key, waiting: None });
        }
        let before = self.last_to(store, &key)?.map(|item| item.key);
        let before = before.filter(|before| (before.object, before.kind) == (object, kind));
        Ok(self.items(store, before.unwrap_or(key), end))
    }

    pub(crate) fn items_of<'s>(&self, store: &'s Store, object: u64, kind: u8, from: u64) -> Items<'s> {
        self.items(store, Key::new(object, kind, from), Key::new(object, kind, u64::MAX))
    }

    pub(crate) fn all<'s>(&self, store: &'s Store) -> Items<'s> {
        self.items(store, Key::new(0, 0, 0), Key::new(u64::MAX, u8::MAX, u64::MAX))
    }
}

impl Items<'_> {
    fn next_stored(&mut self) -> Option<Result<Item>> {
        let found = self.found.take().unwrap_or_else(|| self.cursor.advance());
        if let Err(error) = found {
            return Some(Err(error));
        }
        let item = self.cursor.item().filter(|item| item.key <= self.end);
        if item.is_none() {
            self.cursor.path.clear();
        }
        item.map(Ok)
    }
}

impl Iterator for Items<'_> {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Result<Item>> {
        let Some(changes) = self.changes.clone() else { return self.next_stored() };
        loop {
            let stored = match self.waiting.take() {
                Some(item) => Some(item),
                None => match self.next_stored() {
                    Some(Err(error)) => return Some(Err(error)),
                    item => item.transpose().ok().flatten(),
                },
            };
            let change = (self.from <= self.end)
                .then(|| changes.0.range(self.from..=self.end).next())
                .flatten()
                .map(|(key, item)| (*key, item.clone()));
            match (stored, change) {
                (Some(stored), Some((key, item))) if key <= stored.key => {
                    self.from = key.after();
                    if key < stored.key {
                        self.waiting = Some(stored);
                    }
                    if let Some(item) = item {
                        return Some(Ok(item));
                    }
                }
                (Some(stored), _) => return Some(Ok(stored)),
                (None, Some((key, item))) => {
                    self.from = key.after();
                    if let Some(item) = item {
                        return Some(Ok(item));
                    }
                }
                (None, None) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{RawInodeItem, kind, tree};

    /// Figures after the end of an item of a log were 0: an inode without links was left out.
    #[test]
    fn items_that_end_within_their_structure_are_refused() {
        let item = |len| Item::made(tree::TOP, Key::new(257, kind::INODE_ITEM, 0), vec![1; len]);
        assert_eq!(item(160).head::<RawInodeItem>().unwrap().nlink.get(), 0x0101_0101);
        let error = item(43).head::<RawInodeItem>().unwrap_err().to_string();
        assert!(error.contains("43 bytes"), "{error}");
    }
}
