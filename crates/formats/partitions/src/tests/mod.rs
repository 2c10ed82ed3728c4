//! Disks made by hand, byte for byte, and what the reader says of them and of damaged copies.

mod peers;
mod reads;
mod refuses;

use crate::Partitions;
use crate::disk::*;
use crate::volume::PartitionsVolume;
use packfs_core::Result;
use packfs_format::{Check, Finding, Format, InodeId, PartitionTable, Volume};
use packfs_testkit::{BytesImage, read_all};
use std::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

/// A disk of this many sectors, in memory.
#[derive(Clone)]
struct Disk {
    bytes: Vec<u8>,
    sector_len: usize,
}

impl Disk {
    fn empty(sectors: usize) -> Disk {
        Disk { bytes: vec![0; sectors * 512], sector_len: 512 }
    }

    fn put(&mut self, sector: usize, bytes: &[u8]) {
        let at = sector * self.sector_len;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Overwrites bytes.
    fn patch(mut self, at: usize, bytes: &[u8]) -> Disk {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Writes a boot record with rows of kind, first sector, count.
    fn record(&mut self, sector: usize, rows: &[(u8, u32, u32)]) {
        let mut record = BootRecord::new_zeroed();
        record.disk_id = 0x1234_5678.into();
        for (entry, &(kind, first, count)) in record.entries.iter_mut().zip(rows) {
            *entry = MbrEntry { kind, first: first.into(), count: count.into(), ..MbrEntry::new_zeroed() };
        }
        record.signature = MBR_SIGNATURE.into();
        self.put(sector, record.as_bytes());
    }

    /// Writes one copy of a GPT.
    fn gpt(&mut self, my: u64, alternate: u64, entries_lba: u64, entries: &[GptEntry]) {
        let mut rows = entries.as_bytes().to_vec();
        rows.resize(8 * 128, 0);
        self.put(entries_lba as usize, &rows);
        let mut header = GptHeader {
            signature: GPT_SIGNATURE,
            revision: 0x1_0000.into(),
            header_size: 92.into(),
            my_lba: my.into(),
            alternate_lba: alternate.into(),
            first_usable: 10.into(),
            last_usable: 50.into(),
            disk_guid: [7; 16],
            entries_lba: entries_lba.into(),
            entry_count: 8.into(),
            entry_size: 128.into(),
            entries_crc: crc32fast::hash(&rows).into(),
            ..GptHeader::new_zeroed()
        };
        header.header_crc = crc32fast::hash(header.as_bytes()).into();
        self.put(my as usize, header.as_bytes());
    }

    fn probe(&self) -> bool {
        Partitions.probe(&BytesImage(self.bytes.clone())).unwrap()
    }

    fn open(&self) -> Result<PartitionsVolume> {
        self.open_as(None)
    }

    fn open_as(&self, wanted: Option<PartitionTable>) -> Result<PartitionsVolume> {
        PartitionsVolume::open(Arc::new(BytesImage(self.bytes.clone())), wanted)
    }

    fn read_all(&self) -> Result<usize> {
        read_all(&self.open()?, 10)
    }

    /// Name, start and length of each partition.
    fn partitions(&self) -> Vec<(String, u64, u64)> {
        self.partitions_as(None)
    }

    /// The same of the table of this kind.
    fn partitions_as(&self, wanted: Option<PartitionTable>) -> Vec<(String, u64, u64)> {
        let volume = self.open_as(wanted).unwrap();
        volume.table.partitions.iter().map(|it| (it.file_name(), it.start, it.len)).collect()
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.open().unwrap().check(&mut |finding| findings.push(finding)).unwrap();
        findings
    }
}

fn name(text: &str) -> [zerocopy::little_endian::U16; 36] {
    let mut units = [0.into(); 36];
    for (unit, char) in units.iter_mut().zip(text.encode_utf16()) {
        *unit = char.into();
    }
    units
}

fn entry(kind: u8, first: u64, last: u64, label: &str) -> GptEntry {
    GptEntry {
        kind: [kind; 16],
        guid: [kind + 1; 16],
        first: first.into(),
        last: last.into(),
        attributes: 0.into(),
        name: name(label),
    }
}

/// Two primary partitions, and two logical ones in a third.
fn mbr() -> Disk {
    let mut disk = Disk::empty(100);
    disk.record(0, &[(0x83, 4, 10), (0, 0, 0), (0x0c, 14, 6), (0x05, 20, 80)]);
    disk.record(20, &[(0x83, 2, 10), (0x05, 40, 20)]);
    disk.record(60, &[(0x82, 1, 5)]);
    disk
}

/// Two partitions with a gap between their rows.
fn gpt() -> Disk {
    let entries = [entry(1, 10, 19, "böot"), GptEntry::new_zeroed(), entry(3, 20, 50, "root")];
    let mut disk = Disk::empty(64);
    disk.record(0, &[(0xee, 1, 63)]);
    disk.gpt(1, 63, 2, &entries);
    disk.gpt(63, 1, 61, &entries);
    disk
}
