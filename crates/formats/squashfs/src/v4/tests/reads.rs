//! Reading of the sound image.

use super::*;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{DeviceNumber, FileType, Owner, Timestamp, Xattrs};
use packfs_format::{Directories, Extent, ExtentFrom, FactValue, KernelRead, Space};

fn extents(volume: &SquashfsVolume, name: &str, range: std::ops::Range<u64>) -> Vec<(u64, u64, ExtentFrom)> {
    let mut found = Vec::new();
    let visit = &mut |Extent { offset, len, from }| {
        found.push((offset, len, from));
        ControlFlow::Continue(())
    };
    volume.extents(find(volume, name), range, visit).unwrap();
    found
}

#[test]
fn reads_every_inode_of_the_true_image() {
    let made = made();
    made.read_all().unwrap();
    let volume = made.open().unwrap();
    let a = volume.inode(find(&volume, "a")).unwrap();
    assert_eq!(a.kind, InodeKind::File { len: 5000 });
    assert_eq!(a.meta.owner, Owner { uid: 0, gid: 1000 });
    assert_eq!(a.meta.mtime, Timestamp::from_seconds(i64::from(MTIME)));
    assert_eq!((a.meta.mode, a.links, a.number, a.has_xattrs), (0o644, 1, 1, false));
    let c = volume.inode(find(&volume, "c")).unwrap();
    assert_eq!(c.kind, InodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }));
    assert_eq!(volume.read_link(find(&volume, "l")).unwrap(), b"a");
    assert_eq!(volume.inode(volume.root()).unwrap().links, 3);
    assert_eq!(volume.lookup(volume.root(), b"aa").unwrap(), None);
    assert_eq!(volume.inode_count_hint(), 6);
    assert_eq!(volume.made_at(), Some(i64::from(MTIME)));
}

#[test]
fn times_after_2038_are_not_negative() {
    let volume = made().patch("a", 8, &[0xff; 4]).open().unwrap();
    let a = volume.inode(find(&volume, "a")).unwrap();
    assert_eq!(a.meta.mtime, Timestamp::from_seconds(0xffff_ffff));
}

#[test]
fn lists_in_stored_order_and_resumes() {
    let volume = made().open().unwrap();
    let mut all = Vec::new();
    volume
        .read_dir(volume.root(), DirCursor::default(), &mut |entry, after| {
            all.push((String::from_utf8(entry.name).unwrap(), entry.file_type, after));
            ControlFlow::Continue(())
        })
        .unwrap();
    let names: Vec<_> = all.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "l", "sub"]);
    assert_eq!(all[2].1, FileType::CharDevice);
    for (index, (.., after)) in all.iter().enumerate() {
        let mut rest = Vec::new();
        volume
            .read_dir(volume.root(), *after, &mut |entry, after| {
                rest.push((String::from_utf8(entry.name).unwrap(), entry.file_type, after));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(rest, all[index + 1..], "after entry {index}");
    }
}

#[test]
fn invalid_cursors_are_harmless() {
    let volume = made().open().unwrap();
    for cursor in [1, 0xf_ffff, 5 << 32, u64::MAX, (7 << 32) | (3 << 20) | 40] {
        let _ = volume.read_dir(volume.root(), DirCursor(cursor), &mut |_, _| ControlFlow::Continue(()));
    }
}

#[test]
fn stored_data_needs_no_decoding_and_joins() {
    let made = made();
    let volume = made.open().unwrap();
    let (data, tails) = (made.labels["data"] as u64, made.labels["tails"] as u64);
    let tail = ExtentFrom::Stored(tails + 10);
    assert_eq!(extents(&volume, "a", 0..5000), [(0, 4096, ExtentFrom::Stored(data)), (4096, 904, tail)]);
    let data_b = made.labels["data b"] as u64;
    let wanted = [(0, 4096, ExtentFrom::Hole), (4096, 4196, ExtentFrom::Stored(data_b))];
    assert_eq!(extents(&volume, "b", 0..u64::MAX), wanted);
}

#[test]
fn extents_are_cut_to_the_range() {
    let made = made();
    let volume = made.open().unwrap();
    let data_b = made.labels["data b"] as u64;
    let wanted = [(4000, 96, ExtentFrom::Hole), (4096, 4, ExtentFrom::Stored(data_b))];
    assert_eq!(extents(&volume, "b", 4000..4100), wanted);
    assert_eq!(extents(&volume, "b", 8200..9000), [(8200, 92, ExtentFrom::Stored(data_b + 4104))]);
    assert_eq!(extents(&volume, "b", 8292..9000), []);
    assert_eq!(extents(&volume, "b", 9000..9001), []);
}

#[test]
fn compressed_blocks_state_their_decoded_length() {
    let made =
        made().patch("a words", 0, &1000u32.to_le_bytes()).patch("fragment", 8, &2000u32.to_le_bytes());
    let volume = made.open().unwrap();
    let block = |offset: usize, stored_len, decodes_to| BlockRef {
        offset: offset as u64,
        stored_len,
        decoded_len: 4096,
        decodes_to,
        zero_padded: false,
        algorithm: Some(packfs_codec::Algorithm::Zlib),
    };
    let own = ExtentFrom::Block { block: block(made.labels["data"], 1000, DecodedLen::Exactly), start: 0 };
    let shared =
        ExtentFrom::Block { block: block(made.labels["tails"], 2000, DecodedLen::AtMost), start: 10 };
    assert_eq!(extents(&volume, "a", 0..5000), [(0, 4096, own), (4096, 904, shared)]);
}

#[test]
fn reads_attributes_in_line_and_out_of_line() {
    let volume = made().open().unwrap();
    let b = find(&volume, "b");
    assert!(volume.inode(b).unwrap().has_xattrs);
    let wanted = [("user.x", "value"), ("security.s", "value")]
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    assert_eq!(volume.xattrs(b).unwrap(), Xattrs::from(wanted));
}

#[test]
fn refuses_attributes_with_an_unknown_prefix_and_sets_without_any() {
    for (label, within, bytes) in [("xattr", 0, &[9, 0][..]), ("xattr set", 8, &[0; 4])] {
        let volume = made().patch(label, within, bytes).open().unwrap();
        let error = volume.xattrs(find(&volume, "b")).unwrap_err();
        assert_eq!(error.kind(), packfs_core::ErrorKind::Corrupt, "{error}");
    }
}

#[test]
fn finds_the_superblock_at_the_end_of_a_streamed_image() {
    let mut made = made();
    let super_block = made.bytes[..96].to_vec();
    made.bytes[..96].fill(0);
    let mut made = made.patch("super", 0, b"HSQS");
    made.bytes.extend_from_slice(&super_block);
    made.read_all().unwrap();
    let volume = made.open().unwrap();
    assert_eq!(volume.facts().unwrap().get("streamed"), Some(&FactValue::Flag(true)));
    let space = volume.space().unwrap();
    assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), made.bytes.len() as u64);
    assert_eq!(space.last().unwrap().owner, "superblock");
}

