//! Refusals of the reader: a sound image with one bad figure each.

use crate::disk::{Header, Kind};
use crate::volume::RomfsVolume;
use packfs_core::{ErrorKind, FileType, MemoryImage, Result};
use packfs_format::{Check, DirCursor, Directories, Health, InodeId, Volume};
use packfs_testkit::{assert_refused, read_all};
use std::ops::ControlFlow;
use std::sync::Arc;

const IMAGE: &[u8] = include_bytes!("../../../../testdata/legacy/romfs.romfs");

fn open(bytes: Vec<u8>) -> Result<RomfsVolume> {
    RomfsVolume::open(Arc::new(MemoryImage::new("romfs", bytes)))
}

/// Returns the first header of the root's listing that `is_it`.
fn header(is_it: impl Fn(&Header) -> bool) -> usize {
    let volume = open(IMAGE.to_vec()).unwrap();
    let (mut found, first) = (None, volume.dir(volume.root()).unwrap().target());
    let visit = &mut |header: Header| {
        found = found.or(is_it(&header).then_some(header.at));
        Ok(ControlFlow::Continue(()))
    };
    volume.each_header(first, visit).unwrap();
    usize::try_from(found.unwrap()).unwrap()
}

fn named(name: &str) -> usize {
    header(|header| header.name == name.as_bytes())
}

fn symlink() -> usize {
    header(|header| header.kind == Kind::Other(FileType::Symlink))
}

/// The image with another word at an offset.
fn with_word(at: usize, word: u32) -> Vec<u8> {
    let mut bytes = IMAGE.to_vec();
    bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
    bytes
}

/// The image with another word in a header, whose checksum is put right.
fn with_figure(header: usize, at: usize, word: u32) -> Vec<u8> {
    let (mut bytes, old) = (with_word(header + at, word), IMAGE[header + at..][..4].try_into().unwrap());
    let sum = u32::from_be_bytes(bytes[header + 12..][..4].try_into().unwrap());
    let sum = sum.wrapping_add(u32::from_be_bytes(old)).wrapping_sub(word);
    bytes[header + 12..][..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// One test each: name, the damaged image, text of the error.
macro_rules! refuses {
    ($($name:ident: $bytes:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_refused(open($bytes).and_then(|volume| read_all(&volume, 100)), ErrorKind::Corrupt, $expected);
        }
    )*};
}

refuses! {
    rejects_an_image_without_a_root: IMAGE[..31].to_vec() => "31 bytes, at least 32 needed";
    rejects_another_magic: with_word(4, 0x3166_7330) => "other bytes than -rom1fs-";
    rejects_a_length_beyond_its_file: with_word(8, 0x4000_0000) => "image of 1073741824 bytes";
    rejects_a_length_without_a_root: with_word(8, 16) => "image of 16 bytes";
    rejects_a_root_that_is_a_file: with_word(0x20, 0x4a) => "file header at 0x20: not a directory";
    rejects_a_header_beyond_the_image: with_word(named("hello"), 0x0fff_fff2) => "file header at 0xffffff0: multiples of 16";
    rejects_a_chain_that_goes_back: with_word(named("hello"), 0x22) => "the next is at 0x20, a later offset or 0 allowed";
    rejects_data_beyond_the_image: with_word(named("hello") + 8, 0x0100_0000) => "data of 16777216 bytes at 0x160";
    rejects_a_hard_link_to_itself: {
        let at = named("hello");
        let mut bytes = with_word(at, 0x170);
        bytes[at + 4..at + 8].copy_from_slice(&(at as u32).to_be_bytes());
        bytes
    } => "which is one itself";
    rejects_a_hard_link_into_a_file: with_word(named("hello"), 0x170) => "file header at 0x0: multiples of 16";
    rejects_a_target_without_bytes: with_figure(symlink(), 8, 0) => "link target of 0 bytes";
    rejects_a_target_with_a_nul_byte: {
        let mut bytes = IMAGE.to_vec();
        bytes[symlink() + 32] = 0;
        bytes
    } => "link target with a NUL byte";
    rejects_a_name_with_a_slash: {
        let mut bytes = IMAGE.to_vec();
        bytes[named("hello") + 17] = b'/';
        bytes
    } => "file header at 0x140: name: ";
    rejects_a_name_without_an_end: {
        let (mut bytes, at) = (IMAGE.to_vec(), named("hello"));
        bytes[at + 16..at + 16 + 256].fill(b'n');
        bytes
    } => "name without an end within 128 bytes";
}

#[test]
fn a_true_image_is_read() {
    read_all(&open(IMAGE.to_vec()).unwrap(), 100).unwrap();
    assert!(open(IMAGE.to_vec()).unwrap().fault().is_none());
}

#[test]
fn a_wrong_sum_of_the_superblock_is_a_fault_of_the_image() {
    let fault = open(with_word(12, 1)).unwrap().fault().unwrap();
    assert_eq!(fault.kind(), ErrorKind::Corrupt);
    assert!(fault.to_string().contains("words add up to"), "{fault}");
}

#[test]
fn a_wrong_sum_of_a_header_is_a_finding() {
    let mut findings = Vec::new();
    let volume = open(with_word(named("hello") + 12, 1)).unwrap();
    volume.check(&mut |finding| findings.push(format!("{finding:?}"))).unwrap();
    assert!(findings.iter().any(|finding| finding.contains("words add up to")), "{findings:?}");
}

#[test]
fn a_wrong_sum_of_a_header_is_an_error_once_all_entries_are_listed() {
    let (whole, at) = (open(IMAGE.to_vec()).unwrap(), named("hello"));
    let listed = |volume: &RomfsVolume| {
        let mut names = Vec::new();
        let listed = volume.read_dir(volume.root(), DirCursor(0), &mut |entry, _| {
            names.push(entry.name);
            ControlFlow::Continue(())
        });
        (names, listed)
    };
    let (names, _) = listed(&whole);
    // One bit of the name: "hdllo".
    let mut bytes = IMAGE.to_vec();
    bytes[at + 17] ^= 1;
    let damaged = open(bytes).unwrap();
    let (found, outcome) = listed(&damaged);
    assert_eq!(found.len(), names.len());
    assert_refused(outcome, ErrorKind::Corrupt, "file header at 0x140: checksum");
    // Also of lookups: of the damaged name, and of those that it may have been.
    for name in [&b"hdllo"[..], b"hello", b"absent"] {
        assert_refused(damaged.lookup(damaged.root(), name), ErrorKind::Corrupt, "file header at 0x140");
    }
    let other = names.iter().find(|name| **name != b"hello").unwrap();
    assert!(damaged.lookup(damaged.root(), other).unwrap().is_some());
    // The header of the root is in no other listing.
    let root = open(with_word(0x20 + 12, 1)).unwrap();
    assert_refused(listed(&root).1, ErrorKind::Corrupt, "file header at 0x20: checksum");
}

#[test]
fn an_inode_of_another_type_is_not_queried() {
    let volume = open(IMAGE.to_vec()).unwrap();
    let file = InodeId(named("hello") as u64);
    assert_refused(volume.read_link(file), ErrorKind::Corrupt, "not a symbolic link");
    let extents = volume.extents(volume.root(), 0..1, &mut |_| ControlFlow::Continue(()));
    assert_refused(extents, ErrorKind::Corrupt, "not a regular file");
}
