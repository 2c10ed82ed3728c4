//! The inode table and the directory table, written together because they refer to each other.

use super::listing::{Child, Listing, ListingRecords, write_listing};
use super::numbering::Numbering;
use super::writer::{MetadataCodec, MetadataWriter, StreamRef};
use crate::place::InodeRef;
use packfs_core::{DeviceNumber, Error, Node, NodeId, NodeKind, Result, Tree};
use packfs_format::{Blocks, FilePlace, Placed, units::*};

pub(crate) enum InodeBody<'a> {
    Dir {
        listing: &'a Listing,
        parent: u32,
    },
    File {
        len: u64,
        place: &'a FilePlace<Blocks>,
        /// Tables that `place` refers to.
        placed: &'a Placed<Blocks>,
    },
    Symlink(&'a [u8]),
    Device(DeviceNumber),
    Ipc,
}

pub(crate) trait InodeRecords {
    fn listing_records(&self) -> &impl ListingRecords;

    /// True if hard links share one inode; otherwise each has its own.
    fn has_links(&self) -> bool;

    /// Errors: `Failed` for an inode too far into the table for a reference.
    fn check_place(&self, place: InodeRef) -> Result<()>;

    /// Appends the inode of a node, with its inode number.
    ///
    /// Errors: `Failed` if a value exceeds its field.
    fn put_inode(&self, out: &mut Vec<u8>, node: &Node, number: u32, body: &InodeBody<'_>) -> Result<()>;
}

pub(crate) struct InodeTables {
    pub(crate) inodes: Vec<u8>,
    pub(crate) listings: Vec<u8>,
    /// Reference of each inode by its number: rows of the export table.
    pub(crate) references: Vec<u8>,
    pub(crate) root: InodeRef,
    pub(crate) count: u32,
}

impl InodeTables {
    /// Writes the inodes of a tree and the listings of its directories, `first_used` at the front.
    /// `compressed` applies to both tables.
    ///
    /// Errors: `Failed` for values that the version cannot store.
    pub(crate) fn new(
        records: &impl InodeRecords,
        codec: &mut MetadataCodec,
        compressed: bool,
        tree: &Tree,
        placed: &Placed<Blocks>,
        first_used: &[NodeId],
    ) -> Result<Self> {
        let writer = Writer {
            records,
            codec,
            tree,
            placed,
            numbering: Numbering::new(tree),
            inodes: MetadataWriter::new(compressed),
            listings: MetadataWriter::new(compressed),
            listing: None,
            places: vec![StreamRef::NONE; tree.node_count() as usize],
            count: 0,
            record: Vec::new(),
        };
        writer.write(first_used)
    }
}

struct Writer<'a, R> {
    records: &'a R,
    codec: &'a mut MetadataCodec,
    tree: &'a Tree,
    placed: &'a Placed<Blocks>,
    numbering: Numbering,
    inodes: MetadataWriter,
    listings: MetadataWriter,
    /// Listing of the directory whose inode is next.
    listing: Option<Listing>,
    places: Vec<StreamRef>,
    count: u32,
    record: Vec<u8>,
}

