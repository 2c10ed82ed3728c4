//! The kernel's own mount judges what packfs writes as EROFS, and so do erofs-utils: every name,
//! fact and byte.

use crate::common::{Wish, erofs, read_image};
use packfs_core::{Held, Meta, NodeKind, Owner, Timestamp, Tree, TreeBuilder, Xattrs};
use packfs_testkit::{
    Compare, Mount, Random, is_root, odd_tree, path, peer, skip, snapshot_dir, snapshot_tree, tree_of,
};
use std::path::Path;

/// Packs the odd tree as wished; the kernel, fsck.erofs and erofsfuse must find the same in it.
#[track_caller]
fn all_agree(wish: Wish<'_>) {
    if !is_root() {
        return skip("mounting needs root");
    }
    let (tree, contents) = odd_tree(wish.block_len as usize, true);
    let folder = tempfile::tempdir().unwrap();
    let image = erofs(&tree, &contents, wish, folder.path(), "odd");
    let what = format!("{} {} {:?}", wish.codec, wish.block_len, wish.options);
    let expected = snapshot_tree(&tree, &contents);
    let mount = Mount::new(&image, "erofs").unwrap_or_else(|e| panic!("{what}: {e}"));
    expected.assert_same(&snapshot_dir(&mount.path()), Compare { nanos: true, ..Compare::default() }, &what);
    drop(mount);
    let (read, findings) = read_image(&image);
    expected.assert_same(&read, Compare { nanos: true, ..Compare::default() }, &what);
    assert!(findings.is_empty(), "{what}: {:?}", &findings[..findings.len().min(3)]);
    if let Some(fsck) = peer("fsck.erofs") {
        fsck_agrees(&fsck, &image, &what);
    }
}

/// Every file decodes, and every structure is sound.
#[track_caller]
fn fsck_agrees(fsck: &packfs_testkit::Peer, image: &Path, what: &str) {
    let output = fsck.command(&[&"--extract", &image]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&text));
}

#[test]
fn the_kernel_reads_every_codec_at_every_cluster_size() {
    for codec in ["none", "lz4", "lz4hc:9", "deflate:1", "zstd:3", "lzma:0"] {
        for block_len in [4096, 16 << 10, 64 << 10, 1 << 20] {
            all_agree(Wish { codec, block_len, ..Wish::default() });
        }
    }
}

#[test]
fn the_kernel_reads_every_option() {
    for options in [
        &[("fragments", "off")][..],
        &[("fragments", "off"), ("inline-tails", "on")],
        &[("fragments", "off"), ("inline-tails", "on"), ("index", "full")],
        &[("fragments", "off"), ("inline-tails", "on"), ("48bit", "on")],
        &[("fragments", "off"), ("index", "full")],
        &[("fragments", "off"), ("index", "compact")],
        &[("fragments", "all")],
        &[("fragments", "all"), ("packed-cluster", "256K")],
        &[("dedupe", "off")],
        &[("dedupe", "ranges")],
        &[("index", "full")],
        &[("index", "extents")],
        &[("index", "extents"), ("fragments", "off")],
        &[("byte-aligned", "on")],
        &[("byte-aligned", "on"), ("fragments", "all")],
        &[("interlaced", "on")],
        &[("interlaced", "on"), ("48bit", "on")],
        &[("interlaced", "on"), ("rule", "*=zstd:3@4K"), ("index", "full")],
        &[("48bit", "on")],
        &[("48bit", "on"), ("fragments", "off")],
        &[("metabox", "16K")],
        &[("metabox", "64K"), ("fragments", "off")],
        &[("dot-omitted", "on")],
        &[("chunks", "4K")],
        &[("chunks", "64K")],
        &[("chunks", "4K"), ("48bit", "on")],
        &[("chunks", "16K"), ("chunk-indexes", "on")],
        &[("holes", "off")],
        &[("times", "keep"), ("epoch", "0")],
        &[("epoch", "0"), ("48bit", "on")],
        &[("xattr-filter", "off")],
        &[("shared-xattrs", "off")],
        &[("prefixes", "trusted.n+trusted.own-"), ("kernel", "6.18")],
        &[("prefixes", "trusted.n+user.x."), ("fragments", "off")],
        &[("align", "1M")],
        &[("checksum", "off"), ("uuid", "none"), ("label", "fifteen bytes..")],
        &[("rule", "*.txt=zstd:3@4K"), ("rule", "many=none"), ("rule", "text-*=lzma:1@64K")],
    ] {
        all_agree(Wish { codec: "lz4hc:3", block_len: 16 << 10, options, ..Wish::default() });
    }
}

