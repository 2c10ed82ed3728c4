//! GPT: a header and its rows, twice, with checksums.
//!
//! Owns the choice of the copy. Invariant: rows are within the disk, and at most [`ENTRIES_MAX`]
//! are read.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::mbr;
use crate::table::{Kind, Partition, Table, TableKind};
use packfs_core::{Image, Result, range_at, usize_of};
use packfs_format::{read_structure, structure, units::*};
use std::mem::{offset_of, size_of};
use std::ops::Range;

const HEADER_LEN: usize = size_of::<GptHeader>();
const ENTRY_LEN: u32 = 128;
const _: () = assert!(size_of::<GptEntry>() as u64 == ENTRY_LEN as u64);
const ENTRY_LEN_MAX: u32 = 4096;
/// Thirty times the number that tools create.
const ENTRIES_MAX: u32 = 4096;
/// Sector lengths of disks, the unit of the table, which does not record it.
const SECTOR_LENS: [u64; 2] = [512, 4096];

/// A valid header, and its rows.
pub(crate) struct Copy {
    pub(crate) header: GptHeader,
    pub(crate) sector_len: u64,
    entries: Vec<u8>,
}

impl Copy {
    fn entries_at(&self) -> u64 {
        nth_at(0, self.header.entries_lba.get(), self.sector_len)
    }

    fn at(&self) -> u64 {
        nth_at(0, self.header.my_lba.get(), self.sector_len)
    }
}

/// True if the boot record protects a GPT, valid or not. A boot record with other partitions, too,
/// only counts if a GPT exists.
pub(crate) fn is_there(image: &dyn Image) -> Result<bool> {
    let record = mbr::record(image, 0)?;
    if !record.is_some_and(|record| record.entries.iter().any(mbr::is_protective)) {
        return Ok(false);
    }
    if !mbr::is_there(image)? {
        return Ok(true);
    }
    for sector_len in SECTOR_LENS {
        if header_at(image, sector_len)?.is_some() {
            return Ok(true);
        }
    }
    Ok(backup(image, None)?.is_some())
}

/// Returns the range of the first copy if it is valid, whatever the boot record contains.
pub(crate) fn sound_header(image: &dyn Image) -> Result<Option<Range<u64>>> {
    for sector_len in SECTOR_LENS {
        if copy(image, 1, sector_len)?.is_ok() {
            return Ok(Some(range_at(sector_len, sector_len)));
        }
    }
    Ok(None)
}

/// Reads the first copy, or the second if the first is damaged.
///
/// Errors: `Corrupt` if both are damaged or missing, `Io`.
pub(crate) fn read(image: &dyn Image) -> Result<Table> {
    let mut fault = None;
    for sector_len in SECTOR_LENS {
        match copy(image, 1, sector_len)? {
            Ok(copy) => return Ok(table(&copy, false, Vec::new())),
            Err(Corruption::GptSignature { .. }) if fault.is_some() => {}
            Err(found) => fault = Some((found, sector_len)),
        }
    }
    let (fault, sector_len) = fault.unwrap_or((Corruption::Signature, SECTOR_LEN));
    let alternate = alternate(image, sector_len)?;
    match backup(image, alternate)? {
        Some(copy) => Ok(table(&copy, true, vec![fault])),
        None => Err(fault.into()),
    }
}

/// Returns the sector of the other copy according to a header that is damaged elsewhere.
fn alternate(image: &dyn Image, sector_len: u64) -> Result<Option<(u64, u64)>> {
    let Some(header) = header_at(image, sector_len)? else { return Ok(None) };
    Ok(Some((header.alternate_lba.get(), sector_len)))
}

/// Reads the second copy: where the first locates it, or in the last sector.
fn backup(image: &dyn Image, told: Option<(u64, u64)>) -> Result<Option<Copy>> {
    let last = |sector_len: u64| {
        let count = image.len().checked_div(sector_len);
        (count.and_then(|count| count.checked_sub(1)).unwrap_or(1), sector_len)
    };
    for (lba, sector_len) in told.into_iter().chain(SECTOR_LENS.map(last)) {
        if lba > 1
            && let Ok(copy) = copy(image, lba, sector_len)?
        {
            return Ok(Some(copy));
        }
    }
    Ok(None)
}

fn header_at(image: &dyn Image, at: u64) -> Result<Option<GptHeader>> {
    if at.checked_add(HEADER_LEN as u64).is_none_or(|end| end > image.len()) {
        return Ok(None);
    }
    let header: GptHeader = read_structure(image, at)?;
    Ok(Some(header).filter(|header| header.signature == GPT_SIGNATURE))
}

