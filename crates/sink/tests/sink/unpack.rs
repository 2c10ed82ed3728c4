//! Unpacked files equal those in the image.

use crate::support::Place;
use crate::support::*;
use packfs_core::*;
use packfs_format::*;
use packfs_sink::*;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

fn unpack_with(fake: Fake, target: &Path, options: &UnpackOptions) -> Result<UnpackReport> {
    let opened = fake.open();
    unpack(&opened.engine, &opened.loaded, target, options, &Silent)
}

fn unpack_into(fake: Fake, target: &Path) -> UnpackReport {
    unpack_with(fake, target, &UnpackOptions::default()).unwrap()
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(len)
    .collect()
}

#[test]
fn restores_contents_of_every_size() {
    let place = Place::new();
    let mut fake = Fake::new();
    let lens = [0, 1, EXTENT_LEN - 1, EXTENT_LEN, EXTENT_LEN + 1, 10 * EXTENT_LEN + 7];
    for len in lens {
        fake.file(ROOT, len.to_string().as_bytes(), &[Part::Data(&noise(len))]);
    }
    let report = unpack_into(fake, &place.target());
    for len in lens {
        assert!(std::fs::read(place.target().join(len.to_string())).unwrap() == noise(len), "{len} bytes");
    }
    assert_eq!((report.files, report.not_created), (6, 0));
    assert_eq!(report.not_restored, []);
}

#[test]
fn restores_modes_and_times_with_any_umask() {
    let place = Place::new();
    let mut fake = Fake::new();
    for mode in [0o000, 0o400, 0o444, 0o600, 0o644, 0o666, 0o755, 0o777, 0o1777, 0o2755, 0o4755, 0o7777] {
        let time = Timestamp::from_seconds(i64::from(mode) + 1);
        let name = format!("{mode:o}");
        let dir = fake.dir(ROOT, format!("d{name}").as_bytes());
        let files = [
            fake.text(dir, b"f", "text"),
            fake.file(dir, b"big", &[Part::Data(&noise(3 * EXTENT_LEN))]),
            fake.file(dir, b"hole", &[Part::Hole(100_000)]),
            fake.add(dir, b"fifo", InodeKind::Fifo),
            fake.add(dir, b"socket", InodeKind::Socket),
            fake.symlink(dir, b"link", b"nowhere"),
            dir,
        ];
        for id in files {
            fake.meta(id).mtime = time;
            if fake.meta(id).mode != 0o777 {
                fake.meta(id).mode = mode;
            }
        }
    }
    fake.meta(ROOT).mode = 0o711;
    let report = unpack_into(fake, &place.target());
    assert_eq!(report.not_restored, []);
    assert_eq!(std::fs::metadata(place.target()).unwrap().mode() & 0o7777, 0o711);
    assert_eq!(std::fs::metadata(place.target()).unwrap().mtime(), 1_000_000_000);
    for entry in std::fs::read_dir(place.target()).unwrap() {
        let dir = entry.unwrap().path();
        let mode = u32::from_str_radix(&dir.file_name().unwrap().to_str().unwrap()[1..], 8).unwrap();
        let check = |path: &Path| {
            let meta = std::fs::symlink_metadata(path).unwrap();
            assert_eq!(meta.mtime(), i64::from(mode) + 1, "{path:?}");
            if !meta.is_symlink() {
                assert_eq!(meta.mode() & 0o7777, mode, "{path:?}");
            }
        };
        check(&dir);
        if is_root() {
            ["f", "big", "hole", "fifo", "socket", "link"].iter().for_each(|name| check(&dir.join(name)));
        }
    }
    make_removable(&place.target());
}

/// Lets the owner of read-only directories remove them.
fn make_removable(dir: &Path) {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if std::fs::symlink_metadata(&path).unwrap().is_dir() {
            make_removable(&path);
        }
    }
}

#[test]
fn fills_read_only_directories_without_privileges() {
    as_nobody(|| {
        let place = Place::new();
        let mut fake = Fake::new();
        let outer = fake.dir(ROOT, b"outer");
        let inner = fake.dir(outer, b"inner");
        fake.text(inner, b"f", "text");
        for id in [outer, inner] {
            fake.meta(id).mode = 0o000;
        }
        let report = unpack_into(fake, &place.target());
        assert_eq!(report.not_restored, []);
        let meta = std::fs::metadata(place.target().join("outer")).unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.mtime()), (0, 1_000_000_000));
        make_removable(&place.target());
        assert_eq!(std::fs::read(place.target().join("outer/inner/f")).unwrap(), b"text");
    });
}

