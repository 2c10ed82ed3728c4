//! Lays out everything around the data: descriptors in front of it; boot catalog, path tables and directories behind it.

use super::boot::{self, Wanted};
use super::descriptors::{self, Volume};
use super::entries;
use super::path_table;
use super::stored::{Store, sector};
use super::trees::{Directories, Flavour};
use crate::disk::{DESCRIPTORS_AT, SECTOR_LEN};
use crate::options::Options;
use packfs_core::{NodeId, Result, Section};

/// A tree of directories and its path tables, placed.
struct PlacedTree {
    directories: Directories,
    tables_at: [u64; 2],
    table_len: u64,
}

/// Hands out all sections; see the module.
pub(super) fn sections(
    options: &Options,
    store: &Store<'_>,
    boot_images: &[Wanted],
    put: &mut dyn FnMut(Section) -> Result<()>,
) -> Result<()> {
    store.leads(put)?;
    let data_end = store.placed.data_end;
    let mut end = data_end.next_multiple_of(SECTOR_LEN);
    put(Section { owner: "padding", offset: data_end, bytes: vec![0; (end - data_end) as usize] })?;

    let catalog = boot::catalog(store, boot_images)?;
    let catalog_at = end;
    end += catalog.len() as u64;
    if !catalog.is_empty() {
        put(Section { owner: "boot catalog", offset: catalog_at, bytes: catalog })?;
    }
    let mut primary = PlacedTree::new(store, Flavour::RockRidge, &mut end)?;
    let joliet = options.joliet.map(|max| PlacedTree::new(store, Flavour::Joliet(max), &mut end));
    let mut joliet = joliet.transpose()?;
    end = primary.directories.place(end)?;
    if let Some(joliet) = &mut joliet {
        end = joliet.directories.place(end)?;
    }

    let sectors = sector(end)?;
    let mut bytes = descriptors::primary(options, &primary.volume(store, sectors)?);
    if !boot_images.is_empty() {
        bytes.extend(boot::record(sector(catalog_at)?));
    }
    if let Some(joliet) = &joliet {
        bytes.extend(descriptors::joliet(options, &joliet.volume(store, sectors)?));
    }
    bytes.extend(descriptors::terminator());
    for tree in std::iter::once(primary).chain(joliet) {
        tree.put(put)?;
    }
    put(Section { owner: "system area", offset: 0, bytes: descriptors::system_area() })?;
    put(Section { owner: "volume descriptors", offset: DESCRIPTORS_AT, bytes })
}

impl PlacedTree {
    /// Makes a tree, and places its path tables from `end` on.
    fn new(store: &Store<'_>, flavour: Flavour, end: &mut u64) -> Result<Self> {
        let directories = Directories::new(store, flavour)?;
        let table_len = path_table::len(&directories.table());
        let mut place = || {
            let at = *end;
            *end += table_len.next_multiple_of(SECTOR_LEN);
            at
        };
        let tables_at = [place(), place()];
        Ok(PlacedTree { directories, tables_at, table_len })
    }

    fn volume(&self, store: &Store<'_>, sectors: u32) -> Result<Volume> {
        let [little, big] = self.tables_at;
        Ok(Volume {
            sectors,
            root: self.directories.root()?,
            root_time: entries::record_time(store.tree.node(NodeId::ROOT).meta.mtime),
            table_len: self.table_len as u32,
            tables: [sector(little)?, sector(big)?],
        })
    }

    fn put(self, put: &mut dyn FnMut(Section) -> Result<()>) -> Result<()> {
        let rows = self.directories.table();
        for (at, is_big) in self.tables_at.into_iter().zip([false, true]) {
            let mut bytes = path_table::table(&rows, is_big);
            bytes.resize(bytes.len().next_multiple_of(SECTOR_LEN as usize), 0);
            put(Section { owner: "path tables", offset: at, bytes })?;
        }
        drop(rows);
        self.directories.put(put)
    }
}
