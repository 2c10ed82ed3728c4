//! Images made by hand, byte for byte, and what the readers say of them and of damaged copies.

mod sparse;
mod vdi;
mod vhd;
mod vhdx;
mod vmdk;

use packfs_codec::Decoders;
use packfs_core::{ErrorKind, Image, MemoryImage, Result};
use packfs_format::{Extent, ExtentFrom, Finding, Format, InodeId, InodeKind, Severity, Volume};
use packfs_testkit::{assert_refused, read_all};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The one file.
const DISK: InodeId = InodeId(1);

fn open(format: &dyn Format, bytes: &[u8]) -> Result<Box<dyn Volume>> {
    format.open(Arc::new(MemoryImage::new("test", bytes.to_vec())))
}

/// All of the disk.
fn disk(format: &dyn Format, bytes: &[u8]) -> Vec<u8> {
    let volume = open(format, bytes).unwrap_or_else(|error| panic!("{error}"));
    let file: Arc<dyn Image> = Arc::new(MemoryImage::new("test", bytes.to_vec()));
    let image = volume.data_image().unwrap_or(file);
    let InodeKind::File { len } = volume.inode(DISK).unwrap().kind else { panic!("no disk") };
    let (mut disk, mut decoders) = (Vec::new(), Decoders::new());
    let visit = &mut |extent: Extent| {
        assert_eq!(extent.offset, disk.len() as u64, "extents leave no gap");
        let mut part = vec![0; extent.len as usize];
        match extent.from {
            ExtentFrom::Hole => {}
            ExtentFrom::Stored(at) => image.read_exact_at(at, &mut part).unwrap(),
            ExtentFrom::Block { block, start } => {
                let mut stored = vec![0; block.stored_len as usize];
                image.read_exact_at(block.offset, &mut stored).unwrap();
                let mut decoded = vec![0; block.decoded_len as usize];
                let algorithm = block.algorithm.unwrap();
                decoders.decompress_block(algorithm, &block, &stored, &mut decoded).unwrap();
                part.copy_from_slice(&decoded[start as usize..][..extent.len as usize]);
            }
        }
        disk.extend(part);
        ControlFlow::Continue(())
    };
    volume.extents(DISK, 0..len, visit).unwrap_or_else(|error| panic!("{error}"));
    disk
}

fn findings(format: &dyn Format, bytes: &[u8]) -> Vec<Finding> {
    let mut findings = Vec::new();
    open(format, bytes).unwrap().check(&mut |finding| findings.push(finding)).unwrap();
    findings
}

#[track_caller]
fn assert_sound(format: &dyn Format, bytes: &[u8]) {
    assert!(format.probe(&MemoryImage::new("test", bytes.to_vec())).unwrap());
    let worse = findings(format, bytes).into_iter().filter(|it| it.severity > Severity::Note);
    assert_eq!(worse.count(), 0, "{:?}", findings(format, bytes));
    let volume = open(format, bytes).unwrap();
    let owners = volume.space().unwrap();
    assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), bytes.len() as u64);
    assert!(volume.image_len().unwrap() <= bytes.len() as u64);
    assert!(volume.facts().unwrap().get("disk_len").is_some());
}

/// The image with other bytes at an offset.
fn patched(bytes: &[u8], at: usize, other: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + other.len()].copy_from_slice(other);
    bytes
}

/// Opening, or reading all of it, has to fail and say so.
#[track_caller]
fn refused(format: &dyn Format, bytes: &[u8], kind: ErrorKind, expected: &str) {
    assert_refused(open(format, bytes).and_then(|volume| read_all(&*volume, 10)), kind, expected);
}

/// Rows of a damaged image: offset, bytes there, what is said.
#[track_caller]
fn rejects(format: &dyn Format, image: &[u8], rows: &[(usize, &[u8], &str)]) {
    for (at, bytes, expected) in rows {
        refused(format, &patched(image, *at, bytes), ErrorKind::Corrupt, expected);
    }
}

/// Any byte may be anything, and the image may end anywhere. Nothing panics.
fn survives(format: &dyn Format, image: &[u8], ats: impl Iterator<Item = usize>) {
    let read = |bytes: &[u8]| {
        let Ok(volume) = open(format, bytes) else { return };
        let _ = read_all(&*volume, 10);
        let _ = (volume.facts(), volume.image_len());
        volume.check(&mut |_| {}).unwrap_or_else(|error| assert_ne!(error.kind(), ErrorKind::Io));
        if let Ok(owners) = volume.space() {
            assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), bytes.len() as u64);
        }
    };
    for at in ats {
        for change in [0x01, 0x10, 0x7f, 0x80, 0xff] {
            read(&patched(image, at, &[image[at] ^ change]));
        }
        read(&image[..at]);
    }
}
