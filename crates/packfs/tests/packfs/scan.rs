//! Images are found wherever they begin, and nothing else is.

use packfs::MemoryImage;
use packfs::{Found, ScanOptions, Silent};
use packfs_testkit::Random;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

fn legacy(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/legacy").join(name)).unwrap()
}

fn scan(bytes: &[u8], options: ScanOptions) -> Vec<Found> {
    let image = MemoryImage::new("blob", bytes.to_vec());
    packfs::scan(Arc::new(image), options, &Silent).unwrap()
}

/// Format, offset and length of what is found.
fn found(bytes: &[u8], options: ScanOptions) -> Vec<(&'static str, u64, Option<u64>)> {
    scan(bytes, options).iter().map(|it| (it.format.name(), it.offset, it.len)).collect()
}

/// An image of a small tree.
fn packed(format: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    std::fs::create_dir_all(tree.join("etc")).unwrap();
    std::fs::write(tree.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    let image = folder.path().join("image");
    packfs::pack(&tree, &image).format(format).run().unwrap();
    std::fs::read(image).unwrap()
}

/// Code of a boot loader that knows magics, and so holds them.
fn boot_loader(random: &mut Random) -> Vec<u8> {
    let mut code = random.noise(48_000);
    let magics = packfs::formats::all().iter().flat_map(|format| format.info().magics);
    for (index, magic) in magics.enumerate() {
        let at = 1000 + index * 700;
        code[at..at + magic.bytes.len()].copy_from_slice(magic.bytes);
    }
    code
}

/// A header as U-Boot has it, in front of a kernel.
fn kernel(random: &mut Random) -> Vec<u8> {
    let name = b"Linux Kernel Image\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let header = [&[0x27, 0x05, 0x19, 0x56][..], &[0x5a; 24], &[5, 5, 2, 3], name].concat();
    [header, random.noise(90_000)].concat()
}

/// Nodes of a JFFS2, as far as their headers go.
fn jffs2_noise(random: &mut Random) -> Vec<u8> {
    (0..200)
        .flat_map(|_| [&[0x85, 0x19, 0x02, 0xe0, 0x44, 0, 0, 0][..], &random.noise(60)].concat())
        .collect()
}

#[test]
fn all_images_of_a_firmware_are_found_and_nothing_else() {
    let mut random = Random::new(3);
    let mut blob = [boot_loader(&mut random), kernel(&mut random)].concat();
    let mut wanted = Vec::new();
    let mut names: Vec<(&'static str, Vec<u8>)> = vec![
        ("squashfs", packed("squashfs")),
        ("erofs", packed("erofs")),
        ("cloop", legacy("cloop-2.0-ext2-b32k-7zip.cloop")),
        ("cloop", legacy("cloop-4.0-ext2-mixed.cloop")),
    ];
    // Old formats, as far as they are read.
    for (format, file) in [
        ("squashfs-legacy", "squashfs-3.0-be-lzma.sqfs"),
        ("cramfs", "cramfs-v2-le.cramfs"),
        ("squashfs-legacy", "squashfs-2.0-le.sqfs"),
        ("cramfs", "cramfs-v2-be-swapped.cramfs"),
        ("romfs", "romfs.romfs"),
        ("btrfs", "btrfs-mixed.btrfs"),
        ("ext4", "ext4.ext4"),
        ("xfs", "xfs-v5.xfs"),
    ] {
        if packfs::formats::by_name(format).is_some() {
            names.push((format, legacy(file)));
        }
    }
    for (format, image) in names {
        // Erased flash, but not up to any boundary.
        blob.extend(vec![0xff; 3000 + wanted.len() * 1237]);
        wanted.push((format, blob.len() as u64, Some(image.len() as u64)));
        blob.extend(image);
        blob.extend(jffs2_noise(&mut random));
    }
    assert_eq!(found(&blob, ScanOptions::new()), wanted);
    // What is found opens there, with what it is said to be.
    for (format, offset, len) in wanted {
        let opening = packfs::OpenOptions::new().offset(offset).len(len.unwrap()).outermost();
        let opened = opening.open_image(Arc::new(MemoryImage::new("blob", blob.clone()))).unwrap();
        assert_eq!(opened.format().name(), format);
        opened.load(&Silent).unwrap();
    }
}

/// Formats without magics, or without an image in `testdata/legacy`, are left out.
#[test]
fn an_image_of_every_format_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (mut known, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for manifest in crate::legacy::manifests() {
        let image = std::fs::read(manifest.unpacked_image(folder.path())).unwrap();
        let Some(format) = packfs::formats::probe(&MemoryImage::new("image", image.clone())).unwrap() else {
            continue;
        };
        if !format.info().magics.is_empty() {
            known.insert(format.name());
            let blob = [vec![0xff; 5000], image].concat();
            let found = found(&blob, ScanOptions::new());
            seen.extend(found.into_iter().filter(|found| found.1 == 5000).map(|(name, ..)| name));
        }
    }
    assert_eq!(seen, known);
    assert!(known.len() > 8, "{known:?}");
}

#[test]
fn an_image_is_found_at_every_offset_around_the_ends_of_what_is_read_at_once() {
    let image = packed("squashfs");
    let chunk = 1 << 20;
    for offset in [0, 1, chunk - 5, chunk - 4, chunk - 3, chunk - 1, chunk, chunk + 1, 2 * chunk - 2] {
        let mut blob = vec![0; offset];
        blob.extend(&image);
        assert_eq!(found(&blob, ScanOptions::new()), [("squashfs", offset as u64, Some(image.len() as u64))]);
    }
}

#[test]
fn nested_images_are_listed_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let squash = packed("squashfs");
    let source = folder.path().join("disk");
    std::fs::write(&source, &squash).unwrap();
    let image = folder.path().join("out.cloop");
    packfs::pack(&source, &image).codec("none").option("version", "4.0").block_size(4096).run().unwrap();
    let blob = [vec![0; 100], std::fs::read(&image).unwrap()].concat();
    let formats = |options| found(&blob, options).into_iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(formats(ScanOptions::new()), ["cloop"]);
    assert_eq!(formats(ScanOptions::new().nested(true)), ["cloop", "squashfs"]);
}

#[test]
fn damaged_and_cut_images_are_none() {
    let image = packed("squashfs");
    let mut damaged = image.clone();
    // Where its inodes are.
    damaged[64..72].fill(0xff);
    assert_eq!(found(&damaged, ScanOptions::new()), []);
    assert_eq!(found(&image[..200], ScanOptions::new()), []);
    assert_eq!(found(&[], ScanOptions::new()), []);
    assert_eq!(found(b"hsqs", ScanOptions::new()), []);
    let magics = b"hsqs".repeat(50_000);
    assert_eq!(found(&magics, ScanOptions::new()), []);
}
