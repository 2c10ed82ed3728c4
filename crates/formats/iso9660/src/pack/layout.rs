//! Layout of everything except data: descriptors, boot catalog, path tables, and directories before
//! it, padding after it.

use super::boot::{self, Wanted};
use super::descriptors::{self, Volume};
use super::entries;
use super::path_table;
use super::stored::{Store, sector};
use super::trees::{Directories, Flavour};
use crate::disk::{DESCRIPTORS_AT, SECTOR_LEN};
use packfs_core::{Error, NodeId, Result};
use packfs_format::Section;

/// Length of the shortest image that libarchive recognizes.
const LEN_MIN: u64 = 24 * SECTOR_LEN;

struct PlacedTree {
    directories: Directories,
    tables_at: [u64; 2],
    table_len: u64,
}

struct Trees {
    primary: PlacedTree,
    joliet: Option<PlacedTree>,
    end: u64,
}

/// An image with placed data.
pub(super) struct Image<'a> {
    pub store: Store<'a>,
    /// End of the descriptors.
    pub metadata_start: u64,
    pub data_end: u64,
}

/// Upper bound of the length between descriptors and data. Facts that are known only when data is
/// placed shorten records or remove some.
///
/// Errors: as [`Directories::new`].
pub(super) fn metadata_len(store: &Store<'_>, has_catalog: bool) -> Result<u64> {
    let catalog_len = if has_catalog { SECTOR_LEN } else { 0 };
    Ok(catalog_len + Trees::new(store, 0)?.end)
}

/// Writes all sections; see the module.
pub(super) fn sections(
    image: Image<'_>,
    boot_images: &[Wanted],
    put: &mut dyn FnMut(Section) -> Result<()>,
) -> Result<()> {
    let Image { store, metadata_start, data_end } = image;
    let options = store.options;
    store.leads(put)?;
    let end = data_end.next_multiple_of(SECTOR_LEN).max(LEN_MIN);
    put(Section { owner: "padding", offset: data_end, bytes: vec![0; (end - data_end) as usize] })?;

    let catalog = boot::catalog(&store, boot_images)?;
    let trees = Trees::new(&store, metadata_start + catalog.len() as u64)?;
    let unused = store.data_start.checked_sub(trees.end);
    let unused = unused.ok_or_else(|| Error::failed("internal: directories are longer than was reserved"))?;
    put(Section { owner: "padding", offset: trees.end, bytes: vec![0; unused as usize] })?;

    let sectors = sector(end)?;
    let mut bytes = descriptors::primary(options, &trees.primary.volume(&store, sectors)?);
    if !catalog.is_empty() {
        bytes.extend(boot::record(sector(metadata_start)?));
        put(Section { owner: "boot catalog", offset: metadata_start, bytes: catalog })?;
    }
    if let Some(joliet) = &trees.joliet {
        bytes.extend(descriptors::joliet(options, &joliet.volume(&store, sectors)?));
    }
    bytes.extend(descriptors::terminator());
    for tree in std::iter::once(trees.primary).chain(trees.joliet) {
        tree.put(put)?;
    }
    put(Section { owner: "system area", offset: 0, bytes: descriptors::system_area() })?;
    put(Section { owner: "volume descriptors", offset: DESCRIPTORS_AT, bytes })
}

impl Trees {
    /// Creates the required trees, and places them from `end` on: all path tables, then all
    /// directories.
    fn new(store: &Store<'_>, mut end: u64) -> Result<Self> {
        let mut primary = PlacedTree::new(store, Flavour::RockRidge, &mut end)?;
        let joliet = store.options.joliet.map(|max| PlacedTree::new(store, Flavour::Joliet(max), &mut end));
        let mut joliet = joliet.transpose()?;
        end = primary.directories.place(end)?;
        if let Some(joliet) = &mut joliet {
            end = joliet.directories.place(end)?;
        }
        Ok(Trees { primary, joliet, end })
    }
}

impl PlacedTree {
    /// Creates a tree, and places its path tables from `end` on.
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
