//! Every layout that mkfs.erofs writes, read by packfs as the kernel reads it: equal walks, equal contents.

mod common;

use common::read_image;
use packfs_core::Finding;
use packfs_testkit::{
    Compare, Mount, Peer, Snapshot, is_root, odd_tree, peer, skip, snapshot_dir, write_dir,
};
use std::path::Path;

/// One image: its name, and what mkfs.erofs is asked for.
type Row = (&'static str, &'static [&'static str]);

const LAYOUTS: &[Row] = &[
    ("plain", &["-E^inline_data"]),
    ("inline", &[]),
    ("inline, compact inodes", &["-Eforce-inode-compact"]),
    ("inline, extended inodes", &["-Eforce-inode-extended"]),
    ("inline, 1K blocks", &["-b1024"]),
    ("inline, 512-byte blocks", &["-b512"]),
    ("inline, plain times", &["-T1000000000", "--all-time"]),
    ("inline, 48 bits", &["-E48bit"]),
    ("dot omitted", &["-Edot-omitted"]),
    ("chunks", &["--chunksize=4096"]),
    ("chunks of 16K, block map", &["--chunksize=16384", "-Eforce-inode-blockmap"]),
    ("chunks of 64K, indexes", &["--chunksize=65536", "-Eforce-chunk-indexes"]),
    ("chunks, 512-byte blocks", &["-b512", "--chunksize=4096"]),
    ("no shared xattrs", &["-x65535"]),
    ("all xattrs shared", &["-x0"]),
    ("xattr prefix", &["--xattr-prefix=user.o", "--xattr-prefix=trusted.overlay."]),
    ("plain xattr prefix", &["-Eplain-xattr-prefixes", "--xattr-prefix=user.o"]),
    ("no checksum", &["-Enosbcrc"]),
    ("metadata zone", &["--MZ=id"]),
];

const CLUSTERS: &[Row] = &[
    ("lz4", &["-zlz4"]),
    ("lz4hc", &["-zlz4hc,12"]),
    ("lzma", &["-zlzma,1"]),
    ("deflate", &["-zdeflate,1"]),
    ("libdeflate", &["-zlibdeflate,1"]),
    ("zstd", &["-zzstd,1"]),
    ("lz4 4K", &["-zlz4", "-C4096"]),
    ("lz4 16K", &["-zlz4", "-C16384"]),
    ("lz4 1M", &["-zlz4", "-C1048576"]),
    ("lzma 1M", &["-zlzma,1", "-C1048576"]),
    ("deflate 16K", &["-zdeflate,1", "-C16384"]),
    ("zstd 64K", &["-zzstd,1", "-C65536"]),
    ("zstd 1M", &["-zzstd,1", "-C1048576"]),
    ("full index", &["-zlz4", "-Elegacy-compress"]),
    ("full index, 64K", &["-zlz4", "-C65536", "-Elegacy-compress"]),
    ("tail packing", &["-zlz4", "-Eztailpacking"]),
    ("tail packing, 64K", &["-zlz4hc,12", "-C65536", "-Eztailpacking"]),
    ("tail packing, full index", &["-zlz4", "-Eztailpacking,legacy-compress"]),
    ("tail packing, zstd", &["-zzstd,1", "-C16384", "-Eztailpacking"]),
    ("fragments", &["-zlz4", "-C16384", "-Efragments"]),
    ("fragments, full index", &["-zlz4", "-C16384", "-Efragments,legacy-compress"]),
    ("fragments, lzma", &["-zlzma,1", "-C65536", "-Efragments"]),
    ("all fragments", &["-zzstd,1", "-C65536", "-Eall-fragments"]),
    ("all fragments, deflate", &["-zdeflate,1", "-C65536", "-Eall-fragments"]),
    ("dedupe", &["-zlz4", "-C16384", "-Ededupe"]),
    ("dedupe, lzma", &["-zlzma,1", "-C65536", "-Ededupe"]),
    ("dedupe, deflate", &["-zdeflate,1", "-C65536", "-Ededupe"]),
    ("dedupe, zstd", &["-zzstd,1", "-C65536", "-Ededupe"]),
    ("dedupe and fragments", &["-zlz4hc,1", "-C65536", "-Ededupe,all-fragments"]),
    ("48 bits, lz4", &["-zlz4", "-C65536", "-E48bit"]),
    ("48 bits, lzma", &["-zlzma,1", "-C65536", "-E48bit"]),
    ("48 bits, deflate", &["-zdeflate,1", "-C65536", "-E48bit"]),
    ("48 bits, zstd", &["-zzstd,1", "-C65536", "-E48bit"]),
    ("48 bits, zstd 4K", &["-zzstd,1", "-C4096", "-E48bit"]),
    ("48 bits, fragments", &["-zzstd,1", "-C65536", "-E48bit,fragments"]),
    ("48 bits, all fragments", &["-zzstd,1", "-C65536", "-E48bit,all-fragments"]),
    ("48 bits, dedupe", &["-zzstd,1", "-C65536", "-E48bit,dedupe"]),
    ("48 bits, dedupe and fragments", &["-zlz4", "-C65536", "-E48bit,dedupe,fragments"]),
    ("48 bits, short extents", &["-zzstd,1", "-C65536", "-E48bit", "--max-extent-bytes=65536"]),
    ("48 bits, unaligned extents", &["-zzstd,1", "-C65536", "-E48bit", "--max-extent-bytes=-65536"]),
    ("metabox", &["-zlz4", "-C65536", "-m65536"]),
    ("metabox, zstd", &["-zzstd,1", "-C65536", "-E48bit,fragments", "-m65536"]),
    ("metabox of its own codec", &["-m16384:zstd,3", "-zlz4:zstd,3", "-C16384"]),
    ("metabox and tail packing", &["-zlz4", "-C65536", "-Eztailpacking", "-m65536"]),
    ("metabox and xattr prefix", &["-zlz4", "-C65536", "-m65536", "--xattr-prefix=user.o"]),
    ("fragments and xattr prefix", &["-zlz4", "-Efragments", "--xattr-prefix=user.o"]),
    ("directories compressed", &["-zlz4", "-C16384", "-Efragments", "--zD=0"]),
    ("512-byte blocks, lz4", &["-zlz4", "-b512"]),
    ("512-byte blocks, 64K", &["-zzstd,1", "-b512", "-C65536"]),
    ("1K blocks, lzma", &["-zlzma,1", "-b1024", "-C16384"]),
    ("2K blocks, tail packing", &["-zlz4", "-b2048", "-Eztailpacking"]),
    ("1K blocks, fragments", &["-zdeflate,1", "-b1024", "-C8192", "-Efragments"]),
    ("512-byte blocks, 48 bits", &["-zzstd,1", "-b512", "-C16384", "-E48bit"]),
    ("512-byte blocks, dedupe", &["-zlz4", "-b512", "-C16384", "-Ededupe"]),
];

fn make(mkfs: &Peer, options: &[&str], image: &Path, sources: &[&Path]) -> Result<(), String> {
    let _ = std::fs::remove_file(image);
    let mut command = mkfs.command(&[]);
    command
        .args(["--quiet", "-U5f0bbb74-d0ba-4ba5-a69f-65d5d5d9d0ba"])
        .args(options)
        .arg(image)
        .args(sources);
    let output = command.output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

/// Reads an image and compares it with the kernel's mount; returns what packfs and its check say.
#[track_caller]
fn agrees_with_the_kernel(image: &Path, what: &str) -> (Snapshot, Vec<Finding>) {
    let (snapshot, findings) = read_image(image);
    let mount = Mount::new(image, "erofs").unwrap_or_else(|e| panic!("{what}: {e}"));
    let compare = Compare { nanos: true, ..Compare::default() };
    snapshot.assert_same(&snapshot_dir(&mount.path()), compare, what);
    (snapshot, findings)
}

fn agrees_on(rows: &[Row], block_len: usize) {
    let Some(mkfs) = peer("mkfs.erofs").filter(|_| is_root()) else {
        return skip("mounting and owners need root");
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(block_len, true);
    write_dir(&tree, &contents, &source);
    let expected = snapshot_dir(&source);
    let image = folder.path().join("image");
    for (what, options) in rows {
        make(&mkfs, options, &image, &[&source]).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (snapshot, findings) = agrees_with_the_kernel(&image, what);
        assert_eq!(findings, [], "{what}");
        for (path, row) in &expected.0 {
            let found = snapshot.0.get(path).unwrap_or_else(|| panic!("{what}: {path:?} is missing"));
            assert_eq!(found.content, row.content, "{what}: {path:?}");
        }
        assert_eq!(snapshot.0.len(), expected.0.len(), "{what}");
    }
}

#[test]
fn agrees_with_the_kernel_on_every_layout_without_compression() {
    agrees_on(LAYOUTS, 4096);
}

#[test]
fn agrees_with_the_kernel_on_every_layout_of_clusters() {
    agrees_on(CLUSTERS, 64 << 10);
}
