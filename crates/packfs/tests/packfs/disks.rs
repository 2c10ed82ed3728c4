//! Virtual disks written by qemu-img and img2simg: what goes in comes out.

use packfs::{ErrorKind, MemoryImage, OpenOptions, Opened, Severity};
use packfs_testkit::{Peer, Random, peer};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

const MIB: usize = 1 << 20;

/// Text, noise, zeros, and a pattern of four bytes, in whole sectors.
fn raw_disk() -> Vec<u8> {
    let mut random = Random::new(11);
    let pattern = [1, 2, 3, 4].repeat(16 << 10);
    [
        random.text(MIB),
        random.noise(MIB / 2),
        vec![0; 5 * MIB],
        pattern,
        random.text(MIB),
        vec![7; 4096],
        random.noise(8192),
    ]
    .concat()
}

/// The disk in an image, which has to be sound, in one piece and in many.
#[track_caller]
fn disk(path: &Path, format: &str) -> Vec<u8> {
    let opened = OpenOptions::new().outermost().open(path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(opened.format().name(), format);
    read(&opened, format)
}

#[track_caller]
fn read(opened: &Opened, what: &str) -> Vec<u8> {
    let mut faults = Vec::new();
    opened.volume().check(&mut |finding| faults.push(finding)).unwrap();
    // The log of a disk that was not closed is told, and read.
    faults.retain(|finding| finding.severity > Severity::Note && finding.place != "log");
    assert!(faults.is_empty(), "{what}: {faults:?}");
    let owned: u64 = opened.volume().space().unwrap().iter().map(|owner| owner.len).sum();
    assert_eq!(owned, opened.image().len(), "{what}");
    let disk = opened.read("disk.img").unwrap();
    let file = opened.open_file("disk.img").unwrap();
    let mut random = Random::new(3);
    for _ in 0..100 {
        let at = random.below(disk.len() as u64) as usize;
        let mut buf = vec![0; (random.below(70_000) as usize).min(disk.len() - at)];
        assert_eq!(file.read_at(at as u64, &mut buf).unwrap(), buf.len());
        assert!(buf == disk[at..at + buf.len()], "{what}: {} bytes at {at}", buf.len());
    }
    disk
}

fn run(peer: &Peer, folder: &Path, words: &[&str]) {
    let words: Vec<&dyn AsRef<std::ffi::OsStr>> = words.iter().map(|word| word as _).collect();
    let done = peer.command(&words).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_format_of_qemu_gives_the_disk_that_was_converted() {
    let Some(qemu) = peer("qemu-img") else { return };
    let folder = tempfile::tempdir().unwrap();
    let raw = raw_disk();
    fs::write(folder.path().join("raw"), &raw).unwrap();
    let rows = [
        ("vpc", "subformat=dynamic", "vhd"),
        ("vpc", "subformat=dynamic,force_size=on", "vhd"),
        ("vpc", "subformat=fixed", "vhd"),
        ("vhdx", "subformat=dynamic", "vhdx"),
        ("vhdx", "subformat=fixed,block_size=1M", "vhdx"),
        ("vhdx", "block_size=256M", "vhdx"),
        ("vmdk", "subformat=monolithicSparse", "vmdk"),
        ("vmdk", "subformat=monolithicSparse,zeroed_grain=on", "vmdk"),
        ("vmdk", "subformat=streamOptimized", "vmdk"),
        ("vdi", "static=off", "vdi"),
        ("vdi", "static=on", "vdi"),
    ];
    std::thread::scope(|scope| {
        for (index, (driver, options, format)) in rows.into_iter().enumerate() {
            let (qemu, folder, raw) = (&qemu, folder.path(), &raw);
            scope.spawn(move || {
                let name = index.to_string();
                run(qemu, folder, &["convert", "-f", "raw", "-O", driver, "-o", options, "raw", &name]);
                let disk = disk(&folder.join(&name), format);
                // VHD rounds up to whole cylinders.
                assert!(disk.len() >= raw.len() && (disk.len() == raw.len() || format == "vhd"), "{options}");
                assert!(disk[..raw.len()] == *raw, "{driver} {options}");
                assert!(disk[raw.len()..].iter().all(|byte| *byte == 0), "{driver} {options}");
                assert_found(&fs::read(folder.join(&name)).unwrap(), format, options);
            });
        }
    });
}

/// A scan finds an image between other bytes, unless the image is found by its end.
#[track_caller]
fn assert_found(image: &[u8], format: &str, options: &str) {
    let is_at_end = ["subformat=streamOptimized", "subformat=fixed"].contains(&options);
    let behind = if is_at_end { Vec::new() } else { Random::new(5).noise(9999) };
    let blob = MemoryImage::new("blob", [&[0xff; 12_345][..], image, &behind].concat());
    let found = packfs::scan(Arc::new(blob), packfs::ScanOptions::new(), &packfs::Silent).unwrap();
    let rows: Vec<_> = found.iter().map(|it| (it.format.name(), it.offset)).collect();
    if format == "vhd" && is_at_end {
        assert_eq!(rows, [], "a fixed disk has nothing at its start");
    } else {
        assert_eq!(rows, [(format, 12_345)], "{options}");
        let end = found[0].len.unwrap_or(0);
        // After the last block, there may be a copy of a footer, or the rest of a cluster of QEMU.
        let len = image.len() as u64;
        assert!(end <= len && end + (64 << 10) > len, "{format} {options}: {end} of {len}");
    }
}

#[test]
fn sparse_images_of_android_are_read() {
    let Some(img2simg) = peer("img2simg") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut raw = raw_disk();
    raw.resize(raw.len().next_multiple_of(4096), 0);
    fs::write(folder.path().join("raw"), &raw).unwrap();
    for block in ["4096", "1024"] {
        run(&img2simg, folder.path(), &["raw", "sparse", block]);
        assert!(disk(&folder.path().join("sparse"), "android-sparse") == raw, "{block}");
        assert_found(&fs::read(folder.path().join("sparse")).unwrap(), "android-sparse", block);
    }
}

#[test]
fn files_of_a_split_image_of_android_are_joined() {
    let (Some(img2simg), Some(split)) = (peer("img2simg"), peer("simg2simg")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let raw = Random::new(7).noise(4 * MIB);
    fs::write(folder.path().join("raw"), &raw).unwrap();
    run(&img2simg, folder.path(), &["raw", "whole"]);
    run(&split, folder.path(), &["whole", "system.img_sparsechunk", "1500000"]);
    let part = |number: u32| folder.path().join(format!("system.img_sparsechunk.{number}"));
    assert!(part(2).exists());
    for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
        let alone = OpenOptions::new().outermost();
        let error = alone.open(part(order[0])).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("one file of a split image"), "{error}");
        assert!(error.hints()[0].contains("--device FILE"), "{:?}", error.hints());
        let two = alone.clone().device(part(order[1]));
        assert!(two.open(part(order[0])).is_err(), "one file is missing");
        let opened = two.device(part(order[2])).open(part(order[0])).unwrap();
        assert!(read(&opened, "android-sparse") == raw, "{order:?}");
        assert!(opened.warnings().is_empty());
    }
    // Under another name, the first file looks like an image with free space at its end.
    fs::copy(part(0), folder.path().join("super_0.img")).unwrap();
    let opened = OpenOptions::new().outermost().open(folder.path().join("super_0.img")).unwrap();
    assert!(opened.warnings()[0].contains("are not stored, and read as zeros"), "{:?}", opened.warnings());
    assert!(OpenOptions::new().outermost().device(part(0)).open(part(0)).is_err());
}

#[test]
fn disks_of_several_files_are_read_with_the_files_that_are_given() {
    let Some(qemu) = peer("qemu-img") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let raw = raw_disk();
    fs::write(folder.join("raw"), &raw).unwrap();
    let convert = |kind: &str, name: &str| {
        let option = format!("subformat={kind}");
        run(&qemu, folder, &["convert", "-f", "raw", "-O", "vmdk", "-o", &option, "raw", name]);
    };
    for (kind, file) in [
        ("monolithicFlat", "d-flat.vmdk"),
        ("twoGbMaxExtentSparse", "d-s001.vmdk"),
        ("twoGbMaxExtentFlat", "d-f001.vmdk"),
    ] {
        convert(kind, "d.vmdk");
        let alone = OpenOptions::new().outermost();
        let error = alone.open(folder.join("d.vmdk")).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.hints()[0].contains(&format!("--device {file:?}")), "{:?}", error.hints());
        fs::rename(folder.join(file), folder.join("other")).unwrap();
        for options in
            [alone.clone().device(folder.join("other")), alone.clone().allow_backing(folder.join("other"))]
        {
            let opened = options.open(folder.join("d.vmdk")).unwrap();
            assert!(read(&opened, kind)[..raw.len()] == *raw, "{kind}");
        }
        let error = alone.clone().device(folder.join("raw")).device(folder.join("raw"));
        assert_eq!(error.open(folder.join("d.vmdk")).err().unwrap().kind(), ErrorKind::Usage);
        fs::write(folder.join("short"), &fs::read(folder.join("other")).unwrap()[..MIB]).unwrap();
        let short = alone.device(folder.join("short")).open(folder.join("d.vmdk"));
        let short = short.and_then(|opened| opened.read("disk.img"));
        assert_eq!(short.err().unwrap().kind(), ErrorKind::Corrupt, "{kind}");
        fs::remove_file(folder.join("d.vmdk")).unwrap();
    }
    // A partition in a flat file is no reason to read that alone.
    let Some(sfdisk) = peer("sfdisk") else { return };
    fs::write(folder.join("raw"), vec![0; 2 * MIB]).unwrap();
    let mut child = sfdisk.command(&[&"-q", &folder.join("raw")]).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"start=4, size=50, type=83\n").unwrap();
    assert!(child.wait().unwrap().success());
    convert("monolithicFlat", "d.vmdk");
    let options = OpenOptions::new().device(folder.join("d-flat.vmdk"));
    let opened = options.open(folder.join("d.vmdk")).unwrap();
    assert_eq!(opened.format().name(), "partitions");
}

