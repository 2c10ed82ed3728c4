//! Findings of the check in images that can be read but are wrong: the sound image with one fault
//! each.

use super::*;
use packfs_format::{Check, Severity};
use packfs_testkit::assert_found;

/// The findings of an image have to hold one of that severity that says `expected`.
#[track_caller]
fn found(image: &Made, severity: Severity, expected: &str) {
    assert_found(&image.findings(), severity, expected);
}

/// One test each: name, version, label of a structure, offset within it, bytes written there,
/// severity, message.
macro_rules! notices {
    ($($name:ident: $form:ident $label:literal + $within:literal = $bytes:expr => $severity:ident $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            found(&made($form).patch($label, $within, &$bytes), Severity::$severity, $expected);
        }
    )*};
}

notices! {
    notices_wrong_inode_count: LITTLE_2_1 "super" + 4 = [8, 0, 0, 0] => Error "counts 8 inodes, but 7 are named";
    notices_too_small_inode_count: LITTLE_1_0 "super" + 4 = [3, 0, 0, 0] => Error "counts 3 inodes, but more are named";
    notices_wrong_block_log: LITTLE_3_1 "super" + 34 = [13, 0] => Error "block log 13";
    notices_duplicate_inode_number: LITTLE_3_1 "c" + 8 = [1, 0, 0, 0] => Error "inode number 1 is another inode's, too";
    notices_inode_number_beyond_the_count: LITTLE_3_1 "c" + 8 = [9, 0, 0, 0] => Error "inode number 9, the image counts 7";
    notices_entry_with_another_inode_number: LITTLE_3_1 "entry" + 3 = [9, 0] => Error "its entry says inode 10, its inode 1";
    notices_entry_of_another_type: LITTLE_3_1 "entry" + 1 = [0x60] => Error "its entry says symlink, its inode file";
    notices_names_out_of_order: LITTLE_3_1 "a name" + 0 = *b"x" => Error "out of order";
    notices_duplicate_names: LITTLE_3_1 "a name" + 0 = *b"b" => Error "two entries \"b\"";
    notices_duplicate_names_where_nothing_is_sorted: LITTLE_1_0 "a name" + 0 = *b"l" => Error "two entries \"l\"";
    notices_wrong_parent: LITTLE_3_1 "sub body" + 12 = [3, 0, 0, 0] => Warning "sub: parent inode 3";
    notices_wrong_link_count_of_a_directory: LITTLE_3_1 "root body" + 0 = [9, 0, 0, 0] => Error "/: link count 9";
    notices_wrong_link_count_of_a_file: LITTLE_3_1 "c body" + 0 = [2, 0, 0, 0] => Error "c: link count 2, but it has 1 names";
    notices_every_unreadable_inode: LITTLE_2_1 "a" + 0 = [0x4b] => Error "a: ";
    notices_unreadable_listing: LITTLE_3_1 "second run" + 0 = [9] => Error "the directory's size leaves 0";
    notices_too_small_directory_size: LITTLE_3_1 "sub body" + 4 = [0, 0] => Warning "directory size 0";
    notices_index_without_a_header: LITTLE_3_1 "index" + 0 = [5, 0, 0, 0] => Error "no directory header at 5";
    notices_index_of_another_name: LITTLE_2_1 "index name" + 0 = *b"d" => Error "name \"d\", the first entry is \"c\"";
    notices_index_of_another_block: LITTLE_3_1 "index" + 4 = [3, 0, 0, 0] => Error "the header is in 0x0";
    notices_index_that_does_not_rise: LITTLE_3_1 "index" + 0 = [0, 0, 0, 0] => Warning "offset 0, more than 0 allowed";
    notices_wrong_export_row: LITTLE_3_1 "export rows" + 0 = [7, 0] => Error "inode 1, at 0x7";
    notices_unused_space: LITTLE_3_1 "a body" + 0 = 4215u64.to_le_bytes() => Note "that nothing refers to";
    notices_lying_export_flag: LITTLE_3_1 "super" + 36 = [0] => Note "none in its flags but has an export table";
    notices_lying_fragment_flag: LITTLE_2_1 "super" + 36 = [0x10] => Note "no-fragments";
    notices_unused_users: LITTLE_1_0 "sub" + 2 = [0x01] => Note "uid table: ids that no inode uses";
    notices_data_behind_the_image: LITTLE_3_1 "padding" + 9 = [1] => Note "data after the end of the image";
    notices_unreadable_fragment: LITTLE_3_1 "fragment" + 8 = [0; 4] => Error "fragment 0: fragment at 0x";
}

#[test]
fn notices_holes_in_a_version_without() {
    let image = made(Form { version: Version::V3_0, ..LITTLE_3_1 }).patch("b words", 0, &[0; 4]);
    found(&image, Severity::Warning, "files with holes, which came with version 3.1");
}

#[test]
fn the_check_ends_on_every_image() {
    // Each byte of the metadata in turn, and with it each length, type and reference.
    for form in [LITTLE_3_1, Form { endian: Endian::Big, ..LITTLE_2_1 }, LITTLE_1_0] {
        let image = made(form);
        let (start, end) = (image.labels["inode table"], image.bytes.len().min(image.labels["padding"]));
        for at in (0..form.version.super_block_len()).chain(start..end) {
            for byte in [0, 0x7f, 0xff] {
                let mut image = image.clone();
                image.bytes[at] = byte;
                let Ok(volume) = image.open() else { continue };
                let _ = read_all(&volume, 10);
                volume.check(&mut |_| {}).unwrap();
            }
        }
    }
}
