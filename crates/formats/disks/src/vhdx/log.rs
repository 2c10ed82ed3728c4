//! The log: changes of metadata that were not applied when the image was last written.
//!
//! Owns the search for valid entries, and their replay in memory. Work is bounded by the length of
//! the log in the file.

use super::corruption::Corruption;
use super::disk::*;
use super::{refused, regions};
use packfs_core::{Image, OverlayImage, Result, range_at, u32_of, usize_of};
use packfs_format::{structure, structures, units::*};
use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::Arc;

const SECTOR: u64 = LOG_SECTOR as u64;
const MIB: u64 = 1 << 20;
/// Longest entry, which includes all of QEMU and Hyper-V.
const ENTRY_LEN_MAX: u64 = 16 << 20;
/// Limit of the bytes whose checksums are computed, in lengths of the log.
const READS_MAX: u64 = 4;
/// Limit of the newest entries that are tried.
const HEADS_MAX: usize = 16;
/// Longest log: QEMU and Hyper-V create logs of 1 MiB.
const LOG_LEN_MAX: u64 = 256 << 20;
/// Limit of data sectors in a log: 64 MiB.
const SECTORS_MAX: u64 = 16 << 10;
/// Limit of zero blocks in a log: 4 GiB.
const ZEROS_MAX: u64 = 1 << 20;

/// An entry with a valid checksum.
struct Entry {
    head: LogEntry,
    bytes: Vec<u8>,
}

/// Returns the image with the changes in its log, and their number; `None` if the log is not in
/// use.
///
/// Errors: `Corrupt` if the log cannot be replayed, `Unsupported` if it is too long, `Io`.
pub(super) fn replayed(file: &Arc<dyn Image>, header: &Header) -> Result<(Arc<dyn Image>, Option<u64>)> {
    if header.log_guid == [0; 16] {
        return Ok((Arc::clone(file), None));
    }
    let at = header.log_at.get();
    let len = u64::from(header.log_len.get());
    let limit = file.len();
    if header.log_version.get() != 0 {
        return Err(refused(format!("version {} of the log, 0 is supported", header.log_version.get())));
    }
    if len == 0 || !len.is_multiple_of(MIB) || !at.is_multiple_of(MIB) || range_at(at, len).end > limit {
        return Err(Corruption::LogPlace { at, len, limit }.into());
    }
    if len > LOG_LEN_MAX {
        return Err(refused(format!("a log of {len} bytes, {LOG_LEN_MAX} are supported")));
    }
    let log = Log { image: &**file, at, len, guid: header.log_guid };
    let places = log.places()?;
    let sequence = log.newest(&places).ok_or(Corruption::LogEmpty { at })?;
    let mut replay = Replay {
        at,
        changes: OverlayImage::new(Arc::clone(file), SECTOR),
        count: 0,
        data: 0,
        zeros: 0,
        len: limit,
    };
    for place in sequence {
        if let Some(entry) = log.entry(place)? {
            replay.apply(&entry, limit)?;
        }
    }
    let mut image = replay.changes;
    image.set_len(replay.len.checked_next_multiple_of(MIB).filter(|_| replay.len > limit).unwrap_or(limit));
    Ok((Arc::new(image), Some(replay.count)))
}

struct Log<'a> {
    image: &'a dyn Image,
    at: u64,
    len: u64,
    guid: [u8; 16],
}

impl Log<'_> {
    /// Reads from an offset in the log; wraps around at its end.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (first, second) = buf.split_at_mut(buf.len().min(usize_of(self.len.minus(offset))));
        self.image.read_exact_at(self.at.plus(offset), first)?;
        self.image.read_exact_at(self.at, second)
    }

    fn head(&self, offset: u64) -> Result<Option<LogEntry>> {
        let mut bytes = [0; size_of::<LogEntry>()];
        self.read(offset, &mut bytes)?;
        let Some(head) = structure::<LogEntry>(&bytes, 0) else { return Ok(None) };
        let len = u64::from(head.len.get());
        let is_one = head.signature == *b"loge"
            && head.log_guid == self.guid
            && head.sequence.get() > 0
            && len.is_multiple_of(SECTOR)
            && (SECTOR..=self.len.min(ENTRY_LEN_MAX)).contains(&len);
        Ok(Some(head).filter(|_| is_one))
    }

    fn entry(&self, offset: u64) -> Result<Option<Entry>> {
        let Some(head) = self.head(offset)? else { return Ok(None) };
        let mut bytes = vec![0; usize_of(head.len.get().into())];
        self.read(offset, &mut bytes)?;
        Ok(regions::is_sound(&bytes).then_some(Entry { head, bytes }))
    }

    /// Returns the headers of all valid entries, by offset.
    fn places(&self) -> Result<BTreeMap<u64, LogEntry>> {
        let mut places = BTreeMap::new();
        let (mut offset, mut read) = (0, 0_u64);
        while offset < self.len && read <= self.len.times(READS_MAX) {
            let mut step = SECTOR;
            if let Some(head) = self.head(offset)? {
                read = read.plus(head.len.get().into());
                if self.entry(offset)?.is_some() {
                    places.insert(offset, head);
                    step = head.len.get().into();
                }
            }
            offset = offset.plus(step);
        }
        Ok(places)
    }

    /// Returns the newest sequence of entries, starting with the tail of its last entry.
    fn newest(&self, places: &BTreeMap<u64, LogEntry>) -> Option<Vec<u64>> {
        let mut heads: Vec<_> = places.iter().collect();
        heads.sort_by_key(|(_, head)| std::cmp::Reverse(head.sequence.get()));
        heads.into_iter().take(HEADS_MAX).find_map(|(end, head)| self.sequence(places, *end, head))
    }

    fn sequence(&self, places: &BTreeMap<u64, LogEntry>, end: u64, last: &LogEntry) -> Option<Vec<u64>> {
        let mut sequence = Vec::new();
        let mut offset = u64::from(last.tail.get());
        // No entry occurs twice.
        for _ in 0..places.len() {
            let head = places.get(&offset)?;
            let before = sequence.last().and_then(|before| places.get(before));
            let follows =
                |before: &LogEntry| before.sequence.get().checked_add(1) == Some(head.sequence.get());
            if !before.is_none_or(follows) {
                return None;
            }
            sequence.push(offset);
            if offset == end {
                return Some(sequence);
            }
            offset = offset.plus(head.len.get().into()).checked_rem(self.len)?;
        }
        None
    }
}

