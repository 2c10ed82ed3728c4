//! Writes the inode table and the directory table, which refer to each other and so are written
//! side by side.

use super::listing::{Child, Listing, ListingRecords, write_listing};
use super::numbering::Numbering;
use super::writer::{MetadataCodec, MetadataWriter};
use crate::place::InodeRef;
use packfs_core::{DeviceNumber, Error, Node, NodeId, NodeKind, Result, Tree};
use packfs_format::{Blocks, FilePlace, Placed};

/// Fields of an inode by type.
pub(crate) enum InodeBody<'a> {
    /// A directory.
    Dir {
        /// Its listing.
        listing: &'a Listing,
        /// The inode number of its parent.
        parent: u32,
    },
    /// A regular file.
    File {
        /// In bytes.
        len: u64,
        /// Place of its data.
        place: &'a FilePlace<Blocks>,
        /// Tables that its place refers to.
        placed: &'a Placed<Blocks>,
    },
    /// A symbolic link, with its target.
    Symlink(&'a [u8]),
    /// A device.
    Device(DeviceNumber),
    /// A fifo or socket.
    Ipc,
}

/// Encoding of a generation's inodes.
pub(crate) trait InodeRecords {
    /// Returns the encoding of listings.
    fn listing_records(&self) -> &impl ListingRecords;

    /// Returns true if the names of a file share one inode; otherwise each has its own.
    fn has_links(&self) -> bool;

    /// Refuses a place that no reference to an inode can tell.
    ///
    /// Errors: `Failed` if it lies too far into the table.
    fn check_place(&self, place: InodeRef) -> Result<()>;

    /// Adds the inode of a node, with its inode number.
    ///
    /// Errors: `Failed` if something of it is more than an inode can tell.
    fn put_inode(&self, out: &mut Vec<u8>, node: &Node, number: u32, body: &InodeBody<'_>) -> Result<()>;
}

/// The two tables, and where all is in them.
pub(crate) struct InodeTables {
    /// The inode table.
    pub(crate) inodes: Vec<u8>,
    /// The directory table.
    pub(crate) listings: Vec<u8>,
    /// Reference of each inode by its number: the rows of the export table.
    pub(crate) references: Vec<u8>,
    /// Reference to the root's inode.
    pub(crate) root: InodeRef,
    /// Number of inodes.
    pub(crate) count: u32,
}

impl InodeTables {
    /// Writes the inodes of a tree and the listings of its directories, `first_used` in front. Both
    /// tables are compressed or neither is.
    ///
    /// Errors: `Failed` for more than the generation can hold.
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
            places: vec![NOWHERE; tree.node_count() as usize],
            count: 0,
            record: Vec::new(),
        };
        writer.write(first_used)
    }
}

/// An inode that is not written yet: references have 48 bits.
const NOWHERE: u64 = u64::MAX;

struct Writer<'a, R> {
    records: &'a R,
    codec: &'a mut MetadataCodec,
    tree: &'a Tree,
    placed: &'a Placed<Blocks>,
    numbering: Numbering,
    inodes: MetadataWriter,
    listings: MetadataWriter,
    /// The listing of the directory whose inode comes next.
    listing: Option<Listing>,
    /// Reference to each inode that is written, in the form of the disk.
    places: Vec<u64>,
    /// Number of inodes written.
    count: u32,
    record: Vec<u8>,
}

impl<R: InodeRecords> Writer<'_, R> {
    fn write(mut self, first_used: &[NodeId]) -> Result<InodeTables> {
        // Directories wait for the inodes of all that is in them; without links each name has an
        // inode of its own.
        for &id in first_used {
            let node = self.tree.node(id);
            if !node.is_dir() && self.has_one_inode(node) {
                self.write_inode(id)?;
            }
        }
        let root = self.write_tree()?;
        Ok(InodeTables {
            references: self.references(),
            root,
            count: self.count,
            inodes: self.inodes.finish(self.codec)?,
            listings: self.listings.finish(self.codec)?,
        })
    }

    /// Writes the inodes and listings of the tree along a walk, each directory after all that is in
    /// it; returns where the root's inode is.
    fn write_tree(&mut self) -> Result<InodeRef> {
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

    /// Writes the listing of a directory, given the places of its entries' inodes.
    fn write_listing(&mut self, dir: NodeId, places: &[InodeRef]) -> Result<()> {
        let mut children = Vec::with_capacity(places.len());
        for (entry, &inode) in self.tree.entries(dir).zip(places) {
            let file_type = self.tree.node(entry.node).kind.file_type();
            children.push(Child { entry, file_type, inode, number: self.numbering.number(entry.node) });
        }
        let records = self.records.listing_records();
        let listing = write_listing(records, &mut self.listings, self.codec, &children)?;
        self.listing = Some(listing);
        Ok(())
    }

    /// Writes an inode, unless it was written with an earlier name that this one can share it with;
    /// returns where it is.
    fn write_inode(&mut self, id: NodeId) -> Result<InodeRef> {
        let node = self.tree.node(id);
        // A node with one name may have been written early.
        let is_shared = node.is_dir() || self.has_one_inode(node);
        let written = self.places[id.index()];
        if is_shared && written != NOWHERE {
            return Ok(InodeRef::from_raw(written));
        }
        let place = self.inodes.position();
        self.records.check_place(place)?;
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
        self.places[id.index()] = place.to_raw();
        self.count += 1;
        Ok(place)
    }

    /// Returns true if all names of a file refer to one inode.
    fn has_one_inode(&self, node: &Node) -> bool {
        self.records.has_links() || node.links == 1
    }

    fn parent_number(&self, dir: NodeId) -> u32 {
        match dir {
            // The root's parent is a number that no inode has.
            NodeId::ROOT => self.tree.node_count() + 1,
            _ => self.numbering.number(self.tree.node(dir).parent()),
        }
    }

    fn references(&self) -> Vec<u8> {
        let endian = self.codec.endian();
        let mut references = vec![0; self.places.len() * 8];
        for (&place, &number) in self.places.iter().zip(&self.numbering.numbers) {
            let at = (number as usize).saturating_sub(1) * 8;
            let place = if place == NOWHERE { 0 } else { place };
            references[at..at + 8].copy_from_slice(&endian.bytes_of_u64(place));
        }
        references
    }
}