#[test]
fn names_the_oldest_kernel_that_mounts_it() {
    let kernel = |made: Made| match made.open().unwrap().facts().unwrap().get("minimum_kernel") {
        Some(FactValue::Text(text)) => text.clone(),
        other => panic!("{other:?}"),
    };
    let absent = SQUASHFS_INVALID_BLK.to_le_bytes();
    assert_eq!(kernel(made()), "2.6.35 (extended attributes)");
    assert_eq!(kernel(made().patch("super", 56, &absent)), "2.6.29 (gzip)");
    assert_eq!(kernel(made().patch("super", 20, &[6, 0])), "4.14 (zstd)");
    assert_eq!(kernel(made().patch("super", 20, &[5, 0])), "3.19 (lz4)");
    assert!(kernel(made().patch("super", 20, &[2, 0])).starts_with("none"));
    // An options block instead of the first data: xz with the riscv filter.
    let xz = made().patch("super", 20, &[4, 0]).patch("super", 24, &(1u16 << 10).to_le_bytes());
    let xz = xz.patch("data", 0, &[8, 0x80, 0, 0, 1, 0, 0x80, 0, 0, 0]);
    assert_eq!(kernel(xz), "6.12 (xz filter riscv)");
}

#[test]
fn every_byte_of_the_true_image_has_an_owner() {
    let made = made();
    let space = made.open().unwrap().space().unwrap();
    let owners: Vec<_> = space.iter().map(|owner| owner.owner).collect();
    assert_eq!(
        owners,
        [
            "superblock",
            "file data",
            "fragments",
            "inode table",
            "directory table",
            "fragment table",
            "export table",
            "id table",
            "xattr table",
            "padding",
        ]
    );
    assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), made.bytes.len() as u64);
}

#[test]
fn the_kernel_reads_blocks_of_metadata_whole_and_fragments_too() {
    let made = made();
    let volume = made.open().unwrap();
    let reads = volume.kernel_reads().unwrap().unwrap();
    let at = |label: &str| made.labels[label] as u64;
    let places = |found: Vec<KernelRead>| found.iter().map(|read| read.offset).collect::<Vec<_>>();
    let a = find(&volume, "a");
    assert_eq!(places(reads.inode(a).unwrap()), [at("inode table"), at("id block"), at("fragment block")]);
    assert_eq!(places(reads.inode(find(&volume, "b")).unwrap()), [at("inode table"), at("id block")]);
    // The index is stored after the inode of the root.
    for name in ["a", "c", "sub", "none"] {
        let way = places(reads.name(volume.root(), name.as_bytes()).unwrap());
        assert_eq!(way, [at("inode table"), at("directory table")], "{name}");
    }
    let blocks = reads.blocks(a).unwrap();
    let found: Vec<_> = blocks.iter().map(|it| (it.read.offset, it.read.stored, it.range.clone())).collect();
    assert_eq!(found, [(at("data"), 4096, 0..4096), (at("tails"), 2000, 4096..5000)]);
    assert_eq!(blocks.iter().map(|it| it.shared).collect::<Vec<_>>(), [false, true]);
    let blocks = reads.blocks(find(&volume, "b")).unwrap();
    let found: Vec<_> = blocks.iter().map(|it| (it.read.offset, it.range.clone())).collect();
    assert_eq!(found, [(at("data b"), 4096..8192), (at("data b") + 4096, 8192..8292)]);
}
