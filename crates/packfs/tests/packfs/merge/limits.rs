//! Limits of the formats, which are met before any data is moved.

use crate::common::{Wish, erofs, squash};
use packfs::{DataPlace, ErrorKind, ImagePath, Meta, NodeKind, Owner, Tree, TreeBuilder, Xattrs};
use packfs_core::Held;
use std::path::Path;

/// Files of so many owners.
fn owned(prefix: &str, uids: std::ops::Range<u32>) -> Tree {
    let mut tree = TreeBuilder::new(Meta::default());
    for uid in uids {
        let meta = Meta { owner: Owner { uid, gid: 0 }, ..Meta::default() };
        tree.add(
            &ImagePath::parse(format!("{prefix}{uid}").as_bytes()).unwrap(),
            NodeKind::Fifo,
            meta,
            Xattrs::new(),
        )
        .unwrap();
    }
    tree.finish().unwrap()
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn more_than_65535_owners_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let wish = Wish { codec: "none", ..Wish::default() };
    let pack = |name: &str, uids| squash(&owned(name, uids), &Held::default(), wish, folder.path(), name);
    let images = [pack("a", 0..40_000), pack("b", 30_000..70_000)];
    let error = packfs::merge(&images, folder.path().join("merged")).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("at most 65535 different user and group ids"), "{error}");
    assert_eq!(names(folder.path()), 2);
}

#[test]
fn places_above_16_tib_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pack = |name: &str| {
        let image = erofs(
            &owned(name, 0..3),
            &Held::default(),
            Wish { codec: "lz4", ..Wish::default() },
            folder.path(),
            name,
        );
        // What follows an image belongs to it where it is taken whole.
        std::fs::File::options().write(true).open(&image).unwrap().set_len(9 << 40).unwrap();
        image
    };
    let images = [pack("a"), pack("b")];
    for place in [DataPlace::Flat, DataPlace::Inputs] {
        let error = packfs::merge(&images, folder.path().join("merged")).data(place).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("2^32"), "{error}");
        assert_eq!(names(folder.path()), 2);
    }
    // Where only what files refer to is moved, their length does not count.
    packfs::merge(&images, folder.path().join("merged")).run().unwrap();
}
