//! Subvolumes: their numbers in this volume, their paths, and their directory entries.
//!
//! Invariant: a subvolume has one parent, and no entry leads to the opened one, so directories form
//! a tree.

use crate::corruption::Corruption;
use crate::disk::{InodeRef, RootRef, kind, tree};
use crate::entry::{entries, name_hash};
use crate::fs::{Fs, Root};
use crate::key::Key;
use crate::numbers::ROWS_MAX;
use crate::tree::Tree;
use crate::volume::{BtrfsVolume, Node};
use packfs_core::{Error, Result};
use packfs_format::{InodeId, units::*};
use std::collections::HashMap;
use std::sync::PoisonError;

const REF_LEN: usize = size_of::<RootRef>();
/// Limits of a path: number of names, and bytes; those of the kernel.
const NAMES_MAX: usize = 2048;
const PATH_LEN_MAX: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// Tree that contains the directory.
    pub(crate) parent: u64,
    pub(crate) dir: u64,
    pub(crate) name: Vec<u8>,
}

impl BtrfsVolume {
    pub(crate) fn index_of(&self, tree: Tree) -> Result<u32> {
        let mut numbers = self.numbers.write().unwrap_or_else(PoisonError::into_inner);
        numbers.index_of(tree).ok_or_else(|| too_many("subvolumes"))
    }

    /// Returns the root of a subvolume that an entry leads to, or an empty directory if the entry
    /// is a copy in a snapshot of the parent, as Linux shows it.
    pub(crate) fn subvolume_id(&self, dir: &Node, name: &[u8], child: u64) -> Result<InodeId> {
        let around = self.id_of(dir.index, dir.tree.id, dir.inode)?;
        match self.fs.child_root(dir.tree.id, dir.inode, name, child)? {
            Some(root) if child == self.opened => {
                Err(Corruption::Inside { tree: dir.tree.id, child: root.tree.id }.into())
            }
            Some(root) => {
                let index = self.index_of(root.tree)?;
                self.id_of(index, child, root.dir)
            }
            None => {
                let mut numbers = self.numbers.write().unwrap_or_else(PoisonError::into_inner);
                numbers.empty_id(dir.index, child, around).ok_or_else(|| too_many("subvolumes elsewhere"))
            }
        }
    }
}

fn too_many(what: &str) -> Error {
    Error::limit("btrfs image", format_args!("more than {ROWS_MAX} {what}"))
}

impl Fs {
    /// Returns the entry of a subvolume: its only one, or the first of several.
    pub(crate) fn reference(&self, child: u64) -> Result<Option<Reference>> {
        let mut items = self.roots.items_of(&self.store, child, kind::ROOT_BACKREF, 0);
        let Some(parent) = items.next().transpose()?.map(|item| item.key.offset) else { return Ok(None) };
        let key = Key::new(parent, kind::ROOT_REF, child);
        let Some(item) = self.roots.get(&self.store, &key)? else { return Ok(None) };
        let (raw, bytes): (RootRef, _) = (item.head()?, item.bytes());
        let end = usize::from(raw.name_len.get()).plus(REF_LEN);
        let name = bytes.get(REF_LEN..end);
        let name = name.ok_or(Corruption::Size { place: item.place(), found: bytes.len(), min: end })?;
        Ok(Some(Reference { parent, dir: raw.dirid.get(), name: name.to_vec() }))
    }

    /// Resolves an option's value: a number, or a path from the top-level subvolume.
    pub(crate) fn wanted_subvolume(&self, wanted: &str) -> Result<u64> {
        if let Ok(id) = wanted.parse::<u64>() {
            let id = if id == 0 { tree::TOP } else { id };
            let root = if tree::is_subvolume(id) { self.find_root(id)? } else { None };
            return root.map(|_| id).ok_or_else(|| self.no_subvolume(wanted));
        }
        let path = packfs_core::ImagePath::parse(wanted.as_bytes())?;
        let (mut root, mut dir) = (self.root(tree::TOP)?, None);
        for name in path.names() {
            let at = dir.unwrap_or(root.dir);
            let location = self.location(&root.tree, at, name.as_bytes())?;
            match location.filter(|location| location.kind == kind::ROOT_ITEM) {
                Some(location) => {
                    let child = self.child_root(root.tree.id, at, name.as_bytes(), location.object)?;
                    (root, dir) = (child.ok_or_else(|| self.no_subvolume(wanted))?, None);
                }
                None => dir = Some(location.ok_or_else(|| self.no_subvolume(wanted))?.object),
            }
        }
        if dir.is_some() { Err(self.no_subvolume(wanted)) } else { Ok(root.tree.id) }
    }

