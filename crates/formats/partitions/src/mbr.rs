//! Boot records: four partitions, of which one may contain a chain of logical ones.
//!
//! Invariant: ends for every chain. No link is followed twice, and at most [`LINKS_MAX`] are.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::table::{Kind, Partition, Table, TableKind};
use packfs_core::{Image, Result, range_at};
use packfs_format::{read_structure, units::*};
use std::collections::HashSet;
use std::mem::size_of;

/// More logical partitions than any tool creates.
const LINKS_MAX: usize = 256;
const RECORD_LEN: u64 = size_of::<BootRecord>() as u64;

pub(crate) fn record(image: &dyn Image, at: u64) -> Result<Option<BootRecord>> {
    if at.checked_add(RECORD_LEN).is_none_or(|end| end > image.len()) {
        return Ok(None);
    }
    let record: BootRecord = read_structure(image, at)?;
    Ok(Some(record).filter(|record| record.signature.get() == MBR_SIGNATURE))
}

/// True if the disk starts with a valid boot record.
pub(crate) fn is_there(image: &dyn Image) -> Result<bool> {
    Ok(record(image, 0)?.is_some_and(|record| is_table(&record, image.len())))
}

fn is_used(entry: &MbrEntry) -> bool {
    entry.kind != 0 && entry.count.get() != 0
}

fn is_extended(entry: &MbrEntry) -> bool {
    EXTENDED.contains(&entry.kind)
}

/// True for the row that protects a GPT, detected as in Linux: by type and start.
pub(crate) fn is_protective(entry: &MbrEntry) -> bool {
    entry.kind == PROTECTIVE && entry.first.get() == 1
}

/// A signature alone is not sufficient: the status of each row must be valid, and one row must be a
/// partition that begins within the disk; others may be invalid, as in Linux. A partition that
/// starts with the disk belongs to a hybrid image for CDs and USB drives; that disk is the CD.
fn is_table(record: &BootRecord, disk_len: u64) -> bool {
    let is_partition = |entry: &MbrEntry| {
        let start = at_sector(entry.first.get().into());
        is_used(entry) && !is_protective(entry) && start > 0 && start < disk_len
    };
    record.entries.iter().all(|entry| entry.status & 0x7f == 0)
        && record.entries.iter().any(is_partition)
        && !is_boot_sector(&record.code)
}

/// True if the first sector is that of a FAT, NTFS, or exFAT filesystem.
fn is_boot_sector(code: &[u8; 440]) -> bool {
    let jumps = code[0] == 0xe9 || code[0] == 0xeb && code[2] == 0x90;
    let name = &code[3..11];
    let bytes_per_sector = u16::from_le_bytes([code[11], code[12]]);
    let is_fat = matches!(bytes_per_sector, 512 | 1024 | 2048 | 4096)
        && code[13].is_power_of_two()
        && (1..=2).contains(&code[16])
        && code[21] >= 0xf0;
    jumps && (is_fat || name == b"NTFS    " || name == b"EXFAT   ")
}

/// Reads the table and its chains; `None` without one. With `sure`, any boot record is a table.
pub(crate) fn read(image: &dyn Image, sure: bool) -> Result<Option<Table>> {
    let record = record(image, 0)?.filter(|record| sure || is_table(record, image.len()));
    let Some(record) = record else { return Ok(None) };
    let mut table = Table {
        kind: TableKind::Mbr { disk_id: record.disk_id.get() },
        sector_len: SECTOR_LEN,
        partitions: Vec::new(),
        structures: vec![(0..RECORD_LEN, "boot record")],
        faults: Vec::new(),
        ignores_gpt: false,
    };
    for (number, entry) in (1..).zip(&record.entries) {
        table.faults.extend(odd(number, entry));
        if !is_extended(entry) && entry.first.get() > 0 {
            table.partitions.extend(partition(number, 0, entry));
        }
    }
    let mut seen = HashSet::new();
    let is_chain = |entry: &&MbrEntry| is_used(entry) && is_extended(entry) && entry.first.get() > 0;
    for entry in record.entries.iter().filter(is_chain) {
        if let Err(fault) = chain(image, entry, &mut seen, &mut table)? {
            table.faults.push(fault);
        }
    }
    Ok(Some(table))
}

fn at_sector(lba: u64) -> u64 {
    lba.times(SECTOR_LEN)
}

/// Returns the fault of a row that is neither empty nor a partition of a known type. Linux accepts
/// partitions of type 0, too.
fn odd(number: u32, entry: &MbrEntry) -> Option<Corruption> {
    let kind = entry.kind;
    let first = entry.first.get();
    let count = entry.count.get();
    match (kind, first, count) {
        (0, _, 0) => None,
        (_, _, 0) => Some(Corruption::NoSectors { number, kind }),
        (_, 0, _) => Some(Corruption::Start { number }),
        (0, ..) => Some(Corruption::NoKind { number, count }),
        _ => None,
    }
}

/// Returns a partition whose row is relative to sector `base`; `None` for one without sectors.
fn partition(number: u32, base: u64, entry: &MbrEntry) -> Option<Partition> {
    let partition = Partition {
        number,
        start: at_sector(base.plus(entry.first.get().into())),
        len: u64::from(entry.count.get()) * SECTOR_LEN,
        kind: Kind::Mbr(entry.kind),
        label: String::new(),
        boots: entry.status & 0x80 != 0,
    };
    Some(partition).filter(|partition| partition.len > 0)
}

/// Follows the chain of an extended partition. Each link describes the partition after it, and
/// locates the next link.
fn chain(
    image: &dyn Image,
    extended: &MbrEntry,
    seen: &mut HashSet<u64>,
    table: &mut Table,
) -> Result<Result<(), Corruption>> {
    let base = u64::from(extended.first.get());
    let end = base.plus(extended.count.get().into());
    let mut link = base;
    loop {
        let at = at_sector(link);
        if !(base..end).contains(&link) {
            return Ok(Err(Corruption::LinkPlace { at, start: at_sector(base), end: at_sector(end) }));
        }
        if !seen.insert(link) {
            return Ok(Err(Corruption::LinkAgain { at }));
        }
        if seen.len() > LINKS_MAX {
            return Ok(Err(Corruption::LinkCount { max: LINKS_MAX }));
        }
        let Some(record) = record(image, at)? else { return Ok(Err(Corruption::LinkSignature { at })) };
        table.structures.push((range_at(at, RECORD_LEN), "extended boot record"));
        // Two rows are used; some tools stored partitions in the others, but those cannot be
        // distinguished from garbage.
        let rows = || record.entries.iter().take(2);
        for entry in rows().filter(|entry| !is_extended(entry)) {
            let last = table.partitions.iter().map(|it| it.number).max().unwrap_or(0);
            let number = last.max(4).plus(1);
            table.faults.extend(odd(number, entry));
            table.partitions.extend(partition(number, link, entry));
        }
        match rows().find(|entry| is_used(entry) && is_extended(entry)) {
            Some(next) => link = base.plus(next.first.get().into()),
            None => return Ok(Ok(())),
        }
    }
}