#[test]
fn the_kernel_reads_small_blocks() {
    for block in ["512", "1024", "2048"] {
        for options in [
            &[("block", block)][..],
            &[("block", block), ("fragments", "off")],
            &[("block", block), ("index", "full")],
            &[("block", block), ("index", "extents")],
            &[("block", block), ("metabox", "4K")],
        ] {
            all_agree(Wish { codec: "lz4hc:3", block_len: 8 << 10, options, ..Wish::default() });
        }
        let options = &[("block", block), ("interlaced", "on")];
        all_agree(Wish { codec: "zstd:3", block_len: 8 << 10, options, ..Wish::default() });
        all_agree(Wish {
            codec: "none",
            block_len: 8 << 10,
            options: &[("block", block)],
            ..Wish::default()
        });
    }
}

#[test]
fn the_kernel_reads_every_profile() {
    for kernel in ["5.4", "5.10", "5.15", "6.1", "6.6", "6.12", "6.18"] {
        for codec in ["none", "lz4hc:9"] {
            all_agree(Wish { codec, block_len: 4096, options: &[("kernel", kernel)], ..Wish::default() });
        }
    }
}

/// A tree of one file for each of these times.
fn tree_of_times(times: &[Timestamp]) -> (Tree, Held) {
    let mut contents = Held::default();
    let mut builder = TreeBuilder::new(Meta { mode: 0o755, ..Meta::default() });
    for (index, &mtime) in times.iter().enumerate() {
        let kind = NodeKind::File { len: 1, content: contents.push(vec![b'x']) };
        let path = path(format!("file{index}"));
        let owner = Owner { uid: 1_000_000 * (index as u32 % 2), gid: 0 };
        builder.add(&path, kind, Meta { mode: 0o644, owner, mtime }, Xattrs::new()).unwrap();
    }
    (builder.finish().unwrap(), contents)
}

#[test]
fn times_before_1970_after_2106_and_between_seconds_are_kept_in_every_mode() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let at = |seconds, nanos| Timestamp { seconds, nanos };
    let most = [at(1_700_000_000, 5); 10];
    let odd =
        [at(-157_766_400, 0), at(-1, 999_999_999), at(0, 0), at(1_700_000_001, 5), at(7_258_118_400, 0)];
    let (tree, contents) = tree_of_times(&[&most[..], &odd].concat());
    for options in [
        &[][..],
        &[("48bit", "on")],
        &[("48bit", "on"), ("epoch", "0")],
        &[("epoch", "-5000")],
        &[("kernel", "5.4")],
        &[("metabox", "4K")],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let wish = Wish { codec: "lz4", block_len: 4096, options, ..Wish::default() };
        let image = erofs(&tree, &contents, wish, folder.path(), "times");
        let mount = Mount::new(&image, "erofs").unwrap();
        let compare = Compare { nanos: true, ..Compare::default() };
        snapshot_tree(&tree, &contents).assert_same(
            &snapshot_dir(&mount.path()),
            compare,
            &format!("{options:?}"),
        );
    }
}

#[test]
fn the_same_time_for_every_file_makes_small_inodes() {
    let at = Timestamp { seconds: 1_700_000_000, nanos: 5 };
    let (tree, contents) = tree_of_times(&[at; 2000]);
    let folder = tempfile::tempdir().unwrap();
    let wish = Wish { codec: "none", ..Wish::default() };
    let kept = std::fs::metadata(erofs(&tree, &contents, wish, folder.path(), "kept")).unwrap().len();
    let each: Vec<Timestamp> = (0..2000).map(|nanos| Timestamp { seconds: 1, nanos }).collect();
    let (tree, contents) = tree_of_times(&each);
    let each = std::fs::metadata(erofs(&tree, &contents, wish, folder.path(), "each")).unwrap().len();
    assert!(kept + 1000 * 32 <= each, "{kept} and {each}");
}