/// Reads the header in a sector and its rows, or returns their fault.
pub(crate) fn copy(image: &dyn Image, lba: u64, sector_len: u64) -> Result<Result<Copy, Corruption>> {
    let at = nth_at(0, lba, sector_len);
    let Some(header) = header_at(image, at)? else { return Ok(Err(Corruption::GptSignature { at })) };
    let header_len = header.header_size.get();
    if u64::from(header_len) > sector_len || (header_len as usize) < HEADER_LEN {
        return Ok(Err(Corruption::HeaderSize { at, found: header_len, max: sector_len }));
    }
    let mut raw = vec![0; header_len as usize];
    if image.read_at(at, &mut raw)? != raw.len() {
        return Ok(Err(Corruption::GptSignature { at }));
    }
    if let Some(crc) = raw.get_mut(HEADER_CRC_AT..HEADER_CRC_AT + 4) {
        crc.fill(0);
    }
    let (found, computed) = (header.header_crc.get(), crc32fast::hash(&raw));
    if found != computed {
        return Ok(Err(Corruption::HeaderChecksum { at, found, computed }));
    }
    if header.my_lba.get() != lba {
        return Ok(Err(Corruption::HeaderPlace { at, found: header.my_lba.get(), wanted: lba }));
    }
    Ok(entries(image, at, &header, sector_len)?.map(|entries| Copy { header, sector_len, entries }))
}

fn entries(
    image: &dyn Image,
    at: u64,
    header: &GptHeader,
    sector_len: u64,
) -> Result<Result<Vec<u8>, Corruption>> {
    let (size, count) = (header.entry_size.get(), header.entry_count.get());
    if !(ENTRY_LEN..=ENTRY_LEN_MAX).contains(&size) || !size.is_multiple_of(8) {
        return Ok(Err(Corruption::EntrySize { at, found: size }));
    }
    if count > ENTRIES_MAX {
        return Ok(Err(Corruption::EntryCount { at, found: count }));
    }
    let len = u64::from(size).times(count.into());
    let found = header.entries_lba.get();
    let start = found.checked_mul(sector_len);
    let start = start.filter(|start| start.checked_add(len).is_some_and(|end| end <= image.len()));
    let Some(start) = start else {
        return Ok(Err(Corruption::EntriesPlace { at, found, len, limit: image.len() }));
    };
    let mut raw = vec![0; usize_of(len)];
    image.read_exact_at(start, &mut raw)?;
    let (found, computed) = (header.entries_crc.get(), crc32fast::hash(&raw));
    if found != computed {
        return Ok(Err(Corruption::EntriesChecksum { at: start, found, computed }));
    }
    Ok(Ok(raw))
}

fn table(copy: &Copy, is_backup: bool, mut faults: Vec<Corruption>) -> Table {
    let header = &copy.header;
    let mut partitions = Vec::new();
    let size = header.entry_size.get() as usize;
    for (number, raw) in (1..).zip(copy.entries.chunks_exact(size)) {
        let Some(entry) = structure::<GptEntry>(raw, 0) else { continue };
        if entry.kind == [0; 16] {
            continue;
        }
        match partition(number, &entry, copy.sector_len) {
            Ok(partition) => partitions.push(partition),
            Err(fault) => faults.push(fault),
        }
    }
    let alternate_lba = header.alternate_lba.get();
    let mut structures = vec![
        (0..SECTOR_LEN, "boot record"),
        (range_at(copy.at(), copy.sector_len), "GPT header"),
        (range_at(copy.entries_at(), copy.entries.len() as u64), "GPT entries"),
    ];
    if !is_backup {
        // The second copy has its rows before its header.
        let rows_len = (copy.entries.len() as u64).next_multiple_of(copy.sector_len);
        let alternate = nth_at(0, alternate_lba, copy.sector_len);
        structures.push((left(alternate, rows_len)..alternate, "GPT entries"));
        structures.push((range_at(alternate, copy.sector_len), "GPT header"));
    }
    let kind = TableKind::Gpt { disk_guid: header.disk_guid, alternate_lba, is_backup };
    Table { kind, sector_len: copy.sector_len, partitions, structures, faults, ignores_gpt: false }
}

fn partition(number: u32, entry: &GptEntry, sector_len: u64) -> Result<Partition, Corruption> {
    let (first, last) = (entry.first.get(), entry.last.get());
    if first == 0 {
        return Err(Corruption::Start { number });
    }
    let backwards = Corruption::Backwards { number, first, last };
    let sectors = last.checked_sub(first).and_then(|len| len.checked_add(1)).ok_or(backwards)?;
    let place = first.checked_mul(sector_len).zip(sectors.checked_mul(sector_len));
    let end = place.and_then(|(start, len)| start.checked_add(len)).filter(|end| *end <= i64::MAX as u64);
    let (Some((start, len)), Some(_)) = (place, end) else {
        return Err(Corruption::Beyond { number, end: u64::MAX, limit: i64::MAX as u64 });
    };
    let name = entry.name.iter().map(|unit| unit.get()).take_while(|unit| *unit != 0);
    let label = char::decode_utf16(name).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let kind = Kind::Gpt { kind: entry.kind, guid: entry.guid };
    // Bit 2: legacy BIOS bootable.
    Ok(Partition { number, start, len, kind, label, boots: entry.attributes.get() & 4 != 0 })
}

const _: () = assert!(offset_of!(GptHeader, header_crc) == HEADER_CRC_AT);
