//! Everything the reader refuses: the sound image with one bad field each. The list of tests is the
//! list of refusals.

use super::{Made, made};
use crate::v4::disk::SQUASHFS_INVALID_BLK;
use packfs_core::ErrorKind;
use packfs_testkit::assert_refused;

/// Reads an image that has to be refused with an error that says `expected`.
#[track_caller]
fn refused(image: &Made, kind: ErrorKind, expected: &str) {
    assert_refused(image.read_all(), kind, expected);
}

/// One test each: name, label of a structure, offset within it, bytes written there, what the error
/// says.
macro_rules! refuses {
    ($($name:ident: $label:literal + $within:literal = $bytes:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            refused(&made().patch($label, $within, &$bytes), ErrorKind::Corrupt, $expected);
        }
    )*};
}

const U16_MAX: [u8; 2] = [0xff; 2];
const U32_MAX: [u8; 4] = [0xff; 4];
const U64_MAX: [u8; 8] = [0xff; 8];
const U64_NEARLY_MAX: [u8; 8] = [0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

refuses! {
    rejects_another_magic: "super" + 0 = *b"hsqz" => "magic 0x7a717368";
    rejects_block_size_that_is_no_power_of_two: "super" + 12 = 5000u32.to_le_bytes() => "block size 5000";
    rejects_block_size_below_4_kib: "super" + 12 = 2048u32.to_le_bytes() => "block size 2048";
    rejects_block_size_above_1_mib: "super" + 12 = (2u32 << 20).to_le_bytes() => "block size 2097152";
    rejects_block_log_of_another_block_size: "super" + 22 = 13u16.to_le_bytes() => "block log 13";
    rejects_block_log_beyond_a_shift: "super" + 22 = U16_MAX => "block log 65535";
    rejects_image_without_ids: "super" + 26 = [0, 0] => "id count 0";
    rejects_more_ids_than_the_table_holds: "super" + 26 = [200, 0] => "ends before row 2";
    rejects_more_id_blocks_than_there_is_room_for: "super" + 26 = U16_MAX => "its list of 256 bytes";
    rejects_root_outside_the_inode_table: "super" + 32 = U64_NEARLY_MAX => "no metadata block can start there";
    rejects_root_behind_the_end_of_its_block: "super" + 32 = [0, 0x1f] => "offset 7936 into a block";
    rejects_image_shorter_than_its_superblock: "super" + 40 = 95u64.to_le_bytes() => "image length 95";
    rejects_image_longer_than_its_file: "super" + 40 = (1u64 << 40).to_le_bytes() => "1099511627776 bytes long";
    rejects_id_table_behind_the_image: "super" + 48 = U64_NEARLY_MAX => "id table at 0xfffffffffffffff0";
    rejects_xattr_table_behind_the_image: "super" + 56 = U64_NEARLY_MAX => "xattr id table at";
    rejects_inode_table_inside_the_superblock: "super" + 64 = 95u64.to_le_bytes() => "inode table at 0x5f";
    rejects_inode_table_behind_the_directory_table: "super" + 64 = U64_NEARLY_MAX => "inode table at";
    rejects_directory_table_behind_the_fragment_table: "super" + 72 = U64_NEARLY_MAX => "directory table at";
    rejects_fragments_without_a_table: "super" + 80 = U64_MAX => "1 rows in the fragment table";
    rejects_fragment_table_behind_the_export_table: "super" + 80 = U64_NEARLY_MAX => "fragment table at";
    rejects_fragment_count_beyond_its_table: "super" + 16 = U32_MAX => "its list of";
    rejects_export_table_behind_the_id_table: "super" + 88 = U64_NEARLY_MAX => "export table at";
    rejects_inode_count_beyond_the_export_table: "super" + 4 = U32_MAX => "export table at";

    rejects_id_block_inside_the_superblock: "id list" + 0 = 95u64.to_le_bytes() => "position 0 is 0x5f";
    rejects_id_block_behind_its_list: "id list" + 0 = U64_MAX => "position 0 is 0xffffffffffffffff";
    rejects_xattr_table_without_sets: "xattr head" + 8 = [0; 4] => "0 rows";
    rejects_more_xattr_sets_than_there_is_room_for: "xattr head" + 8 = U32_MAX => "xattr id table at";
    rejects_xattrs_inside_the_superblock: "xattr head" + 0 = [0; 8] => "xattr table at 0x0";
    rejects_xattrs_behind_their_table: "xattr head" + 0 = U64_MAX => "xattr table at";

    rejects_empty_metadata_block: "inode table" + 0 = [0, 0x80] => "stored length 0";
    rejects_metadata_block_of_length_zero_and_compressed: "inode table" + 0 = [0, 0] => "stored length 0";
    rejects_metadata_block_longer_than_8_kib: "inode table" + 0 = [1, 0xa0] => "stored length 8193";
    rejects_metadata_block_beyond_its_table: "inode table" + 0 = [0, 0x90] => "at most allowed";
    rejects_metadata_block_that_does_not_decode: "inode table" + 1 = [0] => "gzip:";
    rejects_inode_cut_off_by_the_end_of_its_table: "super" + 32 = [240, 0] => "more bytes wanted";
    rejects_index_cut_off_by_the_end_of_its_table: "index" + 8 = [200, 0] => "more bytes wanted";
    rejects_directory_cut_off_by_the_end_of_its_table: "root body" + 4 = 4000u32.to_le_bytes() => "more bytes wanted";

    rejects_inode_of_type_zero: "a" + 0 = [0, 0] => "type 0";
    rejects_inode_of_type_15: "a" + 0 = [15, 0] => "type 15";
    rejects_inode_with_number_zero: "a" + 12 = [0; 4] => "inode number 0";
    rejects_user_beyond_the_id_table: "a" + 4 = [2, 0] => "owner index 2, the image has 2 ids";
    rejects_group_beyond_the_id_table: "a" + 6 = U16_MAX => "owner index 65535";
    rejects_file_longer_than_any_file: "b body" + 8 = U64_MAX => "file length 18446744073709551615";
    rejects_file_of_more_blocks_than_the_inode_table_holds: "b body" + 8 = (1u64 << 60).to_le_bytes() => "block sizes";
    rejects_file_of_more_blocks_than_follow_it: "b body" + 8 = (1u64 << 20).to_le_bytes() => "block size";
    rejects_fragment_beyond_the_fragment_table: "a body" + 4 = [1, 0, 0, 0] => "fragment 1, the image has 1 fragments";
    rejects_tail_beyond_its_fragment: "a body" + 8 = 1100u32.to_le_bytes() => "tail of 904 bytes at 1100";
    rejects_tail_whose_end_overflows: "a body" + 8 = U32_MAX => "tail of 904 bytes at 4294967295";
    rejects_block_longer_than_the_block_size: "a words" + 0 = 4097u32.to_le_bytes() => "block size word 0x1001";
    rejects_block_word_with_unknown_bits: "a words" + 0 = 0x0200_0001u32.to_le_bytes() => "block size word 0x2000001";
    rejects_stored_block_of_another_length: "a words" + 0 = 0x0100_0fffu32.to_le_bytes() => "uncompressed block of 4095 bytes";
    rejects_short_stored_block_of_another_length: "b words" + 8 = 0x0100_0063u32.to_le_bytes() => "uncompressed block of 99 bytes";
    rejects_data_inside_the_superblock: "a body" + 0 = [0; 4] => "data of 4096 bytes at 0x0";
    rejects_data_behind_the_image: "a body" + 0 = U32_MAX => "data of 4096 bytes at 0xffffffff";
    rejects_data_whose_end_overflows: "b body" + 0 = U64_NEARLY_MAX => "data of 4096 bytes at";
    rejects_data_inside_the_inode_table: "b body" + 0 = 6200u64.to_le_bytes() => "data of 100 bytes at";
    rejects_fragment_longer_than_the_block_size: "fragment" + 8 = 4097u32.to_le_bytes() => "block size word 0x1001";
    rejects_empty_fragment: "fragment" + 8 = [0; 4] => "stored length 0";
    rejects_fragment_behind_the_image: "fragment" + 0 = U64_NEARLY_MAX => "data of 2000 bytes at";
    rejects_empty_link_target: "l body" + 4 = [0; 4] => "link target of 0 bytes";
    rejects_link_target_above_64_kib: "l body" + 4 = 65_536u32.to_le_bytes() => "link target of 65536 bytes";
    rejects_link_target_with_a_nul: "l target" + 0 = [0] => "NUL";

    rejects_listing_outside_the_directory_table: "root body" + 8 = U32_MAX => "no metadata block can start there";
    rejects_listing_behind_the_end_of_its_block: "root body" + 18 = U16_MAX => "offset 65535 into a block";
    rejects_run_of_more_than_256_entries: "run" + 0 = 256u32.to_le_bytes() => "257 entries";
    rejects_run_whose_count_overflows: "run" + 0 = U32_MAX => "4294967295 entries";
    rejects_run_beyond_the_directory: "second run" + 0 = 5u32.to_le_bytes() => "the directory's size leaves 0";
    rejects_directory_that_ends_within_an_entry: "root body" + 4 = 30u32.to_le_bytes() => "the directory's size leaves";
    rejects_entry_of_type_zero: "entry" + 4 = [0, 0] => "type 0, 1 to 7";
    rejects_entry_of_an_extended_type: "entry" + 4 = [9, 0] => "type 9, 1 to 7";
    rejects_name_longer_than_255_bytes: "entry" + 6 = [255, 0] => "name longer than 255";
    rejects_name_with_a_slash: "a name" + 0 = *b"/" => "slash";
    rejects_name_with_a_nul: "a name" + 0 = [0] => "NUL";
    rejects_name_dot: "a name" + 0 = *b"." => "name \".\"";
    rejects_entry_outside_the_inode_table: "run" + 4 = U32_MAX => "no metadata block can start there";
    rejects_entry_behind_the_end_of_its_block: "entry" + 0 = U16_MAX => "offset 65535 into a block";
    rejects_index_behind_the_listing: "index" + 0 = U32_MAX => "offset 4294967295 in a listing";
    rejects_index_name_longer_than_256_bytes: "index" + 8 = 256u32.to_le_bytes() => "name of 257 bytes";
    rejects_index_name_whose_length_overflows: "index" + 8 = U32_MAX => "name of 4294967295 bytes";
    rejects_index_outside_the_directory_table: "index" + 4 = U32_MAX => "no metadata block can start there";

    rejects_xattr_set_beyond_the_table: "b body" + 36 = [1, 0, 0, 0] => "xattr set 1, the image has 1 sets";
    rejects_xattr_set_outside_the_xattr_table: "xattr set" + 0 = U64_MAX => "no metadata block can start there";
    rejects_xattr_set_behind_the_end_of_its_block: "xattr set" + 0 = [0xff, 0x1f] => "offset 8191 into a block";
    rejects_more_xattrs_than_the_table_can_hold: "xattr set" + 8 = U32_MAX => "4294967295 attributes";
    rejects_more_xattrs_than_follow: "xattr set" + 8 = [3] => "more bytes wanted";
    rejects_xattr_with_an_empty_name: "xattr" + 2 = [0, 0] => "empty name";
    rejects_xattr_name_with_a_nul: "xattr name" + 0 = [0] => "NUL";
    rejects_xattr_name_beyond_the_table: "xattr" + 2 = U16_MAX => "more bytes wanted";
    rejects_xattr_value_above_64_kib: "xattr value" + 0 = 65_537u32.to_le_bytes() => "value of 65537 bytes";
    rejects_xattr_value_beyond_the_table: "xattr value" + 0 = 65_536u32.to_le_bytes() => "more bytes wanted";
    rejects_xattr_reference_of_another_length: "xattr 2 value" + 0 = [9] => "reference to a value of 9 bytes";
    rejects_xattr_reference_outside_the_table: "xattr 2 reference" + 0 = U64_MAX => "no metadata block can start there";
}

#[test]
fn rejects_file_shorter_than_a_superblock() {
    for len in [0, 4, 95] {
        let mut image = made();
        image.bytes.truncate(len);
        refused(&image, ErrorKind::Corrupt, "96 needed");
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
fn rejects_two_attributes_of_one_name() {
    let image = made().patch("xattr 2", 0, &[0]).patch("xattr 2 name", 0, b"x");
    refused(&image, ErrorKind::Corrupt, "a second attribute of that name");
}

#[test]
fn names_versions_it_does_not_read() {
    for (major, minor) in [(3u16, 1u16), (4, 1), (5, 0), (0, 0)] {
        let image = made().patch("super", 28, &major.to_le_bytes()).patch("super", 30, &minor.to_le_bytes());
        refused(&image, ErrorKind::Unsupported, &format!("version {major}.{minor}"));
    }
}

#[test]
fn names_big_endian_images() {
    refused(&made().patch("super", 0, b"sqsh"), ErrorKind::Unsupported, "big-endian");
}

#[test]
fn names_codecs_it_does_not_read() {
    for codec in [0u16, 7, 65_535] {
        let image = made().patch("super", 20, &codec.to_le_bytes());
        refused(&image, ErrorKind::Unsupported, &format!("codec number {codec}"));
    }
}

#[test]
fn rejects_codec_options_that_reach_into_the_tables() {
    let image = made().patch("super", 24, &(1u16 << 10).to_le_bytes()).patch("data", 0, &[0xff, 0xbf]);
    refused(&image, ErrorKind::Corrupt, "codec options");
}

#[test]
fn rejects_streamed_image_that_was_cut_off() {
    refused(&made().patch("super", 0, b"HSQS"), ErrorKind::Corrupt, "streamed image");
}

#[test]
fn asking_a_file_for_entries_is_no_corruption() {
    let volume = made().open().unwrap();
    let file = super::find(&volume, "a");
    let error = packfs_format::Directories::lookup(&volume, file, b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    let root = packfs_format::Volume::root(&volume);
    let error = packfs_format::Volume::read_link(&volume, root).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
}

#[test]
fn an_absent_table_is_no_fault() {
    let absent = SQUASHFS_INVALID_BLK.to_le_bytes();
    made().patch("super", 56, &absent).read_all().unwrap();
    made().patch("super", 88, &absent).read_all().unwrap();
}
