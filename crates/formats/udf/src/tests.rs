//! Images of the tools and of Linux, whole and with one bad figure each.

use crate::Udf;
use packfs_core::{ErrorKind, MemoryImage, Result};
use packfs_format::{DirCursor, Finding, Format, InodeKind, Severity, Volume};
use packfs_testkit::{assert_refused, read_all};
use std::ops::ControlFlow;
use std::sync::Arc;

const SPARABLE: &[u8] = include_bytes!("../../../../testdata/legacy/udf-1.50-sparable.udf.zst");
const SMALL: &[u8] = include_bytes!("../../../../testdata/legacy/udf-2.01-512.udf.zst");
const VAT: &[u8] = include_bytes!("../../../../testdata/legacy/udf-2.01-vat.udf.zst");
const VIRTUAL: &[u8] = include_bytes!("../../../../testdata/legacy/udf-2.01-virtual.udf.zst");
const OLD_VIRTUAL: &[u8] = include_bytes!("../../../../testdata/legacy/udf-1.50-virtual.udf.zst");
const METADATA: &[u8] = include_bytes!("../../../../testdata/legacy/udf-2.50-metadata.udf.zst");
const BRIDGE: &[u8] = include_bytes!("../../../../testdata/legacy/udf-bridge.iso.zst");