#[test]
fn counts_what_cannot_be_restored_without_privileges_and_drops_set_id_bits() {
    as_nobody(|| {
        let image = || {
            let mut fake = Fake::new();
            let foreign = fake.text(ROOT, b"foreign", "text");
            *fake.meta(foreign) =
                Meta { mode: 0o6755, owner: Owner { uid: 0, gid: 0 }, ..*fake.meta(foreign) };
            let own_file = fake.text(ROOT, b"own", "text");
            fake.meta(own_file).mode = 0o6755;
            fake.add(ROOT, b"null", InodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }));
            let tagged = fake.text(ROOT, b"tagged", "text");
            fake.xattr(tagged, b"trusted.secret", b"x");
            fake.xattr(tagged, b"user.name", b"y");
            fake.meta(tagged).mode = 0o444;
            fake
        };
        let place = Place::new();
        let report = unpack_into(image(), &place.target());
        let counts: Vec<_> = report.not_restored.iter().map(|row| (row.kind, row.count)).collect();
        let expected =
            [(LossKind::Owner, 1), (LossKind::SetId, 2), (LossKind::Xattr, 1), (LossKind::Device, 1)];
        assert_eq!(counts, expected, "{:?}", report.not_restored);
        assert_eq!(report.not_created, 1);
        assert_eq!(report.not_restored[0].examples[0].path.to_string(), "foreign");
        let mode = |name: &str| std::fs::metadata(place.target().join(name)).unwrap().mode() & 0o7777;
        assert_eq!((mode("foreign"), mode("own"), mode("tagged")), (0o755, 0o755, 0o444));
        let as_in_image = UnpackOptions { owner: OwnerPolicy::Image, ..UnpackOptions::default() };
        let asked = Place::new();
        unpack_with(image(), &asked.target(), &as_in_image).unwrap();
        let mode = |name: &str| std::fs::metadata(asked.target().join(name)).unwrap().mode() & 0o7777;
        assert_eq!((mode("foreign"), mode("own")), (0o755, 0o6755), "one's own, since it was asked for");

        let strict = UnpackOptions { strict: true, ..UnpackOptions::default() };
        let error = unpack_with(image(), &Place::new().target(), &strict).unwrap_err();
        assert!(error.to_string().contains("1 owners not restored"), "{error}");

        let current = UnpackOptions { owner: OwnerPolicy::Current, ..UnpackOptions::default() };
        let report = unpack_with(image(), &Place::new().target(), &current).unwrap();
        assert!(report.not_restored.iter().all(|row| row.kind != LossKind::Owner), "it was not asked for");
    });
}

#[test]
fn root_restores_owners_devices_and_capabilities() {
    if !is_root() {
        return skip("needs root");
    }
    restores_everything_in(&Place::new(), Existing::Refuse);
    // In a directory writable by others, every file is held by a descriptor before it is changed.
    let shared = Place::new();
    std::fs::create_dir(shared.target()).unwrap();
    std::fs::write(shared.target().join("old"), "old").unwrap();
    rustix::fs::chown(shared.target(), Some(rustix::fs::Uid::from_raw(77)), None).unwrap();
    restores_everything_in(&shared, Existing::Merge);
}

