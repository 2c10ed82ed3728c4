//! VHDX.

use super::*;
use crate::Vhdx;
use crate::guid::guid;
use packfs_format::crc32c;

const MIB: usize = 1 << 20;
const BAT: usize = 3 * MIB;
const METADATA: usize = 2 * MIB;
const LOG: usize = MIB;

fn sum(bytes: &mut [u8]) {
    bytes[4..8].fill(0);
    let sum = !crc32c(!0, bytes);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
}

fn bat_guid() -> [u8; 16] {
    guid(0x2dc2_7766, 0xf623, 0x4200, [0x9d, 0x64, 0x11, 0x5e, 0x9b, 0xfd, 0x4a, 0x08])
}

fn metadata_guid() -> [u8; 16] {
    guid(0x8b7c_a206, 0x4790, 0x4b9a, [0xb8, 0xfe, 0x57, 0x5f, 0x05, 0x0f, 0x88, 0x6e])
}

/// An image under construction.
struct Made(Vec<u8>);

impl Made {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes both headers, the second the newer.
    fn headers(&mut self, log: [u8; 16]) {
        for (at, sequence) in [(64 << 10, 1), (128 << 10, 2)] {
            let mut header = vec![0; 4096];
            header[..4].copy_from_slice(b"head");
            header[8] = sequence;
            header[48..64].copy_from_slice(&log);
            header[66] = 1;
            header[68..72].copy_from_slice(&(MIB as u32).to_le_bytes());
            header[72..80].copy_from_slice(&(LOG as u64).to_le_bytes());
            sum(&mut header);
            self.put(at, &header);
        }
    }

    fn regions(&mut self, rows: &[([u8; 16], usize, usize)]) {
        let mut table = vec![0; 64 << 10];
        table[..4].copy_from_slice(b"regi");
        table[8] = rows.len() as u8;
        for ((guid, at, len), row) in rows.iter().zip(table[16..].chunks_mut(32)) {
            row[..16].copy_from_slice(guid);
            row[16..24].copy_from_slice(&(*at as u64).to_le_bytes());
            row[24..28].copy_from_slice(&(*len as u32).to_le_bytes());
            row[28] = 1;
        }
        sum(&mut table);
        self.put(192 << 10, &table);
        self.put(256 << 10, &table);
    }
}

/// Blocks of 1 MiB: one that is stored, one of zeros, one that is cut, in a file with room for two.
fn made() -> Made {
    let mut made = Made(vec![0; 6 * MIB]);
    made.put(0, b"vhdxfile");
    made.headers([0; 16]);
    made.regions(&[(bat_guid(), BAT, MIB), (metadata_guid(), METADATA, MIB)]);
    made.put(METADATA, b"metadata\0\0\x03\0");
    let items = [
        (guid(0xcaa1_6737, 0xfa36, 0x4d43, [0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b]), 8, MIB as u64),
        (
            guid(0x2fa5_4224, 0xcd1b, 0x4876, [0xb2, 0x11, 0x5d, 0xbe, 0xd8, 0x3b, 0xf4, 0xb8]),
            8,
            2 * MIB as u64 + 512,
        ),
        (guid(0x8141_bf1d, 0xa96f, 0x4709, [0xba, 0x47, 0xf2, 0x33, 0xa8, 0xfa, 0xab, 0x5f]), 4, 512),
    ];
    for (index, (guid, len, value)) in items.into_iter().enumerate() {
        let (row, at) = (METADATA + 32 + 32 * index, (64 << 10) + 8 * index);
        made.put(row, &guid);
        made.put(row + 16, &(at as u32).to_le_bytes());
        made.put(row + 20, &[len]);
        made.put(row + 24, &[4]);
        made.put(METADATA + at, &value.to_le_bytes());
    }
    made.put(BAT, &((5 * MIB as u64) | 6).to_le_bytes());
    made.put(BAT + 8, &[2]);
    made.put(BAT + 16, &((4 * MIB as u64) | 6).to_le_bytes());
    made.0[4 * MIB..5 * MIB].fill(b'z');
    made.0[5 * MIB..].fill(b'a');
    made
}

