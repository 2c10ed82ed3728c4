//! Everything the reader refuses: the sound image with one bad field each. The list of tests is the
//! list of refusals.

use super::{Made, both, made};
use packfs_core::ErrorKind;
use packfs_format::Space;
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

refuses! {
    rejects_an_image_without_a_primary_descriptor: "primary" + 0 = [2] => "none of them is a primary one";
    rejects_odd_block_sizes: "primary" + 128 = [0, 3] => "block size 768";
    rejects_a_root_behind_the_image: "primary" + 158 = [0xff; 4] => "image ends at";
    rejects_a_root_that_is_no_directory: "self" + 25 = [0] => "has to be a directory";
    rejects_a_root_of_another_name: "self" + 33 = [1] => "has to be a directory";
    rejects_a_directory_longer_than_the_image: "self" + 10 = both(&[0x10_0000]) => "1048576 bytes, but the image ends";
    rejects_a_record_shorter_than_its_head: "again" + 0 = [33] => "length 33, 34 to";
    rejects_a_record_without_a_name: "again" + 32 = [0] => "name of 0 bytes";
    rejects_a_name_longer_than_its_record: "again" + 32 = [222] => "name of 222 bytes";
    rejects_a_name_with_a_slash: "again susp" + 49 = [b'/'] => "name with a slash";
    rejects_a_name_with_a_nul: "again susp" + 49 = [0] => "name with a NUL byte";
    rejects_a_directory_whose_mode_is_a_files: "sub susp" + 4 = both(&[0o100_644]) => "mode of a file, but its flags say directory";
    rejects_a_file_whose_mode_is_a_directorys: "packed susp" + 4 = both(&[0o040_755]) => "mode of a directory, but its flags say file";
    rejects_data_behind_the_image: "packed" + 2 = both(&[0xffff]) => "file data at 0x7fff800";
    rejects_a_last_extent_that_is_missing: "part 2" + 33 = [b'Q'] => "the last extent of the file is missing";
    rejects_a_directory_moved_behind_the_image: "away susp" + 57 = both(&[0xffff]) => "image ends at";
    rejects_zisofs_without_its_magic: "zisofs" + 0 = [0] => "magic of its version";
    rejects_zisofs_of_another_length: "zisofs" + 8 = [1] => "contradicts its record";
    rejects_zisofs_of_odd_blocks: "packed susp" + 62 = [21] => "block size 2^21";
    rejects_zisofs_pointers_that_fall: "zisofs" + 20 = [27] => "block pointer 1 is 27, 28 to 98 allowed";
    rejects_zisofs_pointers_into_the_table: "zisofs" + 16 = [0] => "block pointer 0 is 0";
    rejects_zisofs_pointers_behind_the_file: "zisofs" + 24 = [99] => "block pointer 2 is 99";
}

#[test]
fn rejects_attributes_that_are_cut_off() {
    // The value's length, after NM and the head, name and flags.
    let made = made().patch("again susp", 12, &both(&[1])).patch("area", 8 + 5 + 4 + 1, &[9]);
    refused(&made, ErrorKind::Corrupt, "an attribute's value is cut off");
}

#[test]
fn rejects_interleaved_and_sparse_files() {
    refused(&made().patch("packed", 26, &[1]), ErrorKind::Unsupported, "interleaved");
    refused(&made().patch("packed susp", 55, b"SF"), ErrorKind::Unsupported, "sparse");
}

#[test]
fn rejects_a_link_without_a_target() {
    let made = made().patch("link susp", 53, b"XX").patch("link susp", 69, b"XX");
    refused(&made, ErrorKind::Corrupt, "a symlink without a target");
}

#[test]
fn rejects_zisofs_tables_longer_than_the_file() {
    let made = made().patch("packed susp", 61, &[24]).patch("zisofs", 12, &[24]);
    refused(&made, ErrorKind::Corrupt, "longer than the file");
}

#[test]
fn areas_that_lead_to_themselves_end() {
    // What follows the end of the name leads to the same area.
    let again = [&b"CE\x1c\x01"[..], &both(&[super::AREA, 0, 36])].concat();
    let made = made().patch("area", 8, &again).patch("plain susp", 83, &both(&[36]));
    made.read_all().unwrap();
    let findings = made.findings();
    assert!(findings.iter().any(|finding| finding.fault.contains("continuation areas")), "{findings:?}");
}

#[test]
fn directories_in_a_circle_do_no_harm() {
    let made = made().patch("here susp", 49, b"loop").patch("here susp", 53, b"XX");
    let made = made.patch("here", 2, &both(&[super::ROOT]));
    made.read_all().unwrap();
    made.open().unwrap().space().unwrap();
    let findings = made.findings();
    let expected = "second name of a directory";
    assert!(findings.iter().any(|finding| finding.fault.contains(expected)), "{findings:?}");
}

#[test]
fn an_image_of_any_length_is_opened_or_refused() {
    let made = made();
    for len in [0, 1, 32_768, 32_769, 34_816, 45_000, 47_104, 60_000] {
        let mut cut = made.clone();
        cut.bytes.truncate(len);
        let _ = cut.read_all();
    }
}
