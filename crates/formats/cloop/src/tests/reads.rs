//! Reading of sound files.

use super::*;
use crate::{Cloop, DISK_NAME};
use packfs_format::{Directories, FactValue, Format, InodeKind, Inside, Magic, Space};

/// Returns the length of a version's disk; only one version stores it.
fn disk_len(version: Version) -> usize {
    if version == Version::Alpha3 { BLOCK_LEN * 7 / 2 } else { BLOCK_LEN * 4 }
}

#[test]
fn the_disk_of_every_version_is_what_went_in() {
    for version in VERSIONS {
        let made = made(version);
        made.read_all().unwrap_or_else(|error| panic!("{version:?}: {error}"));
        let volume = made.open().unwrap();
        assert_eq!(volume.geometry.version, version);
        let len = disk_len(version);
        assert_eq!(volume.inode(DISK).unwrap().kind, InodeKind::File { len: len as u64 }, "{version:?}");
        assert!(disk(&made, 0..u64::MAX) == wanted()[..len], "{version:?}");
        for range in [0..1, 511..513, 600..1500, 1024..1536, 1791..1793] {
            let part = disk(&made, range.clone());
            let range = range.start as usize..(range.end as usize).min(len);
            assert!(part == wanted()[range.clone()], "{version:?} {range:?}");
        }
        assert!(disk(&made, len as u64..u64::MAX).is_empty());
    }
}

#[test]
fn every_version_is_known_by_its_bytes() {
    for version in VERSIONS {
        let made = made(version);
        let probe = |bytes: &[u8]| Cloop.probe(&BytesImage(bytes.to_vec())).unwrap();
        assert!(probe(&made.bytes), "{version:?}");
        for other in [&b"#!/bin/sh\n"[..], &made.bytes[..100]] {
            assert!(!probe(other));
        }
        let script = [&b"#!/bin/sh\n# starts the cloop of this machine\n"[..], &[b'\n'; 300]].concat();
        assert!(!probe(&script));
        let magic = |magic: &Magic| made.bytes.starts_with(magic.bytes);
        let starts_with_head = !matches!(version, Version::Alpha3 | Version::V4Footer | Version::V0_68);
        assert_eq!(Cloop.info().magics.iter().any(magic), starts_with_head, "{version:?}");
    }
}

#[test]
fn the_disk_is_the_one_image_inside() {
    let volume = made(Version::V2_0).open().unwrap();
    let inner = volume.inner_images().unwrap();
    assert_eq!((inner.len(), inner[0].id, &*inner[0].name), (1, DISK, DISK_NAME));
    assert_eq!(volume.lookup(volume.root(), DISK_NAME.as_bytes()).unwrap(), Some(DISK));
}

#[test]
fn every_byte_has_an_owner_and_the_end_is_known() {
    for version in VERSIONS {
        let mut made = made(version);
        let len = made.bytes.len() as u64;
        let volume = made.open().unwrap();
        assert_eq!(volume.image_len(), Some(len), "{version:?}");
        let owners = volume.space().unwrap();
        assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), len);
        let unused: u64 = owners.iter().filter(|owner| owner.owner == "unused").map(|owner| owner.len).sum();
        assert_eq!(unused, made.labels.get("gap").map_or(0, |_| 16), "{version:?}: {owners:?}");
        // If the head determines the end, more may follow.
        if matches!(
            version,
            Version::V0_68 | Version::V1_0 | Version::Accelerated | Version::V2_0 | Version::V4Header
        ) {
            made.bytes.extend([b'x'; 1000]);
            assert_eq!(made.open().unwrap().image_len(), Some(len), "{version:?}");
        }
    }
}

#[test]
fn facts_name_version_and_codecs() {
    let facts = made(Version::V4Header).open().unwrap().facts().unwrap();
    let text = |key| match facts.get(key) {
        Some(FactValue::Text(text)) => text.clone(),
        Some(FactValue::List(words)) => words.join(", "),
        other => panic!("{key}: {other:?}"),
    };
    assert_eq!(text("version"), "4.0 (header)");
    assert_eq!(text("codecs"), "none (1 blocks), gzip (1 blocks), xz (1 blocks), lz4 (1 blocks)");
    assert_eq!(facts.get("disk_len"), Some(&FactValue::Bytes(2048)));
    let facts = made(Version::V2_0).open().unwrap().facts().unwrap();
    assert_eq!(facts.get("codecs"), Some(&FactValue::List(vec!["gzip".into()])));
}

#[test]
fn rows_are_read_as_far_as_they_are_wanted() {
    // More rows than are read at once, of the version whose offsets are sums.
    let block = encoded(Some(Algorithm::Zlib), &[7; BLOCK_LEN]);
    let count = 2500_u32;
    let mut made = LabelledImage::new(CloopVolume::open);
    made.put("head", head(b"3.0", BLOCK_LEN as u32, BLOCKS_IN_TAIL).as_bytes());
    for _ in 0..count {
        made.put("block", &block);
    }
    for _ in 0..count {
        made.put("size", &(block.len() as u32).to_be_bytes());
    }
    made.put("tail", Tail { index_size: 4.into(), num_blocks: count.into() }.as_bytes());
    let volume = made.open().unwrap();
    for number in [0, 1023, 1024, 1025, 2047, 2048, 2499] {
        let mut found = None;
        volume
            .index
            .each(&*volume.image, &volume.geometry, number..number + 1, &mut |block, row| {
                found = Some((block, row?.start));
                Ok(true)
            })
            .unwrap();
        assert_eq!(found, Some((number, HEAD_LEN + number * block.len() as u64)));
    }
    assert_eq!(disk(&made, 1000 * 512..1100 * 512), [7; 100 * 512]);
    assert_eq!(made.findings().iter().filter(|it| it.severity > packfs_format::Severity::Note).count(), 0);
}