#[test]
fn holes_take_no_room_and_incompressible_twins_are_stored_once() {
    let mut random = Random::new(5);
    let noise = random.noise(3 << 20);
    let (tree, contents) = tree_of([("a", noise.clone()), ("b", noise), ("zeros", vec![0; 20 << 20])]);
    for (codec, options) in [
        ("lz4hc:9", &[][..]),
        ("zstd:3", &[("fragments", "all")]),
        ("zstd:3", &[("fragments", "off"), ("inline-tails", "on"), ("dedupe", "ranges")]),
        ("none", &[("chunks", "4K")]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let wish = Wish { codec, block_len: 64 << 10, options, ..Wish::default() };
        let len = std::fs::metadata(erofs(&tree, &contents, wish, folder.path(), "twins")).unwrap().len();
        assert!(len < (3 << 20) + (256 << 10), "{codec} {options:?}: {len}");
    }
}

#[test]
fn interlaced_blocks_are_read_where_they_start_amid_a_block() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let mut random = Random::new(21);
    let mut bytes = |text: usize, noise: usize, more: usize| {
        [random.text(text), random.noise(noise), random.text(more)].concat()
    };
    let (tree, contents) = tree_of([
        ("a", bytes(30_000, 50_000, 200_000)),
        ("b", bytes(200_000, 9_000, 777)),
        ("c", bytes(9_999, 300_001, 0)),
    ]);
    let expected = snapshot_tree(&tree, &contents);
    for (codec, block) in [("lz4hc:9", "4096"), ("zstd:3", "4096"), ("deflate:1", "512")] {
        let folder = tempfile::tempdir().unwrap();
        let image = |interlaced| {
            let options = &[("interlaced", interlaced), ("block", block), ("rule", "c=lzma:1")];
            let wish = Wish { codec, block_len: 16 << 10, options, ..Wish::default() };
            erofs(&tree, &contents, wish, folder.path(), interlaced)
        };
        let (shifted, interlaced) = (image("off"), image("on"));
        assert!(std::fs::read(shifted).unwrap() != std::fs::read(&interlaced).unwrap(), "{codec}");
        let mount = Mount::new(&interlaced, "erofs").unwrap_or_else(|e| panic!("{codec}: {e}"));
        expected.assert_same(&snapshot_dir(&mount.path()), Compare::default(), codec);
        drop(mount);
        let (read, findings) = read_image(&interlaced);
        expected.assert_same(&read, Compare::default(), codec);
        assert_eq!(findings, [], "{codec}");
        if let Some(fsck) = peer("fsck.erofs") {
            fsck_agrees(&fsck, &interlaced, codec);
        }
        if let Some(erofsfuse) = peer("erofsfuse") {
            let mount = Mount::fuse(&erofsfuse, &interlaced).unwrap();
            let compare = Compare { xattrs: false, hard_links: false, ..Compare::default() };
            expected.assert_same(&snapshot_dir(&mount.path()), compare, codec);
        }
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    let (tree, contents) = odd_tree(16 << 10, true);
    let folder = tempfile::tempdir().unwrap();
    for (codec, options) in [
        ("lz4hc:3", &[][..]),
        ("lz4hc:3", &[("fragments", "off"), ("dedupe", "ranges")]),
        ("lz4hc:3", &[("metabox", "16K")]),
        ("zstd:3+lz4", &[("interlaced", "on")]),
    ] {
        let image = |jobs| {
            let wish = Wish { codec, block_len: 16 << 10, options, jobs };
            std::fs::read(erofs(&tree, &contents, wish, folder.path(), &format!("jobs{jobs}"))).unwrap()
        };
        let first = image(1);
        assert!([2, 16].iter().all(|&jobs| image(jobs) == first), "{options:?}");
    }
}

#[test]
fn codecs_and_features_are_announced_only_if_a_file_uses_them() {
    let (tree, contents) =
        tree_of([("noise", Random::new(8).noise(100_000)), ("text", Random::new(8).text(100_000))]);
    let folder = tempfile::tempdir().unwrap();
    for (codec, rules, codecs, kernel) in [
        ("zstd:3", &[("rule", "text=none")][..], "[]", "5.4"),
        ("zstd:3", &[("rule", "text=lz4@4K")], "[\"lz4\"]", "5.4"),
        ("lz4", &[("rule", "other=lzma")], "[\"lz4\"]", "5.13"),
        ("lz4", &[("rule", "text=lzma")], "[\"lzma\"]", "5.16"),
        ("lz4", &[("rule", "noise=lzma")], "[\"lz4\"]", "5.13"),
    ] {
        let options = &[&[("fragments", "off"), ("inline-tails", "off"), ("holes", "off")], rules].concat();
        let wish = Wish { codec, block_len: 64 << 10, options, ..Wish::default() };
        let image = erofs(&tree, &contents, wish, folder.path(), "used");
        let facts = packfs::open(&image).unwrap().volume().facts().unwrap();
        let what = format!("{codec} {rules:?}");
        assert!(format!("{:?}", facts.get("codec")).contains(codecs), "{what}: {:?}", facts.get("codec"));
        let minimum = format!("{:?}", facts.get("minimum_kernel"));
        assert!(minimum.contains(&format!("\"{kernel} (")), "{what}: {minimum}");
    }
}

#[test]
fn erofsfuse_reads_what_the_kernel_reads() {
    let Some(erofsfuse) = peer("erofsfuse") else { return };
    if !is_root() {
        return skip("owners and devices need root");
    }
    let (tree, contents) = odd_tree(16 << 10, true);
    for options in [&[][..], &[("fragments", "off")], &[("index", "extents")], &[("metabox", "16K")]] {
        let folder = tempfile::tempdir().unwrap();
        let wish = Wish { codec: "deflate:1", block_len: 16 << 10, options, ..Wish::default() };
        let image = erofs(&tree, &contents, wish, folder.path(), "fuse");
        let mount = Mount::fuse(&erofsfuse, &image).unwrap();
        let compare = Compare { xattrs: false, hard_links: false, ..Compare::default() };
        snapshot_tree(&tree, &contents).assert_same(
            &snapshot_dir(&mount.path()),
            compare,
            &format!("{options:?}"),
        );
    }
}

/// mkfs.erofs 1.9 writes an index that cannot count 2048 blocks.
#[test]
fn clusters_of_1m_in_blocks_of_512_are_read_back() {
    for (block_len, options) in [
        (1 << 20, &[("block", "512"), ("index", "extents")][..]),
        ((1 << 20) - 512, &[("block", "512"), ("fragments", "off")]),
    ] {
        all_agree(Wish { codec: "lz4hc:3", block_len, options, ..Wish::default() });
    }
}

/// mkfs.erofs 1.9 finds at most the last 256 KiB of the file that it packs first.
#[test]
fn a_long_twin_of_the_first_packed_file_is_stored_once() {
    let noise = Random::new(9).noise(3 << 20);
    let (tree, contents) = tree_of([("a", noise.clone()), ("b", noise)]);
    let folder = tempfile::tempdir().unwrap();
    let options = &[("fragments", "all")];
    let wish = Wish { codec: "lz4", block_len: 16 << 10, options, ..Wish::default() };
    let image = erofs(&tree, &contents, wish, folder.path(), "twins");
    assert!(std::fs::metadata(image).unwrap().len() < (3 << 20) + (128 << 10));
}

/// A tree of many files with the same attributes, as a policy makes it.
fn labelled_tree() -> (Tree, Held) {
    let mut builder = TreeBuilder::new(Meta { mode: 0o755, ..Meta::default() });
    for number in 0..600 {
        let path = path(format!("dir{}/file{number}", number % 7));
        let label = format!("system_u:object_r:type_{}_t:s0\0", number % 90).into_bytes();
        let xattrs = Xattrs::from([(b"security.selinux".to_vec(), label)]);
        builder.add(&path, NodeKind::Fifo, Meta::default(), xattrs).unwrap();
    }
    (builder.finish().unwrap(), Held::default())
}

#[test]
fn shared_attributes_are_read_from_the_metabox() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let (tree, contents) = labelled_tree();
    let folder = tempfile::tempdir().unwrap();
    let len = |options: &[(&str, &str)]| {
        let wish = Wish { codec: "zstd:3", block_len: 64 << 10, options, ..Wish::default() };
        let image = erofs(&tree, &contents, wish, folder.path(), "labels");
        let mount = Mount::new(&image, "erofs").unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let expected = snapshot_tree(&tree, &contents);
        expected.assert_same(&snapshot_dir(&mount.path()), Compare::default(), &format!("{options:?}"));
        let (read, findings) = read_image(&image);
        expected.assert_same(&read, Compare::default(), &format!("{options:?}"));
        assert!(findings.is_empty(), "{options:?}: {findings:?}");
        let opened = packfs::open(&image).unwrap();
        let facts = opened.volume().facts().unwrap();
        let features = format!("{:?}", facts.get("compatible_features"));
        let in_metabox = features.contains("shared_ea_in_metabox");
        (std::fs::metadata(&image).unwrap().len(), in_metabox)
    };
    let (plain, in_metabox) = len(&[]);
    assert!(!in_metabox);
    let (packed, in_metabox) = len(&[("metabox", "64K")]);
    assert!(in_metabox && packed < plain, "{packed} and {plain}");
    assert!(!len(&[("metabox", "64K"), ("shared-xattrs", "off")]).1);
}

