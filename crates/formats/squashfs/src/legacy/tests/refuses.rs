//! Refusal of the sound image with one fault each.

use super::*;
use packfs_core::ErrorKind;
use packfs_format::{Directories, Space};
use packfs_testkit::assert_refused;

/// Reading all of the image has to fail with that kind of error and say `expected`.
#[track_caller]
fn refused(image: &Made, kind: ErrorKind, expected: &str) {
    assert_refused(image.read_all(), kind, expected);
}

/// One test each: name, version, label of a structure, offset within it, bytes written there, what
/// is said.
macro_rules! rejects {
    ($($name:ident: $form:ident $label:literal + $within:literal = $bytes:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            refused(&made($form).patch($label, $within, &$bytes), ErrorKind::Corrupt, $expected);
        }
    )*};
}

const U64_NEARLY_MAX: [u8; 8] = (u64::MAX - 1).to_le_bytes();
const U32_MAX: [u8; 4] = [0xff; 4];
const U16_MAX: [u8; 2] = [0xff; 2];

rejects! {
    rejects_wrong_magic: LITTLE_3_1 "super" + 0 = *b"hsqq" => "magic";
    rejects_block_size_that_is_no_power_of_two: LITTLE_3_1 "super" + 51 = 5000u32.to_le_bytes() => "block size 5000";
    rejects_block_size_above_1_mib: LITTLE_3_1 "super" + 51 = (2u32 << 20).to_le_bytes() => "block size 2097152";
    rejects_block_size_of_version_1_below_512: LITTLE_1_0 "super" + 32 = 256u16.to_le_bytes() => "block size 256";
    rejects_image_shorter_than_its_superblock: LITTLE_3_1 "super" + 63 = 118u64.to_le_bytes() => "image length 118";
    rejects_image_longer_than_the_file: LITTLE_2_1 "super" + 8 = U32_MAX => "the file only";
    rejects_inode_table_inside_the_superblock: LITTLE_2_1 "super" + 20 = 62u32.to_le_bytes() => "inode table at 0x3e";
    rejects_inode_table_behind_the_directory_table: LITTLE_3_1 "super" + 87 = U64_NEARLY_MAX => "inode table at";
    rejects_directory_table_behind_the_fragment_table: LITTLE_3_1 "super" + 95 = U64_NEARLY_MAX => "directory table at";
    rejects_fragment_table_behind_the_export_table: LITTLE_3_1 "super" + 103 = U64_NEARLY_MAX => "fragment table at";
    rejects_fragment_count_beyond_its_table: LITTLE_2_1 "super" + 55 = U32_MAX => "its list of";
    rejects_export_table_behind_the_users: LITTLE_3_1 "super" + 111 = U64_NEARLY_MAX => "export table at";
    rejects_inode_count_beyond_the_export_table: LITTLE_3_1 "super" + 4 = U32_MAX => "export table at";
    rejects_users_behind_the_image: LITTLE_3_1 "super" + 71 = U64_NEARLY_MAX => "uid table at";
    rejects_more_users_than_there_is_room_for: LITTLE_1_0 "super" + 37 = [255] => "uid table at";
    rejects_no_users_as_there_are_256_then: LITTLE_1_0 "super" + 37 = [0] => "its list of 1024 bytes";
    rejects_more_groups_than_there_is_room_for: LITTLE_2_1 "super" + 38 = [255] => "gid table at";
    rejects_fragment_block_inside_the_superblock: LITTLE_2_1 "fragment list" + 0 = 62u32.to_le_bytes() => "position 0 is 0x3e";
    rejects_fragment_block_behind_its_list: LITTLE_3_1 "fragment list" + 0 = U64_NEARLY_MAX => "position 0 is";

    rejects_empty_metadata_block: LITTLE_3_1 "inode table" + 0 = [0, 0x80] => "stored length 0";
    rejects_metadata_block_longer_than_8_kib: LITTLE_3_1 "inode table" + 0 = [1, 0xa0] => "stored length 8193";
    rejects_metadata_block_beyond_its_table: LITTLE_3_1 "inode table" + 0 = [0, 0x90] => "at most allowed";
    rejects_inode_cut_off_by_the_end_of_its_table: LITTLE_3_1 "index" + 8 = [200] => "more bytes wanted";
    rejects_directory_cut_off_by_the_end_of_its_table: LITTLE_3_1 "root body" + 4 = [0xa0, 0x0f] => "more bytes wanted";

    rejects_inode_of_type_zero: LITTLE_3_1 "a" + 0 = [0x40] => "type 0";
    rejects_inode_of_type_10: LITTLE_3_1 "a" + 0 = [0x4a] => "type 10";
    rejects_extended_file_in_version_2: LITTLE_2_1 "a" + 0 = [0x49] => "type 9";
    rejects_fifo_without_a_type_in_version_1: LITTLE_1_0 "p body" + 0 = [0x02] => "type 2";
    rejects_inode_with_number_zero: LITTLE_3_1 "a" + 8 = [0; 4] => "inode number 0";
    rejects_user_beyond_the_table: LITTLE_3_1 "a" + 2 = [2] => "owner index 2, the image has 2 users";
    rejects_group_beyond_the_table: LITTLE_3_1 "a" + 3 = [254] => "owner index 254, the image has 1 groups";
    rejects_user_of_a_bank_beyond_the_table: LITTLE_1_0 "a" + 0 = [0x47] => "owner index 17";
    rejects_file_longer_than_any_file: LITTLE_3_1 "b body" + 20 = [0xff; 8] => "file length 18446744073709551615";
    rejects_file_of_more_blocks_than_the_inode_table_holds: LITTLE_3_1 "b body" + 20 = (1u64 << 60).to_le_bytes() => "block sizes";
    rejects_file_of_more_blocks_than_follow_it: LITTLE_3_1 "b body" + 20 = (1u64 << 20).to_le_bytes() => "block size";
    rejects_fragment_beyond_the_fragment_table: LITTLE_3_1 "a body" + 8 = [1, 0, 0, 0] => "fragment 1, the image has 1 fragments";
    rejects_tail_beyond_its_fragment: LITTLE_3_1 "a body" + 12 = 1100u32.to_le_bytes() => "tail of 904 bytes at 1100";
    rejects_tail_whose_end_overflows: LITTLE_2_1 "a body" + 12 = U32_MAX => "tail of 904 bytes at 4294967295";
    rejects_block_longer_than_the_block_size: LITTLE_3_1 "a words" + 0 = 4097u32.to_le_bytes() => "block size word 0x1001";
    rejects_hole_before_version_3: LITTLE_2_1 "a words" + 0 = [0; 4] => "block size word 0x0";
    rejects_block_of_32_kib_for_zero_in_version_1: LITTLE_1_0 "a words" + 0 = [0; 2] => "block size word 0x8000";
    rejects_stored_block_of_another_length: LITTLE_3_1 "a words" + 0 = 0x0100_0fffu32.to_le_bytes() => "uncompressed block of 4095 bytes";
    rejects_data_inside_the_superblock: LITTLE_3_1 "a body" + 0 = [0; 8] => "data of 4096 bytes at 0x0";
    rejects_data_behind_the_image: LITTLE_2_1 "a body" + 4 = U32_MAX => "data of 4096 bytes at 0xffffffff";
    rejects_data_whose_end_overflows: LITTLE_3_1 "a body" + 0 = U64_NEARLY_MAX => "data of 4096 bytes at";
    rejects_fragment_longer_than_the_block_size: LITTLE_2_1 "fragment" + 4 = 4097u32.to_le_bytes() => "block size word 0x1001";
    rejects_empty_fragment: LITTLE_3_1 "fragment" + 8 = [0; 4] => "block size word 0x0";
    rejects_fragment_behind_the_image: LITTLE_3_1 "fragment" + 0 = U64_NEARLY_MAX => "data of 2000 bytes at";
    rejects_empty_link_target: LITTLE_3_1 "l body" + 4 = [0; 2] => "link target of 0 bytes";
    rejects_link_target_beyond_the_table: LITTLE_3_1 "l body" + 4 = U16_MAX => "more bytes wanted";
    rejects_link_target_with_a_nul: LITTLE_1_0 "l target" + 0 = [0] => "NUL";

    rejects_listing_outside_the_directory_table: LITTLE_3_1 "root body" + 9 = U32_MAX => "no metadata block can start there";
    rejects_run_beyond_the_directory: LITTLE_3_1 "second run" + 0 = [5] => "the directory's size leaves 0";
    rejects_directory_that_ends_within_an_entry: LITTLE_3_1 "root body" + 4 = [30] => "the directory's size leaves";
    rejects_entry_of_type_zero: LITTLE_3_1 "entry" + 1 = [0] => "type 0, 1 to 7";
    rejects_name_longer_than_255_bytes: LITTLE_3_1 "entry" + 2 = [255] => "name longer than 255";
    rejects_name_with_a_slash: LITTLE_2_1 "a name" + 0 = *b"/" => "slash";
    rejects_name_with_a_nul: LITTLE_1_0 "a name" + 0 = [0] => "NUL";
    rejects_name_dot: LITTLE_3_1 "a name" + 0 = *b"." => "name \".\"";
    rejects_entry_outside_the_inode_table: LITTLE_3_1 "run" + 1 = U32_MAX => "no metadata block can start there";
    rejects_index_behind_the_listing: LITTLE_3_1 "index" + 0 = U32_MAX => "offset 4294967295 in a listing";
    rejects_index_outside_the_directory_table: LITTLE_3_1 "index" + 4 = U32_MAX => "no metadata block can start there";
}

