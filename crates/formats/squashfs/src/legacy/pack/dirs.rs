//! Encoding of listing records and of their index.

use crate::legacy::bits::Record;
use crate::legacy::disk::Version;
use crate::pack::{Child, ListingRecords};
use crate::{Endian, number_of_type};

#[derive(Clone, Copy, Debug)]
pub(super) struct DirRecords {
    pub version: Version,
    pub endian: Endian,
}

impl ListingRecords for DirRecords {
    fn run_header_len(&self) -> usize {
        self.version.dir_header_len() as usize
    }

    fn entry_len(&self) -> usize {
        self.version.dir_entry_len() as usize
    }

    fn has_index(&self) -> bool {
        self.version.is_sorted()
    }

    fn put_header(&self, out: &mut Vec<u8>, run: &[Child<'_>]) {
        let numbered = self.version.has_numbers();
        let mut header = Record::new(out, self.endian);
        header.put(8, run.len() as u64 - 1).put(if numbered { 32 } else { 24 }, run[0].inode.block);
        if numbered {
            header.put(32, run[0].number);
        }
    }

    fn put_entry(&self, out: &mut Vec<u8>, first: &Child<'_>, child: &Child<'_>) {
        let mut entry = Record::new(out, self.endian);
        entry.put(13, child.inode.offset).put(3, number_of_type(child.file_type));
        entry.put(8, child.entry.name.len() as u64 - 1);
        if self.version.has_numbers() {
            entry.put(16, child.number.wrapping_sub(first.number) as u16);
        }
    }

    fn put_index_entry(&self, out: &mut Vec<u8>, offset: u32, block: u64, name: &[u8]) {
        let (offset_bits, block_bits) = if self.version.has_numbers() { (32, 32) } else { (27, 29) };
        let mut record = Record::new(out, self.endian);
        record.put(offset_bits, offset).put(block_bits, block).put(8, name.len() as u64 - 1);
    }
}