fn restores_everything_in(place: &Place, existing: Existing) {
    let mut fake = Fake::new();
    let owner = Owner { uid: 1000, gid: 4_294_967_294 };
    let capability = b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let ids = [
        fake.text(ROOT, b"small", "text"),
        fake.file(ROOT, b"big", &[Part::Data(&noise(3 * EXTENT_LEN))]),
        fake.dir(ROOT, b"dir"),
        fake.symlink(ROOT, b"link", b"/etc/passwd"),
        fake.add(ROOT, b"char", InodeKind::CharDevice(DeviceNumber { major: 4, minor: 300 })),
        fake.add(ROOT, b"block", InodeKind::BlockDevice(DeviceNumber { major: 259, minor: 1 })),
        fake.add(ROOT, b"fifo", InodeKind::Fifo),
    ];
    for id in ids {
        fake.meta(id).owner = owner;
        fake.meta(id).mode |= 0o6000;
        fake.xattr(id, b"trusted.t", b"a\0b");
    }
    fake.xattr(ids[0], b"security.capability", capability);
    fake.xattr(ids[1], b"security.capability", capability);
    let options = UnpackOptions { existing, ..UnpackOptions::default() };
    let report = unpack_with(fake, &place.target(), &options).unwrap();
    assert_eq!(report.not_restored, []);
    assert_eq!(report.special_files, 3);
    for name in ["small", "big", "dir", "link", "char", "block", "fifo"] {
        let path = place.target().join(name);
        let meta = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (owner.uid, owner.gid), "{name}");
        assert!(name == "link" || meta.mode() & 0o7000 == 0o6000, "{name}");
        assert_eq!(meta.mtime(), 1_000_000_000, "{name}");
        let mut value = [0; 100];
        assert_eq!(rustix::fs::lgetxattr(&path, c"trusted.t", &mut value[..]).unwrap(), 3, "{name}");
        assert_eq!(&value[..3], b"a\0b");
    }
    for name in ["small", "big"] {
        let mut value = [0; 100];
        let len =
            rustix::fs::getxattr(place.target().join(name), c"security.capability", &mut value[..]).unwrap();
        assert_eq!(&value[..len], capability, "{name}");
    }
    let char_device = std::fs::metadata(place.target().join("char")).unwrap();
    assert!(char_device.file_type().is_char_device());
    assert_eq!(char_device.rdev(), rustix::fs::makedev(4, 300));
    let block_device = std::fs::metadata(place.target().join("block")).unwrap();
    assert!(block_device.file_type().is_block_device());
    assert_eq!(block_device.rdev(), rustix::fs::makedev(259, 1));
}

#[test]
fn skips_devices_on_request() {
    let place = Place::new();
    let mut fake = Fake::new();
    fake.add(ROOT, b"null", InodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }));
    let options = UnpackOptions { devices: false, ..UnpackOptions::default() };
    let report = unpack_with(fake, &place.target(), &options).unwrap();
    assert_eq!((report.not_created, report.not_restored.len()), (1, 0));
    assert!(!place.target().join("null").exists());
}

#[test]
fn every_name_of_a_file_is_one_inode() {
    let place = Place::new();
    let mut fake = Fake::new();
    let dir = fake.dir(ROOT, b"d");
    for (index, kind) in [InodeKind::Fifo, InodeKind::Socket].into_iter().enumerate() {
        let id = fake.add(ROOT, format!("special{index}").as_bytes(), kind);
        fake.link(dir, format!("special{index}").as_bytes(), id);
    }
    let file = fake.text(ROOT, b"file", "text");
    let empty = fake.text(ROOT, b"empty", "");
    let link = fake.symlink(ROOT, b"link", b"x");
    fake.link(dir, b"file", file);
    fake.link(dir, b"file again", file);
    fake.link(dir, b"empty", empty);
    fake.link(dir, b"link", link);
    let report = unpack_into(fake, &place.target());
    assert_eq!(report.hard_links, 6);
    for name in ["special0", "special1", "file", "empty", "link"] {
        let first = std::fs::symlink_metadata(place.target().join(name)).unwrap();
        let second = std::fs::symlink_metadata(place.target().join("d").join(name)).unwrap();
        assert_eq!((first.ino(), first.nlink()), (second.ino(), second.nlink()), "{name}");
        assert!(first.nlink() >= 2);
    }
    let dir = std::fs::metadata(place.target().join("d")).unwrap();
    assert_eq!(dir.mtime(), 1_000_000_000, "links are made before the directory gets its time");
}

#[test]
fn holes_stay_holes() {
    let place = Place::new();
    let mut fake = Fake::new();
    let data = noise(2 * EXTENT_LEN);
    fake.file(ROOT, b"ends", &[Part::Hole(1 << 30), Part::Data(&data), Part::Hole(1 << 30)]);
    fake.file(ROOT, b"whole", &[Part::Hole(100 << 30)]);
    fake.file(ROOT, b"small", &[Part::Data(b"x"), Part::Hole(1 << 30)]);
    unpack_into(fake, &place.target());
    let meta = |name: &str| std::fs::metadata(place.target().join(name)).unwrap();
    assert_eq!((meta("ends").len(), meta("whole").len()), ((2 << 30) + data.len() as u64, 100 << 30));
    assert_eq!(meta("small").len(), (1 << 30) + 1);
    assert!(meta("ends").blocks() < 100 && meta("whole").blocks() == 0 && meta("small").blocks() < 20);
    let mut read = vec![0; data.len() + 2];
    let file = std::fs::File::open(place.target().join("ends")).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut read, (1 << 30) - 1).unwrap();
    assert!(read[0] == 0 && read[1..=data.len()] == data && read[data.len() + 1] == 0);
}