/// The same with a log that has the table of blocks, which is zeros in the file.
fn logged() -> Made {
    let mut made = made();
    let sector = made.0[BAT..BAT + 4096].to_vec();
    made.0[BAT..BAT + 4096].fill(0);
    made.headers([7; 16]);
    let mut entry = vec![0; 8192];
    entry[..4].copy_from_slice(b"loge");
    entry[8..12].copy_from_slice(&8192_u32.to_le_bytes());
    entry[16] = 1;
    entry[24] = 1;
    entry[32..48].fill(7);
    entry[48..56].copy_from_slice(&(6 * MIB as u64).to_le_bytes());
    entry[56..64].copy_from_slice(&(6 * MIB as u64).to_le_bytes());
    entry[64..68].copy_from_slice(b"desc");
    entry[68..72].copy_from_slice(&sector[4092..]);
    entry[72..80].copy_from_slice(&sector[..8]);
    entry[80..88].copy_from_slice(&(BAT as u64).to_le_bytes());
    entry[4096..8192].copy_from_slice(&sector);
    entry[4096..4104].copy_from_slice(b"data\0\0\0\0");
    sum(&mut entry);
    made.put(LOG, &entry);
    made
}

fn wanted() -> Vec<u8> {
    [vec![b'a'; MIB], vec![0; MIB], vec![b'z'; 512]].concat()
}

#[test]
fn blocks_are_found_through_regions_and_the_log() {
    assert_sound(&Vhdx, &made().0);
    assert!(disk(&Vhdx, &made().0) == wanted());
    assert_eq!(open(&Vhdx, &made().0).unwrap().warnings(), [""; 0]);
    assert!(disk(&Vhdx, &logged().0) == wanted());
    assert!(open(&Vhdx, &logged().0).unwrap().warnings()[0].contains("1 changes of its log"));
}

#[test]
fn the_copies_serve_where_the_first_are_damaged() {
    let made = made().0;
    for at in [(64 << 10) + 9, (128 << 10) + 9, (192 << 10) + 9] {
        let damaged = patched(&made, at, &[1]);
        assert!(disk(&Vhdx, &damaged) == wanted(), "{at}");
        assert!(
            findings(&Vhdx, &damaged).iter().any(|it| it.fault.contains("the other one is used")),
            "{at}"
        );
    }
}

#[test]
fn faults_are_told_with_their_place() {
    let image = made();
    let bytes = &image.0;
    refused(&Vhdx, &patched(bytes, 0, &[0]), ErrorKind::Corrupt, "no \"vhdxfile\"");
    let twice = |at: usize, second: usize| patched(&patched(bytes, at, &[1]), second, &[1]);
    refused(&Vhdx, &twice((64 << 10) + 9, (128 << 10) + 9), ErrorKind::Corrupt, "neither header");
    refused(
        &Vhdx,
        &twice((192 << 10) + 12, (256 << 10) + 12),
        ErrorKind::Corrupt,
        "neither table of regions",
    );
    let item = METADATA + (64 << 10);
    rejects(
        &Vhdx,
        bytes,
        &[
            (METADATA, &[0], "metadata at 0x200000: no \"metadata\""),
            (METADATA + 10, &[0xff; 2], "metadata: 65535 entries"),
            (METADATA + 32 + 16, &[0xff; 4], "8 bytes of file parameters at"),
            (METADATA + 10, &[2], "metadata: no sector size"),
            (item, &[1], "block size 1048577"),
            (item + 8, &[0xff; 8], "a disk of 18446744073709551615 bytes"),
            (item + 8 + 5, &[1], "block table at 0x300000:"),
            (item + 16, &[1], "sector size 513"),
            (BAT, &[5], "block 0: state 5"),
            (BAT + 2, &[0xf0], "block 0: is at 0xf00000"),
        ],
    );
    refused(&Vhdx, &patched(bytes, BAT, &[7]), ErrorKind::Unsupported, "a part of which is in another disk");
    refused(&Vhdx, &patched(bytes, item + 4, &[2]), ErrorKind::Unsupported, "the difference to another disk");
    refused(
        &Vhdx,
        &patched(bytes, METADATA + 33, &[9]),
        ErrorKind::Unsupported,
        "metadata that readers have to know",
    );
}

