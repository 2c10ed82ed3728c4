//! The virtual allocation table of write-once discs: the last file of the disc, which maps blocks
//! of the virtual partition.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::entry::FileEntry;
use crate::maps::{Addr, Reader};
use packfs_core::{ErrorKind, Result, range_at, u32_of, usize_of};
use packfs_format::{structure, units::*};
use std::ops::Range;

/// Number of blocks searched at the end of an image. Linux reads the last four; images may be
/// padded.
const SEARCHED: u64 = 512;

impl Reader {
    /// Finds the newest table of a virtual partition in partition `of`. Returns its blocks, and the
    /// byte ranges of its file.
    pub(crate) fn virtual_table(&self, of: u16, is_old: bool) -> Result<(Vec<u32>, Vec<Range<u64>>)> {
        let last = left(self.blocks.count(), 1);
        let first = left(last, SEARCHED);
        let start =
            self.maps.get(usize::from(of)).and_then(|map| map.blocks()).map_or(0, |blocks| blocks.start);
        for block in (first.max(start)..=last).rev() {
            let addr = Addr { partition: of, block: u32_of(block.minus(start)) };
            match self.entry(addr) {
                Ok(entry) => {
                    if let Some(table) = self.table_in(&entry, is_old)? {
                        let mut places = vec![range_at(entry.place.at, self.blocks.block_len.into())];
                        places.extend(self.places(&entry)?.data);
                        return Ok((table, places));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
        }
        Err(Corruption::VatPlace { first, last }.into())
    }

    /// Returns the table in a file; `None` if the file is not a table.
    fn table_in(&self, entry: &FileEntry, is_old: bool) -> Result<Option<Vec<u32>>> {
        let wanted = if is_old { TYPE_UNDEF } else { TYPE_VAT20 };
        if entry.head.icb_tag.file_type != wanted {
            return Ok(None);
        }
        let place = entry.place;
        let found = entry.len();
        let max = self.blocks.image.len();
        if found > max {
            return Err(Corruption::VatLength { place, found, max }.into());
        }
        let bytes = self.read_whole(entry)?;
        let entries = if is_old { old_entries(&bytes) } else { new_entries(&bytes) };
        let words =
            entries.map(|entries| entries.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect());
        match (words, is_old) {
            (Some(words), _) => Ok(Some(words)),
            (None, true) => Ok(None),
            (None, false) => Err(Corruption::VatLength { place, found, max }.into()),
        }
    }
}

/// Entries precede a name.
fn old_entries(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.len().checked_sub(size_of::<VirtualAllocationTable15>())?;
    let tail: VirtualAllocationTable15 = structure(bytes, end)?;
    tail.vat_ident.is(ID_VAT).then(|| bytes.get(..end)).flatten()
}

/// Entries follow a header, which contains its length.
fn new_entries(bytes: &[u8]) -> Option<&[u8]> {
    let head: VirtualAllocationTable20 = structure(bytes, 0)?;
    bytes.get(usize_of(head.length_header.get().into()).max(size_of::<VirtualAllocationTable20>())..)
}
