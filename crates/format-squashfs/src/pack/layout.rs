//! Lays out everything around the data: superblock, inodes, listings and tables, in the order the kernel insists on.

use super::codec_options;
use super::dirs::DirRecords;
use super::ids::Ids;
use super::inodes::{self, Common};
use super::xattrs::XattrTables;
use crate::disk;
use crate::options::{Duplicates, Fragments, Options};
use packfs_core::{Error, NodeId, NodeKind, Placed, Plan, Result, Section, Tree};
use packfs_squashfs_metadata::pack::{
    Behind, Child, Listing, MetadataCodec, MetadataWriter, Numbering, lookup_table, write_listing,
};
use packfs_squashfs_metadata::{Endian, InodeRef};
use zerocopy::IntoBytes;

/// Bytes of a position in the list of a lookup table.
const POSITION_LEN: usize = 8;

/// Makes all sections; see the module.
pub(super) fn sections(options: &Options, tree: &Tree, plan: &Plan, placed: &Placed) -> Result<Vec<Section>> {
    let mut codec = MetadataCodec::new(&options.metadata_codec(), Endian::Little)?;
    let ids = Ids::new(tree)?;
    let xattrs = XattrTables::new(tree, &mut codec, !options.uncompressed.xattrs)?;
    let inodes = InodeTables::new(options, tree, (placed, &plan.first_used), &ids, &xattrs, &mut codec)?;

    let mut superblock = describe(options, tree, placed, &ids, &xattrs, inodes.root);
    let mut behind = Behind::new(placed.data_end);
    superblock.inode_table_start = behind.add("inode table", inodes.inodes).into();
    superblock.directory_table_start = behind.add("directory table", inodes.listings).into();
    let mut table = |owner, records: &[u8], compressed: bool, behind: &mut Behind| {
        let table = lookup_table(&mut codec, records, compressed, behind.end, &[], POSITION_LEN)?;
        Ok::<_, Error>(behind.add(owner, table.bytes) + table.list_start)
    };
    let compressed = &options.uncompressed;
    let fragments = fragment_rows(placed);
    superblock.fragment_table_start =
        table("fragment table", &fragments, !compressed.fragments, &mut behind)?.into();
    if options.exports {
        superblock.lookup_table_start =
            table("export table", &inodes.references, !compressed.inodes, &mut behind)?.into();
    }
    let ids: Vec<u8> = ids.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    superblock.id_table_start =
        table("id table", &ids, !(compressed.ids || compressed.inodes), &mut behind)?.into();
    if xattrs.count > 0 {
        let values_start = behind.add("extended attributes", xattrs.values);
        let header = disk::XattrIdTable {
            xattr_table_start: values_start.into(),
            xattr_ids: xattrs.count.into(),
            unused: 0.into(),
        };
        let (rows, header) = (&xattrs.rows, header.as_bytes());
        let table = lookup_table(&mut codec, rows, !compressed.xattrs, behind.end, header, POSITION_LEN)?;
        superblock.xattr_id_table_start =
            (behind.add("extended attributes", table.bytes) + table.list_start).into();
    }
    superblock.bytes_used = behind.end.into();

    let mut sections = behind.sections;
    sections.push(Section { owner: "superblock", offset: 0, bytes: superblock.as_bytes().to_vec() });
    let options_at = size_of::<disk::SuperBlock>() as u64;
    let codec_options = codec_options::block(options);
    debug_assert_eq!(plan.data_start, options_at + codec_options.len() as u64);
    sections.push(Section { owner: "codec options", offset: options_at, bytes: codec_options });
    Ok(sections)
}

/// The superblock but for the places of tables.
fn describe(
    options: &Options,
    tree: &Tree,
    placed: &Placed,
    ids: &Ids,
    xattrs: &XattrTables,
    root: InodeRef,
) -> disk::SuperBlock {
    let block = codec_options::block(options);
    let stored = &options.uncompressed;
    let flags = [
        (disk::SQUASHFS_NOI, stored.inodes),
        (disk::SQUASHFS_NOD, stored.data),
        (disk::SQUASHFS_NOF, stored.fragments),
        (disk::SQUASHFS_NO_FRAG, options.fragments == Fragments::Off),
        (disk::SQUASHFS_ALWAYS_FRAG, options.fragments == Fragments::Always),
        (disk::SQUASHFS_DUPLICATE, options.duplicates != Duplicates::Keep),
        (disk::SQUASHFS_EXPORT, options.exports),
        (disk::SQUASHFS_NOX, stored.xattrs),
        (disk::SQUASHFS_NO_XATTR, xattrs.count == 0),
        (disk::SQUASHFS_COMP_OPT, !block.is_empty()),
        (disk::SQUASHFS_NOID, stored.ids || stored.inodes),
    ];
    disk::SuperBlock {
        s_magic: disk::SQUASHFS_MAGIC.into(),
        inodes: tree.node_count().into(),
        mkfs_time: options.made_at.into(),
        block_size: options.block_len.into(),
        fragments: ((placed.shared.len() + placed.lent.len()) as u32).into(),
        compression: codec_options::codec_id(options.codec.algorithm()).into(),
        block_log: (options.block_len.trailing_zeros() as u16).into(),
        flags: flags.iter().fold(0, |bits, &(bit, set)| bits | u16::from(set) << bit).into(),
        no_ids: (ids.ids.len() as u16).into(),
        s_major: disk::SQUASHFS_MAJOR.into(),
        s_minor: disk::SQUASHFS_MINOR.into(),
        root_inode: root.to_raw().into(),
        lookup_table_start: disk::SQUASHFS_INVALID_BLK.into(),
        xattr_id_table_start: disk::SQUASHFS_INVALID_BLK.into(),
        ..disk::SuperBlock::default()
    }
}

