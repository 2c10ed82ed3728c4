//! Subvolumes: their numbers in this volume, their paths, and the entries that lead to them.
//!
//! Invariant: a subvolume has one parent, and no entry leads to the opened one, so directories form
//! a tree.

use crate::bytes::Fields;
use crate::corruption::Corruption;
use crate::disk::{kind, tree};
use crate::fs::{Fs, Root};
use crate::key::Key;
use crate::numbers::ROWS_MAX;
use crate::tree::Tree;
use crate::volume::{BtrfsVolume, Node};
use packfs_core::{Error, ErrorKind, Result};
use packfs_format::InodeId;
use std::sync::PoisonError;

/// Bytes of a reference before its name.
const REF_LEN: usize = 18;
/// Subvolumes within each other, at most.
const DEPTH_MAX: usize = 1024;

/// A reference to a subvolume: the directory and the name of its entry.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// Tree of the directory.
    pub(crate) parent: u64,
    pub(crate) dir: u64,
    pub(crate) name: Vec<u8>,
}

impl BtrfsVolume {
    /// Returns the number of a tree.
    pub(crate) fn index_of(&self, tree: Tree) -> Result<u32> {
        let mut numbers = self.numbers.write().unwrap_or_else(PoisonError::into_inner);
        numbers.index_of(tree).ok_or_else(|| too_many("subvolumes"))
    }

    /// Returns the root of a subvolume that an entry leads to, or an empty directory if the
    /// subvolume lies elsewhere, as Linux shows it in a snapshot of its parent.
    pub(crate) fn subvolume_id(&self, dir: &Node, name: &[u8], child: u64) -> Result<InodeId> {
        let around = self.id_of(dir.index, dir.tree.id, dir.inode)?;
        match self.child_root(dir, name, child)? {
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

    /// Returns the subvolume that an entry names, if it lies there.
    fn child_root(&self, dir: &Node, name: &[u8], child: u64) -> Result<Option<Root>> {
        let lies_here = self.fs.reference(child)?.is_some_and(|reference| {
            (reference.parent, reference.dir, reference.name.as_slice()) == (dir.tree.id, dir.inode, name)
        });
        if !lies_here || !tree::is_subvolume(child) {
            return Ok(None);
        }
        Ok(self.fs.find_root(child)?.filter(|root| root.refs > 0))
    }
}

fn too_many(what: &str) -> Error {
    Error::limit("btrfs image", format_args!("more than {ROWS_MAX} {what}"))
}

impl Fs {
    /// Returns the place of the entry of a subvolume: its only one, or the first of several.
    pub(crate) fn reference(&self, child: u64) -> Result<Option<Reference>> {
        let mut items = self.roots.items_of(&self.store, child, kind::ROOT_BACKREF, 0);
        let Some(parent) = items.next().transpose()?.map(|item| item.key.offset) else { return Ok(None) };
        let key = Key::new(parent, kind::ROOT_REF, child);
        let Some(item) = self.roots.get(&self.store, &key)? else { return Ok(None) };
        let bytes = item.bytes_of(REF_LEN)?;
        let fields = Fields(bytes);
        let end = usize::from(fields.u16(16)).saturating_add(REF_LEN);
        let name = bytes.get(REF_LEN..end);
        let name = name.ok_or(Corruption::Size { place: item.place(), found: bytes.len(), min: end })?;
        Ok(Some(Reference { parent, dir: fields.u64(0), name: name.to_vec() }))
    }

    /// Returns the subvolume that an option means: a number, or a path from the top.
    pub(crate) fn wanted_subvolume(&self, wanted: &str) -> Result<u64> {
        if let Ok(id) = wanted.parse::<u64>() {
            let id = if id == 0 { tree::TOP } else { id };
            let root = if tree::is_subvolume(id) { self.find_root(id)? } else { None };
            return root.map(|_| id).ok_or_else(|| self.no_subvolume(wanted));
        }
        let path = packfs_core::ImagePath::parse(wanted.as_bytes())?;
        if path.is_root() {
            return Ok(tree::TOP);
        }
        for id in self.subvolume_ids()? {
            match self.subvolume_path(id) {
                Ok(Some(own)) if own == path.as_bytes() => return Ok(id),
                Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
                _ => {}
            }
        }
        Err(self.no_subvolume(wanted))
    }

    /// Returns the numbers of all subvolumes but the top one.
    pub(crate) fn subvolume_ids(&self) -> Result<Vec<u64>> {
        let (start, end) = (Key::new(tree::FIRST_FREE, 0, 0), Key::new(tree::LAST_FREE, u8::MAX, u64::MAX));
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

    /// Returns the path of a subvolume from the top; `None` if nothing leads to it.
    pub(crate) fn subvolume_path(&self, id: u64) -> Result<Option<Vec<u8>>> {
        let (mut names, mut id) = (Vec::new(), id);
        while id != tree::TOP {
            let Some(reference) = self.reference(id)?.filter(|_| names.len() < DEPTH_MAX) else {
                return Ok(None);
            };
            let mut name = self.dir_path(reference.parent, reference.dir)?;
            name.push(reference.name);
            names.push(name.join(&b'/'));
            id = reference.parent;
        }
        names.reverse();
        Ok(Some(names.join(&b'/')))
    }

    /// Returns the names from the root of a subvolume to a directory in it.
    fn dir_path(&self, id: u64, mut dir: u64) -> Result<Vec<Vec<u8>>> {
        let root = self.root(id)?;
        let mut names = Vec::new();
        while dir != root.dir && names.len() < DEPTH_MAX {
            let item = root.tree.items_of(&self.store, dir, kind::INODE_REF, 0).next().transpose()?;
            let item = item.ok_or(Corruption::NoInode { tree: id, inode: dir })?;
            let end = usize::from(Fields(item.bytes()).u16(8)).saturating_add(10);
            names.push(item.bytes_of(end)?.get(10..end).unwrap_or_default().to_vec());
            dir = item.key.offset;
        }
        names.reverse();
        Ok(names)
    }
}
