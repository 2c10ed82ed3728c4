//! Findings of the check in images that can be read but are wrong: the sound image with one fault
//! each.

use super::{Made, made, made_in};
use crate::disk::*;
use packfs_format::{Severity, Space};
use packfs_testkit::assert_found;

/// The findings of an image have to hold one of that severity that says `expected`.
#[track_caller]
fn found(image: &Made, severity: Severity, expected: &str) {
    assert_found(&image.findings(), severity, expected);
}

const FLAGS: u32 = super::FLAGS;

#[test]
fn the_true_image_has_no_faults() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        assert_eq!(made_in(order).findings(), []);
    }
}

#[test]
fn notices_a_wrong_checksum_and_nothing_else() {
    for at in ["super", "a data", "b last"] {
        let image = made().patch(at, 40, &[0x55]);
        found(&image, Severity::Error, "checksum: ");
        assert_eq!(image.summed().findings().iter().filter(|finding| finding.place == "checksum").count(), 0);
    }
}

#[test]
fn notices_words_of_the_superblock_that_are_no_ones() {
    found(&made().patch("super", 16, b"c"), Severity::Note, "another signature");
    let flagged = made().patch("super", 16, b"c").word("super", 8, FLAGS | CRAMFS_FLAG_WRONG_SIGNATURE);
    assert_eq!(flagged.summed().findings(), []);
    found(&made().word("super", 12, 5), Severity::Note, "reserved word 0x5");
    found(&made().word("super", 8, 0x800), Severity::Note, "version 1");
    found(&made().word("super", 8, 0x6003), Severity::Warning, "OpenRG");
    found(&made().word("super", 44, 7), Severity::Note, "counts 7 names, but there are 8");
}

#[test]
fn notices_holes_without_their_flag() {
    found(
        &made().word("super", 8, FLAGS & !CRAMFS_FLAG_HOLES),
        Severity::Note,
        "holes in an image without the flag",
    );
}

#[test]
fn notices_names_out_of_order_where_there_is_one() {
    let image = made().patch("a name", 0, b"x");
    found(&image, Severity::Error, "out of order");
    let unsorted = image.word("super", 8, FLAGS & !CRAMFS_FLAG_SORTED_DIRS).summed();
    assert_eq!(unsorted.findings(), []);
}

#[test]
fn notices_duplicate_names_with_order_and_without() {
    let image = made().patch("a name", 0, b"b");
    found(&image, Severity::Error, "two entries \"b\"");
    let image = made().patch("a name", 0, b"d").word("super", 8, FLAGS & !CRAMFS_FLAG_SORTED_DIRS);
    found(&image, Severity::Error, "two entries \"d\"");
}

#[test]
fn notices_every_unreadable_inode() {
    let image = made().inode("a", |inode| inode.mode = 0).inode("link", |inode| inode.size = 0);
    found(&image, Severity::Error, "a: inode at");
    found(&image, Severity::Error, "link: inode at");
}

#[test]
fn notices_unreadable_listings_and_blocks() {
    found(&made().inode("x", |inode| inode.name_len = 200), Severity::Error, "sub: directory entry at");
    found(&made().word("a pointers", 4, 5), Severity::Error, "a: block pointer at");
    found(&made().patch("link target", 0, &[0]), Severity::Error, "link: ");
}

/// Neither the links nor the files that have the same blocks are enough to have read a target.
#[test]
fn notices_targets_in_the_blocks_of_files() {
    let at = made().labels["d pointers"] as u32;
    let image = made().inode("link", |inode| (inode.offset, inode.size) = (at, 100));
    found(&image, Severity::Error, "link: ");
    let at = made().labels["a pointers"] as u32;
    let image = made().inode("link", |inode| (inode.offset, inode.size) = (at, 5000));
    found(&image, Severity::Warning, "link target of 5000 bytes");
}

#[test]
fn notices_last_pages_that_linux_loses() {
    let image = made().inode("b", |inode| inode.size = 8192);
    found(&image, Severity::Warning, "last page Linux reads as zeros");
}

#[test]
fn notices_shared_parts_of_data() {
    let at = made().labels["a data"] as u32;
    let image = made().word(
        "link pointers",
        0,
        CRAMFS_BLK_FLAG_UNCOMPRESSED | CRAMFS_BLK_FLAG_DIRECT_PTR | ((at >> 2) + 1),
    );
    found(&image, Severity::Note, "share a part");
}

#[test]
fn notices_unused_space_and_data_after_the_image() {
    found(&made().inode("a", |inode| inode.size = 0), Severity::Note, "that nothing refers to");
    let mut image = made();
    image.bytes.resize(image.bytes.len() + 5000, 0);
    assert_eq!(image.findings(), []);
    *image.bytes.last_mut().unwrap() = 1;
    found(&image, Severity::Note, "data after the end of the image");
}

#[test]
fn notices_loops_of_directories_and_ends() {
    // /sub lists what the root lists.
    let image = made();
    let root = image.open().unwrap().geometry.super_block.root;
    let image = image.inode("sub", |inode| (inode.offset, inode.size) = (root.offset, root.size));
    found(&image, Severity::Error, "sub/sub: a second name of a directory");
    found(&image, Severity::Warning, "sub/a: a second name of an inode");
    assert!(image.open().unwrap().space().is_ok());
}

#[test]
fn notices_listings_that_overlap_too_often_and_ends() {
    // A listing whose entries are directories that list it again, four bytes later each.
    let mut image = made();
    let unit =
        CramfsInode { mode: 0o040_755, name_len: 4, size: 16 * 200, offset: 0, ..CramfsInode::default() };
    let start = image.bytes.len() as u32;
    for index in 0..400 {
        let inode = CramfsInode { offset: start + 16 * (index % 200), ..unit };
        image.bytes.extend_from_slice(&inode.to_bytes(ByteOrder::Little));
        image.bytes.extend_from_slice(&[b'a' + (index % 26) as u8, b'a' + (index / 26) as u8, 0, 0]);
    }
    image = image.inode("sub", |inode| (inode.offset, inode.size) = (start, 16 * 400));
    let len = image.bytes.len() as u32;
    let image = image.word("super", 4, len);
    found(&image, Severity::Error, "listings overlap");
    assert!(image.open().unwrap().space().unwrap_err().to_string().contains("overlap"));
}

#[test]
fn the_counts_are_not_held_against_what_could_not_be_walked() {
    let image = made().inode("sub", |inode| inode.mode = 0).word("super", 44, 3);
    let of_counts = image.findings().into_iter().find(|finding| finding.fault.contains("counts"));
    assert_eq!(of_counts, None);
}