fn fragment_rows(placed: &Placed) -> Vec<u8> {
    let rows = placed.shared.iter().chain(&placed.lent).map(|&(offset, block)| disk::FragmentEntry {
        start_block: offset.into(),
        size: disk::block_word(block.stored_len, block.compressed),
        unused: 0.into(),
    });
    rows.flat_map(|row| row.as_bytes().to_vec()).collect()
}

/// The two tables that refer to each other, written side by side.
struct InodeTables {
    inodes: Vec<u8>,
    listings: Vec<u8>,
    /// Reference of each inode by its number.
    references: Vec<u8>,
    root: InodeRef,
}

impl InodeTables {
    fn new(
        options: &Options,
        tree: &Tree,
        (placed, first_used): (&Placed, &[NodeId]),
        ids: &Ids,
        xattrs: &XattrTables,
        codec: &mut MetadataCodec,
    ) -> Result<Self> {
        let writer = InodeWriter {
            tree,
            placed,
            ids,
            xattrs,
            codec,
            numbering: Numbering::new(tree),
            inodes: MetadataWriter::new(!options.uncompressed.inodes),
            listings: MetadataWriter::new(!options.uncompressed.inodes),
            listing_of: tree.nodes().map(|_| None).collect(),
            places: vec![None; tree.node_count() as usize],
            record: Vec::new(),
        };
        writer.write(first_used)
    }
}

struct InodeWriter<'a> {
    tree: &'a Tree,
    placed: &'a Placed,
    ids: &'a Ids,
    xattrs: &'a XattrTables,
    codec: &'a mut MetadataCodec,
    numbering: Numbering,
    inodes: MetadataWriter,
    listings: MetadataWriter,
    /// The listing of each directory whose inode is yet to be written.
    listing_of: Vec<Option<Box<Listing>>>,
    /// Where each inode was written.
    places: Vec<Option<InodeRef>>,
    record: Vec<u8>,
}

impl InodeWriter<'_> {
    fn write(mut self, first_used: &[NodeId]) -> Result<InodeTables> {
        // Directories wait for the inodes of all that is in them.
        for &id in first_used.iter().filter(|&&id| !self.tree.node(id).is_dir()) {
            self.write_inode(id)?;
        }
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
            let listing = write_listing(&DirRecords, &mut self.listings, self.codec, &children)?;
            self.listing_of[dir.index()] = Some(Box::new(listing));
        }
        let root = self.write_inode(NodeId::ROOT)?;
        Ok(InodeTables {
            references: self.references(),
            root,
            inodes: self.inodes.finish(self.codec)?,
            listings: self.listings.finish(self.codec)?,
        })
    }

    /// Writes an inode, unless it was written with an earlier name; returns where it is.
    fn write_inode(&mut self, id: NodeId) -> Result<InodeRef> {
        if let Some(place) = self.places[id.index()] {
            return Ok(place);
        }
        let place = self.inodes.position();
        u32::try_from(place.block)
            .map_err(|_| Error::failed("the inodes of this tree are more than squashfs can hold"))?;
        let node = self.tree.node(id);
        let common = Common {
            node,
            ids: self.ids,
            number: self.numbering.number(id),
            xattr: self.xattrs.index(node.xattrs),
        };
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
                inodes::file(out, &common, len, &self.placed.files[id.index()], self.placed);
            }
            NodeKind::Symlink(target) => inodes::symlink(out, &common, target),
            NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
                inodes::device(out, &common, *number);
            }
            NodeKind::Fifo | NodeKind::Socket => inodes::ipc(out, &common),
        }
        self.inodes.append(self.codec, &self.record)?;
        self.places[id.index()] = Some(place);
        Ok(place)
    }

    fn references(&self) -> Vec<u8> {
        let mut references = vec![0; self.places.len() * 8];
        for (place, &number) in self.places.iter().zip(&self.numbering.numbers) {
            let raw = place.unwrap_or_default().to_raw().to_le_bytes();
            let at = (number as usize).saturating_sub(1) * 8;
            references[at..at + 8].copy_from_slice(&raw);
        }
        references
    }
}
