//! Every name that was given while a tree is built.
//!
//! Trees may have millions of names, so none has memory of its own: bytes lie in one row, what they
//! name in another, and a directory is a chain through that. In a directory, names are found by a
//! hash with a random key; nothing depends on its order.

use super::BuildId;
use crate::tree::NamePlace;
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// An entry of a directory, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId(u32);

impl EntryId {
    /// After the last entry of a directory.
    const NONE: EntryId = EntryId(u32::MAX);
}

/// Node or directory that an entry names.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Node(BuildId),
    /// A hard link whose target is looked up when the tree is finished, by its number.
    Link(u32),
}

/// A name in a directory, whether there is an entry of that name or not. True until the next one is
/// put.
pub(super) struct Spot {
    dir: BuildId,
    hash: u64,
    pub entry: Option<EntryId>,
}

struct Row {
    name: NamePlace,
    /// The entry that was made before this one in the same directory.
    next: EntryId,
    target: u32,
    is_link: bool,
}

/// A directory with entries.
struct Dir {
    /// The one that was made last.
    last: EntryId,
    by_name: HashTable<EntryId>,
}

/// A node that has no entries.
const NO_DIR: u32 = u32::MAX;

/// See the module.
#[derive(Default)]
pub(super) struct Entries {
    names: Vec<u8>,
    rows: Vec<Row>,
    dirs: Vec<Dir>,
    /// The row of `dirs` of each node.
    dir_of: Vec<u32>,
    hashing: RandomState,
}

impl Entries {
    /// Room for the entries of the next node.
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

    /// Looks up a name in a directory.
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

    /// Adds a name at its spot, or gives it another meaning.
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

    /// Returns true if a directory has no entries.
    pub(super) fn is_empty(&self, dir: BuildId) -> bool {
        self.dir_of[dir.index()] == NO_DIR
    }

    /// Every entry, as they were made.
    pub(super) fn all(&self) -> impl Iterator<Item = EntryId> + use<> {
        (0..self.rows.len() as u32).map(EntryId)
    }

    /// The names, and the entries of all directories; nothing is looked up by its name any more.
    pub(super) fn into_chains(self) -> (Vec<u8>, Chains) {
        let lasts = self.dirs.into_iter().map(|dir| dir.last).collect();
        (self.names, Chains { rows: self.rows, lasts, dir_of: self.dir_of })
    }
}

/// The entries of all directories.
pub(super) struct Chains {
    rows: Vec<Row>,
    /// The last entry made in each directory that has any.
    lasts: Vec<EntryId>,
    /// The row of `lasts` of each node.
    dir_of: Vec<u32>,
}

/// An entry as a finished tree needs it.
pub(super) struct Named {
    pub name: NamePlace,
    pub node: BuildId,
}

impl Chains {
    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The entries of a directory, in no order that means anything. Links are resolved.
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
