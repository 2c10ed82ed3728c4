//! Images made by hand, byte for byte, and what the readers say of them and of damaged copies.

mod sparse;
mod vdi;
mod vhd;
mod vhdx;
mod vmdk;

use packfs_core::{ErrorKind, Image, MemoryImage, Result};
use packfs_format::{Finding, Format, InodeId, Severity, Volume};
use packfs_testkit::{assert_refused, read_all, read_range};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The one file.
const DISK: InodeId = InodeId(1);

fn open(format: &dyn Format, bytes: &[u8]) -> Result<Box<dyn Volume>> {
    format.open(Arc::new(MemoryImage::new("test", bytes.to_vec())))
}

/// All of the disk of a volume that these bytes were opened as.
fn disk_of(volume: &dyn Volume, bytes: &[u8]) -> Vec<u8> {
    read_range(volume, &MemoryImage::new("test", bytes.to_vec()), DISK, 0..u64::MAX).unwrap()
}

/// All of the disk.
fn disk(format: &dyn Format, bytes: &[u8]) -> Vec<u8> {
    disk_of(&*open(format, bytes).unwrap_or_else(|error| panic!("{error}")), bytes)
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

/// Rows of a damaged image: offset, bytes there, message.
#[track_caller]
fn rejects(format: &dyn Format, image: &[u8], rows: &[(usize, &[u8], &str)]) {
    for (at, bytes, expected) in rows {
        refused(format, &patched(image, *at, bytes), ErrorKind::Corrupt, expected);
    }
}

/// Any byte may be anything, and the image may end anywhere. Nothing panics.
fn survives(format: &dyn Format, image: &[u8], ats: impl Iterator<Item = usize>) {
    survives_as(&|bytes| open(format, bytes), image, ats);
}

/// Opens the bytes of an image.
type Opener<'a> = dyn Fn(&[u8]) -> Result<Box<dyn Volume>> + 'a;

/// The same of an image that is opened so.
fn survives_as(open: &Opener<'_>, image: &[u8], ats: impl Iterator<Item = usize>) {
    let read = |bytes: &[u8]| {
        let Ok(volume) = open(bytes) else { return };
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
