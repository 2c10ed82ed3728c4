//! Every way of making an image, verified: what is right is never refused.

use packfs_testkit::{Random, is_root, odd_tree, write_dir};
use std::path::{Path, PathBuf};

fn odd_dir(folder: &Path) -> PathBuf {
    let source = folder.join("source");
    std::fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(4096, is_root());
    write_dir(&tree, &contents, &source);
    std::fs::write(source.join("long"), Random::new(5).text(700_000)).unwrap();
    source
}

type Change = fn(packfs::Pack, &Path) -> packfs::Pack;
type Way = (&'static str, &'static str, &'static [(&'static str, &'static str)], Change);

/// Format, codec, options of the format, and what else is asked for.
const WAYS: &[Way] = &[
    ("squashfs", "gzip:1", &[("fragments", "always")], |pack, _| pack),
    ("squashfs", "zstd:1", &[("fragments", "off"), ("duplicates", "keep")], |pack, _| {
        pack.with(|options| options.offset = 4096)
    }),
    ("squashfs", "lz4", &[("holes", "off"), ("uncompressed", "all")], |pack, _| pack),
    ("squashfs", "none", &[], |pack, _| pack.block_size(1 << 20)),
    ("erofs", "lz4", &[], |pack, _| pack),
    ("erofs", "zstd:1", &[("fragments", "all")], |pack, _| pack.with(|options| options.offset = 8192)),
    ("erofs", "none", &[], |pack, _| pack),
    ("erofs", "lz4", &[("times", "epoch")], |pack, _| pack),
    ("erofs", "zstd:1", &[("dedupe", "ranges")], |pack, _| pack.jobs(1)),
    ("erofs", "lz4", &[], |pack, folder| pack.option("device", folder.join("blob").to_str().unwrap())),
];

#[test]
fn every_way_of_packing_passes() {
    let folder = tempfile::tempdir().unwrap();
    let source = odd_dir(folder.path());
    for (format, codec, options, change) in WAYS {
        let output = folder.path().join("image");
        let pack = packfs::pack(&source, &output).format(*format).codec(*codec).sync(false).verify(true);
        let pack = options.iter().fold(pack, |pack, (name, value)| pack.option(*name, *value));
        let report = change(pack, folder.path()).run();
        let report = report.unwrap_or_else(|e| panic!("{format} {codec} {options:?}: {e}"));
        assert!(report.stages.iter().any(|row| row.stage == packfs::Stage::Verify));
    }
}

#[test]
fn what_is_made_of_an_image_passes() {
    let folder = tempfile::tempdir().unwrap();
    let source = odd_dir(folder.path());
    let image = |name: &str| folder.path().join(name);
    for format in ["squashfs", "erofs"] {
        let options = packfs::PackOptions {
            format: Some(format.into()),
            codec: Some("zstd:1".into()),
            sync: false,
            verify: Some(true),
            ..Default::default()
        };
        let made = |pack: packfs::Pack| {
            pack.format(format)
                .codec("zstd:1")
                .sync(false)
                .verify(true)
                .run()
                .unwrap_or_else(|e| panic!("{e}"))
        };
        made(packfs::pack(&source, image("old")));
        packfs::repack(image("old"), image("again")).options(options.clone()).run().unwrap();
        packfs::repack(image("old"), image("trusted")).trust(true).options(options.clone()).run().unwrap();
        std::fs::write(source.join("new"), format).unwrap();
        assert!(made(packfs::pack(&source, image("next")).base(image("old"))).base_blocks > 0);
        made(
            packfs::pack(&source, image("next-by-times"))
                .base(image("old"))
                .with(|options| options.base_check = packfs::BaseCheck::Times),
        );
        let other = if format == "erofs" { "squashfs" } else { "erofs" };
        packfs::repack(image("old"), image("converted"))
            .format(other)
            .lossy(true)
            .verify(true)
            .run()
            .unwrap();
    }
}

#[test]
fn large_trees_are_verified_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::File::create(source.join("hole")).unwrap().set_len(1 << 30).unwrap();
    let verified = |pack: packfs::Pack| {
        let report = pack.sync(false).run().unwrap();
        report.stages.iter().any(|row| row.stage == packfs::Stage::Verify)
    };
    let output = folder.path().join("image.sqfs");
    assert!(!verified(packfs::pack(&source, &output)));
    assert!(verified(packfs::pack(&source, &output).verify(true)));
    std::fs::write(source.join("hole"), "short").unwrap();
    assert!(verified(packfs::pack(&source, &output)));
    assert!(!verified(packfs::pack(&source, &output).verify(false)));
}