impl<R: InodeRecords> Writer<'_, R> {
    fn write(mut self, first_used: &[NodeId]) -> Result<InodeTables> {
        // Directories follow the inodes of their entries; without links each name has a separate
        // inode.
        for &id in first_used {
            let node = self.tree.node(id);
            if !node.is_dir() && self.has_one_inode(node) {
                self.write_inode(id)?;
            }
        }
        let root = self.write_tree()?;
        self.inodes.finish(self.codec)?;
        self.listings.finish(self.codec)?;
        Ok(InodeTables {
            root: self.reference(root)?,
            references: self.references()?,
            count: self.count,
            inodes: self.inodes.into_table(),
            listings: self.listings.into_table(),
        })
    }

    /// Writes inodes and listings along a walk, each directory after its contents; returns the
    /// position of the root.
    fn write_tree(&mut self) -> Result<StreamRef> {
        let tree = self.tree;
        let mut open = vec![(NodeId::ROOT, tree.entries(NodeId::ROOT), Vec::new())];
        loop {
            let Some((dir, entries, places)) = open.last_mut() else {
                return Err(Error::failed("internal: a tree without a root"));
            };
            match entries.next().map(|entry| entry.node) {
                Some(child) if tree.node(child).is_dir() => {
                    open.push((child, tree.entries(child), Vec::new()));
                }
                Some(child) => places.push(self.write_inode(child)?),
                None => {
                    let dir = *dir;
                    let places = std::mem::take(places);
                    self.write_listing(dir, &places)?;
                    let place = self.write_inode(dir)?;
                    open.pop();
                    match open.last_mut() {
                        Some((_, _, places)) => places.push(place),
                        None => return Ok(place),
                    }
                }
            }
        }
    }

    /// Writes the listing of a directory; `places` are the inodes of its entries.
    fn write_listing(&mut self, dir: NodeId, places: &[StreamRef]) -> Result<()> {
        let mut children = Vec::with_capacity(places.len());
        for (entry, &place) in self.tree.entries(dir).zip(places) {
            let inode = self.reference(place)?;
            let file_type = self.tree.node(entry.node).kind.file_type();
            children.push(Child { entry, file_type, inode, number: self.numbering.number(entry.node) });
        }
        let records = self.records.listing_records();
        let listing = write_listing(records, &mut self.listings, self.codec, &children)?;
        self.listing = Some(listing);
        Ok(())
    }

    fn reference(&mut self, place: StreamRef) -> Result<InodeRef> {
        let reference = self.inodes.reference(self.codec, place)?;
        self.records.check_place(reference)?;
        Ok(reference)
    }

    /// Writes an inode, unless an earlier name already wrote and shares it; returns its position.
    fn write_inode(&mut self, id: NodeId) -> Result<StreamRef> {
        let node = self.tree.node(id);
        // A node with one name may have been written early.
        let is_shared = node.is_dir() || self.has_one_inode(node);
        let written = self.places[id.index()];
        if is_shared && written != StreamRef::NONE {
            return Ok(written);
        }
        let place = self.inodes.position();
        let listing = if node.is_dir() { self.listing.take() } else { None };
        let body = match &node.kind {
            NodeKind::Directory => {
                let listing = listing
                    .as_ref()
                    .ok_or_else(|| Error::failed("internal: a directory before its listing"))?;
                InodeBody::Dir { listing, parent: self.parent_number(id) }
            }
            NodeKind::File { len, .. } => {
                let failed = self.placed.failed.binary_search(&id).is_ok();
                let len = if failed { 0 } else { *len };
                InodeBody::File { len, place: &self.placed.files[id.index()], placed: self.placed }
            }
            NodeKind::Symlink(target) => InodeBody::Symlink(target),
            NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => InodeBody::Device(*number),
            NodeKind::Fifo | NodeKind::Socket => InodeBody::Ipc,
        };
        self.record.clear();
        self.records.put_inode(&mut self.record, node, self.numbering.number(id), &body)?;
        self.inodes.append(self.codec, &self.record)?;
        self.places[id.index()] = place;
        self.count += 1;
        Ok(place)
    }

    /// True if all names of a file refer to one inode.
    fn has_one_inode(&self, node: &Node) -> bool {
        self.records.has_links() || node.links == 1
    }

    fn parent_number(&self, dir: NodeId) -> u32 {
        match dir {
            // The root's parent is a number without an inode.
            NodeId::ROOT => self.tree.node_count() + 1,
            _ => self.numbering.number(self.tree.node(dir).parent()),
        }
    }

    fn references(&mut self) -> Result<Vec<u8>> {
        let endian = self.codec.endian();
        let mut references = vec![0; self.places.len() * 8];
        for (&place, &number) in self.places.iter().zip(&self.numbering.numbers) {
            if place != StreamRef::NONE {
                let at = (number as usize).minus(1) * 8;
                let reference = self.inodes.reference(self.codec, place)?.to_raw();
                references[at..at + 8].copy_from_slice(&endian.bytes_of_u64(reference));
            }
        }
        Ok(references)
    }
}