/// mkfs.erofs 1.9 shares attributes of directories only, and stores those of a tar with each file.
#[test]
fn attributes_are_shared_for_every_source() {
    let (tree, contents) = labelled_tree();
    let folder = tempfile::tempdir().unwrap();
    let wish = Wish { codec: "lz4", block_len: 4096, ..Wish::default() };
    let image = erofs(&tree, &contents, wish, folder.path(), "labels");
    let tar = folder.path().join("labels.tar");
    packfs::open(&image).unwrap().write_tar(&mut std::fs::File::create(&tar).unwrap()).unwrap();
    let len = |source: &Path, shared: &str| {
        let packed = folder.path().join("again.erofs");
        let pack =
            packfs::pack(source, &packed).codec("lz4").block_size(4096).option("shared-xattrs", shared);
        pack.sync(false).run().unwrap();
        std::fs::metadata(&packed).unwrap().len()
    };
    let (from_tar, unshared) = (len(&tar, "on"), len(&tar, "off"));
    assert_eq!(from_tar, len(&image, "on"));
    assert!(from_tar + 3 * 4096 <= unshared, "{from_tar} and {unshared}");
}

#[test]
fn writes_requested_label_uuid_and_alignment() {
    let (tree, contents) = odd_tree(4096, false);
    let folder = tempfile::tempdir().unwrap();
    let image = |options: &[(&str, &str)]| {
        let wish = Wish { codec: "lz4", block_len: 4096, options, ..Wish::default() };
        std::fs::read(erofs(&tree, &contents, wish, folder.path(), "volume")).unwrap()
    };
    let uuid = ("uuid", "00112233-4455-6677-8899-aabbccddeeff");
    let named = image(&[("label", "root"), uuid, ("align", "1M")]);
    assert_eq!(named.len() % (1 << 20), 0);
    let super_block = &named[1024..];
    assert_eq!(
        super_block[48..64],
        [0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff]
    );
    assert_eq!(&super_block[64..69], b"root\0");
    let blocks = u32::from_le_bytes(super_block[36..40].try_into().unwrap());
    assert_eq!(u64::from(blocks) * 4096, named.len() as u64, "the padding belongs to the volume");
    let of_content = |options: &[(&str, &str)]| image(options)[1024 + 48..1024 + 64].to_vec();
    assert_eq!(of_content(&[]), of_content(&[]));
    assert_ne!(of_content(&[]), of_content(&[("fragments", "off")]));
    assert_eq!(of_content(&[("uuid", "none")]), [0; 16]);
}
