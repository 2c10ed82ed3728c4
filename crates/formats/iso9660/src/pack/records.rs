//! Directory records, and the sectors that contain them.

use crate::disk::*;
use zerocopy::IntoBytes;

/// Longest record: lengths are even.
const RECORD_LEN_MAX: usize = 254;
const SECTOR: usize = SECTOR_LEN as usize;

/// A record without its system use area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub name: &'a [u8],
    /// First sector, and length in bytes.
    pub extent: (u32, u32),
    pub time: RecordTime,
    pub flags: u8,
}

impl Head<'_> {
    fn len(&self) -> usize {
        (size_of::<RecordHead>() + self.name.len()).next_multiple_of(2)
    }

    /// Number of bytes left for system use entries.
    pub(super) fn room(&self) -> usize {
        RECORD_LEN_MAX - self.len()
    }

    pub(super) fn with(&self, system_use: &[u8]) -> Vec<u8> {
        let len = (self.len() + system_use.len()).next_multiple_of(2);
        let head = RecordHead {
            len: len as u8,
            attributes_len: 0,
            extent: Both32::new(self.extent.0),
            data_len: Both32::new(self.extent.1),
            time: self.time,
            flags: self.flags,
            unit_len: 0,
            gap_len: 0,
            volume_number: Both16::new(1),
            name_len: self.name.len() as u8,
        };
        let mut record = [head.as_bytes(), self.name].concat();
        record.resize(self.len(), 0);
        record.extend_from_slice(system_use);
        record.resize(len, 0);
        record
    }

    pub(super) fn system_use_at(&self) -> usize {
        self.len()
    }
}

/// The bytes of a directory: records do not cross the end of a sector.
#[derive(Default)]
pub(super) struct Records {
    pub bytes: Vec<u8>,
}

impl Records {
    pub(super) fn add(&mut self, record: &[u8]) -> usize {
        let left = SECTOR - self.bytes.len() % SECTOR;
        if left < record.len() {
            self.bytes.resize(self.bytes.len() + left, 0);
        }
        let at = self.bytes.len();
        self.bytes.extend_from_slice(record);
        at
    }

    pub(super) fn finish(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(SECTOR), 0);
    }
}

/// Replaces a number in both byte orders at `at`.
pub(super) fn set(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + size_of::<Both32>()].copy_from_slice(Both32::new(value).as_bytes());
}

pub(super) const EXTENT_AT: usize = 2;
pub(super) const LEN_AT: usize = 10;