#[test]
fn faults_of_regions_are_told() {
    let with = |rows: &[([u8; 16], usize, usize)]| {
        let mut made = made();
        made.regions(rows);
        made.0
    };
    let (bat, metadata) = ((bat_guid(), BAT, MIB), (metadata_guid(), METADATA, MIB));
    refused(&Vhdx, &with(&[metadata]), ErrorKind::Corrupt, "table of regions: no block table");
    refused(&Vhdx, &with(&[bat]), ErrorKind::Corrupt, "table of regions: no metadata");
    refused(
        &Vhdx,
        &with(&[(bat_guid(), 6 * MIB, 1), metadata]),
        ErrorKind::Corrupt,
        "block table at 0x600000: 1 bytes",
    );
    refused(
        &Vhdx,
        &with(&[([1; 16], 0, 1), bat, metadata]),
        ErrorKind::Unsupported,
        "a region that readers have to know",
    );
    let mut made = made();
    let mut table = made.0[192 << 10..256 << 10].to_vec();
    table[8..12].fill(0xff);
    sum(&mut table);
    made.put(192 << 10, &table);
    refused(&Vhdx, &made.0, ErrorKind::Corrupt, "table of regions: 4294967295 entries");
}

#[test]
fn faults_of_the_log_are_told() {
    let image = logged();
    refused(
        &Vhdx,
        &patched(&image.0, LOG + 100, &[1]),
        ErrorKind::Corrupt,
        "log at 0x100000: the image was not closed",
    );
    let entry = |at: usize, bytes: &[u8]| {
        let mut image = patched(&image.0, LOG + at, bytes);
        sum(&mut image[LOG..LOG + 8192]);
        image
    };
    refused(&Vhdx, &entry(12, &[0, 16]), ErrorKind::Corrupt, "no change is sound");
    refused(&Vhdx, &entry(80, &[1]), ErrorKind::Corrupt, "a change of byte 0x300001");
    refused(&Vhdx, &entry(48, &[1]), ErrorKind::Corrupt, "the file was 6291457 bytes long, and is 6291456");
    let zeros = entry(64, &[&b"zero"[..], &[0; 4], &u64::MAX.to_le_bytes()].concat());
    refused(&Vhdx, &zeros, ErrorKind::Unsupported, "sectors of zeros");
    // A file that was to grow reads as zeros where nothing was written.
    let longer = entry(56, &(7 * MIB as u64).to_le_bytes());
    assert!(disk(&Vhdx, &longer) == wanted());
    let empty = entry(24, &[0]);
    let warnings = open(&Vhdx, &patched(&empty, 0, b"v")).unwrap().warnings();
    assert!(warnings[0].contains("0 changes of its log"), "{warnings:?}");
    let mut moved = logged();
    for at in [64 << 10, 128 << 10] {
        moved.put(at + 72, &(7 * MIB as u64).to_le_bytes());
        sum(&mut moved.0[at..at + 4096]);
    }
    refused(&Vhdx, &moved.0, ErrorKind::Corrupt, "log at 0x700000: 1048576 bytes");
}

#[test]
fn changes_after_the_end_of_the_file_are_read() {
    // The end of the last block is in the log alone: the file was to grow.
    let mut image = logged().0;
    let mut entry = image[LOG..LOG + 8192].to_vec();
    entry[8..12].copy_from_slice(&(3_u32 << 12).to_le_bytes());
    entry[24] = 2;
    entry[48..56].copy_from_slice(&(5 * MIB as u64 + 4096).to_le_bytes());
    entry[96..100].copy_from_slice(b"desc");
    entry[100..112].fill(b'l');
    entry[112..120].copy_from_slice(&(6 * MIB as u64 - 4096).to_le_bytes());
    entry.resize(8192 + 4096, b'l');
    sum(&mut entry);
    image[LOG..LOG + entry.len()].copy_from_slice(&entry);
    image.truncate(5 * MIB + 4096);
    let grown = [vec![b'a'; 4096], vec![0; MIB - 8192], vec![b'l'; 4096]].concat();
    assert!(disk(&Vhdx, &image) == [grown, wanted()[MIB..].to_vec()].concat());
    assert!(findings(&Vhdx, &image).iter().any(|it| it.place == "log" && it.severity == Severity::Warning));
}

#[test]
fn any_byte_may_be_anything() {
    let image = logged().0;
    let few = |at: usize, len: usize| at..at + len;
    let ats = few(0, 8)
        .chain(few(64 << 10, 16))
        .chain(few(LOG, 90))
        .chain(few(METADATA, 50))
        .chain(few(METADATA + (64 << 10), 20));
    survives(&Vhdx, &image, ats.step_by(3));
}
