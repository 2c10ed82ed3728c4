//! Rules of names: prefixes, conflicts, whiteouts.

use packfs::source::{Loaded, Notes};
use packfs::{
    DataPlace, DeviceNumber, ErrorKind, ImagePath, Merge, Meta, NodeKind, OnConflict, Opened, TreeBuilder,
    Xattrs,
};
use packfs_core::Held;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Packs files with these contents; a path that ends in a slash is a directory, one in `=` a
/// character device 0:0, and one in `!` an opaque directory.
fn image(folder: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let (mut tree, mut held) = (TreeBuilder::new(Meta { mode: 0o755, ..Meta::default() }), Held::default());
    for (path, text) in files {
        let meta = Meta { mode: 0o644, ..Meta::default() };
        let mut xattrs = Xattrs::new();
        let kind = match path.as_bytes().last() {
            Some(b'/') => NodeKind::Directory,
            Some(b'=') => NodeKind::CharDevice(DeviceNumber { major: 0, minor: 0 }),
            Some(b'!') => {
                xattrs.insert(b"trusted.overlay.opaque".to_vec(), b"y".to_vec());
                NodeKind::Directory
            }
            _ => NodeKind::File { len: text.len() as u64, content: held.push(text.as_bytes()) },
        };
        let path = ImagePath::parse(path.trim_end_matches(['/', '=', '!']).as_bytes()).unwrap();
        tree.add(&path, kind, meta, xattrs).unwrap();
    }
    let loaded = Loaded { tree: tree.finish().unwrap(), contents: Arc::new(held), notes: Notes::default() };
    let output = folder.join(name);
    packfs::Pack::of_loaded(Arc::new(loaded), &output).run().unwrap();
    output
}

fn paths(image: &Opened) -> Vec<String> {
    image.walk().map(|entry| entry.unwrap().path.to_string()).filter(|path| path != "/").collect()
}

fn merge(folder: &Path, images: &[&PathBuf]) -> Merge {
    packfs::merge(images, folder.join("merged.sqfs"))
}

fn merged(merge: &Merge, folder: &Path) -> Opened {
    merge.run().unwrap_or_else(|error| panic!("{error}"));
    packfs::open(folder.join("merged.sqfs")).unwrap()
}

#[test]
fn an_image_is_mounted_at_a_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let a = image(folder, "a.sqfs", &[("usr/bin/a", "a")]);
    let b = image(folder, "b.sqfs", &[("b", "b")]);
    let merge = merge(folder, &[&a]).at("usr/share/x", &b).unwrap().at("opt", &b).unwrap();
    let opened = merged(&merge, folder);
    assert_eq!(
        paths(&opened),
        ["opt", "opt/b", "usr", "usr/bin", "usr/bin/a", "usr/share", "usr/share/x", "usr/share/x/b"]
    );
    assert_eq!(opened.read("usr/share/x/b").unwrap(), b"b");
}

#[test]
fn paths_in_conflict_are_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let a = image(folder, "a.sqfs", &[("etc/hosts", "a"), ("etc/x", "1")]);
    let b = image(folder, "b.sqfs", &[("etc/hosts", "b"), ("etc/y", "2")]);
    let error = merge(folder, &[&a, &b]).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    let text = error.to_string();
    assert!(
        text.contains("\"etc/hosts\" is in ") && text.contains("a.sqfs") && text.contains("b.sqfs"),
        "{text}"
    );
    assert!(!text.contains("etc/x"), "{text}");
    assert!(error.hints()[0].contains("--on-conflict last"));
    let names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn the_last_image_wins_if_that_is_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let a = image(folder, "a.sqfs", &[("dir/old", "a"), ("file", "a"), ("kept", "a"), ("x/y", "a")]);
    let b = image(folder, "b.sqfs", &[("dir", "b"), ("file/new", "b"), ("x/y", "b"), ("x/z", "b")]);
    let c = image(folder, "c.sqfs", &[("dir/newest", "c")]);
    let last = |images: &[&PathBuf]| merge(folder, images).on_conflict(OnConflict::LastWins);
    let opened = merged(&last(&[&a, &b]), folder);
    assert_eq!(paths(&opened), ["dir", "file", "file/new", "kept", "x", "x/y", "x/z"]);
    assert_eq!(opened.read("x/y").unwrap(), b"b");
    // A directory over a file over a directory holds nothing of the latter.
    let opened = merged(&last(&[&a, &b, &c]), folder);
    assert_eq!(paths(&opened)[..2], ["dir", "dir/newest"]);
    assert_eq!(opened.read("dir/newest").unwrap(), b"c");
    let report = last(&[&a, &b]).run().unwrap().report;
    assert_eq!(report.replaced, 3);
}

#[test]
fn whiteouts_hide_what_earlier_images_have() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lower = image(folder, "lower.sqfs", &[("a", "1"), ("b/c", "1"), ("d/e", "1"), ("f", "1")]);
    let upper = image(folder, "upper.sqfs", &[("a=", ""), ("b!", ""), ("b/n", "2"), ("d=", ""), ("g=", "")]);
    let applied = merge(folder, &[&lower, &upper]).apply_whiteouts();
    let opened = merged(&applied, folder);
    assert_eq!(paths(&opened), ["b", "b/n", "f"]);
    assert!(opened.volume().xattrs(opened.find("b").unwrap()).unwrap().is_empty());
    let error = merge(folder, &[&lower, &upper]).run().unwrap_err();
    assert!(error.to_string().contains("2 paths are in several images"), "{error}");
}

#[test]
fn images_that_cannot_lie_in_one_are_refused_with_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pack = |name: &str, codec: &str, block_size: u32| {
        let output = folder.join(name);
        let pack = packfs::pack_files([(name, "text")], &output).unwrap();
        pack.codec(codec).block_size(block_size).run().unwrap();
        output
    };
    let zstd = pack("zstd.sqfs", "zstd", 128 << 10);
    let cases = [
        (pack("gzip.sqfs", "gzip", 128 << 10), "codec gzip"),
        (pack("long.sqfs", "zstd", 1 << 20), "blocks of 1048576 bytes"),
        (pack("other.erofs", "lz4", 16 << 10), "it is erofs"),
    ];
    for (other, expected) in cases {
        let error = merge(folder, &[&zstd, &other]).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        let text = error.to_string();
        assert!(text.contains(expected) && text.contains("zstd.sqfs"), "{text}");
    }
    let error = merge(folder, &[&zstd]).data(DataPlace::Inputs).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    let iso = folder.join("a.iso");
    packfs::pack_files([("a", "text")], &iso).unwrap().format("iso9660").run().unwrap();
    let error = merge(folder, &[&iso]).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}
