//! Reading of the sound image.

use super::*;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{DeviceNumber, FileType, Owner, Timestamp, Xattrs};
use packfs_format::{DirCursor, Directories, Extent, ExtentFrom, FactValue, InodeKind, Severity, Space};
use std::ops::ControlFlow;

fn extents(volume: &Iso9660Volume, name: &str, range: std::ops::Range<u64>) -> Vec<(u64, u64, ExtentFrom)> {
    let mut found = Vec::new();
    let visit = &mut |Extent { offset, len, from }| {
        found.push((offset, len, from));
        ControlFlow::Continue(())
    };
    volume.extents(find(volume, name), range, visit).unwrap();
    found
}

fn listed(volume: &Iso9660Volume, dir: InodeId, from: DirCursor) -> Vec<(String, FileType, DirCursor)> {
    let mut all = Vec::new();
    let visit = &mut |entry: packfs_format::DirEntry, after| {
        all.push((String::from_utf8(entry.name).unwrap(), entry.file_type, after));
        ControlFlow::Continue(())
    };
    volume.read_dir(dir, from, visit).unwrap();
    all
}

#[test]
fn reads_every_file_of_the_true_image() {
    let made = made();
    made.read_all().unwrap();
    let volume = made.open().unwrap();
    let plain = volume.inode(find(&volume, "plain")).unwrap();
    assert_eq!(plain.kind, InodeKind::File { len: 5 });
    assert_eq!(plain.meta.owner, Owner { uid: 1000, gid: 100 });
    assert_eq!(plain.meta.mtime, Timestamp::from_seconds(86_400));
    assert_eq!((plain.meta.mode, plain.links, plain.number), (0o644, 2, 7));
    let sub = volume.inode(find(&volume, "sub")).unwrap();
    assert_eq!((sub.kind, sub.meta.mtime.seconds), (InodeKind::Directory, TIME_SECONDS));
    let device = volume.inode(find(&volume, "device")).unwrap();
    assert_eq!(device.kind, InodeKind::CharDevice(DeviceNumber { major: 259, minor: 300 }));
    assert_eq!(volume.read_link(find(&volume, "link")).unwrap(), b"/sub/plain");
    assert_eq!(volume.lookup(volume.root(), b"PLAIN.;1").unwrap(), None);
    assert_eq!(volume.made_at(), Some(TIME_SECONDS));
    assert_eq!(volume.image_len(), Some(u64::from(SECTORS) * 2048));
}

#[test]
fn the_true_image_is_sound() {
    let findings = made().findings();
    assert!(findings.iter().all(|finding| finding.severity == Severity::Note), "{findings:?}");
}

#[test]
fn names_with_one_inode_number_are_one_file() {
    let volume = made().open().unwrap();
    assert_eq!(find(&volume, "plain"), find(&volume, "again"));
    // One link each: files of their own.
    let alone = made().patch("plain susp", 12, &both(&[1])).patch("again susp", 12, &both(&[1]));
    let volume = alone.open().unwrap();
    assert_ne!(find(&volume, "plain"), find(&volume, "again"));
}

#[test]
fn lists_in_stored_order_and_resumes() {
    let volume = made().open().unwrap();
    let all = listed(&volume, volume.root(), DirCursor::default());
    let names: Vec<_> = all.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["again", "device", "link", "packed", "parts", "plain", "sub"]);
    assert_eq!(
        (all[1].1, all[2].1, all[6].1),
        (FileType::CharDevice, FileType::Symlink, FileType::Directory)
    );
    for (index, (.., after)) in all.iter().enumerate() {
        assert_eq!(listed(&volume, volume.root(), *after), all[index + 1..], "after entry {index}");
    }
}

#[test]
fn invalid_cursors_are_harmless() {
    let volume = made().open().unwrap();
    for cursor in [1, 33, 2047, 2048, 1 << 40, u64::MAX] {
        let _ = volume.read_dir(volume.root(), DirCursor(cursor), &mut |_, _| ControlFlow::Continue(()));
    }
}

#[test]
fn directories_that_were_moved_are_seen_where_they_came_from() {
    let volume = made().open().unwrap();
    let sub = find(&volume, "sub");
    let all = listed(&volume, sub, DirCursor::default());
    assert_eq!(
        all.iter().map(|(name, file_type, _)| (name.as_str(), *file_type)).collect::<Vec<_>>(),
        [("deep", FileType::Directory)]
    );
    let deep = volume.lookup(sub, b"deep").unwrap().unwrap();
    assert_eq!(volume.inode(deep).unwrap().meta.mode, 0o711);
    assert!(listed(&volume, deep, DirCursor::default()).is_empty());
}

#[test]
fn extents_of_several_records_follow_each_other() {
    let volume = made().open().unwrap();
    let at = |sector: u32| ExtentFrom::Stored(u64::from(sector) * 2048);
    assert_eq!(volume.inode(find(&volume, "parts")).unwrap().kind, InodeKind::File { len: 2148 });
    assert_eq!(extents(&volume, "parts", 0..9000), [(0, 2048, at(PARTS)), (2048, 100, at(PARTS + 2))]);
    let wanted = [(2000, 48, ExtentFrom::Stored(u64::from(PARTS) * 2048 + 2000)), (2048, 2, at(PARTS + 2))];
    assert_eq!(extents(&volume, "parts", 2000..2050), wanted);
    assert_eq!(extents(&volume, "plain", 5..9), []);
}

