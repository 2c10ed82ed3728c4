//! Directory records, parsed and checked for their bounds, without interpretation.

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::sectors::Sectors;
use packfs_core::{Result, usize_of};
use packfs_format::{split_structure, units::*};
use std::mem::size_of;

pub(crate) const RECORD: &str = "directory record";
const HEAD_LEN: usize = size_of::<RecordHead>();

/// A directory record, which contains `name` and `system_use`.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) at: u64,
    pub(crate) head: RecordHead,
    rest: Vec<u8>,
}

impl Record {
    /// Reads the record at an offset, which must end before `end` and within its sector. `None` if
    /// its length is zero.
    pub(crate) fn read(sectors: &Sectors, at: u64, end: u64) -> Result<Option<Record>> {
        let place = Place::at(RECORD, at);
        let sector_left = SECTOR_LEN.minus(at % SECTOR_LEN);
        let max = left(end, at).min(sector_left).min(u64::from(u8::MAX));
        let mut bytes = [0; u8::MAX as usize];
        let there = max.min(left(sectors.len(), at));
        let Some(bytes) = bytes.get_mut(..usize_of(there.max(1))) else { return Ok(None) };
        sectors.read(place, bytes)?;
        let found = bytes.first().copied().unwrap_or(0);
        if found == 0 {
            return Ok(None);
        }
        let bytes = bytes.get(..usize::from(found)).filter(|bytes| bytes.len() > HEAD_LEN);
        let Some((head, rest)) = bytes.and_then(split_structure::<RecordHead>) else {
            return Err(Corruption::RecordLen { place, found, max }.into());
        };
        if head.name_len == 0 || usize::from(head.name_len) > rest.len() {
            return Err(Corruption::RecordName { place, found: head.name_len, len: found }.into());
        }
        Ok(Some(Record { at, head, rest: rest.to_vec() }))
    }

    pub(crate) fn end(&self) -> u64 {
        self.at.plus(self.head.len.into())
    }

    pub(crate) fn place(&self) -> Place {
        Place::at(RECORD, self.at)
    }

    pub(crate) fn name(&self) -> &[u8] {
        self.rest.within(..usize::from(self.head.name_len))
    }

    /// Returns the bytes after the name and its padding to an even length.
    pub(crate) fn system_use(&self) -> &[u8] {
        self.rest.get(self.padded_name_len()..).unwrap_or(&[])
    }

    /// The padded length is odd, like that of the header.
    fn padded_name_len(&self) -> usize {
        usize::from(self.head.name_len | 1)
    }

    /// Offset in the image of [`Record::system_use`].
    pub(crate) fn system_use_at(&self) -> u64 {
        self.at.plus(HEAD_LEN as u64).plus(self.padded_name_len() as u64)
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.head.flags & flag != 0
    }

    pub(crate) fn is_self_or_parent(&self) -> bool {
        self.name() == NAME_SELF || self.name() == NAME_PARENT
    }

    pub(crate) fn data_at(&self, block_len: u32) -> u64 {
        self.head.data_at(block_len)
    }

    pub(crate) fn data_len(&self) -> u64 {
        u64::from(self.head.data_len.get())
    }
}