    fn location(&self, tree: &Tree, dir: u64, name: &[u8]) -> Result<Option<Key>> {
        let item = tree.get(&self.store, &Key::new(dir, kind::DIR_ITEM, name_hash(name)))?;
        let Some(item) = item else { return Ok(None) };
        for entry in entries(&item) {
            let entry = entry?;
            if entry.name == name {
                return Ok(Some(entry.location));
            }
        }
        Ok(None)
    }

    /// Returns the subvolume that an entry names, if that entry is its reference.
    fn child_root(&self, tree: u64, dir: u64, name: &[u8], child: u64) -> Result<Option<Root>> {
        let lies_here = self.reference(child)?.is_some_and(|reference| {
            (reference.parent, reference.dir, reference.name.as_slice()) == (tree, dir, name)
        });
        if !lies_here || !tree::is_subvolume(child) {
            return Ok(None);
        }
        Ok(self.find_root(child)?.filter(|root| root.refs > 0))
    }

    /// Numbers of all subvolumes except the top-level one.
    pub(crate) fn subvolume_ids(&self) -> Result<Vec<u64>> {
        let start = Key::new(tree::FIRST_FREE, 0, 0);
        let end = Key::new(tree::LAST_FREE, u8::MAX, u64::MAX);
        let mut ids = Vec::new();
        for item in self.roots.items(&self.store, start, end) {
            let item = item?;
            if item.key.kind == kind::ROOT_ITEM
                && Root::read(&item).is_ok_and(|root| root.refs > 0)
                && ids.last() != Some(&item.key.object)
            {
                ids.push(item.key.object);
            }
        }
        Ok(ids)
    }

    /// Returns the path of a subvolume from the top; `None` if it has no reference.
    pub(crate) fn subvolume_path(&self, id: u64, paths: &mut Paths) -> Result<Option<Vec<u8>>> {
        // Upward to a subvolume whose path is known, then down again.
        let mut inner = Vec::new();
        let mut at = id;
        let mut names = 0_usize;
        let mut path = loop {
            if at == tree::TOP {
                break Some(Vec::new());
            }
            if let Some(known) = paths.0.get(&at) {
                break known.clone();
            }
            let reference = self.reference(at)?.filter(|_| names < NAMES_MAX);
            let Some(reference) = reference else { break None };
            let mut own = self.dir_path(reference.parent, reference.dir)?;
            own.push(reference.name);
            names = names.plus(own.len());
            inner.push((at, own.join(&b'/')));
            at = reference.parent;
        };
        while let Some((id, name)) = inner.pop() {
            path = path.map(|path| if path.is_empty() { name.clone() } else { [path, name].join(&b'/') });
            path = path.filter(|path| path.len() <= PATH_LEN_MAX);
            paths.0.insert(id, path.clone());
        }
        Ok(path)
    }

    fn dir_path(&self, id: u64, mut dir: u64) -> Result<Vec<Vec<u8>>> {
        let root = self.root(id)?;
        let mut names = Vec::new();
        while dir != root.dir {
            let item = root.tree.items_of(&self.store, dir, kind::INODE_REF, 0).next().transpose()?;
            let item = item.filter(|_| names.len() < NAMES_MAX);
            let item = item.ok_or(Corruption::NoInode { tree: id, inode: dir })?;
            let start = size_of::<InodeRef>();
            let end = start.plus(item.head::<InodeRef>()?.name_len.get().into());
            names.push(item.bytes_of(end)?.within(start..end).to_vec());
            dir = item.key.offset;
        }
        names.reverse();
        Ok(names)
    }
}

/// Cache of subvolume paths; `None` for a subvolume without a reference.
#[derive(Default)]
pub(crate) struct Paths(HashMap<u64, Option<Vec<u8>>>);
