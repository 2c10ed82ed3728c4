//! Everything the reader refuses: the sound image with one bad figure each. The list of tests is
//! the list of refusals.

use super::{Made, find, made};
use crate::disk::*;
use packfs_core::ErrorKind;
use packfs_format::{Directories, Volume};
use packfs_testkit::assert_refused;

/// Reads an image that has to be refused with an error that says `expected`.
#[track_caller]
fn refused(image: &Made, kind: ErrorKind, expected: &str) {
    assert_refused(image.read_all(), kind, expected);
}

/// One test each: name, label of a structure, offset within it, word written there, what the error
/// says.
macro_rules! refuses_words {
    ($($name:ident: $label:literal + $within:literal = $word:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            refused(&made().word($label, $within, $word), ErrorKind::Corrupt, $expected);
        }
    )*};
}

/// One test each: name, label of an inode, its field, the value it gets, what the error says.
macro_rules! refuses_inodes {
    ($($name:ident: $label:literal.$field:ident = $value:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            refused(&made().inode($label, |inode| inode.$field = $value), ErrorKind::Corrupt, $expected);
        }
    )*};
}

const STORED: u32 = CRAMFS_BLK_FLAG_UNCOMPRESSED;
const DIRECT: u32 = CRAMFS_BLK_FLAG_DIRECT_PTR;
/// Largest offset that an inode can hold.
const OFFSET_MAX: u32 = (1 << 28) - 4;

refuses_words! {
    rejects_another_magic: "super" + 0 = 0x28cd_3d46 => "magic 0x28cd3d46";
    rejects_image_shorter_than_its_superblock: "super" + 4 = 75 => "image length 75";
    rejects_image_longer_than_its_file: "super" + 4 = 1 << 30 => "1073741824 bytes long";
    rejects_block_that_ends_before_it_starts: "a pointers" + 0 = STORED | 80 => "the block ends at 0x50";
    rejects_second_block_that_ends_before_it_starts: "a pointers" + 4 = STORED | 300 => "the block ends at 0x12c";
    rejects_stored_block_longer_than_a_page: "a pointers" + 0 = STORED | 4500 => "block of ";
    rejects_compressed_block_longer_than_two_pages: "a pointers" + 4 = 15_000 => "block of ";
    rejects_block_behind_the_image: "link pointers" + 0 = STORED | DIRECT | (1 << 29) => "data of 1 bytes at 0x80000000";
    rejects_direct_block_in_the_superblock: "link pointers" + 0 = STORED | DIRECT | 10 => "data of 1 bytes at 0x28";
    rejects_length_of_a_direct_block_behind_the_image: "d pointers" + 0 = DIRECT | (POINTER_MASK) => "data of 2 bytes at";
    rejects_length_of_a_direct_block_in_the_superblock: "d pointers" + 0 = DIRECT => "data of 2 bytes at 0x0";
    rejects_target_that_does_not_decode: "link pointers" + 0 = DIRECT | 20 => "link target: gzip: ";
}

