//! Conversion of the superblock to a checked [`Geometry`].
//!
//! Owns every rule of the image as a whole. Refuses what current kernels refuse to mount, except
//! for their own limits: page sizes, and adjacent tables (which the check reports).

use crate::v4::corruption::Corruption;
use crate::v4::disk::*;
use crate::v4::kernel;
use crate::v4::vendor;
use crate::{
    Endian, Layout, MetadataFault, Place, Region, SQUASHFS_METADATA_SIZE, Table, TableKind,
    inodes_and_directories,
};
use packfs_core::{Error, Image, Result};
use packfs_format::{InodeId, read_structure, units::*};
use std::mem::size_of;

const FRAGMENTS: TableKind = kind("fragment table", "fragment table block", 16);
const EXPORT: TableKind = kind("export table", "export table block", 8);
const IDS: TableKind = kind("id table", "id table block", 4);
const XATTR_IDS: TableKind = kind("xattr id table", "xattr id table block", 16);
/// Lowest start of a structure after the superblock.
const TABLES_START_MIN: u64 = size_of::<SuperBlock>() as u64;

const fn kind(name: &'static str, block_name: &'static str, row_len: usize) -> TableKind {
    TableKind { name, block_name, row_len, position_len: 8, endian: Endian::Little }
}

/// The tables of extended attributes.
#[derive(Clone, Debug)]
pub(crate) struct XattrTables {
    /// One row per set.
    pub(crate) sets: Table,
    /// Names and values.
    pub(crate) pairs: Region,
    /// Start of the xattr id table's header; its list follows.
    pub(crate) head: u64,
}

/// The codec's options, after the superblock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionsBlock {
    /// Start of their bytes, after the block's header.
    pub(crate) at: u64,
    pub(crate) len: u16,
    /// Compressed options are valid, but no known program writes them, since a reader may need them
    /// to decompress.
    pub(crate) compressed: bool,
}

impl OptionsBlock {
    pub(crate) fn end(&self) -> u64 {
        self.at.plus(self.len.into())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) super_block: SuperBlock,
    /// Offset of the superblock: 0, or near the end of a streamed image.
    pub(crate) super_block_at: u64,
    pub(crate) image_len: u64,
    pub(crate) bytes_used: u64,
    /// Locations common to all versions.
    pub(crate) layout: Layout,
    pub(crate) options: Option<OptionsBlock>,
    pub(crate) ids: Table,
    pub(crate) xattrs: Option<XattrTables>,
}

impl Geometry {
    pub(crate) fn flag(&self, bit: u16) -> bool {
        self.super_block.flags.get() & (1 << bit) != 0
    }

    pub(crate) fn read(image: &dyn Image) -> Result<Geometry> {
        let (super_block, super_block_at) = read_super_block(image)?;
        let algorithm = kernel::of_number(super_block.compression.get())?;
        let block_len = block_len(&super_block)?;
        let image_len = image.len();
        let bytes_used = bytes_used(&super_block, image_len)?;
        // All metadata is there, and most of it is read anyway.
        let tables = super_block.inode_table_start.get().min(bytes_used)..bytes_used;
        image.will_read(std::slice::from_ref(&tables));
        let (tables, directories_end) = Tables::read(image, &super_block, bytes_used)?;
        let directories = super_block.directory_table_start.get()..directories_end;
        let inodes = super_block.inode_table_start.get();
        let (inodes, directories) = inodes_and_directories(inodes, directories, TABLES_START_MIN)?;
        let options = options(image, &super_block, inodes.start)?;
        let algorithm = vendor::framing(image, algorithm, &inodes)?;
        let data_start = options.map_or(TABLES_START_MIN, |options| options.end());
        let layout = Layout {
            algorithm,
            block_len,
            data: data_start..inodes.start,
            inodes,
            directories,
            fragments: tables.fragments,
            export: tables.export,
            root: InodeId(super_block.root_inode.get()),
            inode_count: super_block.inodes.get(),
        };
        Ok(Geometry {
            super_block,
            super_block_at,
            image_len,
            bytes_used,
            layout,
            options,
            ids: tables.ids,
            xattrs: tables.xattrs,
        })
    }
}

fn read_super_block(image: &dyn Image) -> Result<(SuperBlock, u64)> {
    let len = image.len();
    let super_block_len = size_of::<SuperBlock>() as u64;
    if len < super_block_len {
        return Err(Corruption::Short { len }.into());
    }
    let mut super_block: SuperBlock = read_structure(image, 0)?;
    let mut at = 0;
    if super_block.s_magic.get() == SQUASHFS_MAGIC_STREAMED {
        at = len.minus(super_block_len);
        super_block = read_structure(image, at)?;
        let found = super_block.s_magic.get();
        if found != SQUASHFS_MAGIC {
            return Err(Corruption::StreamedEnd { at, found }.into());
        }
    }
    match super_block.s_magic.get() {
        SQUASHFS_MAGIC | SQUASHFS_MAGIC_VENDOR => {}
        SQUASHFS_MAGIC_SWAP => {
            return Err(Error::unsupported(
                "squashfs image",
                "big-endian version 4.0, which only vendors such as AVM (FRITZ!Box) write",
            )
            .hint("the unsquashfs of the vendor's sources, or sasquatch FILE, unpacks it"));
        }
        found => return Err(Corruption::Magic { found }.into()),
    }
    let version = (super_block.s_major.get(), super_block.s_minor.get());
    if version != (SQUASHFS_MAJOR, SQUASHFS_MINOR) {
        let (major, minor) = version;
        return Err(Error::unsupported(
            "squashfs image",
            format!("version {major}.{minor}, 4.0 is supported"),
        )
        .hint("format squashfs-legacy reads versions 1.0 to 3.1"));
    }
    Ok((super_block, at))
}

