//! Reading of the sound image.

use super::*;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{DeviceNumber, FileType, Owner, Timestamp};
use packfs_format::{Directories, Extent, ExtentFrom, FactValue, Space};

fn extents(volume: &LegacyVolume, name: &str, range: std::ops::Range<u64>) -> Vec<(u64, u64, ExtentFrom)> {
    let mut found = Vec::new();
    let visit = &mut |Extent { offset, len, from }| {
        found.push((offset, len, from));
        ControlFlow::Continue(())
    };
    volume.extents(find(volume, name), range, visit).unwrap();
    found
}

#[test]
fn reads_every_inode_of_every_version_in_both_byte_orders() {
    for form in forms() {
        let made = made(form);
        made.read_all().unwrap_or_else(|error| panic!("{form:?}: {error}"));
        let volume = made.open().unwrap();
        let numbered = form.version.has_numbers();
        let owner = Owner { uid: 1000, gid: 100 };
        let a = volume.inode(find(&volume, "a")).unwrap();
        assert_eq!(a.kind, InodeKind::File { len: 5000 }, "{form:?}");
        assert_eq!((a.meta.mode, a.meta.owner, a.links, a.has_xattrs), (0o644, owner, 1, false));
        assert_eq!(a.meta.mtime, Timestamp::from_seconds(MTIME as i64));
        let b = volume.inode(find(&volume, "b")).unwrap();
        assert_eq!(b.kind, InodeKind::File { len: 8292 }, "{form:?}");
        let c = volume.inode(find(&volume, "c")).unwrap();
        assert_eq!(c.kind, InodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }), "{form:?}");
        let own_time = if numbered { MTIME } else { MADE_AT };
        assert_eq!(c.meta.mtime, Timestamp::from_seconds(own_time as i64), "{form:?}");
        assert_eq!(volume.read_link(find(&volume, "l")).unwrap(), b"a");
        let p = volume.inode(find(&volume, "p")).unwrap();
        assert_eq!((p.kind, p.meta.owner), (InodeKind::Fifo, owner), "{form:?}");
        let root = volume.inode(volume.root()).unwrap();
        assert_eq!(root.links, if numbered { 3 } else { 1 }, "{form:?}");
        assert_eq!(volume.lookup(volume.root(), b"aa").unwrap(), None);
        assert_eq!(volume.inode_count_hint(), 7);
        assert_eq!(volume.made_at(), Some(MADE_AT as i64));
        assert_eq!(volume.image_len(), Some(made.end()));
    }
}

#[test]
fn nothing_is_wrong_with_the_true_image() {
    for form in forms() {
        assert_eq!(made(form).findings(), [], "{form:?}");
    }
}

#[test]
fn lists_in_stored_order_and_resumes() {
    for form in forms() {
        let volume = made(form).open().unwrap();
        let mut all = Vec::new();
        volume
            .read_dir(volume.root(), DirCursor::default(), &mut |entry, after| {
                all.push((String::from_utf8(entry.name).unwrap(), entry.file_type, after));
                ControlFlow::Continue(())
            })
            .unwrap();
        let names: Vec<_> = all.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "l", "p", "sub"]);
        assert_eq!(all[2].1, FileType::CharDevice);
        for (index, (.., after)) in all.iter().enumerate() {
            let mut rest = Vec::new();
            volume
                .read_dir(volume.root(), *after, &mut |entry, after| {
                    rest.push((String::from_utf8(entry.name).unwrap(), entry.file_type, after));
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert_eq!(rest, all[index + 1..], "{form:?} after entry {index}");
        }
    }
}

#[test]
fn invalid_cursors_are_harmless() {
    for form in forms() {
        let volume = made(form).open().unwrap();
        for cursor in [1, 0xf_ffff, 5 << 32, u64::MAX, (7 << 32) | (3 << 20) | 40] {
            let _ = volume.read_dir(volume.root(), DirCursor(cursor), &mut |_, _| ControlFlow::Continue(()));
        }
    }
}