#[test]
fn goes_deeper_than_any_path_the_kernel_takes() {
    let place = Place::new();
    let mut fake = Fake::new();
    let name = [b'd'; 255];
    let mut at = ROOT;
    for level in 0..600 {
        at = fake.dir(at, &name);
        fake.text(at, b"f", &level.to_string());
        fake.text(at, b"g", "twice");
    }
    let report = unpack_into(fake, &place.target());
    assert_eq!((report.directories, report.files), (600, 1200));
    let output =
        std::process::Command::new("find").arg(place.target()).args(["-type", "f"]).output().unwrap();
    assert_eq!(output.stdout.iter().filter(|&&b| b == b'\n').count(), 1200);
    // The standard library cannot remove such long paths.
    assert!(std::process::Command::new("rm").arg("-rf").arg(place.target()).status().unwrap().success());
}

#[test]
fn unpacks_only_requested_paths_and_the_directories_above() {
    let place = Place::new();
    let mut fake = Fake::new();
    let usr = fake.dir(ROOT, b"usr");
    let bin = fake.dir(usr, b"bin");
    let shell = fake.text(bin, b"sh", "text");
    fake.text(bin, b"ls", "text");
    fake.dir(ROOT, b"etc");
    fake.link(ROOT, b"a link", shell);
    let paths = vec![Pattern::parse(b"usr/bin/s*").unwrap()];
    let options = UnpackOptions { paths, ..UnpackOptions::default() };
    let report = unpack_with(fake, &place.target(), &options).unwrap();
    assert_eq!((report.files, report.directories, report.hard_links), (1, 2, 0));
    assert_eq!(std::fs::read(place.target().join("usr/bin/sh")).unwrap(), b"text");
    assert_eq!(std::fs::read_dir(place.target()).unwrap().count(), 1);
}

#[test]
fn a_pattern_that_matches_nothing_fails_before_anything_is_made() {
    let place = Place::new();
    let paths = vec![Pattern::parse(b"nowhere").unwrap()];
    let options = UnpackOptions { paths, ..UnpackOptions::default() };
    assert!(unpack_with(Fake::new(), &place.target(), &options).is_err());
    assert!(!place.target().exists());
}

#[test]
fn leaves_out_what_cannot_be_read_and_fails_at_the_end() {
    let place = Place::new();
    let mut fake = Fake::new();
    let good = noise(3 * EXTENT_LEN);
    for index in 0..20 {
        fake.file(ROOT, format!("good{index}").as_bytes(), &[Part::Data(&good)]);
    }
    fake.file(ROOT, b"bad1", &[Part::Data(&good), Part::Unreadable(10)]);
    fake.file(ROOT, b"bad2", &[Part::Unreadable(100_000)]);
    let error = unpack_with(fake, &place.target(), &UnpackOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains("\"bad") && error.hints().iter().any(|h| h.contains("2 files")),
        "{error}"
    );
    let mut names = 0;
    for entry in std::fs::read_dir(place.target()).unwrap() {
        let path = entry.unwrap().path();
        assert!(std::fs::read(&path).unwrap() == good, "{path:?}");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o644);
        names += 1;
    }
    assert_eq!(names, 20);
}

#[test]
fn fail_fast_stops_at_the_first_unreadable_file_and_leaves_no_part_of_it() {
    let place = Place::new();
    let mut fake = Fake::new();
    fake.file(ROOT, b"bad", &[Part::Data(&noise(3 * EXTENT_LEN)), Part::Unreadable(10)]);
    let options = UnpackOptions { fail_fast: true, ..UnpackOptions::default() };
    let error = unpack_with(fake, &place.target(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(!place.target().join("bad").exists());
}

/// Cancels after a number of queries.
struct StopAfter(std::sync::atomic::AtomicI64);

impl Progress for StopAfter {
    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) <= 0
    }
}

#[test]
fn leaves_no_half_written_file_when_stopped() {
    for stop_after in 0..60 {
        let place = Place::new();
        let mut fake = Fake::new();
        let data = noise(8 * EXTENT_LEN);
        for index in 0..8 {
            let dir = fake.dir(ROOT, format!("d{index}").as_bytes());
            fake.file(dir, b"f", &[Part::Data(&data)]);
        }
        let opened = fake.open();
        let progress = StopAfter(stop_after.into());
        let options = UnpackOptions::default();
        let outcome = unpack(&opened.engine, &opened.loaded, &place.target(), &options, &progress);
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Cancelled);
        }
        for index in 0..8 {
            if let Ok(found) = std::fs::read(place.target().join(format!("d{index}/f"))) {
                assert!(found == data, "stopped after {stop_after}");
            }
        }
    }
}

