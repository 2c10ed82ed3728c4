//! The directory tree of a volume descriptor: with Rock Ridge, or with Joliet names.
//!
//! Directories are created one by one, in the order of path tables, before they are placed; their
//! references to each other are completed then. Deep directories are not relocated: all current
//! readers accept them.

use super::areas::Areas;
use super::entries;
use super::names;
use super::path_table::Row;
use super::records::{EXTENT_AT, Head, LEN_AT, Records, set};
use super::stored::{Store, Stored, sector};
use crate::disk::*;
use packfs_core::{Error, NodeId, NodeKind, Result};
use packfs_format::Section;
use std::collections::VecDeque;

/// Limit of directories: rows of a path table have 16-bit numbers.
const DIRECTORIES_MAX: usize = 65_535;

/// Kind of names in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    RockRidge,
    /// With names of at most this many units.
    Joliet(usize),
}

struct Directory {
    node: NodeId,
    /// Index of the parent; the root is its own.
    parent: usize,
    name: Vec<u8>,
    records: Records,
    areas: Areas,
    /// Records that refer to directories: offset, and index of the directory.
    links: Vec<(usize, usize)>,
    /// Offsets of the blocks of CE entries in the records.
    blocks_at: Vec<usize>,
    at: u64,
}

/// All directories of a tree, in the order of path tables.
pub(super) struct Directories {
    rows: Vec<Directory>,
}

impl Directories {
    /// Errors: `Failed` for more directories or data than numbers permit.
    pub(super) fn new(store: &Store<'_>, flavour: Flavour) -> Result<Self> {
        let mut rows = vec![Directory::new(NodeId::ROOT, 0, vec![0])];
        // Path tables are ordered breadth first, by name.
        let mut open = VecDeque::from([0]);
        while let Some(index) = open.pop_front() {
            let mut directory =
                std::mem::replace(&mut rows[index], Directory::new(NodeId::ROOT, 0, Vec::new()));
            directory.add_self_and_parent(
                store,
                flavour,
                index,
                rows.get(directory.parent).map(|row| row.node),
            )?;
            for (name, id, own_name) in children(store, flavour, directory.node) {
                let child = store.tree.node(id).is_dir().then_some(rows.len());
                if child.is_some() {
                    rows.push(Directory::new(id, index, name.clone()));
                    open.push_back(rows.len() - 1);
                }
                directory.add(store, flavour, (&name, id, own_name), child)?;
            }
            directory.records.finish();
            rows[index] = directory;
            if rows.len() > DIRECTORIES_MAX {
                let message = format!("more than {DIRECTORIES_MAX} directories, which iso9660 cannot number");
                return Err(Error::failed(message));
            }
        }
        Ok(Directories { rows })
    }

    /// Places all directories from `at` on, and returns the end.
    pub(super) fn place(&mut self, mut at: u64) -> Result<u64> {
        for row in &mut self.rows {
            row.at = at;
            at += row.records.bytes.len() as u64 + row.areas.len();
        }
        let places: Vec<(u32, u32)> =
            self.rows.iter().map(|row| Ok((sector(row.at)?, row.len()?))).collect::<Result<_>>()?;
        for row in &mut self.rows {
            for &(at, index) in &row.links {
                let (block, len) = places[index];
                set(&mut row.records.bytes, at + EXTENT_AT, block);
                set(&mut row.records.bytes, at + LEN_AT, len);
            }
            let areas = sector(row.at + row.records.bytes.len() as u64)?;
            for &at in &row.blocks_at {
                let block = both32(&row.records.bytes, at).unwrap_or(0);
                set(&mut row.records.bytes, at, areas + block);
            }
            for &at in &row.areas.blocks_at {
                let block = both32(&row.areas.bytes, at).unwrap_or(0);
                set(&mut row.areas.bytes, at, areas + block);
            }
        }
        Ok(at)
    }

    /// First sector and length of the root.
    pub(super) fn root(&self) -> Result<(u32, u32)> {
        let root = &self.rows[0];
        Ok((sector(root.at)?, root.len()?))
    }

    pub(super) fn table(&self) -> Vec<Row<'_>> {
        let rows = self.rows.iter().map(|directory| Row {
            name: &directory.name,
            block: (directory.at / SECTOR_LEN) as u32,
            parent: directory.parent as u16 + 1,
        });
        rows.collect()
    }

    /// Writes all directories, each with its continuation areas.
    pub(super) fn put(self, put: &mut dyn FnMut(Section) -> Result<()>) -> Result<()> {
        for row in self.rows {
            let areas_len = row.areas.len() as usize;
            let mut bytes = row.records.bytes;
            let end = bytes.len() + areas_len;
            bytes.extend_from_slice(&row.areas.bytes);
            bytes.resize(end, 0);
            put(Section { owner: "directories", offset: row.at, bytes })?;
        }
        Ok(())
    }
}

