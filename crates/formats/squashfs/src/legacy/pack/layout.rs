//! Layout of everything except data: superblock, inodes, listings, tables, and owners.

use super::dirs::DirRecords;
use super::inodes::{Inodes, too_much};
use super::owners::Owners;
use crate::legacy::bits::Record;
use crate::legacy::disk::{self, SuperBlock};
use crate::legacy::options::Options;
use crate::pack::{Duplicates, Fragments, InodeTables, MetadataCodec, TrailingSections, lookup_table};
use crate::{Endian, size_word};
use packfs_core::{Error, Result, Tree};
use packfs_format::{Blocks, Placed, Plan, Section};

pub(super) fn sections(
    options: &Options,
    tree: &Tree,
    plan: &Plan<Blocks>,
    placed: &Placed<Blocks>,
) -> Result<Vec<Section>> {
    let mut codec = MetadataCodec::new(&options.metadata_codec(), options.endian, placed.jobs)?;
    let owners = Owners::new(tree)?;
    let listings = DirRecords { version: options.version, endian: options.endian };
    let records = Inodes { listings, owners: &owners };
    let compressed = !options.uncompressed.inodes;
    let inodes = InodeTables::new(&records, &mut codec, compressed, tree, placed, &plan.first_used)?;

    let mut super_block = describe(options, placed, &owners, &inodes);
    let mut trailing = TrailingSections::new(placed.data_end);
    super_block.inode_table_start = trailing.add("inode table", inodes.inodes);
    super_block.directory_table_start = trailing.add("directory table", inodes.listings);
    let mut table = |owner, rows: &[u8], compressed: bool, trailing: &mut TrailingSections| {
        let position_len = options.version.position_len();
        let table = lookup_table(&mut codec, rows, compressed, trailing.end, &[], position_len)?;
        Ok::<_, Error>(trailing.add(owner, table.bytes) + table.list_start)
    };
    let stored = &options.uncompressed;
    let fragments = fragment_rows(options, placed);
    super_block.fragment_table_start =
        table("fragment table", &fragments, !(stored.fragments || stored.inodes), &mut trailing)?;
    if options.exports {
        super_block.lookup_table_start =
            table("export table", &inodes.references, !stored.inodes, &mut trailing)?;
    }
    super_block.uid_start = trailing.add("owners", words(options.endian, owners.users()));
    if !owners.groups().is_empty() {
        super_block.gid_start = trailing.add("owners", words(options.endian, owners.groups()));
    }
    super_block.bytes_used = trailing.end;
    if !options.version.has_numbers() && trailing.end > u64::from(u32::MAX) {
        return Err(too_much(options.version, "the files"));
    }

    let mut sections = trailing.sections;
    debug_assert_eq!(plan.data_start, options.version.super_block_len() as u64);
    sections.push(Section { owner: "superblock", offset: 0, bytes: super_block.to_bytes() });
    Ok(sections)
}

fn describe(options: &Options, placed: &Placed<Blocks>, owners: &Owners, inodes: &InodeTables) -> SuperBlock {
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
        // 256 wraps to 0; readers know that.
        no_uids: owners.users().len() as u8,
        no_gids: owners.groups().len() as u8,
        mkfs_time: options.made_at,
        root_inode: inodes.root.to_raw(),
        fragments: (placed.data.shared.len() + placed.data.borrowed.len()) as u32,
        fragment_table_start: 0,
        lookup_table_start: disk::SQUASHFS_INVALID_BLK,
    }
}

fn fragment_rows(options: &Options, placed: &Placed<Blocks>) -> Vec<u8> {
    let mut rows = Vec::new();
    for &(offset, block) in placed.data.shared.iter().chain(&placed.data.borrowed) {
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
