//! Images of the tools and of Linux, whole and with one bad figure each.

use crate::Udf;
use packfs_core::{ErrorKind, MemoryImage, Result};
use packfs_format::{DirCursor, Finding, Format, InodeKind, Severity, Volume};
use packfs_testkit::assert_refused;
use std::ops::ControlFlow;
use std::sync::Arc;

const SPARABLE: &[u8] = include_bytes!("../../../../testdata/legacy/udf-1.50-sparable.udf.zst");
const SMALL: &[u8] = include_bytes!("../../../../testdata/legacy/udf-2.01-512.udf.zst");
const VAT: &[u8] = include_bytes!("../../../../testdata/legacy/udf-2.01-vat.udf.zst");
const BRIDGE: &[u8] = include_bytes!("../../../../testdata/legacy/udf-bridge.iso.zst");

fn image(packed: &[u8]) -> Vec<u8> {
    zstd::decode_all(packed).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<Box<dyn Volume>> {
    Udf.open(Arc::new(MemoryImage::new("udf", bytes)))
}

/// Reads all names, targets and extents; returns the number of files.
fn read_all(volume: &dyn Volume) -> Result<usize> {
    let (mut left, mut count) = (vec![volume.root()], 0);
    while let Some(id) = left.pop() {
        count += 1;
        match volume.inode(id)?.kind {
            InodeKind::Directory => volume.read_dir(id, DirCursor(0), &mut |entry, _| {
                left.push(entry.id);
                ControlFlow::Continue(())
            })?,
            InodeKind::Symlink => drop(volume.read_link(id)?),
            InodeKind::File { len } => volume.extents(id, 0..len, &mut |_| ControlFlow::Continue(()))?,
            _ => {}
        }
    }
    Ok(count)
}

fn errors(volume: &dyn Volume) -> Vec<String> {
    let mut errors = Vec::new();
    let mut found = |Finding { severity, place, fault }: Finding| {
        if severity == Severity::Error {
            errors.push(format!("{place}: {fault}"));
        }
    };
    volume.check(&mut found).unwrap();
    errors
}

#[test]
fn images_of_every_kind_of_disc_are_read_and_without_errors() {
    for (packed, count) in [(SMALL, 64), (SPARABLE, 64), (VAT, 1), (BRIDGE, 5)] {
        let bytes = image(packed);
        let len = bytes.len() as u64;
        let volume = open(bytes).unwrap();
        assert_eq!(read_all(&*volume).unwrap(), count);
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
