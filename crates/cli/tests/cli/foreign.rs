//! Files that are no image: named by their kind, with a command that helps.

use crate::fixture::{Fixture, Run, assert_same_files};
use packfs_testkit::skip;
use std::fs::{self, File};
use std::process::Command;

/// Refused as an image of no known format, for what it is and with this hint.
#[track_caller]
fn assert_refused(run: &Run, what: &str, hint: &str) {
    run.failed(4, &["has no known format", &format!("looks like {what}"), hint]);
}

/// A script that makes `file`, the program it needs, what the file is, and a part of the hint.
const MADE: [(&str, &str, &str, &str); 14] = [
    ("mkfs.vfat", "truncate -s 8M file && mkfs.vfat file >&2", "a FAT filesystem", "mount -o ro,loop"),
    ("mkfs.exfat", "truncate -s 8M file && mkfs.exfat file >&2", "an exFAT filesystem", "mount -o ro,loop"),
    ("mkfs.f2fs", "truncate -s 80M file && mkfs.f2fs -q file", "an F2FS filesystem", "mount -o ro,loop"),
    ("mkfs.minix", "truncate -s 1M file && mkfs.minix file >&2", "a Minix filesystem", "mount -o ro,loop"),
    ("mkswap", "truncate -s 1M file && mkswap file >&2", "swap space", "info --scan"),
    ("zip", "zip -qr file.zip tree && mv file.zip file", "a zip archive", "packfs pack FILE IMAGE"),
    ("tar", "tar -cf file tree", "a tar archive", "packfs pack FILE IMAGE"),
    ("gzip", "tar -cf - tree | gzip > file", "a file compressed with gzip", "gzip -dc"),
    ("xz", "tar -cf - tree | xz > file", "a file compressed with xz", "xz -dc"),
    ("zstd", "tar -cf - tree | zstd -q > file", "a file compressed with zstd", "zstd -dc"),
    ("bzip2", "tar -cf - tree | bzip2 > file", "a file compressed with bzip2", "bzip2 -dc"),
    ("lz4", "tar -cf - tree | lz4 -q > file", "a file compressed with lz4", "lz4 -dc"),
    ("lzip", "tar -cf - tree | lzip > file", "a file compressed with lzip", "lzip -dc"),
    (
        "cryptsetup",
        "truncate -s 20M file && echo secret | cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 file",
        "an encrypted disk (LUKS)",
        "cryptsetup open --readonly",
    ),
];

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.any(|folder| folder.join(program).exists())
}

#[test]
fn names_what_other_programs_make() {
    let fixture = Fixture::new();
    fixture.write("tree/file", "text\n");
    for (program, script, what, hint) in MADE {
        if !is_installed(program) {
            skip(&format!("{program} is missing"));
            continue;
        }
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).current_dir(fixture.path("")).env("PATH", path);
        let made = shell.output().unwrap();
        assert!(made.status.success(), "{script}: {}", String::from_utf8_lossy(&made.stderr));
        assert_refused(&fixture.run(["ls", "file"]), what, hint);
        fs::remove_file(fixture.path("file")).unwrap();
    }
}

