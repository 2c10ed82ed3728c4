//! Lays out everything around the data: superblock, inodes, listings, tables and owners.

use super::dirs::DirRecords;
use super::inodes::{self, Common, too_much};
use super::owners::Owners;
use crate::bits::Record;
use crate::disk::{self, SuperBlock};
use crate::options::{Duplicates, Fragments, Options};
use packfs_core::{Error, NodeId, NodeKind, Placed, Plan, Result, Section, Tree};
use packfs_squashfs_metadata::pack::{
    Behind, Child, Listing, MetadataCodec, MetadataWriter, Numbering, lookup_table, write_listing,
};
use packfs_squashfs_metadata::{Endian, InodeRef, size_word};

/// Makes all sections; see the module.
pub(super) fn sections(options: &Options, tree: &Tree, plan: &Plan, placed: &Placed) -> Result<Vec<Section>> {
    let mut codec = MetadataCodec::new(&options.metadata_codec(), options.endian)?;
    let owners = Owners::new(tree)?;
    let inodes = InodeWriter::new(options, tree, placed, &owners, &mut codec).write(&plan.first_used)?;

    let mut super_block = describe(options, placed, &owners, &inodes);
    let mut behind = Behind::new(placed.data_end);
    super_block.inode_table_start = behind.add("inode table", inodes.inodes);
    super_block.directory_table_start = behind.add("directory table", inodes.listings);
    let mut table = |owner, rows: &[u8], compressed: bool, behind: &mut Behind| {
        let position_len = options.version.position_len();
        let table = lookup_table(&mut codec, rows, compressed, behind.end, &[], position_len)?;
        Ok::<_, Error>(behind.add(owner, table.bytes) + table.list_start)
    };
    let stored = &options.uncompressed;
    let fragments = fragment_rows(options, placed);
    super_block.fragment_table_start =
        table("fragment table", &fragments, !(stored.fragments || stored.inodes), &mut behind)?;
    if options.exports {
        super_block.lookup_table_start =
            table("export table", &inodes.references, !stored.inodes, &mut behind)?;
    }
    super_block.uid_start = behind.add("owners", words(options.endian, owners.users()));
    if !owners.groups().is_empty() {
        super_block.gid_start = behind.add("owners", words(options.endian, owners.groups()));
    }
    super_block.bytes_used = behind.end;
    if !options.version.has_numbers() && behind.end > u64::from(u32::MAX) {
        return Err(too_much(options.version, "the files"));
    }

    let mut sections = behind.sections;
    debug_assert_eq!(plan.data_start, options.version.super_block_len() as u64);
    sections.push(Section { owner: "superblock", offset: 0, bytes: super_block.to_bytes() });
    Ok(sections)
}

/// The superblock but for the places of tables.
fn describe(options: &Options, placed: &Placed, owners: &Owners, inodes: &InodeTables) -> SuperBlock {
    let stored = &options.uncompressed;
    let flags = [
        (disk::SQUASHFS_NOI, stored.inodes),
        (disk::SQUASHFS_NOD, stored.data),
        (disk::SQUASHFS_NOF, stored.fragments),
        (disk::SQUASHFS_NO_FRAG, options.fragments == Fragments::Off),
        (disk::SQUASHFS_ALWAYS_FRAG, options.fragments == Fragments::Always),
        (disk::SQUASHFS_DUPLICATE, options.duplicates != Duplicates::Keep),
        (disk::SQUASHFS_EXPORT, options.exports),
    ];
    let magic =
        disk::MAGICS.into_iter().find(|magic| magic.endian == options.endian).unwrap_or(disk::MAGICS[0]);
    SuperBlock {
        magic,
        version: options.version,
        inodes: inodes.count,
        bytes_used: 0,
        uid_start: 0,
        gid_start: 0,
        inode_table_start: 0,
        directory_table_start: 0,
        block_size: options.block_len,
        block_log: options.block_len.trailing_zeros() as u16,
        flags: flags.iter().fold(0, |bits, &(bit, set)| bits | u8::from(set) << bit),
        // 256 wrap to 0, as readers know.
        no_uids: owners.users().len() as u8,
        no_gids: owners.groups().len() as u8,
        mkfs_time: options.made_at,
        root_inode: inodes.root.to_raw(),
        fragments: (placed.shared.len() + placed.lent.len()) as u32,
        fragment_table_start: 0,
        lookup_table_start: disk::SQUASHFS_INVALID_BLK,
    }
}

fn fragment_rows(options: &Options, placed: &Placed) -> Vec<u8> {
    let mut rows = Vec::new();
    for &(offset, block) in placed.shared.iter().chain(&placed.lent) {
        let word = size_word(block.stored_len, block.compressed);
        let mut row = Record::new(&mut rows, options.endian);
        if options.version.has_numbers() {
            row.put(64, offset).put(32, word).put(32, 0_u32);
        } else {
            row.put(32, offset).put(32, word);
        }
    }
    rows
}

fn words(endian: Endian, words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &word in words {
        Record::new(&mut bytes, endian).put(32, word);
    }
    bytes
}

