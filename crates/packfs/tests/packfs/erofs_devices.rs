//! Images whose data lie in a file of their own: the kernel mounts the two together, packfs reads
//! and converts them.
//!
//! erofs-utils 1.9 are no judge here: they look for such data in the wrong file.

use crate::common::{Wish, erofs};
use packfs_core::Silent;
use packfs_testkit::{Compare, Mount, is_root, odd_tree, skip, snapshot_dir, snapshot_tree};
use std::path::PathBuf;

fn all() -> Compare {
    Compare { nanos: true, ..Compare::default() }
}

/// Packs the odd tree with its data beside the image; both paths.
fn packed(wish: Wish<'_>, folder: &std::path::Path) -> (PathBuf, PathBuf) {
    let (tree, contents) = odd_tree(wish.block_len as usize, true);
    let blob = folder.join("blob");
    let blob_text = blob.to_str().unwrap().to_owned();
    let options: Vec<(&str, &str)> =
        wish.options.iter().copied().chain([("device", blob_text.as_str())]).collect();
    let image = erofs(&tree, &contents, Wish { options: &options, ..wish }, folder, "image");
    (image, blob)
}

/// Image and device in one file.
fn joined(image: &std::path::Path, blob: &std::path::Path) -> PathBuf {
    let whole = image.with_extension("whole");
    std::fs::write(&whole, [std::fs::read(image).unwrap(), std::fs::read(blob).unwrap()].concat()).unwrap();
    whole
}

#[test]
fn the_kernel_and_packfs_read_every_layout_from_a_device() {
    if !is_root() {
        return skip("mounting needs root");
    }
    for (codec, options) in [
        ("none", &[][..]),
        ("none", &[("chunks", "4K")]),
        ("none", &[("chunks", "4K"), ("chunk-indexes", "on")]),
        ("lz4hc:3", &[]),
        ("lz4hc:3", &[("fragments", "off"), ("inline-tails", "on")]),
        ("lz4hc:3", &[("fragments", "off"), ("index", "compact"), ("inline-tails", "off")]),
        ("lz4hc:3", &[("dedupe", "ranges"), ("index", "full")]),
        ("zstd:3", &[("index", "extents")]),
        ("zstd:3", &[("byte-aligned", "on")]),
        ("lz4hc:3", &[("metabox", "16K")]),
        ("lz4hc:3", &[("block", "512")]),
        ("lz4hc:3", &[("align", "1M")]),
    ] {
        let what = format!("{codec} {options:?}");
        let folder = tempfile::tempdir().unwrap();
        let wish = Wish { codec, block_len: 16 << 10, options, ..Wish::default() };
        let (image, blob) = packed(wish, folder.path());
        let (tree, contents) = odd_tree(16 << 10, true);
        let expected = snapshot_tree(&tree, &contents);
        let mount = Mount::with_devices(&image, "erofs", &[&blob]).unwrap_or_else(|e| panic!("{what}: {e}"));
        expected.assert_same(&snapshot_dir(&mount.path()), all(), &what);
        drop(mount);
        let opened = packfs::OpenOptions::new().device(&blob).open(&image).unwrap();
        let loaded = opened.load(&Silent).unwrap();
        snapshot_tree(&loaded.tree, &**opened.engine()).assert_same(&expected, all(), &what);
        let mut findings = Vec::new();
        opened.volume().check(&mut |finding| findings.push(finding)).unwrap();
        assert_eq!(findings, [], "{what}");
    }
}

#[test]
fn the_device_may_also_lie_behind_the_image() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let wish = Wish { codec: "lz4hc:3", block_len: 16 << 10, ..Wish::default() };
    let (image, blob) = packed(wish, folder.path());
    let whole = joined(&image, &blob);
    let (tree, contents) = odd_tree(16 << 10, true);
    let expected = snapshot_tree(&tree, &contents);
    let mount = Mount::new(&whole, "erofs").unwrap();
    expected.assert_same(&snapshot_dir(&mount.path()), all(), "kernel");
    let opened = packfs::open(&whole).unwrap();
    let loaded = opened.load(&Silent).unwrap();
    snapshot_tree(&loaded.tree, &**opened.engine()).assert_same(&expected, all(), "packfs");
}

#[test]
fn only_metadata_is_in_the_image_and_the_threads_do_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let wish = Wish { codec: "none", block_len: 4096, ..Wish::default() };
    let bytes = |jobs| {
        let wish = Wish { jobs, ..wish };
        let (image, blob) = packed(wish, folder.path());
        (std::fs::read(image).unwrap(), std::fs::read(blob).unwrap())
    };
    let (image, blob) = bytes(1);
    let (tree, contents) = odd_tree(4096, true);
    let alone =
        std::fs::metadata(erofs(&tree, &contents, wish, folder.path(), "alone")).unwrap().len() as usize;
    assert!(
        blob.len() > 32 << 10 && image.len() + blob.len() == alone,
        "{} {} {alone}",
        image.len(),
        blob.len()
    );
    assert!(bytes(8) == (image, blob));
}

#[test]
fn an_image_with_a_device_is_a_source_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let wish = Wish { codec: "lz4hc:3", block_len: 16 << 10, ..Wish::default() };
    let (image, blob) = packed(wish, folder.path());
    let again = folder.path().join("again.erofs");
    packfs::pack(&image, &again)
        .with(|options| options.source = packfs::OpenOptions::new().device(&blob))
        .codec("zstd:3")
        .sync(false)
        .run()
        .unwrap();
    let load = |options: packfs::OpenOptions, path: &PathBuf| {
        let opened = options.open(path).unwrap();
        let loaded = opened.load(&Silent).unwrap();
        snapshot_tree(&loaded.tree, &**opened.engine())
    };
    let expected = load(packfs::OpenOptions::new().device(&blob), &image);
    load(packfs::OpenOptions::new(), &again).assert_same(&expected, all(), "packed again");
}

#[test]
fn reports_wrong_device_options() {
    let folder = tempfile::tempdir().unwrap();
    let (source, image) = (folder.path().join("source"), folder.path().join("x.erofs"));
    std::fs::create_dir(&source).unwrap();
    let to = |path: &std::path::Path| {
        let pack = packfs::pack(&source, &image).option("device", path.to_str().unwrap());
        pack.sync(false).run().err().map(|error| (error.kind(), error.to_string()))
    };
    let (kind, text) = to(&image).unwrap();
    assert_eq!(kind, packfs::ErrorKind::Usage);
    assert!(text.contains("both the image and its data file"), "{text}");
    let error =
        packfs::pack(&source, &image).option("device", "b").option("kernel", "5.15").run().unwrap_err();
    assert!(error.to_string().contains("device needs Linux 5.16"), "{error}");
    let error = packfs::pack(&source, &image)
        .with(|options| options.source = packfs::OpenOptions::new().device("b"))
        .run()
        .unwrap_err();
    assert!(error.to_string().contains("a directory, not an image"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing but the source");
    assert!(to(&folder.path().join("blob")).is_none(), "without any data, too");
}
