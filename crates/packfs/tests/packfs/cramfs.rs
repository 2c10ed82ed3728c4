//! cramfs images of packfs: packfs's own reader and fsck.cramfs read them, and all threads write
//! the same bytes.

use crate::common::damage::survives;
use crate::common::{Wish, cramfs, open_image, read_image, seven_zip_agrees};
use packfs_core::{
    ContentId, Held, Meta, NodeId, NodeKind, Owner, Silent, Timestamp, Tree, TreeBuilder, Xattrs,
};
use packfs_format::{FactValue, PackSettings};
use packfs_pack::{PackOptions, pack};
use packfs_source::{Shape, TarInput, load_dir, load_tar};
use packfs_testkit::{
    Compare, OldKernel, Random, Snapshot, is_root, peer, plain_tree, snapshot_dir, snapshot_tree, tree_of,
};
use std::path::Path;

/// Every option that changes more than a word.
const OPTIONS: [&[(&str, &str)]; 10] = [
    &[],
    &[("endian", "big")],
    &[("holes", "on")],
    &[("pointers", "extended")],
    &[("pointers", "extended"), ("holes", "on"), ("endian", "big")],
    &[("pad", "512"), ("name", "a name of sixtee"), ("edition", "7")],
    &[("duplicates", "keep"), ("endian", "big"), ("pad", "512")],
    &[("pointers", "extended"), ("duplicates", "keep"), ("holes", "on"), ("pad", "512")],
    IN_PLACE,
    &[("pointers", "extended"), ("in-place", "again/8193-0"), ("duplicates", "keep"), ("endian", "big")],
];

/// Files of one page, of whole pages, with a part of one, and equal to others.
const IN_PLACE: &[(&str, &str)] = &[
    ("pointers", "extended"),
    ("in-place", "noise/4096"),
    ("in-place", "text/8192"),
    ("in-place", "noise/8193"),
    ("in-place", "again/40000-3"),
    ("holes", "on"),
];

fn wish<'a>(options: &'a [(&'a str, &'a str)]) -> Wish<'a> {
    Wish { options, ..Wish::default() }
}

struct Maker {
    tree: TreeBuilder,
    contents: Held,
    random: Random,
    count: u32,
}

impl Maker {
    fn add(&mut self, path: impl AsRef<[u8]>, kind: NodeKind) {
        self.count += 1;
        let meta = Meta {
            mode: [0o644, 0o755, 0o600, 0o4755, 0o2755, 0o1777, 0o400][self.count as usize % 7],
            owner: Owner { uid: self.count % 5 * 1000, gid: self.count % 3 * 100 },
            mtime: Timestamp::default(),
        };
        self.tree.add(&packfs_testkit::path(path), kind, meta, Xattrs::new()).unwrap();
    }

    fn file(&mut self, path: impl AsRef<[u8]>, bytes: &[u8]) {
        let content = self.contents.push(bytes.to_vec());
        self.add(path, NodeKind::File { len: bytes.len() as u64, content });
    }
}

/// All that cramfs can hold: every type and length, long and odd names, equal files of one owner
/// and of several.
fn tree() -> (Tree, Held) {
    let root = Meta { mode: 0o755, ..Meta::default() };
    let tree = TreeBuilder::new(root);
    let mut maker = Maker { tree, contents: Held::default(), random: Random::new(5), count: 0 };
    for len in [0, 1, 3, 4, 5, 4095, 4096, 4097, 8191, 8192, 8193, 40_000] {
        let (text, noise) = (maker.random.text(len), maker.random.noise(len));
        maker.file(format!("text/{len}"), &text);
        maker.file(format!("noise/{len}"), &noise);
        for copy in 0..9 {
            maker.file(format!("again/{len}-{copy}"), &text);
        }
    }
    let text = maker.random.text(100_000);
    maker.file("sparse", &[&text[..5000], &[0; 30_000], &text[..9001], &[0; 4096]].concat());
    maker.file("hole", &[0; 12_288]);
    let large = maker.random.text(700_000);
    maker.file("large", &large);
    for index in 0..300 {
        let bytes = maker.random.text(index % 50);
        maker.file(format!("many/a file with a number of {index:04}"), &bytes);
    }
    for name in [&b"caf\xe9"[..], "каталог".as_bytes(), b"UPPER", b"upper", b"new\nline", &[b'n'; 252]]
    {
        maker.file([b"names/", name].concat(), name);
    }
    maker.file("deep/a/b/c/d/e/f/g", b"leaf");
    maker.add("empty", NodeKind::Directory);
    for (index, len) in [1, 5, 300, 4000].into_iter().enumerate() {
        maker.add(format!("links/{len}"), NodeKind::Symlink(vec![b't'; len].into()));
        maker.add(format!("links/again-{index}"), NodeKind::Symlink(vec![b't'; len].into()));
    }
    let number = |major, minor| packfs_core::DeviceNumber { major, minor };
    maker.add("block", NodeKind::BlockDevice(number(8, 255)));
    maker.add("char", NodeKind::CharDevice(number(1, 3)));
    maker.add("fifo", NodeKind::Fifo);
    maker.add("socket", NodeKind::Socket);
    (maker.tree.finish().unwrap(), maker.contents)
}