refuses_inodes! {
    rejects_root_that_is_no_directory: "root".mode = 0o100_755 => "the root's mode is 0o100755";
    rejects_root_of_no_type: "root".mode = 0o755 => "the root's mode is 0o755";
    rejects_root_in_the_superblock: "root".offset = 72 => "the root's entries start at 0x48";
    rejects_root_elsewhere: "root".offset = 80 => "the root's entries start at 0x50";
    rejects_root_that_starts_nowhere: "root".offset = 0 => "the root's entries start at 0x0";
    rejects_root_beyond_the_image: "root".size = 0xff_fffc => "entries of 16777212 bytes at 0x4c";
    rejects_root_that_ends_within_an_entry: "root".size = 20 => "the directory's size leaves 4";
    rejects_root_that_ends_within_a_name: "root".size = 12 => "the directory's size leaves 0";
    rejects_inode_of_type_zero: "a".mode = 0o644 => "mode 0o644, of no file type";
    rejects_inode_of_an_unknown_type: "a".mode = 0o170_644 => "of no file type";
    rejects_directory_in_the_superblock: "sub".offset = 4 => "entries of 16 bytes at 0x4";
    rejects_directory_behind_the_image: "sub".offset = OFFSET_MAX => "entries of 16 bytes at 0xffffffc";
    rejects_directory_longer_than_the_image: "sub".size = 0xff_fffc => "entries of 16777212 bytes";
    rejects_pointers_in_the_superblock: "a".offset = 4 => "block pointers of 8 bytes at 0x4";
    rejects_pointers_behind_the_image: "a".offset = OFFSET_MAX => "block pointers of 8 bytes at 0xffffffc";
    rejects_more_pointers_than_the_image_holds: "link".offset = OFFSET_MAX => "block pointers of 4 bytes";
    rejects_empty_link_target: "link".size = 0 => "link target of 0 bytes";
    rejects_link_target_above_64_kib: "link".size = 65_536 => "link target of 65536 bytes";
    rejects_entry_without_a_name: "a".name_len = 0 => "empty name";
    rejects_name_beyond_the_directory: "sub".name_len = 252 => "252 bytes wanted";
}

#[test]
fn rejects_names_that_are_none() {
    for (name, expected) in [
        (*b"a/b\0", "slash"),
        (*b".\0\0\0", "name \".\""),
        (*b"..\0\0", "name \"..\""),
        (*b"a\0b\0", "NUL"),
        ([0; 4], "empty"),
    ] {
        refused(&made().patch("a name", 0, &name), ErrorKind::Corrupt, expected);
    }
}

#[test]
fn rejects_link_target_with_a_nul() {
    refused(&made().patch("link target", 0, &[0]), ErrorKind::Corrupt, "NUL");
}

#[test]
fn rejects_link_target_of_a_hole() {
    let start = made().labels["link target"] as u32;
    refused(&made().word("link pointers", 0, start), ErrorKind::Corrupt, "NUL");
}

#[test]
fn rejects_file_shorter_than_a_superblock() {
    for len in [0, 4, 75] {
        let mut image = made();
        image.bytes.truncate(len);
        refused(&image, ErrorKind::Corrupt, "76 needed");
    }
}

#[test]
fn rejects_truncated_image_with_a_hint() {
    let mut image = made();
    image.bytes.truncate(image.bytes.len() - 4096);
    let error = image.open().err().unwrap();
    assert!(error.hints().iter().any(|hint| hint.contains("truncated")), "{error}");
}

#[test]
fn names_flags_and_methods_it_does_not_read() {
    refused(&made().word("super", 8, 0x1_0003), ErrorKind::Unsupported, "superblock flags 0x10003");
    refused(&made().word("super", 8, 0xe003), ErrorKind::Unsupported, "OpenRG's method 3");
}

#[test]
fn refuses_unknown_ids() {
    let image = made();
    let volume = image.open().unwrap();
    for id in [0, 63, 65, 75, image.bytes.len() as u64 - 11, u64::MAX] {
        let error = volume.inode(packfs_format::InodeId(id)).unwrap_err().to_string();
        assert!(error.contains("no inode can start there"), "{id}: {error}");
    }
}

#[test]
fn asking_a_file_for_entries_is_no_corruption() {
    let volume = made().open().unwrap();
    let file = find(&volume, "a");
    assert_eq!(volume.lookup(file, b"x").unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!(volume.read_link(volume.root()).unwrap_err().kind(), ErrorKind::Failed);
    let root = volume.root();
    let error = volume.extents(root, 0..1, &mut |_| std::ops::ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
}

#[test]
fn an_empty_root_starts_nowhere() {
    let image = made().inode("root", |inode| (inode.offset, inode.size) = (0, 0));
    image.read_all().unwrap();
}
