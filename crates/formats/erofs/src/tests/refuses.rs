//! Everything the reader refuses: the sound image with one bad field each. The list of tests is the
//! list of refusals.

use super::{Made, made};
use packfs_core::ErrorKind;
use packfs_format::{Health, Severity};
use packfs_testkit::assert_refused;

/// Reads an image that has to be refused with an error that says `expected`.
#[track_caller]
fn refused(image: &Made, kind: ErrorKind, expected: &str) {
    assert_refused(image.read_all(), kind, expected);
}

/// One test each: name, kind, label of a structure, offset within it, bytes written there, what the
/// error says.
macro_rules! refuses {
    ($($name:ident: $kind:ident $label:literal + $within:literal = $bytes:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            refused(&made().patch($label, $within, &$bytes), ErrorKind::$kind, $expected);
        }
    )*};
}

const U16_MAX: [u8; 2] = [0xff; 2];
const U32_MAX: [u8; 4] = [0xff; 4];

refuses! {
    rejects_another_magic: Corrupt "super" + 0 = [0; 4] => "magic 0x00000000";
    rejects_blocks_below_512_bytes: Corrupt "super" + 12 = [8] => "block size bits 8";
    rejects_blocks_above_64_kib: Corrupt "super" + 12 = [17] => "block size bits 17";
    rejects_extension_slots_beyond_the_block: Corrupt "super" + 13 = [255] => "extension slots 255";
    rejects_directory_blocks_of_several_blocks: Corrupt "super" + 90 = [1] => "directory block bits 1";
    rejects_features_from_the_future: Unsupported "super" + 80 = [0, 2] => "incompatible features 0x200";
    rejects_codecs_from_the_future: Unsupported "super" + 84 = [16, 0] => "codecs 0x10";
    rejects_settings_of_a_codec_that_are_too_short: Corrupt "cfg length" + 0 = [1, 0] => "too short";
    rejects_metabox_inside_the_metabox: Corrupt "super" + 80 = [0xa7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128] => "the metabox is in the metabox";
    rejects_packed_inode_in_the_metabox: Corrupt "super" + 103 = [128] => "the packed inode is in the metabox";
    rejects_packed_inode_that_is_no_file: Corrupt "super" + 96 = [16] => "packed inode at";
    rejects_root_behind_the_image: Corrupt "super" + 14 = U16_MAX => "after the end of the image";

    rejects_inode_formats_from_the_future: Unsupported "plain" + 0 = [0x20, 0] => "format 0x20";
    rejects_layouts_from_the_future: Unsupported "plain" + 0 = [10, 0] => "data layout 5";
    rejects_mode_of_no_type: Corrupt "plain" + 4 = [0, 0] => "no file type";
    rejects_data_behind_the_image: Corrupt "plain" + 16 = [32, 0] => "5000 bytes of the image at 0x20000";
    rejects_flat_files_longer_than_the_image: Corrupt "plain" + 8 = U32_MAX => "bytes of the image";
    rejects_inline_data_that_crosses_a_block: Corrupt "inline" + 8 = [0, 0x20, 0, 0] => "crosses the end of a block";
    rejects_links_without_a_target: Corrupt "link" + 8 = [0, 0] => "link length 0";
    rejects_links_beyond_64_kib: Corrupt "link" + 8 = U32_MAX => "link length 4294967295";
    rejects_links_with_a_nul: Corrupt "target" + 2 = [0] => "NUL byte";

    rejects_names_that_start_amid_entries: Corrupt "listing" + 8 = [13, 0] => "among its entries";
    rejects_names_that_start_behind_the_block: Corrupt "listing" + 8 = [0xf0, 0xff] => "among its entries";
    rejects_names_outside_of_their_block: Corrupt "listing" + 20 = U16_MAX => "a name outside of its block";
    rejects_empty_names: Corrupt "listing" + 20 = [108, 0] => "a name that is empty";
    rejects_names_with_a_slash: Corrupt "listing" + 111 = *b"/" => "name with a slash";
    rejects_entries_of_an_unknown_type: Corrupt "listing" + 34 = [9] => "unknown type";
    rejects_dots_of_another_type: Corrupt "listing" + 22 = [9] => "of another type";
    rejects_entries_that_lead_behind_the_image: Corrupt "listing" + 24 = U32_MAX => "after the end of the image";
    rejects_entries_that_lead_into_a_metabox_that_is_not_there: Corrupt "listing" + 31 = [128] => "but there is none";

    rejects_more_shared_xattrs_than_there_is_room_for: Corrupt "xattr head" + 4 = [5] => "shared xattr count 5";
    rejects_xattrs_longer_than_their_room: Corrupt "xattr" + 2 = [200, 0] => "longer than their room";
    rejects_xattrs_without_a_name: Corrupt "xattr" + 0 = [0] => "empty name";
    rejects_xattrs_with_a_nul_in_their_name: Corrupt "xattr name" + 0 = [0] => "NUL byte";

    rejects_chunk_formats_from_the_future: Unsupported "chunks" + 16 = [0x80] => "chunk format 0x80";
    rejects_chunks_behind_the_image: Corrupt "rows" + 4 = [32, 0] => "at 0x20000";
    rejects_chunks_on_devices_that_are_not_listed: Corrupt "rows" + 0 = [0, 0, 1, 0, 32, 0] => "at 0x20000";

    rejects_algorithms_from_the_future: Unsupported "full map" + 6 = [4] => "algorithm 4";
    rejects_algorithms_that_are_not_announced: Corrupt "full map" + 6 = [3] => "does not announce zstd";
    rejects_first_cluster_that_starts_later: Corrupt "full index" + 2 = [1, 0] => "does not start at 0";
    rejects_start_outside_of_its_logical_cluster: Corrupt "full index" + 18 = [0, 16] => "start in a logical cluster 4096";
    rejects_distance_of_0: Corrupt "full index" + 12 = [0, 0] => "a distance of 0";
    rejects_distance_past_the_head: Corrupt "full index" + 12 = [2, 0] => "does not lead to the head";
    rejects_block_counts_of_small_clusters: Corrupt "full index" + 12 = [1, 8] => "clusters have one block each";
    rejects_clusters_behind_the_image: Corrupt "full index" + 4 = [32, 0] => "at 0x20000";
    rejects_logical_clusters_beyond_64_kib: Corrupt "full map" + 7 = [5] => "logical cluster bits 17";
    rejects_cluster_of_0_blocks: Corrupt "full map" + 4 = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 13, 0, 0, 0, 2, 0, 0, 0, 0, 8, 1, 0] => "a cluster of 0 blocks";
    rejects_clusters_whose_blocks_nobody_tells: Corrupt "full map" + 4 = [2, 0] => "no entry says in how many blocks";
    rejects_clusters_beyond_1_mib: Corrupt "full map" + 4 = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 13, 0, 0, 0, 2, 0, 0, 0, 1, 9, 1, 0] => "stored length 1052672";

    rejects_big_clusters_for_one_head_of_a_compact_index: Corrupt "compact map" + 4 = [0x22, 0] => "one head only";
    rejects_tails_behind_the_packed_inode: Corrupt "compact map" + 0 = [0, 16] => "of the packed inode at 0x1000";
    rejects_whole_files_behind_the_packed_inode: Corrupt "full map" + 7 = [0xc0] => "of the packed inode";
    rejects_tails_without_a_packed_inode: Corrupt "super" + 96 = [0, 0] => "there is no packed inode";

    rejects_no_extents_at_all: Corrupt "encoded map" + 0 = [0] => "extent count 0";
    rejects_more_extents_than_there_is_room_for: Corrupt "encoded map" + 0 = U32_MAX => "extent count 4294967295";
    rejects_first_extent_that_starts_later: Corrupt "records" + 12 = [1] => "does not start at 0";
    rejects_extents_that_do_not_follow_each_other: Corrupt "records" + 44 = 199_999u32.to_le_bytes() => "do not follow each other";
    rejects_plain_extents_shorter_than_what_they_hold: Corrupt "records" + 16 = [100, 0] => "that is not compressed 1500";
    rejects_extents_behind_the_image: Corrupt "records" + 36 = U32_MAX => "3000 bytes of the image";
}