fn image(packed: &[u8]) -> Vec<u8> {
    zstd::decode_all(packed).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<Box<dyn Volume>> {
    Udf.open(Arc::new(MemoryImage::new("udf", bytes)))
}

fn errors(volume: &dyn Volume) -> Vec<String> {
    let mut errors = Vec::new();
    let mut found = |Finding { severity, place, fault, .. }: Finding| {
        if severity == Severity::Error {
            errors.push(format!("{place}: {fault}"));
        }
    };
    volume.check(&mut found).unwrap();
    errors
}

#[test]
fn images_of_every_kind_of_disc_are_read_and_without_errors() {
    let partitions = [(SMALL, 64), (SPARABLE, 64), (VIRTUAL, 64), (OLD_VIRTUAL, 64), (METADATA, 64)];
    for (packed, count) in partitions.into_iter().chain([(VAT, 1), (BRIDGE, 5)]) {
        let bytes = image(packed);
        let len = bytes.len() as u64;
        let volume = open(bytes).unwrap();
        assert_eq!(read_all(&*volume, 100).unwrap(), count);
        assert_eq!(errors(&*volume), [""; 0]);
        assert_eq!(volume.space().unwrap().iter().map(|owner| owner.len).sum::<u64>(), len);
    }
}

#[test]
fn a_bridge_is_known_though_the_descriptor_that_says_so_is_damaged() {
    let mut bytes = image(BRIDGE);
    let starts: Vec<usize> = (0x8000..0x1_0000).step_by(2048).collect();
    for at in starts {
        if matches!(&bytes[at + 1..at + 6], b"BEA01" | b"NSR02" | b"TEA01") {
            bytes[at + 1] ^= 1;
        }
    }
    assert!(Udf.probe(&MemoryImage::new("udf", bytes)).unwrap());
    let error = open(image(BRIDGE)[..0x4_0000].to_vec()).err().unwrap();
    assert!(error.hints().iter().any(|hint| hint.contains("--part iso9660")), "{error}");
}

#[test]
fn the_reserve_sequence_replaces_a_damaged_main_one() {
    let mut bytes = image(SMALL);
    let at = 256 * 512;
    let block =
        |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize * 512;
    let (main, reserve) = (block(&bytes, at + 20), block(&bytes, at + 28));
    bytes[main + 40] ^= 1;
    let volume = open(bytes.clone()).unwrap();
    assert!(volume.warnings()[0].contains("the reserve sequence is used"), "{:?}", volume.warnings());
    assert!(errors(&*volume)[0].contains("CRC"));
    bytes[reserve + 40] ^= 1;
    assert_refused(open(bytes).map(|_| ()), ErrorKind::Corrupt, "CRC");
}

#[test]
fn a_flipped_bit_of_an_entry_is_an_error() {
    let bytes = image(SMALL);
    let volume = open(bytes.clone()).unwrap();
    let id = volume.lookup(volume.root(), b"embedded").unwrap().unwrap();
    let at = volume.inode(id).unwrap().number as usize * 512;
    let mut damaged = bytes;
    damaged[at + 56] ^= 1;
    let volume = open(damaged).unwrap();
    assert_refused(volume.inode(id), ErrorKind::Corrupt, "CRC");
    assert!(errors(&*volume).iter().any(|error| error.starts_with("embedded: ")));
}

/// Returns true if the checksums of a tag at `at` hold.
fn is_tagged(bytes: &[u8], at: usize) -> bool {
    let place = crate::corruption::Place::at("", at as u64);
    let has_len = bytes[at + 10] > 0 || bytes[at + 11] > 0;
    has_len && crate::blocks::verified(place, &bytes[at..]).is_ok()
}

/// The first fault that checking or reading reports of an image.
fn told(bytes: Vec<u8>) -> Option<String> {
    let volume = match open(bytes) {
        Ok(volume) => volume,
        Err(error) => return Some(error.to_string()),
    };
    let found = errors(&*volume).into_iter().next();
    found.or_else(|| read_all(&*volume, 100).err().map(|error| error.to_string()))
}

/// Numbers of the inodes that are shown.
fn numbers(volume: &dyn Volume) -> Vec<u64> {
    let (mut left, mut numbers) = (vec![volume.root()], Vec::new());
    while let Some(id) = left.pop() {
        let inode = volume.inode(id).unwrap();
        numbers.push(inode.number);
        if matches!(inode.kind, InodeKind::Directory) {
            let list = &mut |entry: packfs_format::DirEntry, _| {
                left.push(entry.id);
                ControlFlow::Continue(())
            };
            volume.read_dir(id, DirCursor(0), list).unwrap();
        }
    }
    numbers
}

/// Space bitmaps are not read, nor are old versions of structures that others replaced.
const UNREAD: &[u16] = &[7, 263, 264];

#[test]
fn damage_that_a_checksum_covers_is_told() {
    // genisoimage fills the end with anchors, and ends the list of its one file set.
    let images: [(&[u8], &[u16]); 4] = [(SMALL, &[]), (SPARABLE, &[]), (METADATA, &[]), (BRIDGE, &[2, 8])];
    for (packed, further) in images {
        let bytes = image(packed);
        let mut silent = Vec::new();
        for at in (0..bytes.len()).step_by(512).filter(|&at| is_tagged(&bytes, at)) {
            let len = 16 + usize::from(u16::from_le_bytes([bytes[at + 10], bytes[at + 11]]));
            for byte in [0, 2, 4, 7, 13, 16, 16 + (len - 16) / 2, len - 1] {
                let mut damaged = bytes.clone();
                damaged[at + byte] ^= 4;
                if told(damaged).is_none() {
                    silent.push((u16::from_le_bytes([bytes[at], bytes[at + 1]]), at / 512, byte));
                }
            }
        }
        let volume = open(bytes).unwrap();
        // Those of files that were removed.
        let is_entry = |&(ident, block, _): &(u16, usize, usize)| {
            matches!(ident, 261 | 266) && !numbers(&*volume).contains(&(block as u64))
        };
        silent.retain(|found| ![UNREAD, further].concat().contains(&found.0) && !is_entry(found));
        assert_eq!(silent, []);
    }
}

#[test]
fn an_integrity_descriptor_of_which_nothing_is_left_is_told() {
    for packed in [SMALL, SPARABLE, METADATA, BRIDGE] {
        let bytes = image(packed);
        let is_lvid = |at: &usize| bytes[*at..].starts_with(&[9, 0]) && is_tagged(&bytes, *at);
        let at = (0..bytes.len()).step_by(512).find(is_lvid).unwrap();
        let mut damaged = bytes.clone();
        damaged[at..at + 16].fill(0xa5);
        let found = told(damaged).unwrap_or_default();
        assert!(found.starts_with("integrity descriptor"), "{found}");
    }
}

/// Puts the checksums of the descriptor at `at` right, whose CRC covers the bytes up to `end`.
fn seal(bytes: &mut [u8], at: usize, end: usize) {
    bytes[at + 10..at + 12].copy_from_slice(&((end - at - 16) as u16).to_le_bytes());
    let crc = crate::crc::crc(&bytes[at + 16..end]);
    bytes[at + 8..at + 10].copy_from_slice(&crc.to_le_bytes());
    bytes[at + 4] = 0;
    bytes[at + 4] = bytes[at..at + 16].iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
}

/// Blocks between the start of a packet and one that is moved would have no length.
#[test]
fn a_sparing_table_that_moves_parts_of_packets_is_an_error() {
    let mut bytes = image(SPARABLE);
    let ident = b"*UDF Sparing Table";
    let tables: Vec<usize> =
        (0..bytes.len()).step_by(512).filter(|at| bytes[at + 17..].starts_with(ident)).collect();
    assert!(!tables.is_empty());
    for at in tables {
        bytes[at + 56..at + 60].copy_from_slice(&33_u32.to_le_bytes());
        let end = at + 16 + usize::from(u16::from_le_bytes([bytes[at + 10], bytes[at + 11]]));
        seal(&mut bytes, at, end);
    }
    assert_refused(open(bytes).map(drop), ErrorKind::Corrupt, "moves a packet from block 33, multiples of");
}

#[test]
fn a_root_without_links_is_an_error() {
    let mut bytes = image(SMALL);
    let volume = open(bytes.clone()).unwrap();
    let at = volume.inode(volume.root()).unwrap().number as usize * 512;
    bytes[at + 48..at + 50].fill(0);
    let end = at + 16 + usize::from(u16::from_le_bytes([bytes[at + 10], bytes[at + 11]]));
    seal(&mut bytes, at, end);
    let volume = open(bytes).unwrap();
    assert_refused(volume.inode(volume.root()), ErrorKind::Corrupt, "link count 0");
    assert!(errors(&*volume).iter().any(|error| error.contains("link count 0")));
}

/// Loading refuses each name that claims another type, not only the first of a file.
#[test]
fn every_name_of_a_file_has_to_claim_its_type() {
    let mut bytes = image(SMALL);
    let name = b"\x08hello.again";
    let name_at = bytes.windows(name.len()).position(|found| found == name).unwrap();
    // A file identifier without anything of the implementation.
    let at = name_at - 38;
    assert_eq!(bytes[at + 18], 0);
    bytes[at + 18] = 2;
    let end = at + 16 + usize::from(u16::from_le_bytes([bytes[at + 10], bytes[at + 11]]));
    seal(&mut bytes, at, end);
    let errors = errors(&*open(bytes).unwrap());
    assert!(errors.iter().any(|error| error.starts_with("hello.again: is a file")), "{errors:?}");
}

#[test]
fn files_of_more_than_4_gib_have_their_length() {
    const LEN: u64 = 4_508_876_803;
    let mut bytes = image(SMALL);
    let volume = open(bytes.clone()).unwrap();
    let id = volume.lookup(volume.root(), b"hole").unwrap().unwrap();
    let at = volume.inode(id).unwrap().number as usize * 512;
    // Extents that are not recorded, of long descriptors.
    let part = 1_u32 << 29;
    let mut descriptors = Vec::new();
    let mut left = LEN;
    while left > 0 {
        let len = left.min(part.into());
        descriptors.extend((2 << 30 | len as u32).to_le_bytes());
        descriptors.extend([0; 12]);
        left -= len;
    }
    bytes[at + 34] = bytes[at + 34] & !7 | 1;
    bytes[at + 56..at + 64].copy_from_slice(&LEN.to_le_bytes());
    bytes[at + 212..at + 216].copy_from_slice(&(descriptors.len() as u32).to_le_bytes());
    bytes[at + 216..at + 216 + descriptors.len()].copy_from_slice(&descriptors);
    let end = at + 216 + descriptors.len();
    seal(&mut bytes, at, end);
    let volume = open(bytes).unwrap();
    assert!(matches!(volume.inode(id).unwrap().kind, InodeKind::File { len: LEN }));
    let mut found = 0;
    let visit = &mut |extent: packfs_format::Extent| {
        found += extent.len;
        ControlFlow::Continue(())
    };
    volume.extents(id, 0..LEN, visit).unwrap();
    assert_eq!(found, LEN);
    assert_eq!(errors(&*volume), [""; 0]);
}
