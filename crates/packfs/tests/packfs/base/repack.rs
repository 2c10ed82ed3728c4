//! `repack`: another image of an image.

use super::fixture::{Fixture, WAYS, Way, fixture, wishes};
use crate::common::read_image;
use packfs::Repack;
use packfs::source::Shape;
use packfs_testkit::Compare;
use std::fs;

/// The image `old` again, with what no image tells of how it was made.
fn again(fixture: &Fixture, way: Way, name: &str) -> Repack {
    let packing = packfs::repack(fixture.path("old"), fixture.path(name)).sync(false);
    way.options.iter().fold(packing, |packing, (name, value)| packing.option(*name, *value))
}

#[test]
fn all_blocks_are_copied_where_only_metadata_changes() {
    for &way in WAYS {
        let fixture = fixture();
        let old = fixture.pack(way, "old");
        let shape = Shape { uid: Some(7), gid: Some(8), ..Shape::default() };
        let report = again(&fixture, way, "new").shape(shape.clone()).run();
        let report = report.unwrap();
        assert_eq!(report.format, way.format);
        let compressed = old.data_len - old.plain_bytes;
        assert!(report.base_bytes >= compressed / 4 * 3, "{way:?}: {report:?} {old:?}");
        fixture.packing(way, "full").shape(shape).run().unwrap();
        fixture.assert_same("new", "full", way);
        let trusted = again(&fixture, way, "trusted");
        trusted.shape(Shape { uid: Some(7), gid: Some(8), ..Shape::default() }).trust(true).run().unwrap();
        assert!(fs::read(fixture.path("new")).unwrap() == fs::read(fixture.path("trusted")).unwrap());
    }
}

#[test]
fn what_is_dropped_takes_its_blocks_along() {
    for &way in WAYS {
        let fixture = fixture();
        let old = fixture.pack(way, "old");
        let shape = Shape { exclude: vec!["dir[123]".into()], ..Shape::default() };
        let packing = again(&fixture, way, "new");
        let report = packing.shape(shape.clone()).run().unwrap();
        fixture.packing(way, "full").shape(shape).run().unwrap();
        fixture.assert_same("new", "full", way);
        assert!(report.image_len < old.image_len / 3 * 2, "{way:?}: {report:?}");
        // A packed stream of which half is gone is packed anew.
        let has_own = !way.options.contains(&("fragments", "all"));
        assert!(report.base_blocks > 0 || !has_own, "{way:?}: {report:?}");
    }
}

#[test]
fn other_codecs_blocks_and_formats_hold_the_same() {
    let other = [
        Way { format: "squashfs", codec: "lz4", block_len: 4096, options: &[] },
        Way { format: "squashfs", codec: "zstd:3", block_len: 64 << 10, options: &[] },
        Way { format: "erofs", codec: "zstd:3", block_len: 16 << 10, options: &[("kernel", "6.12")] },
    ];
    for &from in WAYS.iter().step_by(2) {
        let fixture = fixture();
        fixture.pack(from, "old");
        for to in other {
            let packing = packfs::repack(fixture.path("old"), fixture.path("new")).options(wishes(to));
            packing.run().unwrap_or_else(|e| panic!("{from:?} {to:?}: {e}"));
            let wanted = read_image(&fixture.path("old")).0;
            wanted.assert_same(&read_image(&fixture.path("new")).0, Compare::default(), "other");
        }
    }
}

#[test]
fn an_image_can_take_its_own_place() {
    for &way in WAYS {
        let fixture = fixture();
        fixture.pack(way, "image");
        fixture.pack(way, "full");
        packfs::repack(fixture.path("image"), fixture.path("image")).sync(false).run().unwrap();
        fixture.assert_same("image", "full", way);
    }
}