#[test]
fn rejects_every_image_that_is_cut() {
    let whole = made();
    for len in [0, 3, 1023, 1151, 1152, 1200, 4096, 5000, 8000, 40_000, 60_000] {
        let mut cut = whole.clone();
        cut.bytes.truncate(len);
        let error = cut.read_all().expect_err(&format!("{len} bytes"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{len} bytes: {error}");
    }
}

/// One finding of the check for one bad field that reading does not stumble over.
#[track_caller]
fn noticed(image: &Made, expected: &str) {
    let findings = image.findings();
    let found = findings.iter().find(|finding| finding.fault.contains(expected));
    let found = found.unwrap_or_else(|| panic!("{expected:?} is not among {findings:#?}"));
    assert!(found.severity > Severity::Note, "{found:?}");
}

#[test]
fn notices_what_readers_do_not_stumble_over() {
    for (label, within, bytes, expected) in [
        ("super", 8, &[1, 0, 0, 0][..], "checksum 0x00000000"),
        ("super", 36, &[33, 0, 0, 0], "bytes long, the file only"),
        ("super", 64, &[b'x'; 16], "volume name without an end"),
        ("super", 80, &[0xa3, 0], "uses chunked_file, but does not announce it"),
        ("full index", 0, &[3, 0], "uses device_table,compr_head2, but does not announce it"),
        ("listing", 0, &[32, 0], "\".\" leads to node 32, 16 expected"),
        ("listing", 12, &[32, 0], "\"..\" leads to node 32"),
        ("listing", 109, b"x..", "out of order"),
        ("listing", 109, b".-", "no entry \"..\""),
        ("listing", 10, &[7], "\".\" has a type that is no directory's"),
        ("super", 91, &[3], "3 long xattr prefixes without the feature"),
        ("super", 8, &[0x20, 0, 0, 0], "shared inodes by long xattr prefix 0, of 0"),
        ("listing", 34, &[2], "its entry says directory, its inode file"),
        ("root", 6, &[7, 0], "link count 7"),
        ("super", 14, &[32, 0], "the root is a file"),
        ("plain", 6, &[3, 0], "link count 3, but it has 1 names"),
        ("plain", 16, &[1, 0], "overlaps the"),
        ("xattr head", 0, &[0xff; 4], "told"),
    ] {
        if expected == "told" {
            let made = made().patch("super", 8, &[4, 0, 0, 0]).patch(label, within, bytes);
            noticed(&made, "name filter hides");
        } else {
            noticed(&made().patch(label, within, bytes), expected);
        }
    }
}

#[test]
fn every_full_read_reports_faults_of_the_whole_image() {
    let fault = |image: Made| image.open().unwrap().whole_fault(true).unwrap().map(|fault| fault.to_string());
    assert_eq!(fault(made()), None);
    for (within, bytes, expected) in [
        (36, &[33, 0, 0, 0][..], "the image is 135168 bytes long, the file only 131072"),
        (64, &[b'x'; 16], "volume name without an end"),
        (91, &[3], "long xattr prefixes"),
    ] {
        let found = fault(made().patch("super", within, bytes)).unwrap();
        assert!(found.contains("superblock: ") && found.contains(expected), "{found}");
    }
}

#[test]
fn reports_no_links_after_an_incomplete_walk() {
    let image = made().patch("plain", 6, &[3, 0]).patch("chunks", 4, &[0, 0]);
    noticed(&image, "of no file type");
    assert!(image.findings().iter().all(|finding| !finding.fault.contains("has 1 names")));
}
