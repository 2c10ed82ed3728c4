//! Findings of the check in images that can be read but are wrong: the sound image with one fault
//! each.

use super::{Made, made};
use packfs_format::{Health, Severity};
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
    notices_wrong_inode_count: "super" + 4 = [7, 0, 0, 0] => Error "ends before row 6";
    notices_duplicate_inode_number: "c" + 12 = [1, 0, 0, 0] => Error "inode number 1 is another inode's, too";
    notices_entry_with_another_inode_number: "entry" + 2 = [9, 0] => Error "its entry says inode 10, its inode 1";
    notices_entry_of_another_type: "entry" + 4 = [3, 0] => Error "its entry says symlink, its inode file";
    notices_names_out_of_order: "a name" + 0 = *b"x" => Error "out of order";
    notices_duplicate_names: "a name" + 0 = *b"b" => Error "two entries \"b\"";
    notices_wrong_parent: "sub body" + 12 = [3, 0, 0, 0] => Warning "sub: parent inode 3";
    notices_wrong_link_count_of_a_directory: "root body" + 0 = [9, 0, 0, 0] => Error "/: link count 9";
    notices_wrong_link_count_of_a_file: "c body" + 0 = [2, 0, 0, 0] => Error "c: link count 2, but it has 1 names";
    notices_link_count_zero: "l body" + 0 = [0, 0, 0, 0] => Error "l: link count 0";
    notices_directories_that_count_entries: "root body" + 0 = [7, 0, 0, 0] => Note "count every entry";
    notices_type_bits_in_a_mode: "a" + 2 = 0o100_644u16.to_le_bytes() => Note "type bits";
    notices_type_bits_of_another_type: "a" + 2 = 0o040_644u16.to_le_bytes() => Error "take the file for another";
    notices_holes_longer_than_the_file: "b body" + 16 = 9000u64.to_le_bytes() => Warning "9000 bytes of holes";
    notices_every_unreadable_inode: "a" + 0 = [99, 0] => Error "a: ";
    notices_unreadable_listing: "second run" + 0 = [9, 0, 0, 0] => Error "the directory's size leaves 0";
    notices_too_small_directory_size: "sub body" + 8 = [0, 0] => Warning "directory size 0";
    notices_index_without_a_header: "index" + 0 = [5, 0, 0, 0] => Error "no directory header at 5";
    notices_index_of_another_name: "index name" + 0 = *b"d" => Error "name \"d\", the first entry is \"c\"";
    notices_index_of_another_block: "index" + 4 = [3, 0, 0, 0] => Error "the header is in 0x0";
    notices_index_that_does_not_rise: "index" + 0 = [0, 0, 0, 0] => Warning "offset 0, more than 0 allowed";
    notices_wrong_export_row: "export rows" + 0 = [7, 0] => Error "inode 1, at 0x7";
    notices_unused_xattr_set: "b body" + 36 = [0xff; 4] => Note "sets that no inode uses: 0";
    notices_xattr_set_beyond_the_table: "b body" + 36 = [5, 0, 0, 0] => Error "xattr set 5";
    notices_wrong_xattr_size: "xattr set" + 12 = [1, 0, 0, 0] => Note "with 1 instead of 28";
    notices_unknown_xattr_prefix: "xattr" + 0 = [9, 0] => Error "unknown prefix";
    notices_impossible_xattr_size: "xattr set" + 12 = [0xff; 4] => Error "a size of 4294967295 bytes";
    notices_an_xattr_size_of_zero: "xattr set" + 12 = [0; 4] => Error "a size of 0 bytes";
    notices_a_set_without_xattrs: "xattr set" + 8 = [0; 4] => Error "no attributes in it";
    notices_huge_link_count: "c body" + 0 = [0xff; 4] => Error "c: link count 4294967295";
    notices_unreadable_xattr_set: "xattr" + 2 = [0, 0] => Error "xattr set 0: ";
    notices_shared_parts_of_data: "b body" + 0 = 100u64.to_le_bytes() => Note "share a part";
    notices_unused_space: "a body" + 0 = 4192u32.to_le_bytes() => Note "that nothing refers to";
    notices_lying_export_flag: "super" + 24 = [0, 0] => Note "has none in its flags";
    notices_lying_xattr_flag: "super" + 24 = 0x0280u16.to_le_bytes() => Note "no-xattrs";
    notices_lying_fragment_flag: "super" + 24 = 0x0090u16.to_le_bytes() => Note "no-fragments";
    notices_check_flag: "super" + 24 = 0x0084u16.to_le_bytes() => Note "flag check";
    notices_lzma: "super" + 20 = [2, 0] => Warning "lzma";
    notices_lz4_without_options: "super" + 20 = [5, 0] => Error "codec options: missing";
    notices_data_behind_the_image: "padding" + 0 = [1] => Note "data after the end of the image";
}