#[test]
fn differences_and_parts_of_disks_are_named() {
    let Some(qemu) = peer("qemu-img") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let create = |words: &[&str]| run(&qemu, folder, &[&["create", "-q", "-f", "vmdk"], words].concat());
    create(&["base.vmdk", "8M"]);
    create(&["-o", "backing_file=base.vmdk,backing_fmt=vmdk", "top.vmdk", "8M"]);
    create(&["-o", "subformat=twoGbMaxExtentSparse", "split.vmdk", "8M"]);
    for (name, expected, hint) in [
        ("top.vmdk", "the difference to another disk", "qemu-img convert"),
        ("split-s001.vmdk", "a part of a disk", "--device FILE adds each file"),
    ] {
        let error = OpenOptions::new().open(folder.join(name)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hints()[0].contains(hint), "{:?}", error.hints());
    }
}

#[test]
fn changes_in_the_log_of_a_disk_are_applied() {
    let (Some(qemu), Some(io)) = (peer("qemu-img"), peer("qemu-io")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(&qemu, folder, &["create", "-q", "-f", "vhdx", "-o", "block_size=1M", "disk", "16M"]);
    run(&io, folder, &["-c", "write -P 5 3M 2M", "-c", "write -P 6 9M 64k", "disk"]);
    // QEMU marks its log as empty, but leaves it in the file. As if it had stopped before that, the
    // headers name the log, and the table of blocks, at 2 MiB, has no block.
    let mut bytes = fs::read(folder.join("disk")).unwrap();
    let last = (MIB..2 * MIB).step_by(4096).rfind(|at| bytes[*at..].starts_with(b"loge")).unwrap();
    let guid: [u8; 16] = bytes[last + 32..last + 48].try_into().unwrap();
    for at in [64 << 10, 128 << 10] {
        let header = &mut bytes[at..at + 4096];
        header[48..64].copy_from_slice(&guid);
        header[4..8].fill(0);
        let sum = !packfs_format::crc32c(!0, header);
        header[4..8].copy_from_slice(&sum.to_le_bytes());
    }
    assert!(bytes[2 * MIB..2 * MIB + 4096].iter().any(|byte| *byte != 0));
    bytes[2 * MIB..2 * MIB + 4096].fill(0);
    fs::write(folder.join("disk"), bytes).unwrap();
    let opened = OpenOptions::new().outermost().open(folder.join("disk")).unwrap();
    assert!(opened.warnings()[0].contains("changes of its log"), "{:?}", opened.warnings());
    let disk = read(&opened, "vhdx");
    let mut wanted = vec![0; 16 * MIB];
    wanted[3 * MIB..5 * MIB].fill(5);
    wanted[9 * MIB..9 * MIB + (64 << 10)].fill(6);
    assert!(disk == wanted);
    run(&qemu, folder, &["check", "-q", "-r", "all", "disk"]);
    run(&qemu, folder, &["convert", "-O", "raw", "disk", "raw"]);
    assert!(disk == fs::read(folder.join("raw")).unwrap());
}

/// A structure of a VHD with its checksum.
fn summed(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    let sum = bytes.iter().fold(0_u32, |sum, byte| sum + u32::from(*byte));
    bytes[at..at + 4].copy_from_slice(&(!sum).to_be_bytes());
    bytes
}

fn vhd_footer(kind: u8, disk_len: usize, uuid: u8) -> Vec<u8> {
    let mut footer = vec![0; 512];
    footer[..8].copy_from_slice(b"conectix");
    footer[16..24].copy_from_slice(&(if kind == 2 { u64::MAX } else { 512 }).to_be_bytes());
    footer[48..56].copy_from_slice(&(disk_len as u64).to_be_bytes());
    footer[63] = kind;
    footer[68..84].fill(uuid);
    summed(footer, 64)
}

/// A differencing VHD with one block of 64 KiB, which has every third sector of the disk.
fn vhd_difference(disk: &[u8]) -> Vec<u8> {
    let footer = vhd_footer(4, disk.len(), 2);
    let mut header = vec![0; 1024];
    header[..8].copy_from_slice(b"cxsparse");
    header[16..24].copy_from_slice(&1536_u64.to_be_bytes());
    header[28..32].copy_from_slice(&1_u32.to_be_bytes());
    header[32..36].copy_from_slice(&(64_u32 << 10).to_be_bytes());
    header[40..56].fill(1);
    let mut table = vec![0xff; 512];
    table[..4].copy_from_slice(&4_u32.to_be_bytes());
    let (mut bitmap, mut block) = (vec![0; 512], vec![0xee; 64 << 10]);
    for sector in (0..disk.len() / 512).filter(|sector| sector % 3 == 0) {
        bitmap[sector / 8] |= 0x80 >> (sector % 8);
        block[sector * 512..][..512].copy_from_slice(&disk[sector * 512..][..512]);
    }
    [footer.clone(), summed(header, 36), table, bitmap, block, footer].concat()
}

#[test]
fn a_filesystem_in_the_difference_to_another_disk_opens() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = Random::new(5).text(20_000);
    fs::create_dir_all(folder.join("tree/etc")).unwrap();
    fs::write(folder.join("tree/etc/hosts"), &text).unwrap();
    packfs::pack(folder.join("tree"), folder.join("image")).format("squashfs").run().unwrap();
    let mut image = fs::read(folder.join("image")).unwrap();
    image.resize(image.len().next_multiple_of(512), 0);
    assert!((3 * 512..64 << 10).contains(&image.len()));
    let mut old = image.clone();
    old.chunks_mut(512).step_by(3).for_each(|sector| sector.fill(0x55));
    fs::write(folder.join("parent.vhd"), [old, vhd_footer(2, image.len(), 1)].concat()).unwrap();
    fs::write(folder.join("top.vhd"), vhd_difference(&image)).unwrap();
    let opened = OpenOptions::new().allow_backing(folder.join("parent.vhd")).open(folder.join("top.vhd"));
    let opened = opened.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((opened.format().name(), opened.layers()[0].format), ("squashfs", "vhd"));
    assert!(opened.read("etc/hosts").unwrap() == text);
    let error = OpenOptions::new().open(folder.join("top.vhd")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.hints()[0].contains("--allow-backing FILE"), "{:?}", error.hints());
}