struct Replay {
    at: u64,
    changes: OverlayImage,
    count: u64,
    data: u64,
    zeros: u64,
    /// Length of the file with all changes.
    len: u64,
}

impl Replay {
    fn apply(&mut self, entry: &Entry, limit: u64) -> Result<()> {
        let found = entry.head.flushed_len.get();
        if found > limit {
            return Err(Corruption::LogLength { found, limit }.into());
        }
        self.len = self.len.max(entry.head.last_len.get());
        let count = usize_of(entry.head.count.get().into());
        let head_len = count.times(size_of::<LogChange>()).plus(size_of::<LogEntry>());
        let (at, sequence) = (self.at, entry.head.sequence.get());
        let fault = |fault| Corruption::LogEntry { at, sequence, fault };
        let heads = entry.bytes.get(size_of::<LogEntry>()..head_len);
        let heads = heads.ok_or(fault("more changes than fit into it"))?;
        let data_at = head_len.next_multiple_of(LOG_SECTOR);
        let mut sectors = entry.bytes.within(data_at..).chunks_exact(LOG_SECTOR);
        for change in structures::<LogChange>(heads) {
            let found = change.at.get();
            if !found.is_multiple_of(SECTOR) {
                return Err(Corruption::LogChange { at: self.at, found }.into());
            }
            match &change.signature {
                b"zero" => self.zero(found / SECTOR, change.leading.get() / SECTOR)?,
                b"desc" => {
                    let sector = sectors.next().ok_or(fault("a change without its sector"))?;
                    self.data = self.data.plus(1);
                    if self.data > SECTORS_MAX {
                        return Err(refused(format!("a log of more than {SECTORS_MAX} sectors")));
                    }
                    self.changes.set_block(found / SECTOR, restored(&change, sector));
                    self.len = self.len.max(end_of(found, SECTOR));
                }
                _ => return Err(fault("a change that is neither of a sector nor of zeros").into()),
            }
            self.count = self.count.plus(1);
        }
        Ok(())
    }

    fn zero(&mut self, first: u64, count: u64) -> Result<()> {
        self.zeros = self.zeros.plus(count);
        if self.zeros > ZEROS_MAX {
            return Err(refused(format!("a log of {} sectors of zeros", u32_of(self.zeros))));
        }
        for block in range_at(first, count) {
            self.changes.set_block(block, Box::default());
        }
        Ok(())
    }
}

/// Restores a sector, whose first and last bytes are in the header of its change.
fn restored(change: &LogChange, sector: &[u8]) -> Box<[u8]> {
    let mut bytes = sector.to_vec();
    let end = bytes.len().minus(change.trailing.len());
    if let Some((first, last)) = bytes.split_at_mut_checked(end) {
        last.copy_from_slice(&change.trailing);
        first.iter_mut().zip(change.leading.get().to_le_bytes()).for_each(|(to, byte)| *to = byte);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ErrorKind, MemoryImage};
    use zerocopy::IntoBytes;

    /// Applies an entry of two sectors with so many changes, the first of which has a signature.
    fn apply(count: u32, signature: &[u8; 4]) -> Result<u64> {
        let head = LogEntry { count: count.into(), sequence: 7.into(), ..LogEntry::default() };
        let change = LogChange { signature: *signature, at: SECTOR.into(), ..LogChange::default() };
        let mut bytes = vec![0; 2 * LOG_SECTOR];
        bytes[64..96].copy_from_slice(change.as_bytes());
        let file: Arc<dyn Image> = Arc::new(MemoryImage::new("vhdx", vec![0; 4 * LOG_SECTOR]));
        let changes = OverlayImage::new(file, SECTOR);
        let mut replay = Replay { at: MIB, changes, count: 0, data: 0, zeros: 0, len: 0 };
        replay.apply(&Entry { head, bytes }, u64::MAX)?;
        Ok(replay.count)
    }

    #[test]
    fn entries_that_do_not_hold_their_changes_are_refused() {
        assert_eq!(apply(1, b"desc").unwrap(), 1);
        assert_eq!(apply(1, b"zero").unwrap(), 1);
        let refused = |count, signature, text: &str| {
            let error = apply(count, signature).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(&format!("entry 7: {text}")), "{error}");
        };
        refused(256, b"desc", "more changes than fit into it");
        refused(1, b"none", "a change that is neither");
        refused(2, b"desc", "a change that is neither");
        refused(200, b"desc", "a change without its sector");
    }
}