fn block_len(super_block: &SuperBlock) -> Result<u32> {
    let found = super_block.block_size.get();
    let allowed = SQUASHFS_FILE_MIN_SIZE..=SQUASHFS_FILE_MAX_SIZE;
    if !found.is_power_of_two() || !allowed.contains(&found) {
        return Err(Corruption::BlockSize { found }.into());
    }
    let log = super_block.block_log.get();
    if u32::from(log) != found.ilog2() {
        return Err(Corruption::BlockLog { found: log, block_size: found }.into());
    }
    Ok(found)
}

fn bytes_used(super_block: &SuperBlock, len: u64) -> Result<u64> {
    let found = super_block.bytes_used.get();
    if found < size_of::<SuperBlock>() as u64 {
        return Err(Corruption::BytesUsed { found }.into());
    }
    if found > len {
        return Err(Corruption::Truncated { bytes_used: found, len }.into());
    }
    Ok(found)
}

struct Tables {
    fragments: Option<Table>,
    export: Option<Table>,
    ids: Table,
    xattrs: Option<XattrTables>,
}

impl Tables {
    /// Reads the lists of all lookup tables, from the end of the image towards its start; each must
    /// end before the one read before it. Also returns the start of the first.
    fn read(image: &dyn Image, super_block: &SuperBlock, bytes_used: u64) -> Result<(Tables, u64)> {
        let xattrs = xattrs(image, super_block, bytes_used)?;
        let limit = xattrs.as_ref().map_or(bytes_used, |xattrs| xattrs.pairs.start);
        let ids = match u32::from(super_block.no_ids.get()) {
            0 => return Err(Corruption::NoIds.into()),
            count => {
                Table::open(image, IDS, count, super_block.id_table_start.get(), TABLES_START_MIN, limit)?
            }
        };
        let limit = ids.start();
        let inodes = super_block.inodes.get();
        let export = match super_block.lookup_table_start.get() {
            SQUASHFS_INVALID_BLK => None,
            _ if inodes == 0 => None,
            start => Some(Table::open(image, EXPORT, inodes, start, TABLES_START_MIN, limit)?),
        };
        let limit = export.as_ref().map_or(limit, Table::start);
        let fragments = match (super_block.fragments.get(), super_block.fragment_table_start.get()) {
            (0, _) => None,
            (rows, SQUASHFS_INVALID_BLK) => {
                return Err(Corruption::TableAbsent { table: FRAGMENTS.name, rows: u64::from(rows) }.into());
            }
            (rows, start) => Some(Table::open(image, FRAGMENTS, rows, start, TABLES_START_MIN, limit)?),
        };
        let limit = fragments.as_ref().map_or(limit, Table::start);
        Ok((Tables { fragments, export, ids, xattrs }, limit))
    }
}

fn xattrs(image: &dyn Image, super_block: &SuperBlock, bytes_used: u64) -> Result<Option<XattrTables>> {
    let head = super_block.xattr_id_table_start.get();
    if head == SQUASHFS_INVALID_BLK {
        return Ok(None);
    }
    let head_len = size_of::<XattrIdTable>() as u64;
    let list_start =
        head.checked_add(head_len).filter(|end| *end <= bytes_used).ok_or(MetadataFault::TableEnd {
            table: XATTR_IDS.name,
            start: head,
            list_len: head_len,
            limit: bytes_used,
        })?;
    let raw: XattrIdTable = read_structure(image, head)?;
    let count = raw.xattr_ids.get();
    if count == 0 {
        return Err(Corruption::NoXattrIds { at: head }.into());
    }
    let mut sets = Table::open(image, XATTR_IDS, count, list_start, TABLES_START_MIN, bytes_used)?;
    sets.region.end = sets.region.end.min(head);
    let pairs_start = raw.xattr_table_start.get();
    if pairs_start < TABLES_START_MIN {
        return Err(MetadataFault::TableStart {
            table: "xattr table",
            start: pairs_start,
            min: TABLES_START_MIN,
        }
        .into());
    }
    if pairs_start >= sets.start() {
        let limit = sets.start();
        return Err(MetadataFault::TableOrder { table: "xattr table", start: pairs_start, limit }.into());
    }
    let pairs = Region { block_name: "xattr block", start: pairs_start, end: sets.start() };
    Ok(Some(XattrTables { sets, pairs, head }))
}

fn options(image: &dyn Image, super_block: &SuperBlock, limit: u64) -> Result<Option<OptionsBlock>> {
    if super_block.flags.get() & (1 << SQUASHFS_COMP_OPT) == 0 {
        return Ok(None);
    }
    let at = size_of::<SuperBlock>() as u64;
    let mut header = [0; METADATA_HEADER_LEN];
    image.read_exact_at(at, &mut header)?;
    let (found, compressed) = HEADER_FORM.word_parts(header);
    let options = OptionsBlock { at: at.plus(METADATA_HEADER_LEN as u64), len: found, compressed };
    if usize::from(found) > SQUASHFS_METADATA_SIZE || options.end() > limit {
        let place = Place::at("codec options", at);
        return Err(Corruption::OptionsLength { place, found, limit }.into());
    }
    Ok(Some(options))
}