/// Nothing is said of links and times.
const COMPARE: Compare =
    Compare { hard_links: false, dir_links: false, symlink_times: false, ..Compare::ALL };

fn compare_with(image: &Path, expected: &Snapshot, what: &str) {
    let (snapshot, findings) = read_image(image);
    assert_eq!(findings, [], "{what}");
    snapshot.assert_same(expected, COMPARE, what);
}

#[test]
fn what_is_packed_comes_back_with_every_option() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = tree();
    let expected = snapshot_tree(&tree, &contents);
    for options in OPTIONS {
        let image = cramfs(&tree, &contents, wish(options), folder.path(), "image");
        compare_with(&image, &expected, &format!("{options:?}"));
    }
    let all_stored = Wish { codec: "none", options: &[("pointers", "extended")], ..Wish::default() };
    let image = cramfs(&tree, &contents, all_stored, folder.path(), "stored");
    compare_with(&image, &expected, "stored");
    for codec in ["gzip:1", "gzip:12", "gzip:9,window=12"] {
        let image = cramfs(&tree, &contents, Wish { codec, ..Wish::default() }, folder.path(), "image");
        compare_with(&image, &expected, codec);
    }
}

#[test]
fn packs_the_same_bytes_with_1_2_and_16_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = tree();
    for options in [OPTIONS[0], OPTIONS[4], OPTIONS[7]] {
        let image = |jobs| {
            let wish = Wish { jobs, ..wish(options) };
            std::fs::read(cramfs(&tree, &contents, wish, folder.path(), "image")).unwrap()
        };
        let one = image(1);
        assert!(one == image(2), "{options:?}: 1 and 2 threads differ");
        assert!(one == image(16), "{options:?}: 1 and 16 threads differ");
    }
}

#[test]
fn fsck_reads_what_is_packed() {
    let (Some(fsck), true) = (peer("fsck.cramfs"), is_root()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = tree();
    let expected = snapshot_tree(&tree, &contents);
    // It knows neither holes nor extended pointers, and superblocks at 0 only.
    for options in [&[][..], &[("endian", "big")], &[("duplicates", "keep"), ("endian", "big")]] {
        let image = cramfs(&tree, &contents, wish(options), folder.path(), "image");
        let target = folder.path().join("extracted");
        let extract = format!("--extract={}", target.display());
        fsck.run(&[&extract, &image]);
        let found = snapshot_dir(&target);
        // What is extracted has times of its own.
        let mut found = found;
        found.0.values_mut().for_each(|row| row.mtime = Timestamp::default());
        found.assert_same(&expected, COMPARE, &format!("{options:?}"));
        std::fs::remove_dir_all(&target).unwrap();
    }
}

/// The only other reader that has both byte orders and is no writer of ours.
#[test]
fn seven_zip_reads_both_byte_orders() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    let expected = snapshot_tree(&tree, &contents);
    // It knows neither holes nor extended pointers, and superblocks at 0 only.
    for options in [&[][..], &[("endian", "big")], &[("endian", "big"), ("duplicates", "keep")]] {
        let image = cramfs(&tree, &contents, wish(options), folder.path(), "image");
        seven_zip_agrees(&image, &expected, &format!("{options:?}"));
    }
}

