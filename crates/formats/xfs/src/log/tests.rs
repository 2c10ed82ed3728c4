//! Logs that cannot be read whole: each is reported, and none reads as an older filesystem.

use crate::corruption::Corruption;
use crate::open::open;
use crate::volume::XfsVolume;
use packfs_core::{ErrorKind, MemoryImage, Result};
use packfs_format::{Check, DirCursor, Directories, Health, InodeKind, Opening, Severity, Volume};
use packfs_testkit::assert_refused;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// With changes in its log: five records in cycle 1, the last one of 13 sectors.
const DIRTY: &[u8] = include_bytes!("../../../../../testdata/legacy/xfs-log.xfs");
/// Unmounted.
const CLEAN: &[u8] = include_bytes!("../../../../../testdata/legacy/xfs-v5.xfs");
const LOG: Range<usize> = 193_536..258_048;
/// Sector of the last record.
const LAST: usize = 79;
const SECTOR: usize = 512;

fn opened(bytes: Vec<u8>, opening: Opening) -> Result<XfsVolume> {
    open(Arc::new(MemoryImage::new("xfs", bytes)), opening)
}

fn without_log() -> Opening {
    Opening { no_journal: true, ..Opening::default() }
}

fn at(sector: usize) -> usize {
    LOG.start + sector * SECTOR
}

fn with(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = DIRTY.to_vec();
    change(&mut bytes);
    bytes
}

/// Everything that a volume reports of its inodes.
fn read(volume: &XfsVolume) -> Result<Vec<String>> {
    let (mut left, mut rows) = (vec![volume.root()], Vec::new());
    while let Some(id) = left.pop() {
        let inode = volume.inode(id)?;
        let mut row = format!("{inode:?} {:?}", volume.xattrs(id)?);
        match inode.kind {
            InodeKind::Directory => volume.read_dir(id, DirCursor(0), &mut |entry, _| {
                row.push_str(&format!("{entry:?}"));
                left.push(entry.id);
                ControlFlow::Continue(())
            })?,
            InodeKind::Symlink => row.push_str(&format!("{:?}", volume.read_link(id)?)),
            InodeKind::File { len } => volume.extents(id, 0..len, &mut |extent| {
                row.push_str(&format!("{extent:?}"));
                ControlFlow::Continue(())
            })?,
            _ => {}
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The same, or the first error, such as a fault of the whole image.
fn read_whole(bytes: Vec<u8>) -> Result<(Vec<String>, Vec<String>)> {
    let volume = opened(bytes, Opening::default())?;
    match volume.fault() {
        Some(fault) => Err(fault),
        None => Ok((read(&volume)?, volume.warnings())),
    }
}

#[test]
fn a_log_that_the_image_does_not_have_whole_is_refused() {
    for end in [LOG.start, LOG.start + SECTOR, LOG.end - 1] {
        let cut = DIRTY[..end].to_vec();
        let text = format!("log: ends at {:#x}, the image at {end:#x}", LOG.end);
        assert_refused(opened(cut.clone(), Opening::default()).map(drop), ErrorKind::Corrupt, &text);
        let warnings = opened(cut, without_log()).unwrap().warnings();
        assert!(
            warnings[0].contains("the log was not replayed") && warnings[0].contains(&text),
            "{warnings:?}"
        );
    }
}

#[test]
fn a_log_of_zeros_is_told_of() {
    let zeros = with(|bytes| bytes[LOG].fill(0));
    let (_, warnings) = read_whole(zeros).unwrap();
    assert!(warnings[0].contains("the log is zeros"), "{warnings:?}");
    let beginning = with(|bytes| bytes[at(0)..at(1)].fill(0));
    assert_refused(
        read_whole(beginning),
        ErrorKind::Corrupt,
        "its first sector is zeros, but it has records",
    );
}

#[test]
fn a_damaged_last_record_is_an_error_and_a_torn_one_a_warning() {
    let (whole, _) = read_whole(DIRTY.to_vec()).unwrap();
    let damaged = with(|bytes| bytes[at(LAST + 3) + 100] ^= 1);
    let text = format!("log record at sector {LAST}: wrong checksum");
    assert_refused(read_whole(damaged.clone()), ErrorKind::Corrupt, &text);
    let volume = opened(damaged, Opening::default()).unwrap();
    let before = read(&volume).unwrap();
    assert_ne!(before, whole, "the last record has changes");
    let mut errors = Vec::new();
    volume.check(&mut |finding| errors.push(finding)).unwrap();
    assert!(errors.iter().any(|it| it.severity == Severity::Error && it.fault.contains(&text)), "{errors:?}");
    // As a crash leaves it: the end of the record is of the cycle before.
    let torn = with(|bytes| bytes[at(LAST + 9)..at(LAST + 13)].fill(0));
    let (found, warnings) = read_whole(torn).unwrap();
    assert_eq!(found, before);
    let text = format!("log record at sector {LAST}: not written in full");
    assert!(warnings.iter().any(|warning| warning.contains(&text)), "{warnings:?}");
}

#[test]
fn a_record_longer_than_the_log_is_an_error() {
    let long = with(|bytes| bytes[at(LAST) + 12..][..4].copy_from_slice(&(200_u32 << 10).to_be_bytes()));
    let text = format!("log record at sector {LAST}: damaged header");
    assert_refused(read_whole(long), ErrorKind::Corrupt, &text);
}

#[test]
fn the_number_of_a_cycle_that_changed_is_told_from_a_torn_record() {
    let hole = with(|bytes| bytes[at(LAST + 4)..][..4].fill(0));
    assert_refused(read_whole(hole), ErrorKind::Corrupt, "number of a cycle changed");
    let header = with(|bytes| bytes[at(LAST)] ^= 1);
    assert_refused(read_whole(header), ErrorKind::Corrupt, "log record at sector");
}

#[test]
fn an_external_log_that_is_not_given_is_a_fault() {
    let mut bytes = DIRTY.to_vec();
    bytes[48..56].fill(0);
    let sum = crate::disk::Checksum::of(&bytes[..SECTOR], 224).computed;
    bytes[224..228].copy_from_slice(&sum.to_le_bytes());
    assert_refused(read_whole(bytes.clone()), ErrorKind::Corrupt, "log: on another device");
    assert!(opened(bytes, without_log()).unwrap().fault().is_none());
}

/// One flipped bit anywhere in the log: reads are the same, or the user is warned.
#[test]
fn no_flipped_bit_changes_what_is_read_without_a_word() {
    for (image, log) in [(DIRTY, LOG), (CLEAN, 300_032..431_104)] {
        let (whole, warnings) = read_whole(image.to_vec()).unwrap();
        let used = log.start..log.start + 110 * SECTOR;
        let places = used.clone().step_by(89).chain(used.clone().step_by(SECTOR));
        for (place, bit) in places.zip((0..8).cycle()) {
            let mut bytes = image.to_vec();
            bytes[place] ^= 1 << bit;
            if let Ok((found, told)) = read_whole(bytes) {
                assert!(found == whole || told != warnings, "bit {bit} of byte {:#x}", place - log.start);
            }
        }
    }
}

#[test]
fn faults_name_the_way_on() {
    let error = packfs_core::Error::from(Corruption::LogRest { sector: 7, fault: "wrong checksum" });
    assert!(error.hints()[0].contains("--ignore-checksum") && error.hints()[0].contains("--ignore-log"));
}