#[test]
fn names_files_by_their_magics() {
    let fixture = Fixture::new();
    for (at, magic, what, hint) in [
        (3, &b"NTFS    "[..], "an NTFS filesystem", "mount -o ro,loop"),
        (3, b"EXFAT   ", "an exFAT filesystem", "mount -o ro,loop"),
        (82, b"FAT32   ", "a FAT filesystem", "mount -o ro,loop"),
        (1024, b"\x10\x20\xf5\xf2", "an F2FS filesystem", "mount -o ro,loop"),
        (0, b"\x85\x19\x03\x20", "a JFFS2 filesystem", "info --scan"),
        (0, b"\x19\x85\xe0\x01", "a JFFS2 filesystem", "info --scan"),
        (4096, b"gDla", "an Android super image", "lpunpack"),
        (0, b"UBI#\x01", "a UBI image", "info --scan"),
        (0, b"\x31\x18\x10\x06", "a UBIFS filesystem", "info --scan"),
        (0, b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\0", "a Singularity image (SIF)", "info --scan"),
        (0, b"LUKS\xba\xbe\0\x02", "an encrypted disk (LUKS)", "cryptsetup open"),
        (0, b"\x27\x05\x19\x56", "a U-Boot image", "info --scan"),
        (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
        (0, b"070701", "a cpio archive", "unpack it first"),
        (0, b"\x7fELF\x02\x01\x01\0AI\x02", "an AppImage", "info --scan"),
        (0, b"\x7fELF\x01\x02\x01", "a program (ELF)", "info --scan"),
        (0, b"\0", "a file that starts with zeros", "info --scan"),
    ] {
        let mut bytes = vec![0; 70_000];
        bytes[at..at + magic.len()].copy_from_slice(magic);
        // What is refused has something in it that no format begins with.
        fixture.write("file", bytes);
        assert_refused(&fixture.run(["ls", "file"]), what, hint);
        let run = fixture.run(["pack", "file", "image.sqfs"]);
        if what == "a program (ELF)" {
            // No tree was ever in it.
            assert!(run.code == Some(0) && run.stderr.contains("packing the file itself"));
            continue;
        }
        run.failed(4, &["neither a directory", &format!("looks like {what}"), hint]);
    }
    let tar = "printf '<?xml version=\"1.0\"?><Envelope/>' > vm.ovf && tar -cf file vm.ovf";
    let made = Command::new("sh").args(["-ec", tar]).current_dir(fixture.path("")).status().unwrap();
    assert!(made.success());
    assert_refused(&fixture.run(["ls", "file"]), "a virtual machine (OVA)", "tar -xf");
    File::create(fixture.path("file")).unwrap();
    assert_refused(&fixture.run(["ls", "file"]), "an empty file", "packfs pack SOURCE IMAGE");
    // What nothing is known of is still told where to look, and nothing is read beyond the end.
    for bytes in [&b"junk"[..], b"H", &[0x53, 0xef], &[b'h'; 1081]] {
        fixture.write("file", bytes);
        fixture.run(["ls", "file"]).failed(4, &["no known format\n", "info --scan", "squashfs, "]);
    }
}

#[test]
fn finds_the_image_behind_a_program() {
    let fixture = Fixture::with_image();
    let image = fixture.bytes("root.sqfs");
    let mut program = vec![0; 0x1000];
    program[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0AI\x02\0\0\0\0\0");
    // The table of sections: where it lies, how long a row is and how many there are.
    program[40..48].copy_from_slice(&0xf00_u64.to_le_bytes());
    program[58..62].copy_from_slice(&[64, 0, 2, 0]);
    let end = 0xf80;
    fixture.write("app", [&program[..end], &image].concat());
    let listed = fixture.run(["ls", "-R", "root.sqfs"]);
    let notice = format!("is an AppImage: the squashfs image at offset {end} is read");
    let told = |args: &[&str]| fixture.run(args).warned(&[&notice]).text().to_owned();
    assert_eq!(told(&["ls", "-R", "app"]), listed.done().text());
    told(&["unpack", "app", "out", "-q"]);
    assert_same_files(&fixture.path("rootfs"), &fixture.path("out"));
    told(&["check", "--data", "app", "-q"]);
    told(&["pack", "app", "again.sqfs", "-q"]);
    let info: serde_json::Value = serde_json::from_str(&told(&["info", "--json", "app"])).unwrap();
    assert_eq!(info["within"][0]["format"], "appimage");
    // Tools read images that fill their file.
    let what = format!("an AppImage with squashfs (--offset {end})");
    assert_refused(&fixture.run(["ls", "app", "--outer"]), &what, &format!("--offset {end}"));
    assert_eq!(fixture.run(["as", "unsquashfs", "-l", "app"]).code, Some(1));
    fixture.run(["ls", "app", "--offset", &end.to_string()]).done();
    // Of two images, none is the one.
    let padded =
        [&program[..end], &image, &vec![0; image.len().next_multiple_of(4096) - image.len()]].concat();
    let second = (end + image.len()).next_multiple_of(4096);
    fixture.write("app", [&padded[..], &vec![0; second.saturating_sub(padded.len())], &image].concat());
    let both = format!("squashfs (--offset {end}), squashfs (--offset {second})");
    assert_refused(&fixture.run(["ls", "app"]), "an AppImage with", &both);
    // Offsets of a hostile program lead nowhere.
    program[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
    fixture.write("app", &program);
    assert_refused(&fixture.run(["ls", "app"]), "an AppImage", "info --scan");
}

/// A Singularity image: rows of kind of partition and image, each in a descriptor.
fn sif(partitions: &[(u32, &[u8])]) -> Vec<u8> {
    let mut sif = vec![0; 128 + 585 * (partitions.len() + 1)];
    sif[..45].copy_from_slice(b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\x0001\0");
    sif[88..96].copy_from_slice(&(partitions.len() as u64 + 1).to_le_bytes());
    sif[96..104].copy_from_slice(&128_u64.to_le_bytes());
    for (row, (kind, image)) in partitions.iter().enumerate() {
        sif.resize(sif.len().next_multiple_of(4096), 0);
        let offset = sif.len() as u64;
        let descriptor = &mut sif[128 + 585 * (row + 1)..][..585];
        descriptor[..5].copy_from_slice(&[4, 0x40, 0, 0, 1]);
        descriptor[17..25].copy_from_slice(&offset.to_le_bytes());
        descriptor[25..33].copy_from_slice(&(image.len() as u64).to_le_bytes());
        descriptor[205..209].copy_from_slice(&kind.to_le_bytes());
        sif.extend_from_slice(image);
    }
    sif
}

#[test]
fn opens_the_system_of_a_singularity_image() {
    let fixture = Fixture::with_image();
    let image = fixture.bytes("root.sqfs");
    let listed = fixture.run(["ls", "-R", "root.sqfs"]);
    for partitions in [&[(1, &image[..])][..], &[(4, &image[..]), (2, &image)], &[(3, b"data"), (2, &image)]]
    {
        fixture.write("a.sif", sif(partitions));
        let run = fixture.run(["ls", "-R", "a.sif"]);
        run.warned(&["is a Singularity image (SIF): the squashfs image at"]);
        assert_eq!(run.text(), listed.done().text());
        assert_eq!(run.stderr.contains("others are squashfs (--offset 4096)"), partitions[0].0 == 4);
    }
    fixture.write("a.sif", sif(&[(3, &image), (4, &image)]));
    assert_refused(&fixture.run(["ls", "a.sif"]), "a Singularity image (SIF) with squashfs", "--offset 4096");
    // Figures of a hostile one lead nowhere.
    let whole = sif(&[(2, &image)]);
    for at in (88..104).chain(128 + 585..128 + 585 + 33) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        fixture.write("a.sif", damaged);
        let run = fixture.run(["ls", "a.sif"]);
        assert!(matches!(run.code, Some(0 | 3 | 4)), "{at}: {}", run.stderr);
    }
}

#[test]
fn finds_squashfs_with_any_magic() {
    let fixture = Fixture::with_tree();
    for (options, magics) in [
        (&["-f", "squashfs"][..], &["sqlz", "tqsh", "hsqt", "qshs", "zzzz"][..]),
        (&["-f", "squashfs-legacy", "-O", "version=3.1", "-O", "endian=little"], &["sqlz", "ABCD"]),
        (&["-f", "squashfs-legacy", "-O", "version=3.1", "-O", "endian=big"], &["sqlz", "zlqs"]),
        (&["-f", "squashfs-legacy", "-O", "version=2.1", "-O", "endian=big"], &["zlqs", "1234"]),
    ] {
        let pack = [&["pack", "rootfs", "image", "-q", "--lossy"], options].concat();
        assert_eq!(fixture.run(pack).code, Some(0), "{options:?}");
        let image = fixture.bytes("image");
        let listed = fixture.run(["ls", "-lR", "image"]).done().text().to_owned();
        for magic in magics {
            let altered = [magic.as_bytes(), &image[4..]].concat();
            fixture.write("altered", &altered);
            let run = fixture.run(["ls", "altered"]);
            assert_eq!(run.code, Some(4), "{options:?} {magic}: {}", run.stderr);
            assert!(run.stderr.contains("a SquashFS image with another magic"), "{}", run.stderr);
            let (_, rest) = run.stderr.split_once("hint: --magic ").unwrap();
            let known = rest.split(' ').next().unwrap();
            let read = fixture.run(["ls", "-lR", "altered", "--magic", known]);
            assert_eq!(read.done().text(), listed, "{options:?} {magic}");
            if ["zzzz", "ABCD", "1234"].contains(magic) {
                continue;
            }
            fixture.write("firmware", [&[0xff; 777][..], &altered].concat());
            let found = fixture.run(["info", "--scan", "--json", "firmware"]).json();
            assert_eq!(found["found"][0]["offset"], 777, "{options:?} {magic}: {found}");
            assert_eq!(found["found"].as_array().unwrap().len(), 1, "{found}");
            let known = found["found"][0]["magic"].as_str().unwrap();
            let text = fixture.run(["info", "--scan", "firmware"]);
            assert!(text.done().text().contains(&format!("--magic {known}")), "{}", text.text());
            let read = fixture.run(["ls", "-lR", "firmware", "--offset", "777", "--magic", known]);
            assert_eq!(read.done().text(), listed, "{options:?} {magic}");
        }
    }
    fixture.run(["pack", "rootfs", "image", "-q"]).done();
    let found = fixture.run(["info", "--scan", "--json", "image"]).json();
    assert_eq!(found["found"][0]["magic"], serde_json::Value::Null);
    for (wrong, verb) in [("abcd", "ls"), ("squashfs", "stat"), ("HSQS", "cat"), ("", "unpack")] {
        let known = "unknown magic; use hsqs, shsq, sqsh, qshs, hsqt, tqsh";
        fixture.run([verb, "image", "x", "--magic", wrong]).failed(2, &["--magic", known]);
    }
}

#[test]
fn names_directories_that_are_given_as_images() {
    let fixture = Fixture::with_tree();
    fixture.run(["ls", "rootfs"]).failed(2, &["a directory, not an image", "packfs pack rootfs IMAGE"]);
    fixture.write("rootfs/oci-layout", r#"{"imageLayoutVersion": "1.0.0"}"#);
    fixture.run(["ls", "rootfs"]).failed(4, &["neither index.json nor manifest.json"]);
    let run = fixture.run(["merge", "rootfs", "-o", "m.sqfs"]);
    run.failed(2, &["an OCI image layout", "packfs pack oci-layout:rootfs IMAGE"]);
}
