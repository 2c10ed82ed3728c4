//! btrfs as Linux writes and reads it, beside what packfs reads: equal walks, equal contents.

mod made;

use made::{Made, Row, in_threads, make, make_by, may_run, run};
use packfs_core::{ErrorKind, FileType, Silent};
use packfs_testkit::{Compare, LoopDevice, Snapshot, peer, peer_since, snapshot_dir, snapshot_tree, unmount};
use std::os::unix::fs::MetadataExt;

/// Directories that stand for the nested subvolume in snapshots of its parent. Linux gives them the
/// current time.
const ELSEWHERE: [&[u8]; 2] = [b"snapshot/nested", b"d/e/writable/nested"];

/// Link counts of directories are 1 in btrfs, and counted here.
const COMPARE: Compare = Compare { dir_links: false, ..Compare::ALL };

const fn row(name: &'static str, mkfs: &'static str, mount: &'static str, devices: usize) -> Row {
    Row { name, mkfs, mount, devices }
}

const FEATURES: &[Row] = &[
    row("zlib", "", "compress-force=zlib", 1),
    row("lzo, xxhash", "--csum xxhash", "compress-force=lzo", 1),
    row("zstd, sha256", "--csum sha256", "compress-force=zstd", 1),
    row("not compressed, blake2", "--csum blake2", "defaults", 1),
    row("without checksums of data", "", "nodatacow", 1),
    row("mixed groups", "-M -n 4096", "compress-force=zstd", 1),
    row("nodes of 64 KiB, zlib", "-n 65536", "compress-force=zlib:9", 1),
    row("nodes of 4 KiB, lzo", "-n 4096", "compress-force=lzo", 1),
    row("without later features", "-O ^no-holes,^skinny-metadata -R ^free-space-tree", "defaults", 1),
    row("inline up to a sector", "-d single -m single", "max_inline=4095,compress=zstd:15", 1),
];

const PROFILES: &[Row] = &[
    row("raid0 of three", "-d raid0 -m raid1", "defaults", 3),
    row("raid1", "-d raid1 -m raid1", "compress-force=zstd", 2),
    row("raid1c3", "-d raid1c3 -m raid1c3", "defaults", 3),
    row("raid1c4", "-d raid1c4 -m raid1c4", "compress-force=lzo", 4),
    row("raid10", "-d raid10 -m raid10", "compress-force=zlib", 4),
    row("raid5", "-d raid5 -m raid5", "defaults", 3),
    row("raid6", "-d raid6 -m raid6", "compress-force=zstd", 4),
    row("raid6 of five, metadata in copies", "-d raid6 -m raid1c3", "defaults", 5),
    row("single on two", "-d single -m dup", "defaults", 2),
];

/// Reads all of an image; `left_out` are devices that are not given.
fn read(made: &Made, left_out: &[usize]) -> Snapshot {
    let opened = made.open(left_out).unwrap_or_else(|e| panic!("{}: {e}", made.name));
    let loaded = opened.load(&Silent).unwrap_or_else(|e| panic!("{}: {e}", made.name));
    snapshot_tree(&loaded.tree, &**opened.engine())
}

fn without_times_elsewhere(mut snapshot: Snapshot) -> Snapshot {
    for path in ELSEWHERE {
        let row = snapshot.0.get_mut(path).expect("the subvolume elsewhere");
        assert_eq!(row.file_type, FileType::Directory);
        row.mtime = Default::default();
    }
    snapshot
}

/// Compares all names, attributes, and contents, and the blocks that `stat` reports.
fn agrees(made: &Made) -> Snapshot {
    let mount = made.mount("").unwrap_or_else(|e| panic!("{}: {e}", made.name));
    let expected = without_times_elsewhere(snapshot_dir(&mount.path()));
    let found = without_times_elsewhere(read(made, &[]));
    found.assert_same(&expected, COMPARE, made.name);
    assert!(expected.0.len() > 10_400, "{}: {} names", made.name, expected.0.len());
    let opened = made.open(&[]).unwrap();
    for name in ["text", "sparse", "reserved", "parts", "inline", "inline-extended", "symlink", "d", "block"]
    {
        let inode = opened.volume().inode(opened.find(name).unwrap()).unwrap();
        let stat = mount.path().join(name).symlink_metadata().unwrap();
        assert_eq!((inode.sectors, inode.number), (stat.blocks(), stat.ino()), "{}: {name}", made.name);
    }
    let mut findings = Vec::new();
    opened.volume().check(&mut |finding| findings.push(finding)).unwrap();
    assert_eq!(findings, [], "{}", made.name);
    found
}

