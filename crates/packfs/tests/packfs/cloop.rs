//! Disks packed as cloops: what goes in comes out, for every version and codec, by our own reader
//! and by others.

use packfs::MemoryImage;
use packfs::{ErrorKind, OpenOptions, Opened, Severity, Silent};
use packfs_testkit::{Random, peer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const K64: usize = 64 << 10;

/// Text, noise, zeros; no whole number of blocks.
fn disk() -> Vec<u8> {
    let mut random = Random::new(11);
    [random.text(5 * K64), random.noise(3 * K64 / 2), vec![0; 2 * K64], random.text(777)].concat()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn outer(path: &Path) -> Opened {
    OpenOptions::new().outermost().open(path).unwrap()
}

/// The disk in a cloop, which has to be sound.
#[track_caller]
fn unpacked(path: &Path) -> Vec<u8> {
    let opened = outer(path);
    assert_eq!(opened.format().name(), "cloop");
    let mut faults = Vec::new();
    let mut found = |finding: packfs::Finding| faults.push(finding);
    opened.volume().check(&mut found).unwrap();
    faults.retain(|finding| finding.severity == Severity::Error);
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(opened.volume().image_len(), Some(opened.image().len()));
    opened.read("disk.img").unwrap()
}

fn padded(disk: &[u8], block_len: usize) -> Vec<u8> {
    let mut disk = disk.to_vec();
    disk.resize(disk.len().next_multiple_of(block_len), 0);
    disk
}

#[test]
fn every_codec_of_both_versions_comes_out_as_it_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk();
    let source = write(folder.path(), "disk", &disk);
    let rows: [(&str, &str, &str); 9] = [
        ("gzip", "2.0", "off"),
        ("gzip:12", "2.0", "off"),
        ("gzip", "4.0", "off"),
        ("gzip", "4.0", "on"),
        ("xz", "4.0", "off"),
        ("lz4", "4.0", "off"),
        ("lz4hc", "4.0", "on"),
        ("lzo", "4.0", "off"),
        ("none", "4.0", "off"),
    ];
    for (codec, version, stored) in rows {
        let what = format!("{codec} {version} stored={stored}");
        let pack = |jobs: usize, name: &str| {
            let out = folder.path().join(name);
            let pack = packfs::pack(&source, &out).codec(codec).option("version", version);
            pack.option("stored", stored).jobs(jobs).run().unwrap_or_else(|error| panic!("{what}: {error}"));
            out
        };
        let image = pack(1, "a.cloop");
        assert!(unpacked(&image) == padded(&disk, K64), "{what}");
        let again = pack(3, "b.cloop");
        assert!(std::fs::read(&image).unwrap() == std::fs::read(again).unwrap(), "{what}: threads");
        let facts = format!("{:?}", outer(&image).volume().facts().unwrap());
        assert!(facts.contains(version), "{what}: {facts}");
        // Without leave, nothing is stored that the module cannot read.
        let has_stored = facts.contains("none");
        assert_eq!(has_stored, stored == "on" || codec == "none", "{what}: {facts}");
    }
}

#[test]
fn disks_of_odd_lengths_are_filled_up_with_zeros() {
    let folder = tempfile::tempdir().unwrap();
    for len in [0, 1, 4095, 4096, 4097, 65_536] {
        let disk = Random::new(len as u64).text(len);
        let source = write(folder.path(), "disk", &disk);
        let image = folder.path().join("out.cloop");
        packfs::pack(&source, &image).block_size(4096).run().unwrap();
        assert!(unpacked(&image) == padded(&disk, 4096), "{len}");
    }
}

#[test]
fn others_read_what_is_packed() {
    let folder = tempfile::tempdir().unwrap();
    // extract_compressed_fs divides by a tenth of the number of blocks.
    let disk = disk().repeat(4);
    let source = write(folder.path(), "disk", &disk);
    for block_len in [4 << 10, K64, 128 << 10] {
        let image = folder.path().join("out.cloop");
        packfs::pack(&source, &image).block_size(block_len as u32).run().unwrap();
        let out = folder.path().join("disk.out");
        let wanted = padded(&disk, block_len);
        if let Some(extract) = peer("extract_compressed_fs") {
            extract.run(&[&image, &out]);
            assert!(std::fs::read(&out).unwrap() == wanted, "extract_compressed_fs, {block_len}");
        }
        if let Some(qemu) = peer("qemu-img") {
            // By its own probing, too.
            qemu.run(&[&"convert", &"-f", &"cloop", &"-O", &"raw", &image, &out]);
            assert!(std::fs::read(&out).unwrap() == wanted, "qemu-img, {block_len}");
            let info = qemu.run(&[&"info", &image]);
            assert!(String::from_utf8_lossy(&info.stdout).contains("file format: cloop"));
        }
    }
}

/// No program of others reads version 4.0, so a second decoder of ours does, which shares no line
/// with packfs.
#[test]
fn a_second_decoder_reads_version_4() {
    let Some(python) = peer("python3") else { return };
    let folder = tempfile::tempdir().unwrap();
    let disk = disk();
    let source = write(folder.path(), "disk", &disk);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decode_cloop4.py");
    let rows = [
        ("gzip", "off", "zlib"),
        ("gzip", "on", "stored zlib"),
        ("xz", "off", "xz"),
        ("lz4hc", "on", "lz4 stored"),
        ("lzo", "off", "lzo"),
        ("none", "on", "stored"),
    ];
    for (codec, stored, methods) in rows {
        let image = folder.path().join("out.cloop");
        let pack = packfs::pack(&source, &image).codec(codec).option("version", "4.0");
        pack.option("stored", stored).block_size(K64 as u32).run().unwrap();
        let out = folder.path().join("disk.out");
        let said = python.run(&[&script, &image, &out]).stdout;
        assert_eq!(String::from_utf8_lossy(&said).trim(), methods, "{codec} stored={stored}");
        assert!(std::fs::read(&out).unwrap() == padded(&disk, K64), "{codec} stored={stored}");
    }
}

#[test]
fn what_others_pack_is_no_smaller() {
    let Some(create) = peer("create_compressed_fs") else { return };
    let folder = tempfile::tempdir().unwrap();
    // A program, which is this one: text made by chance shows nothing.
    let mut program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    program.truncate(4 << 20);
    let source = write(folder.path(), "disk", &program);
    let (ours, theirs) = (folder.path().join("ours.cloop"), folder.path().join("theirs.cloop"));
    packfs::pack(&source, &ours).codec("gzip:9").block_size(K64 as u32).run().unwrap();
    create.run(&[&"-q", &"-B", &"64K", &"-L", &"9", &source, &theirs]);
    assert!(unpacked(&theirs) == unpacked(&ours));
    let len = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert!(len(&ours) <= len(&theirs), "{} bytes, theirs {}", len(&ours), len(&theirs));
}

/// A small tree in a folder.
fn tree(folder: &Path) -> PathBuf {
    let tree = folder.join("tree");
    std::fs::create_dir_all(tree.join("etc")).unwrap();
    std::fs::write(tree.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    tree
}

#[test]
fn a_tree_becomes_an_image_first() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    for (inner, options) in [("squashfs", &[("inner", "squashfs")][..]), ("erofs", &[("inner", "erofs")])] {
        let image = folder.path().join("out.cloop");
        let pack = packfs::pack(&tree, &image);
        let pack = options.iter().fold(pack, |pack, (name, value)| pack.option(*name, *value));
        pack.run().unwrap();
        let opened = packfs::open(&image).unwrap();
        assert_eq!(opened.format().name(), inner);
        assert_eq!(opened.layers().len(), 1);
        assert_eq!(opened.read("etc/hosts").unwrap(), b"127.0.0.1 localhost\n");
        // What is inside is compressed once, by what is around it.
        let facts = opened.volume().facts().unwrap();
        assert!(format!("{facts:?}").contains("data") || inner == "erofs", "{facts:?}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing but the tree and the image is left: {left:?}");
    let image = folder.path().join("default.cloop");
    packfs::pack(&tree, &image).run().unwrap();
    assert_eq!(packfs::open(&image).unwrap().read("etc/hosts").unwrap(), b"127.0.0.1 localhost\n");
    let error = packfs::pack(&tree, &image).option("inner", "nosuchfs").run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn images_are_wrapped_and_archives_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    let squash = folder.path().join("in.sqfs");
    packfs::pack(&tree, &squash).run().unwrap();
    let wrapped = folder.path().join("out.cloop");
    packfs::pack(&squash, &wrapped).block_size(4096).run().unwrap();
    assert!(unpacked(&wrapped) == std::fs::read(&squash).unwrap());
    // Packed again, the disk in it is wrapped, not the cloop.
    let again = folder.path().join("again.cloop");
    packfs::pack(&wrapped, &again).codec("xz").run().unwrap();
    assert!(unpacked(&again) == padded(&std::fs::read(&squash).unwrap(), K64));
    packfs::repack(&wrapped, &again).codec("lz4").block_size(4096).run().unwrap();
    assert!(unpacked(&again) == std::fs::read(&squash).unwrap());
    // One with a changed beginning opens if the option names that beginning.
    let mut bytes = std::fs::read(&wrapped).unwrap();
    let beginning = bytes[..16].to_vec();
    bytes[..16].fill(b'x');
    let changed = folder.path().join("changed.cloop");
    std::fs::write(&changed, bytes).unwrap();
    packfs::pack(&changed, &again)
        .with(|options| options.source = packfs::OpenOptions::new().magic(beginning))
        .block_size(4096)
        .run()
        .unwrap();
    assert!(unpacked(&again) == std::fs::read(&squash).unwrap());
    // For other formats an image is a tree, and so is the image in a cloop.
    let erofs = folder.path().join("out.erofs");
    packfs::pack(&wrapped, &erofs).run().unwrap();
    assert_eq!(packfs::open(&erofs).unwrap().read("etc/hosts").unwrap(), b"127.0.0.1 localhost\n");
    let tar = folder.path().join("in.tar");
    packfs::open(&squash).unwrap().write_tar(&mut std::fs::File::create(&tar).unwrap()).unwrap();
    packfs::pack(&tar, &again).option("inner", "squashfs").run().unwrap();
    assert_eq!(packfs::open(&again).unwrap().read("etc/hosts").unwrap(), b"127.0.0.1 localhost\n");
    packfs::pack(&tar, &again).option("inner", "none").block_size(4096).run().unwrap();
    assert!(unpacked(&again) == padded(&std::fs::read(&tar).unwrap(), 4096));
}

#[test]
fn what_makes_no_sense_for_a_disk_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path(), "disk", &disk());
    let image = folder.path().join("out.cloop");
    let shape = packfs::source::Shape { exclude: vec!["*.o".into()], ..Default::default() };
    let error = packfs::pack(&source, &image).shape(shape).run().unwrap_err();
    assert!(
        error.kind() == ErrorKind::Usage && error.to_string().contains("cannot filter or rename"),
        "{error}"
    );
    let error = packfs::pack(&source, &image).trace(&source).run().unwrap_err();
    assert!(error.kind() == ErrorKind::Usage && error.to_string().contains("holds one image"), "{error}");
    assert!(!image.exists());
    let error = packfs::pack(folder.path().join("missing"), &image).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

/// A disk with a boot record and a partition that holds `image`, and one that holds nothing known.
fn partitioned(image: &[u8]) -> Vec<u8> {
    let image = padded(image, 512);
    let sectors = (image.len() / 512) as u32;
    let mut disk = vec![0; 512 * 64];
    let rows = [(0x83_u8, 8_u32, 16_u32), (0x83, 64, sectors)];
    for (at, (kind, first, count)) in (446..).step_by(16).zip(rows) {
        disk[at + 4] = kind;
        disk[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
        disk[at + 12..at + 16].copy_from_slice(&count.to_le_bytes());
    }
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    [disk, image].concat()
}

#[test]
fn an_image_in_a_partition_of_a_disk_in_a_cloop_opens_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let squash = folder.path().join("in.sqfs");
    packfs::pack(tree(folder.path()), &squash).run().unwrap();
    let squash = std::fs::read(&squash).unwrap();
    let source = write(folder.path(), "disk", &partitioned(&squash));
    let image = folder.path().join("out.cloop");
    packfs::pack(&source, &image).run().unwrap();
    let opened = packfs::open(&image).unwrap();
    let layers: Vec<_> = opened.layers().iter().map(|layer| (layer.format, &*layer.file)).collect();
    assert_eq!(layers, [("cloop", "disk.img"), ("partitions", "p2")]);
    assert_eq!(opened.read("etc/hosts").unwrap(), b"127.0.0.1 localhost\n");
    let first = OpenOptions::new().part("p1").open(&image).err().unwrap();
    assert_eq!(first.kind(), ErrorKind::Unsupported, "{first}");
    // Packed elsewhere, and listed from outside.
    let erofs = folder.path().join("out.erofs");
    packfs::pack(&image, &erofs).run().unwrap();
    assert_eq!(packfs::open(&erofs).unwrap().read("etc/hosts").unwrap(), b"127.0.0.1 localhost\n");
    let disk = OpenOptions::new().outermost().open(&source).unwrap();
    assert_eq!(disk.format().name(), "partitions");
    assert!(disk.read("p2").unwrap().starts_with(&squash));
    let tree = disk.load(&Silent).unwrap().tree;
    assert_eq!(tree.node_count(), 3);
}

#[test]
fn damaged_blocks_are_errors_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk();
    let image = folder.path().join("out.cloop");
    packfs::pack(write(folder.path(), "disk", &disk), &image).run().unwrap();
    let mut bytes = std::fs::read(&image).unwrap();
    // The third block, in its middle.
    let row = |block: usize| u64::from_be_bytes(bytes[136 + 8 * block..144 + 8 * block].try_into().unwrap());
    let middle = ((row(2) + row(3)) / 2) as usize;
    bytes[middle] ^= 0x55;
    let opened = OpenOptions::new().outermost();
    let opened = opened.open_image(Arc::new(MemoryImage::new("damaged", bytes))).unwrap();
    let file = opened.open_file("disk.img").unwrap();
    let mut block = vec![0; K64];
    for (number, sound) in [(0, true), (1, true), (2, false), (3, true)] {
        let read = file.read_at(number * K64 as u64, &mut block);
        assert_eq!(read.is_ok(), sound, "block {number}");
        if sound {
            assert!(block == disk[number as usize * K64..][..K64], "block {number}");
        }
    }
    let error = opened.read("disk.img").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