#[test]
fn stored_data_needs_no_decoding_and_holes_have_none() {
    let made = made(LITTLE_3_1);
    let volume = made.open().unwrap();
    let at = |label: &str| made.labels[label] as u64;
    let stored = ExtentFrom::Stored;
    assert_eq!(
        extents(&volume, "a", 0..u64::MAX),
        [(0, 4096, stored(at("data"))), (4096, 904, stored(at("tails") + 10))]
    );
    assert_eq!(
        extents(&volume, "b", 0..u64::MAX),
        [(0, 4096, ExtentFrom::Hole), (4096, 4196, stored(at("data b")))]
    );
    assert_eq!(
        extents(&volume, "b", 4000..5000),
        [(4000, 96, ExtentFrom::Hole), (4096, 904, stored(at("data b")))]
    );
    assert_eq!(extents(&volume, "b", 8292..9000), []);
}

#[test]
fn files_of_version_1_have_short_last_blocks() {
    let made = made(LITTLE_1_0);
    let volume = made.open().unwrap();
    let at = |label: &str| made.labels[label] as u64;
    assert_eq!(extents(&volume, "a", 0..u64::MAX), [(0, 5000, ExtentFrom::Stored(at("data")))]);
    assert_eq!(extents(&volume, "b", 8000..8200), [(8000, 200, ExtentFrom::Stored(at("data b") + 8000))]);
}

#[test]
fn reports_compressed_blocks_with_their_codec() {
    let made = made(LITTLE_3_1).patch("a words", 0, &77u32.to_le_bytes());
    let volume = made.open().unwrap();
    let block = BlockRef {
        offset: made.labels["data"] as u64,
        stored_len: 77,
        decoded_len: 4096,
        decodes_to: DecodedLen::Exactly,
        zero_padded: false,
        algorithm: Some(packfs_codec::Algorithm::Zlib),
    };
    assert_eq!(extents(&volume, "a", 5..10), [(5, 5, ExtentFrom::Block { block, start: 5 })]);
}

#[test]
fn users_of_version_1_lie_in_banks_of_16() {
    // The third bank of a file, and that of a fifo, whose type has a separate byte.
    let mut image = made(LITTLE_1_0);
    let ids: Vec<u8> = (0..48u32).flat_map(|id| (5000 + id).to_le_bytes()).collect();
    let uids = image.end();
    image.bytes.extend_from_slice(&ids);
    let used = image.end();
    let image = image
        .patch("super", 8, &(used as u32).to_le_bytes())
        .patch("super", 12, &(uids as u32).to_le_bytes())
        .patch("super", 37, &[48])
        .patch("a", 0, &[0x4c])
        .patch("p body", 0, &[0x26]);
    let volume = image.open().unwrap();
    let owner = |name: &str| volume.inode(find(&volume, name)).unwrap().meta.owner;
    assert_eq!(owner("a"), Owner { uid: 5033, gid: 100 });
    assert_eq!(owner("p"), Owner { uid: 5033, gid: 100 });
    assert_eq!(owner("b"), Owner { uid: 5001, gid: 100 });
}

#[test]
fn the_last_group_is_the_user() {
    for (form, at, bytes) in [(LITTLE_1_0, 2, [0xf1]), (LITTLE_2_1, 3, [0xff]), (LITTLE_3_1, 3, [0xff])] {
        let volume = made(form).patch("a", at, &bytes).open().unwrap();
        let a = volume.inode(find(&volume, "a")).unwrap();
        assert_eq!(a.meta.owner, Owner { uid: 1000, gid: 1000 }, "{form:?}");
    }
}

#[test]
fn files_before_3_0_need_no_link_count_and_no_number() {
    for form in [LITTLE_1_0, LITTLE_2_1] {
        let volume = made(form).open().unwrap();
        let numbers: Vec<u64> =
            ["a", "b", "sub"].map(|name| volume.inode(find(&volume, name)).unwrap().number).into();
        assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2], "{numbers:?}");
    }
}

#[test]
fn facts_include_version_byte_order_and_codec() {
    for form in forms() {
        let facts = made(form).open().unwrap().facts().unwrap();
        let text = |key: &str| match &facts.0.iter().find(|fact| fact.key == key).unwrap().value {
            FactValue::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(text("version"), form.version.to_string());
        assert_eq!(text("endian"), form.endian.name());
        assert_eq!(text("codec"), "gzip");
    }
}

#[test]
fn every_byte_has_an_owner() {
    for form in forms() {
        let made = made(form);
        let owners = made.open().unwrap().space().unwrap();
        assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), made.end(), "{form:?}");
        assert!(owners.iter().all(|owner| owner.owner != "unused"), "{form:?}: {owners:?}");
    }
}
