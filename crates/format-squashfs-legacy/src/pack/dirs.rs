//! Writes the listing of one directory, and the index that large ones have from 2.1 on.

use super::metadata_writer::{MetadataCodec, MetadataWriter};
use crate::bits::{Endian, Record};
use crate::disk::{self, InodeRef, SQUASHFS_METADATA_SIZE, Version};
use packfs_core::{Entry, FileType, Result};

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

/// Writes listings of one version and byte order.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListingWriter {
    pub version: Version,
    pub endian: Endian,
}

impl ListingWriter {
    /// Writes a listing; children come in byte order of their names.
    pub(super) fn write(
        self,
        table: &mut MetadataWriter,
        codec: &mut MetadataCodec,
        children: &[Child<'_>],
    ) -> Result<Listing> {
        let stream_start = table.stream_len();
        let mut listing = Listing { start: table.position(), len: 0, index: Vec::new(), index_count: 0 };
        let mut block_last = block_of(stream_start);
        let mut rest = children;
        while !rest.is_empty() {
            let (run, later) = rest.split_at(self.run_len(rest, table.stream_len()));
            let block = block_of(table.stream_len());
            if block != block_last && self.version.is_sorted() && listing.index_count < u16::MAX {
                block_last = block;
                let offset = (table.stream_len() - stream_start) as u32;
                self.add_index(&mut listing, table.position(), offset, run[0].entry.name);
            }
            self.write_run(table, codec, run)?;
            rest = later;
        }
        listing.len = table.stream_len() - stream_start;
        Ok(listing)
    }

    /// How many children share one header: inodes in one block, numbers near each other, and no start beyond the block of
    /// the header, so that the index can lead to each block.
    fn run_len(self, children: &[Child<'_>], header_at: u64) -> usize {
        let first = &children[0];
        let mut entry_at = header_at + u64::from(self.version.dir_header_len());
        let fits = |child: &&Child<'_>| {
            let starts_in_block = block_of(entry_at) == block_of(header_at);
            entry_at += u64::from(self.version.dir_entry_len()) + child.entry.name.len() as u64;
            starts_in_block
                && child.inode.block == first.inode.block
                && i16::try_from(i64::from(child.number) - i64::from(first.number)).is_ok()
        };
        // A header at the very end of a block still takes one entry with it.
        children.iter().take(disk::SQUASHFS_DIR_COUNT).take_while(fits).count().max(1)
    }

    fn add_index(self, listing: &mut Listing, header: InodeRef, offset: u32, name: &[u8]) {
        let (offset_bits, block_bits) = if self.version.has_numbers() { (32, 32) } else { (27, 29) };
        let mut record = Record::new(&mut listing.index, self.endian);
        record.put(offset_bits, offset).put(block_bits, header.block).put(8, name.len() as u64 - 1);
        listing.index.extend_from_slice(name);
        listing.index_count += 1;
    }

    fn write_run(
        self,
        table: &mut MetadataWriter,
        codec: &mut MetadataCodec,
        run: &[Child<'_>],
    ) -> Result<()> {
        let first = &run[0];
        let numbered = self.version.has_numbers();
        let mut bytes = Vec::new();
        let mut header = Record::new(&mut bytes, self.endian);
        header.put(8, run.len() as u64 - 1).put(if numbered { 32 } else { 24 }, first.inode.block);
        if numbered {
            header.put(32, first.number);
        }
        for child in run {
            let mut entry = Record::new(&mut bytes, self.endian);
            entry.put(13, child.inode.offset).put(3, basic_type(child.file_type));
            entry.put(8, child.entry.name.len() as u64 - 1);
            if numbered {
                entry.put(16, child.number.wrapping_sub(first.number) as u16);
            }
            bytes.extend_from_slice(child.entry.name);
        }
        table.append(codec, &bytes)
    }
}

fn block_of(stream_offset: u64) -> u64 {
    stream_offset / SQUASHFS_METADATA_SIZE as u64
}

/// The number of a type.
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
