//! Disks that are compressed as a whole open like any image; archives stay archives.

use packfs::{ErrorKind, Limit, Limits, OpenOptions, Source};
use packfs_testkit::{Random, peer};
use std::fs;
use std::path::Path;

/// A disk with an MBR, an image in its second partition, and zeros after it.
fn disk(image: &[u8]) -> Vec<u8> {
    let mut disk = vec![0; 64 * 512];
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    for (row, (first, count)) in
        [(8_u32, 8_u32), (64, image.len().div_ceil(512) as u32)].into_iter().enumerate()
    {
        let entry = &mut disk[446 + 16 * row..][..16];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry[12..].copy_from_slice(&count.to_le_bytes());
    }
    disk.extend_from_slice(image);
    disk.resize(4 << 20, 0);
    disk
}

/// Compresses `name` of a folder; `None` if the program is missing.
fn compressed(folder: &Path, program: &str, name: &str) -> Option<Vec<u8>> {
    let done = peer(program)?.run(&[&"-c", &folder.join(name)]);
    Some(done.stdout)
}

#[test]
fn compressed_disks_open_and_archives_stay_archives() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir_all(folder.join("tree/etc")).unwrap();
    let text = Random::new(1).text(300_000);
    fs::write(folder.join("tree/etc/text"), &text).unwrap();
    packfs::pack(folder.join("tree"), folder.join("root.erofs")).format("erofs").run().unwrap();
    fs::write(folder.join("disk"), disk(&fs::read(folder.join("root.erofs")).unwrap())).unwrap();
    let mut tar = Vec::new();
    packfs::open(folder.join("root.erofs")).unwrap().write_tar(&mut tar).unwrap();
    fs::write(folder.join("tar"), tar).unwrap();
    for program in ["gzip", "xz", "zstd", "bzip2", "lz4", "lzip"] {
        let Some(bytes) = compressed(folder, program, "disk") else { continue };
        let path = folder.join(program);
        fs::write(&path, &bytes).unwrap();
        let opened = OpenOptions::new().part("p2").open(&path).unwrap();
        assert!(opened.read("etc/text").unwrap() == text, "{program}");
        let layers: Vec<_> = opened.layers().iter().map(|it| (it.format, it.file.as_str())).collect();
        assert_eq!(layers, [(program, "disk.img"), ("partitions", "p2")]);
        assert!(opened.image().name().contains("(decompressed)"), "{}", opened.image().name());
        assert!(OpenOptions::new().open_bytes(bytes).unwrap().read("etc/text").unwrap() == text);
        // As a source, too.
        assert_eq!(Source::detect(&path).unwrap(), Source::Image(path.clone()), "{program}");
        let again = folder.join(format!("{program}.sqfs"));
        packfs::pack(&path, &again).run().unwrap();
        assert!(packfs::open(&again).unwrap().read("etc/text").unwrap() == text, "{program}");

        fs::write(&path, compressed(folder, program, "tar").unwrap()).unwrap();
        assert_eq!(Source::detect(&path).unwrap(), Source::Tar(path.clone()), "{program}");
        let error = packfs::open(&path).err().unwrap();
        assert!(error.to_string().contains(&format!("a file compressed with {program}")), "{error}");
    }
}

#[test]
fn damaged_and_long_disks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("disk"), disk(&Random::new(2).noise(1 << 20))).unwrap();
    let Some(bytes) = compressed(folder, "xz", "disk") else { return };
    let limits = Limits::default().allow(Limit::Bytes, 1 << 20);
    let error = OpenOptions::new().limits(limits).open_bytes(bytes.clone()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    let error = OpenOptions::new().open_bytes(&bytes[..bytes.len() / 2]).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("its xz data is damaged"), "{error}");
}