#[test]
fn agrees_with_the_kernel_on_every_feature() {
    if may_run() {
        in_threads(FEATURES, |row| {
            agrees(&make(row, Some("filled")));
        });
    }
}

#[test]
fn agrees_with_the_kernel_on_every_profile_also_without_the_devices_that_it_can_miss() {
    if !may_run() {
        return;
    }
    in_threads(PROFILES, |row| {
        let made = make(row, Some("filled"));
        let expected = agrees(&made);
        let missing: &[&[usize]] = match row.name {
            "raid1" => &[&[0], &[1]],
            "raid1c3" => &[&[0, 1], &[1, 2]],
            "raid1c4" => &[&[0, 1, 3]],
            "raid10" => &[&[0], &[2]],
            "raid5" => &[&[0], &[1], &[2]],
            "raid6" => &[&[0, 1], &[2, 3], &[1, 3], &[2]],
            "raid6 of five, metadata in copies" => &[&[0, 4], &[1, 2]],
            _ => &[],
        };
        for left_out in missing {
            read_without(&made, left_out, &expected);
        }
        if row.name == "raid0 of three" {
            fails_file_by_file(&made);
        }
    });
}

#[test]
fn agrees_with_the_kernel_on_images_that_btrfstune_changed_and_on_later_trees() {
    if !may_run() {
        return;
    }
    if peer("btrfstune").is_some() {
        let made = make(&row("metadata UUID", "", "compress-force=zstd", 1), Some("filled"));
        run("btrfstune", &["-m"], &[&made.devices[0]]);
        agrees(&made);
        sprouts(&make(&row("seed", "", "defaults", 1), Some("filled")));
    }
    if let Some(mkfs) = peer_since("mkfs.btrfs", "6.19") {
        let row = row("block group tree", "-O block-group-tree", "defaults", 1);
        agrees(&make_by(&mkfs.command(&[]).get_program().to_string_lossy(), &row, Some("filled")));
    }
}

/// A second device grows from a seed: the seed is read alone, and both together.
fn sprouts(seed: &Made) {
    run("btrfstune", &["-f", "-S", "1"], &[&seed.devices[0]]);
    agrees(seed);
    let sprout = seed.devices[0].with_file_name("sprout");
    std::fs::File::create(&sprout).unwrap().set_len(400 << 20).unwrap();
    {
        let mount = seed.mount("").unwrap();
        let device = LoopDevice::new(&sprout).unwrap();
        run("btrfs", &["-q", "device", "add", "-f"], &[device.path(), &mount.path()]);
        run("mount", &["-o", "remount,rw"], &[&mount.path()]);
        std::fs::write(mount.path().join("grown"), vec![b'g'; 100_000]).unwrap();
        assert!(unmount(&mount.path()));
    }
    let made = seed.with_devices(vec![sprout, seed.devices[0].clone()]);
    assert_eq!(made.open(&[]).unwrap().read("grown").unwrap(), vec![b'g'; 100_000]);
    agrees(&made);
    let error = made.open(&[1]).unwrap().read("text").unwrap_err();
    assert!(error.to_string().contains("which is not given"), "{error}");
}

fn read_without(made: &Made, left_out: &[usize], expected: &Snapshot) {
    let what = format!("{} without {left_out:?}", made.name);
    let warnings = made.open(left_out).unwrap_or_else(|e| panic!("{what}: {e}")).warnings();
    assert_eq!(
        warnings.iter().filter(|text| text.contains("is not given")).count(),
        left_out.len(),
        "{what}"
    );
    let found = without_times_elsewhere(read(made, left_out));
    found.assert_same(expected, COMPARE, &what);
}

/// Everything is listed, and files on the missing device fail alone.
fn fails_file_by_file(made: &Made) {
    let opened = made.open(&[1]).unwrap();
    let error = opened.read("random").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert!(error.to_string().contains("which is not given"), "{error}");
    assert!(error.to_string().contains("random"), "{error}");
    assert_eq!(opened.read("inline").unwrap().len(), 2000);
}

