//! `st_blocks` through FUSE is what the kernel's own mount says of the same image.

use packfs::mount::{FuseMount, FuseOptions};
use packfs::{ImagePath, OpenOptions};
use packfs_testkit::{Mount, Random, is_root, skip};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::sync::Arc;

/// Format, codec, options of the format.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const ROWS: [Row; 13] = [
    ("squashfs", "zstd:3", &[]),
    ("squashfs", "zstd:3", &[("holes", "off")]),
    ("squashfs", "none", &[("fragments", "off")]),
    ("erofs", "none", &[]),
    ("erofs", "none", &[("chunks", "4K")]),
    ("erofs", "none", &[("block", "512")]),
    ("erofs", "lz4", &[("kernel", "5.4")]),
    ("erofs", "zstd:3", &[]),
    ("erofs", "zstd:3", &[("fragments", "all")]),
    ("erofs", "zstd:3", &[("fragments", "off"), ("inline-tails", "on"), ("index", "full")]),
    ("erofs", "zstd:3", &[("48bit", "on"), ("index", "extents")]),
    ("erofs", "lz4", &[("dedupe", "ranges")]),
    ("erofs", "deflate:1", &[("metabox", "16K")]),
];

fn write_source(at: &Path) {
    fs::create_dir_all(at.join("dir/deep")).unwrap();
    let mut random = Random::new(9);
    for (name, bytes) in [
        ("text", random.text(700_001)),
        ("dir/noise", random.noise(300_000)),
        ("dir/small", random.text(777)),
        ("dir/deep/again", vec![7; 100_000]),
        ("empty", vec![]),
        ("one", vec![1]),
    ] {
        fs::write(at.join(name), bytes).unwrap();
    }
    let sparse = File::create(at.join("sparse")).unwrap();
    sparse.set_len(3 << 20).unwrap();
    sparse.write_all_at(&random.noise(200_000), 1 << 20).unwrap();
    symlink("text", at.join("link")).unwrap();
}

fn blocks(at: &Path) -> BTreeMap<String, u64> {
    let names = [
        "text",
        "dir/noise",
        "dir/small",
        "dir/deep/again",
        "empty",
        "one",
        "sparse",
        "link",
        "dir",
        "dir/deep",
    ];
    let of = |name: &str| (name.to_owned(), fs::symlink_metadata(at.join(name)).unwrap().blocks());
    names.into_iter().map(of).collect()
}

#[test]
fn a_mount_through_fuse_counts_blocks_as_the_kernel_does() {
    if !is_root() || File::options().read(true).write(true).open("/dev/fuse").is_err() {
        return skip("mounting needs root and /dev/fuse");
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, image, at) =
        (folder.path().join("source"), folder.path().join("image"), folder.path().join("at"));
    write_source(&source);
    fs::create_dir(&at).unwrap();
    for (format, codec, options) in ROWS {
        let what = format!("{format} {codec} {options:?}");
        let pack = packfs::pack(&source, &image).format(format).codec(codec).sync(false);
        let pack = options.iter().fold(pack, |pack, (name, value)| pack.option(*name, *value));
        pack.run().unwrap_or_else(|e| panic!("{what}: {e}"));
        let kernel = Mount::new(&image, format).unwrap_or_else(|e| panic!("{what}: {e}"));
        let opened = OpenOptions::new().jobs(1).open(&image).unwrap();
        let fuse_options = FuseOptions::new(opened.volume().root(), &image);
        let fuse = FuseMount::new(Arc::clone(opened.engine()), &at, &fuse_options).unwrap();
        assert_eq!(blocks(fuse.at()), blocks(&kernel.path()), "{what}");
    }
}

/// Block counts of Linux 6.1 for images of this source, taken once in a virtual machine, because
/// not every kernel has the drivers.
#[test]
fn blocks_of_formats_without_a_driver_here_are_those_that_linux_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (source, image) = (folder.path().join("source"), folder.path().join("image"));
    fs::create_dir_all(source.join("dir")).unwrap();
    fs::write(source.join("text"), "hello\n".repeat(50_000)).unwrap();
    fs::write(source.join("dir/small"), "a\n").unwrap();
    fs::write(source.join("empty"), "").unwrap();
    symlink("text", source.join("link")).unwrap();
    let names = ["text", "dir/small", "empty", "link", "dir"];
    for (format, codec, counted) in [
        ("iso9660", "none", [586, 1, 0, 0, 4]),
        ("iso9660", "gzip", [2, 1, 0, 0, 4]),
        ("cramfs", "gzip", [586, 1, 0, 1, 1]),
    ] {
        packfs::pack(&source, &image).format(format).codec(codec).lossy(true).sync(false).run().unwrap();
        let opened = packfs::open(&image).unwrap();
        let count = |path: &str| {
            let id = opened.find(ImagePath::parse(path.as_bytes()).unwrap()).unwrap();
            opened.volume().inode(id).unwrap().sectors
        };
        assert_eq!(names.map(count), counted, "{format} {codec}");
    }
}