#[test]
fn rejects_file_shorter_than_a_superblock() {
    for form in forms() {
        let wanted = form.version.super_block_len();
        for len in [0, 4, 50, wanted - 1] {
            let mut image = made(form);
            image.bytes.truncate(len);
            refused(&image, ErrorKind::Corrupt, "needed");
        }
    }
}

#[test]
fn rejects_truncated_image_with_a_hint() {
    let mut image = made(LITTLE_3_1);
    image.bytes.truncate(image.bytes.len() - 4096);
    let error = image.open().err().unwrap();
    assert!(error.hints().iter().any(|hint| hint.contains("truncated")), "{error}");
}

#[test]
fn rejects_a_missing_marker_where_all_blocks_have_one() {
    let image = made(Form { marked: true, ..LITTLE_2_1 }).patch("inode table", 2, &[0xfe]);
    refused(&image, ErrorKind::Corrupt, "marker 0xfe");
}

#[test]
fn names_versions_it_does_not_read() {
    for (major, minor) in [(4u16, 0u16), (3, 2), (1, 1), (5, 0), (0, 0)] {
        let image = made(LITTLE_3_1).patch("super", 28, &major.to_le_bytes()).patch(
            "super",
            30,
            &minor.to_le_bytes(),
        );
        refused(&image, ErrorKind::Unsupported, &format!("version {major}.{minor}"));
    }
}