#[test]
fn refuses_a_target_that_is_not_empty_by_default() {
    let place = Place::new();
    std::fs::create_dir(place.target()).unwrap();
    unpack_into(Fake::new(), &place.target());
    std::fs::write(place.target().join("x"), "x").unwrap();
    let error = unpack_with(Fake::new(), &place.target(), &UnpackOptions::default()).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
}

/// Returns a target with `d/old` and `d/same`, all from 2020, and an image with `d/new` and
/// `d/same` of `seconds`.
fn merged(existing: Existing, seconds: i64) -> (Place, Result<UnpackReport>) {
    let place = Place::new();
    let dir = place.target().join("d");
    std::fs::create_dir_all(&dir).unwrap();
    for name in ["old", "same"] {
        std::fs::write(dir.join(name), "was here").unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_577_836_800);
        std::fs::File::options().write(true).open(dir.join(name)).unwrap().set_modified(time).unwrap();
    }
    let mut fake = Fake::new();
    let d = fake.dir(ROOT, b"d");
    fake.text(d, b"new", "from image");
    let same = fake.text(d, b"same", "from image");
    fake.meta(same).mtime = Timestamp::from_seconds(seconds);
    let options = UnpackOptions { existing, ..UnpackOptions::default() };
    let outcome = unpack_with(fake, &place.target(), &options);
    assert_eq!(std::fs::read(dir.join("old")).unwrap(), b"was here");
    (place, outcome)
}

fn text_of(place: &Place, path: &str) -> String {
    std::fs::read_to_string(place.target().join(path)).unwrap_or_else(|error| error.to_string())
}

#[test]
fn merging_refuses_files_in_the_way_before_anything_is_written() {
    let (place, outcome) = merged(Existing::Merge, 0);
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains("\"d/same\": it exists already"), "{error}");
    assert_eq!(text_of(&place, "d/same"), "was here");
    assert!(!place.target().join("d/new").exists());
}

#[test]
fn replacing_puts_new_files_in_place_of_old_ones() {
    let (place, outcome) = merged(Existing::Replace, 0);
    outcome.unwrap();
    assert_eq!(
        (text_of(&place, "d/same"), text_of(&place, "d/new")),
        ("from image".into(), "from image".into())
    );
}

#[test]
fn skipping_keeps_old_files() {
    let (place, outcome) = merged(Existing::Skip, i64::from(u32::MAX));
    assert_eq!(outcome.unwrap().skipped, 1);
    assert_eq!(
        (text_of(&place, "d/same"), text_of(&place, "d/new")),
        ("was here".into(), "from image".into())
    );
    assert_ne!(std::fs::metadata(place.target().join("d")).unwrap().mtime(), 1_000_000_000);
}

#[test]
fn keeping_newer_compares_times() {
    let (place, outcome) = merged(Existing::KeepNewer, 1_577_836_800);
    assert_eq!(outcome.unwrap().skipped, 1);
    assert_eq!(text_of(&place, "d/same"), "was here");
    let (place, outcome) = merged(Existing::KeepNewer, 1_577_836_801);
    assert_eq!(outcome.unwrap().skipped, 0);
    assert_eq!(text_of(&place, "d/same"), "from image");
}

#[test]
fn a_directory_is_never_removed_for_a_file() {
    let place = Place::new();
    std::fs::create_dir_all(place.target().join("f")).unwrap();
    let mut fake = Fake::new();
    fake.text(ROOT, b"f", "text");
    let options = UnpackOptions { existing: Existing::Replace, ..UnpackOptions::default() };
    let error = unpack_with(fake, &place.target(), &options).unwrap_err();
    assert!(error.to_string().contains("a directory is in the way of a file"), "{error}");
}

#[test]
fn undoes_what_a_set_group_id_target_hands_on() {
    if !is_root() {
        return skip("needs root");
    }
    let place = Place::new();
    std::fs::create_dir(place.target()).unwrap();
    rustix::fs::chown(place.target(), None, Some(rustix::fs::Gid::from_raw(77))).unwrap();
    std::fs::set_permissions(place.target(), std::fs::Permissions::from_mode(0o2777)).unwrap();
    let mut fake = Fake::new();
    let dir = fake.dir(ROOT, b"d");
    fake.text(dir, b"f", "text");
    unpack_into(fake, &place.target());
    for name in ["d", "d/f"] {
        let meta = std::fs::metadata(place.target().join(name)).unwrap();
        assert_eq!((meta.gid(), meta.mode() & 0o7000), (own().gid, 0), "{name}");
    }
}

