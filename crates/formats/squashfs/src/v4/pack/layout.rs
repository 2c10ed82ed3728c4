//! Layout of everything except data: superblock, inodes, listings, and tables, in the order that
//! the kernel requires.

use super::ids::Ids;
use super::inodes::Inodes;
use super::xattrs::XattrTables;
use crate::pack::{Duplicates, Fragments, InodeTables, MetadataCodec, TrailingSections, lookup_table};
use crate::v4::codec_options;
use crate::v4::disk;
use crate::v4::kernel;
use crate::v4::options::Options;
use crate::{Endian, InodeRef};
use packfs_core::{Error, Result, Tree};
use packfs_format::{Blocks, Placed, Plan, Section};
use zerocopy::IntoBytes;

/// Limit of the inodes of an image with an export table. The kernel reads the list of its blocks, 8
/// bytes for 1,024 inodes, into contiguous memory, and refuses to mount if it cannot allocate that:
/// 128 KiB are always available, 512 KiB were not.
const EXPORTED_INODES_MAX: u32 = 16 << 20;

const POSITION_LEN: usize = 8;

/// Creates all sections; see the module.
pub(super) fn sections(
    options: &Options,
    tree: &Tree,
    plan: &Plan<Blocks>,
    placed: &Placed<Blocks>,
) -> Result<Vec<Section>> {
    let mut codec = MetadataCodec::new(&options.metadata_codec(), Endian::Little, placed.jobs)?;
    let ids = Ids::new(tree)?;
    let xattrs = XattrTables::new(tree, &mut codec, !options.uncompressed.xattrs)?;
    let records = Inodes { ids: &ids, xattrs: &xattrs, block_len: options.block_len };
    let compressed = !options.uncompressed.inodes;
    let inodes = InodeTables::new(&records, &mut codec, compressed, tree, placed, &plan.first_used)?;

    let mut superblock = describe(options, tree, placed, &ids, &xattrs, inodes.root);
    let mut trailing = TrailingSections::new(placed.data_end);
    superblock.inode_table_start = trailing.add("inode table", inodes.inodes).into();
    superblock.directory_table_start = trailing.add("directory table", inodes.listings).into();
    let mut table = |owner, records: &[u8], compressed: bool, trailing: &mut TrailingSections| {
        let table = lookup_table(&mut codec, records, compressed, trailing.end, &[], POSITION_LEN)?;
        Ok::<_, Error>(trailing.add(owner, table.bytes) + table.list_start)
    };
    let compressed = &options.uncompressed;
    let fragments = fragment_rows(placed);
    superblock.fragment_table_start =
        table("fragment table", &fragments, !compressed.fragments, &mut trailing)?.into();
    if has_exports(options, tree.node_count()) {
        superblock.lookup_table_start =
            table("export table", &inodes.references, !compressed.inodes, &mut trailing)?.into();
    }
    let ids: Vec<u8> = ids.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    superblock.id_table_start =
        table("id table", &ids, !(compressed.ids || compressed.inodes), &mut trailing)?.into();
    if xattrs.count > 0 {
        let values_start = trailing.add("extended attributes", xattrs.values);
        let header = disk::XattrIdTable {
            xattr_table_start: values_start.into(),
            xattr_ids: xattrs.count.into(),
            unused: 0.into(),
        };
        let (rows, header) = (&xattrs.rows, header.as_bytes());
        let table = lookup_table(&mut codec, rows, !compressed.xattrs, trailing.end, header, POSITION_LEN)?;
        superblock.xattr_id_table_start =
            (trailing.add("extended attributes", table.bytes) + table.list_start).into();
    }
    superblock.bytes_used = trailing.end.into();

    let mut sections = trailing.sections;
    sections.push(Section { owner: "superblock", offset: 0, bytes: superblock.as_bytes().to_vec() });
    let options_at = size_of::<disk::SuperBlock>() as u64;
    let codec_options = codec_options::block(options);
    debug_assert_eq!(plan.data_start, options_at + codec_options.len() as u64);
    sections.push(Section { owner: "codec options", offset: options_at, bytes: codec_options });
    Ok(sections)
}

/// Returns the superblock without the positions of tables.
fn describe(
    options: &Options,
    tree: &Tree,
    placed: &Placed<Blocks>,
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
        (disk::SQUASHFS_EXPORT, has_exports(options, tree.node_count())),
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
        fragments: ((placed.data.shared.len() + placed.data.borrowed.len()) as u32).into(),
        compression: kernel::number(options.codec.algorithm()).into(),
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

/// True if the image gets an export table.
fn has_exports(options: &Options, inode_count: u32) -> bool {
    options.exports && inode_count <= EXPORTED_INODES_MAX
}

fn fragment_rows(placed: &Placed<Blocks>) -> Vec<u8> {
    let rows =
        placed.data.shared.iter().chain(&placed.data.borrowed).map(|&(offset, block)| disk::FragmentEntry {
            start_block: offset.into(),
            size: disk::block_word(block.stored_len, block.compressed),
            unused: 0.into(),
        });
    rows.flat_map(|row| row.as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_format::PackSettings;

    #[test]
    fn more_than_16_million_inodes_have_no_export_table() {
        let options = |exports: &str| {
            let options = vec![("exports".to_owned(), exports.to_owned())];
            Options::new(&PackSettings { options, ..PackSettings::default() }).unwrap()
        };
        assert!(has_exports(&options("on"), EXPORTED_INODES_MAX));
        assert!(!has_exports(&options("on"), EXPORTED_INODES_MAX + 1));
        assert!(!has_exports(&options("off"), 1));
    }
}
