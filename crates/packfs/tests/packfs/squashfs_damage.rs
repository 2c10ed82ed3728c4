//! The damage matrix on SquashFS images; see `common/damage.rs`.

use crate::common::damage::survives;
use crate::common::{Wish, squash};
use packfs_testkit::{is_root, odd_tree, plain_tree};

#[test]
fn damage_to_any_structure_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    for (codec, options) in [
        ("gzip", &[][..]),
        ("zstd:3", &[("fragments", "always")]),
        ("xz", &[("uncompressed", "inodes,ids")]),
        ("lz4", &[("uncompressed", "xattrs,fragments")]),
    ] {
        let wish = Wish { codec, block_len: 64 << 10, options, ..Wish::default() };
        let image = std::fs::read(squash(&tree, &contents, wish, folder.path(), "image")).unwrap();
        survives(&image, 6, true, codec);
    }
}

#[test]
fn damage_to_odd_things_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, is_root());
    // Uncompressed metadata lets damage reach every field, not only the codec.
    let wish = Wish { codec: "gzip", options: &[("uncompressed", "all")], ..Wish::default() };
    let image = std::fs::read(squash(&tree, &contents, wish, folder.path(), "image")).unwrap();
    survives(&image, 4, false, "odd tree");
}