#[test]
fn an_old_file_in_place_of_one_that_cannot_be_read_gets_no_further_name() {
    let place = Place::new();
    std::fs::create_dir(place.target()).unwrap();
    std::fs::write(place.target().join("a"), "old").unwrap();
    let mut fake = Fake::new();
    let bad = fake.file(ROOT, b"a", &[Part::Unreadable(10)]);
    fake.link(ROOT, b"b", bad);
    let options = UnpackOptions { existing: Existing::Replace, ..UnpackOptions::default() };
    assert_eq!(unpack_with(fake, &place.target(), &options).unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(!place.target().join("b").exists());
}

#[test]
fn fills_more_files_at_a_time_than_it_may_have_open() {
    let place = Place::new();
    let mut fake = Fake::new();
    let files = fake.interleaved_files(ROOT, 700, 3);
    fake.meta(files[0]).mode = 0o400;
    let report = unpack_into(fake, &place.target());
    assert_eq!(report.files, 700);
    for file in 0..700 {
        let found = std::fs::read(place.target().join(format!("f{file}"))).unwrap();
        let expected: Vec<u8> =
            (0..3).flat_map(|extent| vec![Fake::interleaved_byte(file, extent); EXTENT_LEN]).collect();
        assert!(found == expected, "f{file}");
    }
    assert_eq!(std::fs::metadata(place.target().join("f0")).unwrap().mode() & 0o7777, 0o400);
}

#[test]
fn a_full_disk_leaves_no_half_written_file() {
    let place = Place::new();
    std::fs::create_dir(place.target()).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs"])
        .arg(place.target())
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        return skip("needs the right to mount a tmpfs");
    }
    let mut fake = Fake::new();
    for index in 0..5 {
        fake.file(ROOT, format!("f{index}").as_bytes(), &[Part::Data(&noise(300_000))]);
    }
    let outcome = unpack_with(fake, &place.target(), &UnpackOptions::default());
    let whole = std::fs::read_dir(place.target()).unwrap().all(|entry| {
        let path = entry.unwrap().path();
        std::fs::read(path).unwrap() == noise(300_000)
    });
    assert!(std::process::Command::new("umount").arg(place.target()).status().unwrap().success());
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.hints().iter().any(|hint| hint.contains("full")), "{error}");
    assert!(whole);
}

/// Keeps warnings.
#[derive(Default)]
struct Warned(std::sync::Mutex<Vec<String>>);

impl Progress for Warned {
    fn warn(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

#[test]
fn names_that_cannot_be_linked_are_named_and_the_rest_is_there() {
    let place = Place::new();
    let elsewhere = place.target().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs"])
        .arg(&elsewhere)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        return skip("needs the right to mount a tmpfs");
    }
    let unpacked = |options| {
        let mut fake = Fake::new();
        let file = fake.text(ROOT, b"a", "text");
        let dir = fake.dir(ROOT, b"elsewhere");
        fake.link(dir, b"first", file);
        fake.link(dir, b"second", file);
        fake.text(dir, b"other", "other");
        fake.link(ROOT, b"z", file);
        let (opened, warned) = (fake.open(), Warned::default());
        let outcome = unpack(&opened.engine, &opened.loaded, &place.target(), &options, &warned);
        (outcome.unwrap_err(), warned.0.into_inner().unwrap())
    };
    let options = UnpackOptions { existing: Existing::Replace, ..UnpackOptions::default() };
    let (error, warnings) = unpacked(options.clone());
    let (stopped, _) = unpacked(UnpackOptions { fail_fast: true, ..options });
    let found = ["z", "elsewhere/other"].map(|name| std::fs::read(place.target().join(name)).ok());
    assert!(std::process::Command::new("umount").arg(&elsewhere).status().unwrap().success());
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("hard link \"elsewhere/first\""), "{error}");
    assert!(error.hints().iter().any(|hint| hint.starts_with("2 files were skipped")), "{error}");
    let of_second = |warning: &&String| warning.contains("hard link \"elsewhere/second\"");
    assert_eq!(warnings.iter().filter(of_second).count(), 1, "{warnings:?}");
    assert_eq!(found, [Some(b"text".to_vec()), Some(b"other".to_vec())]);
    assert!(!stopped.hints().iter().any(|hint| hint.contains("skipped")), "{stopped}");
}