/// Returns the entries of a directory in the order of their stored names, with nodes and true
/// names.
fn children<'a>(store: &Store<'a>, flavour: Flavour, directory: NodeId) -> Vec<(Vec<u8>, NodeId, &'a [u8])> {
    let tree = store.tree;
    let entries = || tree.entries(directory);
    let stored: Vec<Option<Vec<u8>>> = match flavour {
        Flavour::RockRidge => names::iso(tree, entries()).into_iter().map(Some).collect(),
        Flavour::Joliet(max) => names::joliet(tree, entries(), max),
    };
    let named = stored.into_iter().zip(entries());
    let mut children: Vec<_> =
        named.filter_map(|(stored, entry)| Some((stored?, entry.node, entry.name))).collect();
    children.sort_by_cached_key(|child| sort_key(flavour, &child.0));
    children
}

/// Returns the sort key of a name: the name padded with spaces, then the extension (ECMA-119 9.3);
/// Joliet names unchanged.
fn sort_key(flavour: Flavour, name: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let dot = name.iter().position(|&byte| byte == b'.').filter(|_| flavour == Flavour::RockRidge);
    match dot {
        Some(dot) => (name[..dot].to_vec(), name[dot + 1..].to_vec()),
        None => (name.to_vec(), Vec::new()),
    }
}

impl Directory {
    fn new(node: NodeId, parent: usize, name: Vec<u8>) -> Self {
        Directory {
            node,
            parent,
            name,
            records: Records::default(),
            areas: Areas::default(),
            links: Vec::new(),
            blocks_at: Vec::new(),
            at: 0,
        }
    }

    fn len(&self) -> Result<u32> {
        u32::try_from(self.records.bytes.len())
            .map_err(|_| Error::failed("a directory of more than 4 GiB, which iso9660 cannot hold"))
    }

    fn add_self_and_parent(
        &mut self,
        store: &Store<'_>,
        flavour: Flavour,
        index: usize,
        parent: Option<NodeId>,
    ) -> Result<()> {
        let is_root = self.node == NodeId::ROOT;
        // The root is its own parent, and was taken out of the list.
        let parent_node = if is_root { self.node } else { parent.unwrap_or(NodeId::ROOT) };
        for (name, node, target) in [(NAME_SELF, self.node, index), (NAME_PARENT, parent_node, self.parent)] {
            let time = entries::record_time(store.tree.node(node).meta.mtime);
            let head = Head { name: &name, extent: (0, 0), time, flags: FLAG_DIRECTORY };
            let entries = match flavour {
                Flavour::RockRidge => entries::of_directory(store, node, is_root && name == NAME_SELF)?,
                Flavour::Joliet(_) => Vec::new(),
            };
            self.add_record(&head, &entries, Some(target));
        }
        Ok(())
    }

    /// Adds the records of an entry; `child` is its index if it is a directory.
    fn add(
        &mut self,
        store: &Store<'_>,
        flavour: Flavour,
        (name, id, own_name): (&[u8], NodeId, &[u8]),
        child: Option<usize>,
    ) -> Result<()> {
        let node = store.tree.node(id);
        let stored = match node.kind {
            NodeKind::File { .. } => store.stored(id),
            _ => Stored { start: DESCRIPTORS_AT, len: 0, decoded_len: None },
        };
        let entries = match flavour {
            Flavour::RockRidge => entries::of_name(store, id, own_name, &stored)?,
            Flavour::Joliet(_) => Vec::new(),
        };
        let time = entries::record_time(node.meta.mtime);
        let mut extents = stored.extents().peekable();
        while let Some(extent) = extents.next() {
            let goes_on = if extents.peek().is_some() { FLAG_MULTI_EXTENT } else { 0 };
            let flags = if child.is_some() { FLAG_DIRECTORY } else { goes_on };
            let head = Head { name, extent: extent?, time, flags };
            self.add_record(&head, &entries, child);
        }
        Ok(())
    }

    fn add_record(&mut self, head: &Head<'_>, entries: &[Vec<u8>], link: Option<usize>) {
        let in_record = self.areas.divide(entries, head.room());
        let at = self.records.add(&head.with(&in_record.bytes));
        self.links.extend(link.map(|index| (at, index)));
        let area = at + head.system_use_at();
        self.blocks_at.extend(in_record.block_at.map(|block_at| area + block_at));
    }
}
