//! Findings of the check in images that can be read but are wrong: the sound image with one fault
//! each.

use super::{Made, both, made};
use packfs_format::Severity;
use packfs_testkit::assert_found;

/// The findings of an image have to hold one of that severity that says `expected`.
#[track_caller]
fn found(image: &Made, severity: Severity, expected: &str) {
    assert_found(&image.findings(), severity, expected);
}

/// One test each: name, label of a structure, offset within it, bytes written there, severity, what
/// is said.
macro_rules! notices {
    ($($name:ident: $label:literal + $within:literal = $bytes:expr => $severity:ident $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            found(&made().patch($label, $within, &$bytes), Severity::$severity, $expected);
        }
    )*};
}

notices! {
    notices_a_volume_longer_than_the_image: "primary" + 80 = both(&[100]) => Error "the volume is 204800 bytes long";
    notices_byte_orders_that_differ_in_a_descriptor: "primary" + 84 = [1] => Warning "of the volume length differ";
    notices_byte_orders_that_differ_in_a_record: "again" + 6 = [1] => Warning "of extents or lengths differ";
    notices_a_wrong_checksum_of_the_boot_catalog: "catalog" + 28 = [0] => Error "wrong checksum";
    notices_a_boot_catalog_that_is_none: "catalog" + 0 = [9] => Error "no validation entry";
    notices_a_boot_image_behind_the_image: "catalog" + 40 = [200] => Error "boot image at 0x64000";
    notices_a_path_table_that_leads_elsewhere: "table" + 12 = [9] => Warning "no directory at block 9";
    notices_a_path_table_with_a_wrong_parent: "table" + 16 = [9] => Error "parent 9, 1 to 2 allowed";
    notices_a_path_table_that_is_too_short: "primary" + 132 = both(&[20]) => Warning "2 rows, the image has 3 directories";
    notices_a_path_table_that_is_cut_off: "primary" + 132 = both(&[29]) => Error "row 3 is cut off";
    notices_a_big_endian_table_of_its_own: "big table" + 5 = [9] => Warning "big-endian path table";
    notices_a_record_of_itself_that_leads_elsewhere: "sub self" + 2 = both(&[9]) => Warning "of itself leads to block 9";
    notices_a_record_of_the_parent_that_leads_elsewhere: "sub parent" + 2 = both(&[9]) => Warning "of its parent leads to block 9";
    notices_names_that_stand_twice: "packed susp" + 49 = *b"device" => Error "two entries \"device\"";
    notices_entries_that_are_too_long: "again susp" + 46 = [200] => Error "entry \"NM\" of 200 bytes";
    notices_entries_that_are_too_short: "again susp" + 2 = [20] => Error "\"PX\" is too short";
    notices_areas_behind_the_image: "plain susp" + 67 = both(&[9999]) => Error "continuation area";
    notices_names_that_end_early: "again susp" + 48 = [1] => Error "its name ends where it should continue";
    notices_targets_that_end_early: "link susp" + 73 = [1] => Error "its link target ends where it should continue";
    notices_link_counts_that_lie: "again susp" + 12 = both(&[3]) => Note "not as many as they claim";
    notices_a_link_count_of_zero: "again susp" + 12 = both(&[0]) => Error "link count 0";
    notices_times_from_nowhere: "plain susp" + 55 = [0xa0] => Note "-96 of \"plain\"";
    notices_files_without_an_owner: "again susp" + 0 = *b"XX" => Note "without owner and permissions";
    notices_compressed_files_that_cannot_be_read: "zisofs" + 20 = [27] => Error "block pointer 1 is 27";
    notices_data_in_a_directory: "packed" + 2 = both(&[super::SUB]) => Error "overlaps the";
    notices_unreadable_directories: "sub" + 2 = both(&[9999]) => Error "image ends at";
}
