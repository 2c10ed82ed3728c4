//! Encoding of listing records and of their index.

use crate::number_of_type;
use crate::pack::{Child, ListingRecords};
use crate::v4::disk;
use zerocopy::IntoBytes;

pub(super) struct DirRecords;

impl ListingRecords for DirRecords {
    fn run_header_len(&self) -> usize {
        size_of::<disk::DirHeader>()
    }

    fn entry_len(&self) -> usize {
        size_of::<disk::DirEntry>()
    }

    fn has_index(&self) -> bool {
        true
    }

    fn put_header(&self, out: &mut Vec<u8>, run: &[Child<'_>]) {
        let header = disk::DirHeader {
            count: (run.len() as u32 - 1).into(),
            start_block: (run[0].inode.block as u32).into(),
            inode_number: run[0].number.into(),
        };
        out.extend_from_slice(header.as_bytes());
    }

    fn put_entry(&self, out: &mut Vec<u8>, first: &Child<'_>, child: &Child<'_>) {
        let entry = disk::DirEntry {
            offset: child.inode.offset.into(),
            inode_number: (child.number.wrapping_sub(first.number) as i16).into(),
            r#type: number_of_type(child.file_type).into(),
            size: (child.entry.name.len() as u16 - 1).into(),
        };
        out.extend_from_slice(entry.as_bytes());
    }

    fn put_index_entry(&self, out: &mut Vec<u8>, offset: u32, block: u64, name: &[u8]) {
        let entry = disk::DirIndex {
            index: offset.into(),
            start_block: (block as u32).into(),
            size: (name.len() as u32 - 1).into(),
        };
        out.extend_from_slice(entry.as_bytes());
    }
}
