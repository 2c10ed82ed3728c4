//! Entries of Rock Ridge, split between a record and its continuation areas.

use crate::disk::{Both32, SECTOR_LEN};
use zerocopy::IntoBytes;

const CE_LEN: usize = 28;
const ENTRY_LEN_MAX: usize = u8::MAX as usize;
const SECTOR: usize = SECTOR_LEN as usize;

/// The continuation areas of the records of one directory, in separate sectors after it. Each is
/// within one sector, as Linux reads no more of it.
#[derive(Default)]
pub(super) struct Areas {
    pub bytes: Vec<u8>,
    /// Offsets of the blocks in CE entries, which are relative to the first of these sectors until
    /// they are placed.
    pub blocks_at: Vec<usize>,
}

/// The entries in the record itself.
#[derive(Debug, Default)]
pub(super) struct InRecord {
    pub bytes: Vec<u8>,
    /// Offset of the block in its CE entry.
    pub block_at: Option<usize>,
}

impl Areas {
    /// Splits entries: as many as fit into `room` bytes remain in the record.
    pub(super) fn divide(&mut self, entries: &[Vec<u8>], room: usize) -> InRecord {
        let (count, goes_on) = fitting(entries, room);
        let mut bytes = entries[..count].concat();
        if !goes_on {
            return InRecord { bytes, block_at: None };
        }
        let block_at = bytes.len() + 4;
        let continuation = self.add(&entries[count..]);
        bytes.extend_from_slice(&continuation);
        InRecord { bytes, block_at: Some(block_at) }
    }

    /// Adds entries as chained areas. Returns the CE entry of the first.
    fn add(&mut self, entries: &[Vec<u8>]) -> Vec<u8> {
        let mut rest = entries;
        // Offset of the CE entry of the next area, until it is completed.
        let mut pending: Option<usize> = None;
        let mut first = Vec::new();
        while !rest.is_empty() {
            let wanted = rest.iter().map(Vec::len).sum::<usize>().min(ENTRY_LEN_MAX + CE_LEN);
            let left = SECTOR - self.bytes.len() % SECTOR;
            if left < wanted {
                self.bytes.resize(self.bytes.len() + left, 0);
            }
            let start = self.bytes.len();
            let (count, goes_on) = fitting(rest, SECTOR - start % SECTOR);
            self.bytes.extend_from_slice(&rest[..count].concat());
            let next = goes_on.then_some(self.bytes.len());
            if goes_on {
                self.bytes.resize(self.bytes.len() + CE_LEN, 0);
            }
            let len = self.bytes.len() - start;
            let entry = continuation(start / SECTOR, start % SECTOR, len);
            match pending.replace(next.unwrap_or(0)) {
                None => first = entry,
                Some(at) => {
                    self.bytes[at..at + CE_LEN].copy_from_slice(&entry);
                    self.blocks_at.push(at + 4);
                }
            }
            rest = &rest[count..];
        }
        first
    }

    /// Length in whole sectors.
    pub(super) fn len(&self) -> u64 {
        (self.bytes.len() as u64).next_multiple_of(SECTOR_LEN)
    }
}

fn continuation(block: usize, offset: usize, len: usize) -> Vec<u8> {
    let numbers = [block, offset, len].map(|number| Both32::new(number as u32));
    [&[b'C', b'E', CE_LEN as u8, 1], numbers.as_bytes()].concat()
}

/// Returns the number of entries that fit into `room`, and true if a CE entry must follow them, for
/// which space is then left.
fn fitting(entries: &[Vec<u8>], room: usize) -> (usize, bool) {
    if entries.iter().map(Vec::len).sum::<usize>() <= room {
        return (entries.len(), false);
    }
    let mut len = 0;
    let fits = |entry: &&Vec<u8>| {
        len += entry.len();
        len + CE_LEN <= room
    };
    (entries.iter().take_while(fits).count(), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::both32;

    fn entry(number: u8, len: usize) -> Vec<u8> {
        let mut entry = vec![b'X', number, len as u8, 1];
        entry.resize(len, number);
        entry
    }

    /// The entries, read as readers do.
    fn read(areas: &Areas, in_record: &InRecord) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut area = in_record.bytes.clone();
        loop {
            let mut next = None;
            let mut rest = &area[..];
            while !rest.is_empty() {
                let (entry, behind) = rest.split_at(usize::from(rest[2]));
                if entry.starts_with(b"CE") {
                    let number = |at: usize| both32(entry, 4 + at).unwrap() as usize;
                    let start = number(0) * SECTOR + number(8);
                    assert!(number(8) + number(16) <= SECTOR, "an area lies in one sector");
                    next = Some(areas.bytes[start..start + number(16)].to_vec());
                } else {
                    found.push(entry.to_vec());
                }
                rest = behind;
            }
            match next {
                Some(next) => area = next,
                None => return found,
            }
        }
    }

    #[test]
    fn entries_that_fit_stay_and_the_rest_is_found_in_areas() {
        for (count, len, room) in
            [(1, 50, 50), (2, 50, 99), (3, 50, 20), (40, 255, 200), (9, 250, 0), (100, 100, 130)]
        {
            let mut areas = Areas::default();
            areas.divide(&[entry(200, 255), entry(201, 100)], 30);
            let entries: Vec<_> = (0..count).map(|number| entry(number, len)).collect();
            // There is always room for a CE entry in a record.
            let in_record = areas.divide(&entries, usize::max(room, CE_LEN));
            assert!(in_record.bytes.len() <= usize::max(room, CE_LEN));
            assert_eq!(read(&areas, &in_record), entries, "{count} {len} {room}");
            assert_eq!(in_record.block_at.is_some(), usize::from(count) * len > usize::max(room, CE_LEN));
            for &at in &areas.blocks_at {
                assert_eq!(&areas.bytes[at - 4..at - 2], b"CE");
            }
        }
    }
}