#[test]
fn notices_inodes_that_no_name_leads_to() {
    // A listing that is said to be empty, by a directory that agrees with it in everything.
    for size in [0, 1, 2, 3] {
        let empty =
            made().patch("root body", 0, &[2, 0, 0, 0, size, 0, 0, 0]).patch("root body", 16, &[0, 0]);
        found(&empty, Severity::Error, "counts 6 inodes, but 1 are named");
    }
}

#[test]
fn the_true_image_has_no_faults() {
    assert_eq!(made().findings(), []);
}

#[test]
fn notices_files_of_whole_blocks_with_a_fragment() {
    let image = made().patch("a body", 12, &4096u32.to_le_bytes());
    found(&image, Severity::Warning, "files of whole blocks name a fragment");
}

#[test]
fn notices_unused_fragments() {
    let alone = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0];
    found(&made().patch("a body", 4, &alone), Severity::Note, "fragments that no file uses: 0");
}

#[test]
fn notices_unused_ids() {
    let image =
        ["a", "b", "c", "l", "sub", "root"].iter().fold(made(), |made, inode| made.patch(inode, 6, &[0, 0]));
    found(&image, Severity::Note, "ids that no inode uses: 1000");
}

#[test]
fn notices_tables_that_do_not_touch() {
    // The image ends later than its last table says.
    let image = made();
    let used = image.bytes.len() as u64;
    let image = image.patch("super", 40, &used.to_le_bytes());
    found(&image, Severity::Error, "refuse to mount");
    let fault = image.open().unwrap().whole_fault(true).unwrap().unwrap();
    assert!(fault.to_string().contains("refuse to mount"), "{fault}");
}

#[test]
fn notices_files_that_are_no_multiple_of_4_kib() {
    let mut image = made();
    image.bytes.truncate(image.bytes.len() - 1);
    found(&image, Severity::Note, "no multiple of 4096");
}

#[test]
fn notices_loops_of_directories_and_ends() {
    // The entry "sub" leads back to the root.
    let image = made();
    let volume = image.open().unwrap();
    let root = packfs_format::Volume::root(&volume).0;
    let mut image = image;
    let entry = image.labels["other entry"];
    image.bytes[entry..entry + 2].copy_from_slice(&(root as u16).to_le_bytes());
    found(&image, Severity::Error, "sub: a second name of a directory");
}

#[test]
fn notices_directories_that_share_their_listing_and_ends() {
    // The directory "sub" lists what the root lists.
    let image = made();
    let len = image.labels["fragment block"] - image.labels["directory table"] - 2 + 3;
    let image = image.patch("sub body", 8, &(len as u16).to_le_bytes());
    found(&image, Severity::Error, "sub/sub: a second name of a directory");
}

#[test]
fn notices_more_inodes_than_are_counted() {
    let image = made().patch("super", 4, &[3, 0, 0, 0]);
    found(&image, Severity::Error, "counts 3 inodes, but more are named");
    let told = image.findings().iter().filter(|finding| finding.fault.contains("more are named")).count();
    assert_eq!(told, 1, "once for all of them");
}

#[test]
fn counts_a_directory_as_a_link_though_its_inode_is_refused() {
    let image = made().patch("sub", 0, &[15, 0]);
    found(&image, Severity::Error, "type 15");
    let of_links = image.findings().into_iter().find(|finding| finding.fault.contains("link count"));
    assert_eq!(of_links, None);
}

#[test]
fn reports_no_links_after_an_incomplete_walk() {
    let image = made().patch("c body", 0, &[2, 0, 0, 0]).patch("a", 0, &[15, 0]);
    found(&image, Severity::Error, "type 15");
    let of_links = image.findings().into_iter().find(|finding| finding.fault.contains("has 1 names"));
    assert_eq!(of_links, None);
}