#[test]
fn names_images_of_no_known_codec() {
    let image = made(LITTLE_3_1).patch("inode table", 1, &[0]);
    refused(&image, ErrorKind::Unsupported, "neither zlib nor LZMA");
}

#[test]
fn directories_that_contain_themselves_come_to_an_end() {
    for form in forms() {
        // The entry of the empty directory leads to the root.
        let image = made(form);
        let root = (image.labels["root"] - image.labels["inode table"] - 2 - usize::from(form.marked)) as u16;
        let sub = (image.labels["sub"] - image.labels["inode table"] - 2 - usize::from(form.marked)) as u16;
        let word = |offset: u16| {
            let mut bytes = Vec::new();
            Record::new(&mut bytes, form.endian).put(13, offset).put(3, 1_u64);
            bytes
        };
        let at = image.bytes.windows(2).rposition(|bytes| bytes == word(sub)).unwrap();
        let mut image = image;
        image.bytes[at..at + 2].copy_from_slice(&word(root));
        let findings = image.findings();
        assert!(findings.iter().any(|it| it.fault.contains("second name of a directory")), "{findings:?}");
        image.open().unwrap().space().unwrap();
    }
}

#[test]
fn asking_a_file_for_entries_is_no_corruption() {
    let volume = made(LITTLE_3_1).open().unwrap();
    let file = find(&volume, "a");
    let error = volume.lookup(file, b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    let error = volume.read_link(volume.root()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
}