/// Every option of the layout in one of few images; of the byte orders, the kernel's own.
#[test]
fn a_kernel_reads_what_is_packed() {
    let Some(kernel) = OldKernel::find_with_module("6.1", "cramfs") else { return };
    let (tree, contents) = tree();
    let mut expected = snapshot_tree(&tree, &contents);
    // Busybox leaves sockets out of a tar.
    assert!(expected.0.remove(&b"socket"[..]).is_some());
    let rows: [(&str, &[(&str, &str)]); 5] = [
        ("gzip", IN_PLACE),
        ("gzip", &[]),
        ("gzip", &[("holes", "on"), ("duplicates", "keep"), ("pad", "512"), ("edition", "7")]),
        ("gzip:12", &[("pointers", "extended"), ("holes", "on")]),
        ("none", &[("pointers", "extended"), ("pad", "512")]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let images = rows.iter().enumerate().map(|(number, &(codec, options))| {
        let wish = Wish { codec, options, ..Wish::default() };
        cramfs(&tree, &contents, wish, folder.path(), &number.to_string())
    });
    let tars = kernel.tars_in(folder.path(), "cramfs", &images.collect::<Vec<_>>());
    for (row, tar) in rows.iter().zip(tars) {
        let copied = load_tar(TarInput::File(tar), &Shape::default(), &Silent).unwrap();
        snapshot_tree(&copied.tree, &*copied.contents).assert_same(&expected, COMPARE, &format!("{row:?}"));
    }
}

#[test]
fn it_is_no_larger_than_what_mkfs_makes() {
    let Some(mkfs) = peer("mkfs.cramfs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let theirs = folder.path().join("theirs");
    mkfs.run(&[&source, &theirs]);
    let len = |path: &Path| std::fs::metadata(path).unwrap().len();
    let loaded = load_dir(&source, &Shape::default(), &Silent).unwrap();
    let ours = |options, name: &str| {
        let settings = PackSettings { options, ..PackSettings::default() };
        let packer = packfs_formats::by_name("cramfs").unwrap().packer(&settings).unwrap();
        let path = folder.path().join(name);
        let options = PackOptions { sync: false, lossy: true, ..PackOptions::default() };
        pack(&loaded.tree, &*loaded.contents, &*packer, &path, &options, &Silent).unwrap();
        len(&path)
    };
    assert!(ours(Vec::new(), "ours") <= len(&theirs));
    // What does not shrink is stored, and zeros are not.
    let (tree, contents) = plain_tree();
    let plain = cramfs(&tree, &contents, Wish::default(), folder.path(), "plain");
    let options = &[("pointers", "extended"), ("holes", "on")];
    let smaller = cramfs(&tree, &contents, wish(options), folder.path(), "smaller");
    assert!(len(&smaller) < len(&plain));
}

#[test]
fn equal_files_share_data_only_if_linux_can_still_distinguish_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = TreeBuilder::new(Meta::default());
    let mut contents = Held::default();
    let modes = [("a", 0o644), ("b", 0o644), ("c", 0o600)];
    for (name, mode) in modes {
        let content = contents.push(vec![b'x'; 5000]);
        let meta = Meta { mode, ..Meta::default() };
        builder
            .add(&packfs_testkit::path(name), NodeKind::File { len: 5000, content }, meta, Xattrs::new())
            .unwrap();
        let link = NodeKind::Symlink(b"target".as_slice().into());
        builder.add(&packfs_testkit::path(format!("l{name}")), link, meta, Xattrs::new()).unwrap();
    }
    let tree = builder.finish().unwrap();
    let image = std::fs::read(cramfs(&tree, &contents, Wish::default(), folder.path(), "image")).unwrap();
    // Entries of one directory: an inode of 12 bytes and a name of 4, whose last word has the
    // offset.
    let offset =
        |index: usize| u32::from_le_bytes(image[76 + 16 * index + 8..][..4].try_into().unwrap()) >> 6;
    let offsets: Vec<u32> = (0..6).map(offset).collect();
    assert!(offsets[0] == offsets[1] && offsets[1] != offsets[2], "{offsets:?}");
    assert!(offsets[3] == offsets[4] && offsets[4] != offsets[5], "{offsets:?}");
}

#[test]
fn losses_are_reported_and_need_consent() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = packfs_testkit::odd_tree(4096, true);
    let path = folder.path().join("odd.cramfs");
    let packer = packfs_formats::by_name("cramfs").unwrap().packer(&PackSettings::default()).unwrap();
    let options = PackOptions { sync: false, ..PackOptions::default() };
    let error = pack(&tree, &contents, &*packer, &path, &options, &Silent).unwrap_err().to_string();
    assert!(error.contains("names") || error.contains("a name of 255 bytes"), "{error}");

    let mut builder = TreeBuilder::new(Meta::default());
    let meta = Meta { owner: Owner { uid: 70_000, gid: 300 }, ..Meta::default() };
    let number = packfs_core::DeviceNumber { major: 259, minor: 300 };
    let xattrs = Xattrs::from([(b"user.a".to_vec(), b"b".to_vec())]);
    builder.add(&packfs_testkit::path("device"), NodeKind::BlockDevice(number), meta, xattrs).unwrap();
    let mut contents = Held::default();
    let content: ContentId = contents.push(b"linked".to_vec());
    builder
        .add(
            &packfs_testkit::path("file"),
            NodeKind::File { len: 6, content },
            Meta::default(),
            Xattrs::new(),
        )
        .unwrap();
    builder.link(&packfs_testkit::path("other"), packfs_testkit::path("file")).unwrap();
    let tree = builder.finish().unwrap();
    let error = pack(&tree, &contents, &*packer, &path, &options, &Silent).unwrap_err().to_string();
    for what in ["users above 65,535", "groups above 255", "device numbers above 255", "extended attributes"]
    {
        assert!(error.contains(what), "{error}");
    }
    let options = PackOptions { lossy: true, ..options };
    pack(&tree, &contents, &*packer, &path, &options, &Silent).unwrap();
    let (found, findings) = read_image(&path);
    assert_eq!(findings, []);
    let device = &found.0[b"device".as_slice()];
    assert_eq!(device.owner, (4464, 44));
    assert_eq!(device.device, Some(packfs_core::DeviceNumber { major: 3, minor: 44 }));
    assert_eq!(found.0[b"file".as_slice()].content, found.0[b"other".as_slice()].content);
}

#[test]
fn files_for_execution_in_place_lie_uncompressed_at_pages() {
    let (tree, contents) = tree();
    let dir = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(cramfs(&tree, &contents, wish(IN_PLACE), dir.path(), "image")).unwrap();
    for (path, is_in_place) in
        [("text/8192", true), ("noise/8193", true), ("again/40000-3", true), ("text/8193", false)]
    {
        let node = tree.node(tree.find(&packfs_testkit::path(path)).unwrap());
        let NodeKind::File { len, content } = node.kind else { panic!("{path}") };
        let mut data = vec![0; len as usize];
        packfs_core::Contents::open(&contents, content).unwrap().read_exact_at(0, &mut data).unwrap();
        let found = bytes.chunks(4096).enumerate().any(|(page, _)| bytes[page * 4096..].starts_with(&data));
        assert_eq!(found, is_in_place, "{path}");
    }
}

#[test]
fn flags_are_set_only_for_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = tree_of([("a", vec![b'x'; 5000])]);
    let options = &[("pointers", "extended"), ("holes", "on")];
    let image = cramfs(&tree, &contents, wish(options), folder.path(), "image");
    let facts = open_image(&image).volume().facts().unwrap();
    let flags = ["version-2", "sorted-directories"].map(String::from).to_vec();
    assert_eq!(facts.get("flags"), Some(&FactValue::List(flags)));
    assert_eq!(facts.get("names"), Some(&FactValue::Count(2)));
    assert_eq!(facts.get("blocks"), Some(&FactValue::Count(2)));
    assert_eq!(tree.entries(NodeId::ROOT).count(), 1);
}

#[test]
fn an_empty_tree_makes_an_image_that_opens() {
    let folder = tempfile::tempdir().unwrap();
    let tree = TreeBuilder::new(Meta::default()).finish().unwrap();
    for options in [&[][..], &[("pad", "512")]] {
        let image = cramfs(&tree, &Held::default(), wish(options), folder.path(), "empty");
        compare_with(&image, &snapshot_tree(&tree, &Held::default()), "empty");
    }
}

#[test]
fn damage_to_any_structure_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    for options in [&[][..], &[("pointers", "extended"), ("holes", "on"), ("endian", "big"), ("pad", "512")]]
    {
        let image = std::fs::read(cramfs(&tree, &contents, wish(options), folder.path(), "image")).unwrap();
        survives(&image, 1, true, &format!("{options:?}"));
    }
}