#[test]
fn the_log_of_an_image_that_was_not_unmounted_is_applied_as_by_the_kernel() {
    if !may_run() {
        return;
    }
    // A commit by the clock would empty the log before it is copied.
    let rows = [
        (row("files", "", "commit=300", 1), "log-files"),
        (row("compressed files", "", "commit=300,compress-force=zstd", 1), "log-files"),
        (row("names", "", "commit=300", 1), "log-names"),
    ];
    for (row, script) in rows {
        let mut made = make(&row, Some("log-before"));
        let copies = {
            let mount = made.mount(row.mount).unwrap();
            made.fill(&mount.path(), script);
            ["copy", "second copy"].map(|name| {
                let copy = made.devices[0].with_file_name(name);
                std::fs::copy(&made.devices[0], &copy).unwrap();
                copy
            })
        };
        made.devices = vec![copies[0].clone()];
        let opened = made.open(&[]).unwrap();
        assert!(opened.warnings()[0].contains("are read from the log"), "{:?}", opened.warnings());
        let mut findings = Vec::new();
        opened.volume().check(&mut |finding| findings.push(finding)).unwrap();
        assert_eq!(findings.len(), 1, "{findings:?}");
        let found = read(&made, &[]);
        let committed = packfs::OpenOptions::new().no_journal().open(&made.devices[0]).unwrap();
        let loaded = committed.load(&Silent).unwrap();
        let committed = snapshot_tree(&loaded.tree, &**committed.engine());
        assert!(!committed.differences(&found, COMPARE).is_empty(), "{}", made.name);
        // The kernel writes to what it mounts.
        made.devices = vec![copies[1].clone()];
        let mount = made.mount("").unwrap();
        found.assert_same(&snapshot_dir(&mount.path()), COMPARE, made.name);
    }
}

#[test]
fn a_damaged_sector_is_read_from_its_mirror_or_refused() {
    if !may_run() {
        return;
    }
    let rows =
        [row("mirrored", "-d raid1 -m raid1", "defaults", 2), row("single", "-d single", "defaults", 1)];
    in_threads(&rows, |row| {
        let made = make(row, Some("filled"));
        let expected = made.open(&[]).unwrap().read("random").unwrap();
        let mut device = std::fs::read(&made.devices[0]).unwrap();
        let sector = &expected[100_000 / 4096 * 4096..][..4096];
        let at = (0..device.len()).step_by(4096).find(|at| &device[*at..at + 4096] == sector);
        device[at.expect("the sector") + 7] ^= 1;
        std::fs::write(&made.devices[0], device).unwrap();
        let opened = made.open(&[]).unwrap();
        match (row.devices, opened.read("random")) {
            (2, found) => {
                assert!(found.unwrap() == expected);
                let remarks = opened.volume().remarks();
                assert!(remarks.len() == 1 && remarks[0].contains("read from other copies"), "{remarks:?}");
            }
            (_, found) => {
                let error = found.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                assert!(error.to_string().contains("wrong checksum"), "{error}");
            }
        }
        assert_eq!(made.open(&[]).unwrap().read("inline").unwrap().len(), 2000);
    });
}

#[test]
fn figures_of_compression_are_those_of_compsize() {
    let Some(compsize) = peer("compsize").filter(|_| may_run()) else { return };
    let rows = [row("zlib", "", "compress-force=zlib", 1), row("zstd, lzo", "", "compress=zstd", 1)];
    in_threads(&rows, |row| {
        let made = make(row, Some("filled"));
        let mount = made.mount("").unwrap();
        let said = compsize.run(&[&"-b", &mount.path()]).stdout;
        let found = made.open(&[]).unwrap().compression().unwrap();
        let mut lines = vec![(found.total.codec.to_owned(), &found.total)];
        lines.extend(found.codecs.iter().map(|row| (row.codec.to_owned(), row)));
        for line in String::from_utf8(said).unwrap().lines().skip(2) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let codec = if words[0] == "TOTAL" { "all" } else { words[0] };
            let (_, row) = lines.iter().find(|(own, _)| own == codec).unwrap_or_else(|| panic!("{line}"));
            let figures = [row.disk, row.uncompressed, row.referenced].map(|figure| figure.to_string());
            assert_eq!(words[2..5], figures, "{}: {line}", made.name);
        }
    });
}
