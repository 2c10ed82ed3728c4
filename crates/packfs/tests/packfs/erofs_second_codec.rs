//! Files whose clusters are compressed with two codecs: the kernel, erofs-utils and packfs read
//! what was packed.

use crate::common::{Wish, erofs, read_image};
use packfs_core::{Held, Tree};
use packfs_testkit::{Compare, Mount, Random, is_root, peer, skip, snapshot_dir, snapshot_tree, tree_of};
use std::path::Path;

/// Files that begin with what only zstd and its like make much smaller, and go on with noise that
/// recurs, which LZ4 gets as far down.
fn mixed_tree() -> (Tree, Held) {
    let mut random = Random::new(11);
    let mut file = |(name, text_len, noise_len)| {
        let mut bytes = random.text(text_len);
        for _ in 0..noise_len / 6300 {
            bytes.extend(random.noise(700).repeat(9));
        }
        bytes.extend(random.text(text_len / 2));
        (name, bytes)
    };
    tree_of(
        [("small", 9000, 9000), ("large", 400_000, 1_500_000), ("text", 70_000, 0), ("twice", 0, 90_000)]
            .map(&mut file),
    )
}

fn facts(image: &Path, key: &str) -> String {
    format!("{:?}", packfs::open(image).unwrap().volume().facts().unwrap().get(key))
}

#[test]
fn the_kernel_and_erofs_utils_read_two_codecs_in_one_file() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let (tree, contents) = mixed_tree();
    let expected = snapshot_tree(&tree, &contents);
    let compare = Compare { nanos: true, ..Compare::default() };
    for (codec, block_len, options) in [
        ("zstd:3+lz4", 4096, &[("fragments", "off")][..]),
        ("zstd:3+lz4", 16 << 10, &[("fragments", "off"), ("index", "full")]),
        ("zstd:3+lz4", 16 << 10, &[("fragments", "off"), ("index", "compact"), ("inline-tails", "off")]),
        ("zstd:3+lz4hc:9", 64 << 10, &[]),
        ("deflate:6+lz4", 16 << 10, &[("fragments", "all")]),
        ("lzma:1+lz4", 16 << 10, &[("dedupe", "ranges"), ("fragments", "off")]),
        ("zstd:3+lz4", 16 << 10, &[("index", "extents"), ("fragments", "off")]),
        ("zstd:3+lz4", 64 << 10, &[("byte-aligned", "on")]),
        ("lz4", 16 << 10, &[("fragments", "off"), ("rule", "large=zstd:3+deflate:6@8K")]),
    ] {
        let what = format!("{codec} {block_len} {options:?}");
        let folder = tempfile::tempdir().unwrap();
        let wish = Wish { codec, block_len, options, ..Wish::default() };
        let image = erofs(&tree, &contents, wish, folder.path(), "mixed");
        let named = facts(&image, "codec");
        assert!(named.matches('"').count() >= 4, "{what}: two codecs are used, but only {named}");
        let by_index = options.iter().all(|&(name, value)| value != "extents" && name != "byte-aligned");
        assert_eq!(facts(&image, "features").contains("compr_head2"), by_index, "{what}");
        let mount = Mount::new(&image, "erofs").unwrap_or_else(|e| panic!("{what}: {e}"));
        expected.assert_same(&snapshot_dir(&mount.path()), compare, &what);
        drop(mount);
        let (read, findings) = read_image(&image);
        expected.assert_same(&read, compare, &what);
        assert_eq!(findings, [], "{what}");
        if let Some(fsck) = peer("fsck.erofs") {
            let output = fsck.command(&[&"--extract", &image]).output().unwrap();
            let text = [output.stdout, output.stderr].concat();
            assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&text));
        }
        if let Some(erofsfuse) = peer("erofsfuse") {
            let mount = Mount::fuse(&erofsfuse, &image).unwrap();
            let compare = Compare { xattrs: false, hard_links: false, ..Compare::default() };
            expected.assert_same(&snapshot_dir(&mount.path()), compare, &what);
        }
    }
}

#[test]
fn the_second_codec_costs_hardly_any_space() {
    let (tree, contents) = mixed_tree();
    let folder = tempfile::tempdir().unwrap();
    let len = |codec| {
        let wish = Wish { codec, block_len: 64 << 10, options: &[("kernel", "6.12")], ..Wish::default() };
        std::fs::metadata(erofs(&tree, &contents, wish, folder.path(), "mixed")).unwrap().len()
    };
    let (one, two, other) = (len("zstd:3"), len("zstd:3+lz4"), len("lz4"));
    assert!(two <= one + one / 32 + 4096, "{one} and {two}");
    assert!(two < other, "{two} and {other}");
}

#[test]
fn reports_wrong_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |codec: &str, option: (&str, &str)| {
        let pack = packfs::pack(folder.path(), folder.path().join("x.erofs")).codec(codec);
        let error = pack.option(option.0, option.1).run().unwrap_err();
        assert_eq!(error.kind(), packfs::ErrorKind::Usage);
        error.to_string()
    };
    let kernel = ("kernel", "6.12");
    for pair in ["lz4+lz4hc", "zstd+none", "none+lz4", "zstd+zstd:9"] {
        assert!(refused(pair, kernel).contains("two different ones are allowed"), "{pair}");
    }
    assert!(refused("zstd+lz4+lzma", kernel).contains("lzma"));
    let text = refused("lzma+lz4", ("kernel", "5.15"));
    assert!(text.contains("needs Linux 5.16"), "{text}");
    assert!(refused("zstd+lz4", ("codecs", "one")).contains("lz4, zstd"));
}
