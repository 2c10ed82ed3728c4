//! Names of a tree that is being built.
//!
//! Trees may have millions of names, so there is no allocation for each: bytes are in one vector,
//! targets in another, and a directory is a linked list of the latter. Names in a directory are
//! found by a hash with a random key; no result depends on its order.

use super::BuildId;
use crate::tree::NamePlace;
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId(u32);

impl EntryId {
    /// End of a directory's list.
    const NONE: EntryId = EntryId(u32::MAX);
}

#[derive(Clone, Copy)]
pub(super) enum Target {
    Node(BuildId),
    /// Number of a hard link, whose target is looked up when the tree is finished.
    Link(u32),
}

/// Position of a name in a directory, where an entry may exist. Valid until the next insertion.
pub(super) struct Spot {
    dir: BuildId,
    hash: u64,
    pub entry: Option<EntryId>,
}

struct Row {
    name: NamePlace,
    /// Previously added entry of the directory.
    next: EntryId,
    target: u32,
    is_link: bool,
}

struct Dir {
    last: EntryId,
    by_name: HashTable<EntryId>,
}

/// A node without entries.
const NO_DIR: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Entries {
    names: Vec<u8>,
    rows: Vec<Row>,
    dirs: Vec<Dir>,
    dir_of: Vec<u32>,
    hashing: RandomState,
}

impl Entries {
    pub(super) fn add_node(&mut self) {
        self.dir_of.push(NO_DIR);
    }

    pub(super) fn spot(&self, dir: BuildId, wanted: &[u8]) -> Spot {
        let hash = self.hashing.hash_one(wanted);
        let is_wanted = |entry: &EntryId| self.name(*entry) == wanted;
        let found = self.dirs.get(self.dir_of[dir.index()] as usize);
        Spot { dir, hash, entry: found.and_then(|dir| dir.by_name.find(hash, is_wanted)).copied() }
    }

    pub(super) fn find(&self, dir: BuildId, name: &[u8]) -> Option<EntryId> {
        self.spot(dir, name).entry
    }

    pub(super) fn get(&self, dir: BuildId, name: &[u8]) -> Option<Target> {
        self.find(dir, name).map(|entry| self.target(entry))
    }

    pub(super) fn target(&self, entry: EntryId) -> Target {
        let row = &self.rows[entry.0 as usize];
        if row.is_link { Target::Link(row.target) } else { Target::Node(BuildId(row.target)) }
    }

    pub(super) fn name(&self, entry: EntryId) -> &[u8] {
        self.rows[entry.0 as usize].name.of(&self.names)
    }

    /// Adds a name at its spot, or replaces its target.
    pub(super) fn put(&mut self, spot: &Spot, name: &[u8], target: Target) {
        if let Some(entry) = spot.entry {
            self.retarget(entry, target);
            return;
        }
        let Entries { names, rows, dirs, dir_of, hashing } = self;
        let dir_of = &mut dir_of[spot.dir.index()];
        if *dir_of == NO_DIR {
            *dir_of = dirs.len() as u32;
            dirs.push(Dir { last: EntryId::NONE, by_name: HashTable::new() });
        }
        let dir = &mut dirs[*dir_of as usize];
        let entry = EntryId(rows.len() as u32);
        let next = std::mem::replace(&mut dir.last, entry);
        let name = NamePlace::add(names, name);
        rows.push(Row { name, next, target: 0, is_link: false });
        dir.by_name
            .insert_unique(spot.hash, entry, |entry| hashing.hash_one(rows[entry.0 as usize].name.of(names)));
        self.retarget(entry, target);
    }

    pub(super) fn retarget(&mut self, entry: EntryId, target: Target) {
        let row = &mut self.rows[entry.0 as usize];
        (row.target, row.is_link) = match target {
            Target::Node(node) => (node.0, false),
            Target::Link(link) => (link, true),
        };
    }

    pub(super) fn is_empty(&self, dir: BuildId) -> bool {
        self.dir_of[dir.index()] == NO_DIR
    }

    /// Entries in the order added.
    pub(super) fn all(&self) -> impl Iterator<Item = EntryId> + use<> {
        (0..self.rows.len() as u32).map(EntryId)
    }

    /// Drops the index by name.
    pub(super) fn into_chains(self) -> (Vec<u8>, Chains) {
        let lasts = self.dirs.into_iter().map(|dir| dir.last).collect();
        (self.names, Chains { rows: self.rows, lasts, dir_of: self.dir_of })
    }
}

pub(super) struct Chains {
    rows: Vec<Row>,
    lasts: Vec<EntryId>,
    dir_of: Vec<u32>,
}

pub(super) struct Named {
    pub name: NamePlace,
    pub node: BuildId,
}

impl Chains {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The order is unspecified. Links are resolved.
    pub(super) fn of(&self, dir: BuildId) -> impl Iterator<Item = Named> {
        let last = self.lasts.get(self.dir_of[dir.index()] as usize);
        let mut next = last.copied().unwrap_or(EntryId::NONE);
        std::iter::from_fn(move || {
            let row = self.rows.get(next.0 as usize)?;
            next = row.next;
            Some(Named { name: row.name, node: BuildId(row.target) })
        })
    }
}