#[test]
fn compressed_files_have_holes_and_blocks() {
    let volume = made().open().unwrap();
    assert_eq!(volume.inode(find(&volume, "packed")).unwrap().kind, InodeKind::File { len: 40_000 });
    let block = BlockRef {
        offset: u64::from(COMPRESSED) * 2048 + 28,
        stored_len: 70,
        decoded_len: 40_000 - 32_768,
        decodes_to: DecodedLen::Exactly,
        zero_padded: false,
        algorithm: Some(Algorithm::Zlib),
    };
    let from = ExtentFrom::Block { block, start: 0 };
    let wanted = [(0, 32_768, ExtentFrom::Hole), (32_768, 7232, from)];
    assert_eq!(extents(&volume, "packed", 0..u64::MAX), wanted);
    let from = ExtentFrom::Block { block, start: 32 };
    assert_eq!(extents(&volume, "packed", 32_800..32_801), [(32_800, 1, from)]);
}

#[test]
fn version_2_of_zisofs_names_its_algorithm() {
    let header = [&ZISOFS_MAGIC_2[..], b"\0\x06\x01\x0f", &40_000_u64.to_le_bytes(), &[0; 4]].concat();
    let pointers = [48_u64, 48, 98].map(u64::to_le_bytes).concat();
    let made = made().patch("zisofs", 0, &[header, pointers].concat());
    let second = |algorithm: &[u8; 2]| {
        let mark = [&b"\x02"[..], algorithm, b"\x06\x0f", &40_000_u64.to_le_bytes()].concat();
        // After PX and NM.
        made.clone().patch("packed susp", 44 + 11 + 3, &mark)
    };
    for (algorithm, wanted) in [(b"PZ", Algorithm::Zlib), (b"XZ", Algorithm::Xz), (b"ZD", Algorithm::Zstd)] {
        let volume = second(algorithm).open().unwrap();
        let found = extents(&volume, "packed", 32_768..40_000);
        let [(_, 7232, ExtentFrom::Block { block, .. })] = found[..] else { panic!("{found:?}") };
        assert_eq!(block.algorithm, Some(wanted));
    }
    for algorithm in [b"L4", b"B2", b"??"] {
        let volume = second(algorithm).open().unwrap();
        let id = find(&volume, "packed");
        let error = volume.extents(id, 0..9, &mut |_| ControlFlow::Continue(())).unwrap_err();
        assert_eq!(error.kind(), packfs_core::ErrorKind::Unsupported, "{error}");
    }
}

#[test]
fn reads_attributes_from_a_continuation_area() {
    let volume = made().open().unwrap();
    let plain = find(&volume, "plain");
    assert!(!volume.inode(find(&volume, "packed")).unwrap().has_xattrs);
    // The record that was met first is used for both names, and has no attributes.
    let volume = made().patch("again susp", 12, &both(&[1])).open().unwrap();
    let plain = if volume.inode(plain).unwrap().has_xattrs { plain } else { find(&volume, "plain") };
    let wanted = Xattrs::from([(b"user.x".to_vec(), b"value".to_vec())]);
    assert_eq!(volume.xattrs(plain).unwrap(), wanted);
}

#[test]
fn without_rock_ridge_joliet_is_shown_and_without_that_plain_names() {
    let no_rock_ridge = made().patch("self susp", 0, &[0; 69]);
    let volume = no_rock_ridge.open().unwrap();
    let names = |volume: &Iso9660Volume| {
        let all = listed(volume, volume.root(), DirCursor::default());
        all.into_iter().map(|(name, ..)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(&volume), ["Plain File.txt"]);
    let file = volume.inode(find(&volume, "Plain File.txt")).unwrap();
    assert_eq!((file.kind, file.meta.mode, file.links), (InodeKind::File { len: 5 }, 0o555, 1));
    let volume = no_rock_ridge.patch("joliet", 88, b"   ").open().unwrap();
    assert_eq!(names(&volume), ["again", "device", "link", "packed", "parts", "plain", "sub"]);
    assert_eq!(volume.facts().unwrap().get("view"), Some(&FactValue::Text("plain".into())));
    // No entry marks it as compressed.
    assert_eq!(volume.inode(find(&volume, "packed")).unwrap().kind, InodeKind::File { len: 98 });
}

#[test]
fn a_target_that_was_cut_off_is_what_is_left_of_it() {
    // Its second entry has a length of 4, as genisoimage writes it for some.
    let made = made().patch("link susp", 44 + 9 + 16 + 2, &[4]);
    let volume = made.open().unwrap();
    assert_eq!(volume.read_link(find(&volume, "link")).unwrap(), b"/sub/pl");
    assert!(made.findings().iter().any(|finding| finding.severity == Severity::Error));
}

#[test]
fn facts_list_what_boots() {
    let facts = made().open().unwrap().facts().unwrap();
    let list = |key| match facts.get(key) {
        Some(FactValue::List(list)) => list.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(list("boot_images"), ["x86, no emulation, 4 sectors of 512 bytes at block 25"]);
    assert_eq!(list("extensions"), ["RRIP_1991A"]);
    assert_eq!(facts.get("joliet_level"), Some(&FactValue::Count(3)));
    assert_eq!(facts.get("volume_id"), Some(&FactValue::Text("MADE BY HAND".into())));
}

#[test]
fn every_byte_of_the_true_image_has_an_owner() {
    let made = made();
    let space = made.open().unwrap().space().unwrap();
    for owner in ["volume descriptors", "path tables", "directories", "continuation areas", "file data"] {
        assert!(space.iter().any(|space| space.owner == owner), "{owner}");
    }
    assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), made.bytes.len() as u64);
}
