//! Writes the listing of one directory, and the index that large ones have.

use super::metadata_writer::{MetadataCodec, MetadataWriter};
use crate::disk::{self, InodeRef, SQUASHFS_METADATA_SIZE};
use packfs_core::{Entry, FileType, Result};
use zerocopy::IntoBytes;

/// A child as its directory's listing needs it.
pub(super) struct Child<'a> {
    pub entry: Entry<'a>,
    pub file_type: FileType,
    pub inode: InodeRef,
    pub number: u32,
}

/// Where a listing lies.
pub(super) struct Listing {
    pub start: InodeRef,
    /// In bytes.
    pub len: u64,
    /// Index entries with their names, ready to stand behind the directory's inode.
    pub index: Vec<u8>,
    pub index_count: u16,
}

/// Writes a listing; children come in byte order of their names.
pub(super) fn write(
    table: &mut MetadataWriter,
    codec: &mut MetadataCodec,
    children: &[Child<'_>],
) -> Result<Listing> {
    let stream_start = table.stream_len();
    let mut listing = Listing { start: table.position(), len: 0, index: Vec::new(), index_count: 0 };
    let mut block_last = block_of(stream_start);
    let mut rest = children;
    while !rest.is_empty() {
        let (run, later) = rest.split_at(run_len(rest, table.stream_len()));
        let block = block_of(table.stream_len());
        if block != block_last && listing.index_count < u16::MAX {
            block_last = block;
            add_index(&mut listing, table, (table.stream_len() - stream_start) as u32, run[0].entry.name);
        }
        write_run(table, codec, run)?;
        rest = later;
    }
    listing.len = table.stream_len() - stream_start;
    Ok(listing)
}

fn block_of(stream_offset: u64) -> u64 {
    stream_offset / SQUASHFS_METADATA_SIZE as u64
}

/// How many children share one header: inodes in one block, numbers near each other, and no start beyond the block of
/// the header, so that the index can lead to each block.
fn run_len(children: &[Child<'_>], header_at: u64) -> usize {
    let first = &children[0];
    let mut entry_at = header_at + size_of::<disk::DirHeader>() as u64;
    let fits = |child: &&Child<'_>| {
        let starts_in_block = block_of(entry_at) == block_of(header_at);
        entry_at += size_of::<disk::DirEntry>() as u64 + child.entry.name.len() as u64;
        starts_in_block
            && child.inode.block == first.inode.block
            && i16::try_from(i64::from(child.number) - i64::from(first.number)).is_ok()
    };
    let count = children.iter().take(disk::SQUASHFS_DIR_COUNT as usize).take_while({
        let mut fits = fits;
        move |child| fits(child)
    });
    // A header at the very end of a block still takes one entry with it.
    count.count().max(1)
}

fn add_index(listing: &mut Listing, table: &MetadataWriter, offset: u32, name: &[u8]) {
    let entry = disk::DirIndex {
        index: offset.into(),
        start_block: (table.position().block as u32).into(),
        size: (name.len() as u32 - 1).into(),
    };
    listing.index.extend_from_slice(entry.as_bytes());
    listing.index.extend_from_slice(name);
    listing.index_count += 1;
}

fn write_run(table: &mut MetadataWriter, codec: &mut MetadataCodec, run: &[Child<'_>]) -> Result<()> {
    let first = &run[0];
    let header = disk::DirHeader {
        count: (run.len() as u32 - 1).into(),
        start_block: (first.inode.block as u32).into(),
        inode_number: first.number.into(),
    };
    table.append(codec, header.as_bytes())?;
    for child in run {
        let entry = disk::DirEntry {
            offset: child.inode.offset.into(),
            inode_number: (child.number.wrapping_sub(first.number) as i16).into(),
            r#type: basic_type(child.file_type).into(),
            size: (child.entry.name.len() as u16 - 1).into(),
        };
        table.append(codec, entry.as_bytes())?;
        table.append(codec, child.entry.name)?;
    }
    Ok(())
}

/// The number of a type; extended inodes have it plus 7.
pub(super) fn basic_type(file_type: FileType) -> u16 {
    match file_type {
        FileType::Directory => disk::SQUASHFS_DIR_TYPE,
        FileType::File => disk::SQUASHFS_REG_TYPE,
        FileType::Symlink => disk::SQUASHFS_SYMLINK_TYPE,
        FileType::BlockDevice => disk::SQUASHFS_BLKDEV_TYPE,
        FileType::CharDevice => disk::SQUASHFS_CHRDEV_TYPE,
        FileType::Fifo => disk::SQUASHFS_FIFO_TYPE,
        FileType::Socket => disk::SQUASHFS_SOCKET_TYPE,
    }
}
