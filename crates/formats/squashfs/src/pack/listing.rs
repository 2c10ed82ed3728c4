//! The listing of a directory, and the index of large ones since 2.1.

use super::writer::{MetadataCodec, MetadataWriter, StreamRef};
use crate::place::InodeRef;
use crate::records::SQUASHFS_DIR_COUNT;
use crate::stored::SQUASHFS_METADATA_SIZE;
use packfs_core::{Entry, FileType, Result};

/// Input for an entry of a listing.
pub(crate) struct Child<'a> {
    pub(crate) entry: Entry<'a>,
    pub(crate) file_type: FileType,
    pub(crate) inode: InodeRef,
    pub(crate) number: u32,
}

pub(crate) struct Listing {
    /// Position in the directory table.
    pub(crate) start: InodeRef,
    pub(crate) len: u64,
    /// Encoded index entries with names, which follow the directory's inode.
    pub(crate) index: Vec<u8>,
    pub(crate) index_count: u16,
}

/// Encoding of a version's listings.
pub(crate) trait ListingRecords {
    fn run_header_len(&self) -> usize;

    fn entry_len(&self) -> usize;

    /// True if large directories have an index.
    fn has_index(&self) -> bool;

    /// Appends the header of a run, which is not empty.
    fn put_header(&self, out: &mut Vec<u8>, run: &[Child<'_>]);

    /// Appends an entry, without its name, of the run that starts with `first`.
    fn put_entry(&self, out: &mut Vec<u8>, first: &Child<'_>, child: &Child<'_>);

    /// Appends an index entry, without its name, for the header in `block` of the table and at
    /// `offset` of the listing.
    fn put_index_entry(&self, out: &mut Vec<u8>, offset: u32, block: u64, name: &[u8]);
}

/// Writes a listing; children are sorted by bytes of their names.
pub(crate) fn write_listing(
    records: &impl ListingRecords,
    table: &mut MetadataWriter,
    codec: &mut MetadataCodec,
    children: &[Child<'_>],
) -> Result<Listing> {
    let (stream_start, start) = (table.stream_len(), table.position());
    let mut index: Vec<(u32, StreamRef, &[u8])> = Vec::new();
    let mut block_last = block_of(stream_start);
    let (mut rest, mut bytes) = (children, Vec::new());
    while let Some(first) = rest.first() {
        let (run, later) = rest.split_at(run_len(records, rest, table.stream_len()));
        let block = block_of(table.stream_len());
        if block != block_last && records.has_index() && index.len() < usize::from(u16::MAX) {
            block_last = block;
            let offset = (table.stream_len() - stream_start) as u32;
            index.push((offset, table.position(), first.entry.name));
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
    let len = table.stream_len() - stream_start;
    // An index follows the inode, so a search reads a block of inodes for it. For a listing of two
    // blocks that costs more reads than starting at the first.
    if len <= SQUASHFS_METADATA_SIZE as u64 {
        index.clear();
    }
    let (mut bytes, index_count) = (Vec::new(), index.len() as u16);
    for (offset, place, name) in index {
        records.put_index_entry(&mut bytes, offset, table.reference(codec, place)?.block, name);
        bytes.extend_from_slice(name);
    }
    Ok(Listing { start: table.reference(codec, start)?, len, index: bytes, index_count })
}

fn block_of(stream_offset: u64) -> u64 {
    stream_offset / SQUASHFS_METADATA_SIZE as u64
}

/// Returns the number of children that share one header: inodes in one block, close numbers, and no
/// start after the block of the header, so that the index can refer to each block.
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
    // A header at the very end of a block still includes one entry.
    children.iter().take(SQUASHFS_DIR_COUNT as usize).take_while(fits).count().max(1)
}
