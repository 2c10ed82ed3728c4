//! The damage matrix on EROFS images; see `common/damage.rs`.

use crate::common::damage::survives;
use crate::common::{Wish, erofs};
use packfs_testkit::{is_root, odd_tree, peer, plain_tree, skip, write_dir};

/// Makes images of a tree with mkfs.erofs and damages them.
fn survive(
    tree: &packfs_core::Tree,
    contents: &packfs_core::Held,
    rows: &[&[&str]],
    each: u64,
    unpacking: bool,
) {
    let Some(mkfs) = peer("mkfs.erofs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (source, image) = (folder.path().join("source"), folder.path().join("image"));
    std::fs::create_dir(&source).unwrap();
    write_dir(tree, contents, &source);
    for options in rows {
        let _ = std::fs::remove_file(&image);
        let mut command = mkfs.command(&[]);
        command.args(["--quiet", "-Uclear", "-T1700000000"]).args(*options).arg(&image).arg(&source);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
        survives(&std::fs::read(&image).unwrap(), each, unpacking, &format!("{options:?}"));
    }
}

#[test]
fn damage_to_any_structure_is_survived() {
    let (tree, contents) = plain_tree();
    let rows: [&[&str]; 4] = [
        &["-zlz4", "-C16384", "-Eztailpacking"],
        &["-zzstd,1", "-C65536", "-Efragments"],
        &["-zlzma,1", "-C65536", "-Ededupe,legacy-compress"],
        &["-zdeflate,1", "-C65536", "-E48bit,fragments", "-m65536"],
    ];
    survive(&tree, &contents, &rows, 2, true);
}

#[test]
fn damage_to_what_packfs_writes_is_survived() {
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    for (codec, options) in [
        ("zstd:1+lz4", &[("fragments", "off"), ("index", "full")][..]),
        ("deflate:1+lz4", &[("fragments", "off"), ("index", "compact"), ("inline-tails", "off")]),
        ("lz4", &[("interlaced", "on")]),
        ("none", &[("chunks", "4K"), ("chunk-indexes", "on")]),
    ] {
        let wish = Wish { codec, block_len: 16 << 10, options, ..Wish::default() };
        let image = erofs(&tree, &contents, wish, folder.path(), "image");
        survives(&std::fs::read(&image).unwrap(), 1, false, &format!("{codec} {options:?}"));
    }
}

#[test]
fn damage_to_odd_things_is_survived() {
    if !is_root() {
        return skip("devices and owners need root");
    }
    let (tree, contents) = odd_tree(4096, true);
    let rows: [&[&str]; 3] = [&["-x0"], &["--chunksize=4096"], &["-zlz4", "-Eall-fragments"]];
    survive(&tree, &contents, &rows, 1, false);
}
