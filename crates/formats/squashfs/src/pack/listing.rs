//! Writes the listing of one directory, and the index that large ones have from 2.1 on.

use super::writer::{MetadataCodec, MetadataWriter};
use crate::place::InodeRef;
use crate::records::SQUASHFS_DIR_COUNT;
use crate::stored::SQUASHFS_METADATA_SIZE;
use packfs_core::{Entry, FileType, Result};

/// A child as its directory's listing needs it.
pub(crate) struct Child<'a> {
    /// Its name.
    pub(crate) entry: Entry<'a>,
    /// Its type.
    pub(crate) file_type: FileType,
    /// Reference to its inode.
    pub(crate) inode: InodeRef,
    /// Its inode number.
    pub(crate) number: u32,
}

/// Place of a listing.
pub(crate) struct Listing {
    /// Its start in the directory table.
    pub(crate) start: InodeRef,
    /// In bytes.
    pub(crate) len: u64,
    /// Index entries with their names, ready to stand after the directory's inode.
    pub(crate) index: Vec<u8>,
    /// Number of index entries.
    pub(crate) index_count: u16,
}

/// Encoding of a generation's listings.
pub(crate) trait ListingRecords {
    /// Bytes of the header of a run.
    fn run_header_len(&self) -> usize;

    /// Bytes of an entry without its name.
    fn entry_len(&self) -> usize;

    /// Returns true if large directories have an index.
    fn has_index(&self) -> bool;

    /// Adds the header of a run, which is not empty.
    fn put_header(&self, out: &mut Vec<u8>, run: &[Child<'_>]);

    /// Adds an entry, without its name, of the run that starts with `first`.
    fn put_entry(&self, out: &mut Vec<u8>, first: &Child<'_>, child: &Child<'_>);

    /// Adds an index entry, without its name, that leads to the header in `block` of the table and
    /// at `offset` of the listing.
    fn put_index_entry(&self, out: &mut Vec<u8>, offset: u32, block: u64, name: &[u8]);
}

/// Writes a listing; children come in byte order of their names.
pub(crate) fn write_listing(
    records: &impl ListingRecords,
    table: &mut MetadataWriter,
    codec: &mut MetadataCodec,
    children: &[Child<'_>],
) -> Result<Listing> {
    let stream_start = table.stream_len();
    let mut listing = Listing { start: table.position(), len: 0, index: Vec::new(), index_count: 0 };
    let mut block_last = block_of(stream_start);
    let (mut rest, mut bytes) = (children, Vec::new());
    while let Some(first) = rest.first() {
        let (run, later) = rest.split_at(run_len(records, rest, table.stream_len()));
        let block = block_of(table.stream_len());
        if block != block_last && records.has_index() && listing.index_count < u16::MAX {
            block_last = block;
            let offset = (table.stream_len() - stream_start) as u32;
            records.put_index_entry(&mut listing.index, offset, table.position().block, first.entry.name);
            listing.index.extend_from_slice(first.entry.name);
            listing.index_count += 1;
        }
        bytes.clear();
        records.put_header(&mut bytes, run);
        for child in run {
            records.put_entry(&mut bytes, first, child);
            bytes.extend_from_slice(child.entry.name);
        }
        table.append(codec, &bytes)?;
        rest = later;
    }
    listing.len = table.stream_len() - stream_start;
    // An index lies behind the inode, so a search reads a block of inodes for it. In a listing of
    // two blocks that costs more reads than starting at the first.
    if listing.len <= SQUASHFS_METADATA_SIZE as u64 {
        listing.index.clear();
        listing.index_count = 0;
    }
    Ok(listing)
}

fn block_of(stream_offset: u64) -> u64 {
    stream_offset / SQUASHFS_METADATA_SIZE as u64
}

/// Returns the number of children that share one header: inodes in one block, numbers near each
/// other, and no start beyond the block of the header, so that the index can refer to each block.
fn run_len(records: &impl ListingRecords, children: &[Child<'_>], header_at: u64) -> usize {
    let first = &children[0];
    let mut entry_at = header_at + records.run_header_len() as u64;
    let fits = |child: &&Child<'_>| {
        let starts_in_block = block_of(entry_at) == block_of(header_at);
        entry_at += records.entry_len() as u64 + child.entry.name.len() as u64;
        starts_in_block
            && child.inode.block == first.inode.block
            && i16::try_from(i64::from(child.number) - i64::from(first.number)).is_ok()
    };
    // A header at the very end of a block still takes one entry with it.
    children.iter().take(SQUASHFS_DIR_COUNT as usize).take_while(fits).count().max(1)
}