/// The two tables that refer to each other, written side by side.
struct InodeTables {
    inodes: Vec<u8>,
    listings: Vec<u8>,
    /// Reference of each inode by its number.
    references: Vec<u8>,
    root: InodeRef,
    /// How many inodes there are.
    count: u32,
}

struct InodeWriter<'a> {
    options: &'a Options,
    tree: &'a Tree,
    placed: &'a Placed,
    owners: &'a Owners,
    codec: &'a mut MetadataCodec,
    numbering: Numbering,
    inodes: MetadataWriter,
    listings: MetadataWriter,
    /// The listing of each directory whose inode is yet to be written.
    listing_of: Vec<Option<Box<Listing>>>,
    /// Where each inode was written.
    places: Vec<Option<InodeRef>>,
    /// How many were written.
    count: u32,
    record: Vec<u8>,
}

impl<'a> InodeWriter<'a> {
    fn new(
        options: &'a Options,
        tree: &'a Tree,
        placed: &'a Placed,
        owners: &'a Owners,
        codec: &'a mut MetadataCodec,
    ) -> Self {
        InodeWriter {
            options,
            tree,
            placed,
            owners,
            codec,
            numbering: Numbering::new(tree),
            inodes: MetadataWriter::new(!options.uncompressed.inodes),
            listings: MetadataWriter::new(!options.uncompressed.inodes),
            listing_of: tree.nodes().map(|_| None).collect(),
            places: vec![None; tree.node_count() as usize],
            count: 0,
            record: Vec::new(),
        }
    }

    fn write(mut self, first_used: &[NodeId]) -> Result<InodeTables> {
        // Directories wait for the inodes of all that is in them; before 3.0 each name has an inode of its own.
        let is_one = |id: NodeId| self.options.version.has_numbers() || self.tree.node(id).links == 1;
        let early = |id: &&NodeId| !self.tree.node(**id).is_dir() && is_one(**id);
        for &id in first_used.iter().filter(early).collect::<Vec<_>>() {
            self.write_inode(id)?;
        }
        let records = DirRecords { version: self.options.version, endian: self.options.endian };
        for dir in std::mem::take(&mut self.numbering.dirs) {
            let entries = self.tree.entries(dir);
            let mut children = Vec::with_capacity(entries.len());
            for entry in entries {
                children.push(Child {
                    entry,
                    file_type: self.tree.node(entry.node).kind.file_type(),
                    inode: self.write_inode(entry.node)?,
                    number: self.numbering.number(entry.node),
                });
            }
            let listing = write_listing(&records, &mut self.listings, self.codec, &children)?;
            self.listing_of[dir.index()] = Some(Box::new(listing));
        }
        let root = self.write_inode(NodeId::ROOT)?;
        Ok(InodeTables {
            references: self.references(),
            root,
            count: self.count,
            inodes: self.inodes.finish(self.codec)?,
            listings: self.listings.finish(self.codec)?,
        })
    }

    /// Writes an inode, unless it was written with an earlier name that this one can share it with; returns where it is.
    fn write_inode(&mut self, id: NodeId) -> Result<InodeRef> {
        let version = self.options.version;
        let node = self.tree.node(id);
        // A node with one name may have been written early.
        let shared = version.has_numbers() || node.is_dir() || node.links == 1;
        if let Some(place) = self.places[id.index()].filter(|_| shared) {
            return Ok(place);
        }
        let place = self.inodes.position();
        if place.block >> if version.has_numbers() { 32 } else { 24 } != 0 {
            return Err(too_much(version, "the inodes"));
        }
        let number = self.numbering.number(id);
        let common = Common { version, endian: self.options.endian, node, owners: self.owners, number };
        self.record.clear();
        let out = &mut self.record;
        match &node.kind {
            NodeKind::Directory => {
                let listing = self.listing_of[id.index()].take();
                let listing =
                    listing.ok_or_else(|| Error::failed("internal: a directory before its listing"))?;
                let parent = match id {
                    // The root's parent is a number that no inode has.
                    NodeId::ROOT => self.tree.node_count() + 1,
                    _ => self.numbering.number(node.parent()),
                };
                inodes::dir(out, &common, &listing, parent)?;
            }
            NodeKind::File { len, .. } => {
                let failed = self.placed.failed.binary_search(&id).is_ok();
                let len = if failed { 0 } else { *len };
                inodes::file(out, &common, len, &self.placed.files[id.index()], self.placed)?;
            }
            NodeKind::Symlink(target) => inodes::symlink(out, &common, target),
            NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
                inodes::device(out, &common, *number);
            }
            NodeKind::Fifo | NodeKind::Socket => inodes::ipc(out, &common),
        }
        self.inodes.append(self.codec, &self.record)?;
        self.places[id.index()] = Some(place);
        self.count += 1;
        Ok(place)
    }

    fn references(&self) -> Vec<u8> {
        let mut by_number = vec![InodeRef::default(); self.places.len()];
        for (place, &number) in self.places.iter().zip(&self.numbering.numbers) {
            by_number[(number as usize).saturating_sub(1)] = place.unwrap_or_default();
        }
        let mut bytes = Vec::with_capacity(by_number.len() * 8);
        for place in by_number {
            Record::new(&mut bytes, self.options.endian).put(64, place.to_raw());
        }
        bytes
    }
}
