//! Reading of the sound image.

use super::*;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{DeviceNumber, FileType, Owner, Timestamp};
use packfs_format::{Directories, Extent, ExtentFrom, FactValue, Space};
use std::ops::Range;

fn extents(volume: &CramfsVolume, name: &str, range: Range<u64>) -> Vec<(u64, u64, ExtentFrom)> {
    let mut found = Vec::new();
    let visit = &mut |Extent { offset, len, from }| {
        found.push((offset, len, from));
        ControlFlow::Continue(())
    };
    volume.extents(find(volume, name), range, visit).unwrap();
    found
}

fn compressed(offset: u64, stored_len: u32, decoded_len: u32) -> ExtentFrom {
    let algorithm = Some(Algorithm::Zlib);
    let decodes_to = DecodedLen::Exactly;
    let block = BlockRef { offset, stored_len, decoded_len, decodes_to, zero_padded: false, algorithm };
    ExtentFrom::Block { block, start: 0 }
}

fn made_in_both_orders() -> [Made; 2] {
    [ByteOrder::Little, ByteOrder::Big].map(made_in)
}

#[test]
fn reads_every_inode_of_the_true_image() {
    for made in made_in_both_orders() {
        made.read_all().unwrap();
        let volume = made.open().unwrap();
        let a = volume.inode(find(&volume, "a")).unwrap();
        assert_eq!(a.kind, InodeKind::File { len: 5000 });
        assert_eq!(a.meta.owner, Owner { uid: 1000, gid: 100 });
        assert_eq!(a.meta.mtime, Timestamp::default());
        assert_eq!((a.meta.mode, a.links, a.has_xattrs), (0o644, 1, false));
        assert_eq!(a.number, made.labels["a"] as u64);
        let c = volume.inode(find(&volume, "c")).unwrap();
        assert_eq!(c.kind, InodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }));
        assert_eq!(volume.read_link(find(&volume, "link")).unwrap(), b"a");
        let sub = find(&volume, "sub");
        let x = volume.lookup(sub, b"x").unwrap().unwrap();
        assert_eq!(volume.inode(x).unwrap().kind, InodeKind::Fifo);
        assert_eq!(volume.lookup(volume.root(), b"aa").unwrap(), None);
        assert_eq!((volume.inode_count_hint(), volume.made_at()), (8, None));
        assert_eq!(volume.image_len(), Some(made.bytes.len() as u64));
    }
}

#[test]
fn device_numbers_beyond_16_bits_are_cut_as_linux_does() {
    let volume = made().inode("c", |inode| inode.size = 0x12_0345).open().unwrap();
    let c = volume.inode(find(&volume, "c")).unwrap();
    assert_eq!(c.kind, InodeKind::CharDevice(DeviceNumber { major: 3, minor: 0x45 }));
}

#[test]
fn lists_in_stored_order_and_resumes() {
    let volume = made().open().unwrap();
    let listed = |from| {
        let mut all = Vec::new();
        volume
            .read_dir(volume.root(), from, &mut |entry, after| {
                all.push((String::from_utf8(entry.name).unwrap(), entry.file_type, after));
                ControlFlow::Continue(())
            })
            .unwrap();
        all
    };
    let all = listed(DirCursor::default());
    let names: Vec<_> = all.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "link", "sub"]);
    assert_eq!(all[2].1, FileType::CharDevice);
    for (index, (.., after)) in all.iter().enumerate() {
        assert_eq!(listed(*after), all[index + 1..], "after entry {index}");
    }
}

#[test]
fn invalid_cursors_are_harmless() {
    let volume = made().open().unwrap();
    for cursor in [1, 3, 17, 0xf_ffff, 5 << 32, u64::MAX] {
        let _ = volume.read_dir(volume.root(), DirCursor(cursor), &mut |_, _| ControlFlow::Continue(()));
    }
}

#[test]
fn lookups_find_listed_names_in_any_order() {
    let unsorted = made().patch("a name", 0, b"z");
    let volume = unsorted.open().unwrap();
    assert!(volume.lookup(volume.root(), b"b").unwrap().is_some());
    let volume = unsorted.word("super", 8, FLAGS & !CRAMFS_FLAG_SORTED_DIRS).open().unwrap();
    assert!(volume.lookup(volume.root(), b"b").unwrap().is_some());
    assert!(volume.lookup(volume.root(), b"z").unwrap().is_some());
}

#[test]
fn stored_data_needs_no_decoding_and_joins() {
    for made in made_in_both_orders() {
        let volume = made.open().unwrap();
        let at = |label| made.labels[label] as u64;
        assert_eq!(extents(&volume, "a", 0..5000), [(0, 5000, ExtentFrom::Stored(at("a data")))]);
        let wanted = [
            (0, 4096, ExtentFrom::Hole),
            (4096, 8192, ExtentFrom::Stored(at("b data"))),
            (12_288, 100, compressed(at("b last"), 40, 100)),
        ];
        assert_eq!(extents(&volume, "b", 0..u64::MAX), wanted);
        assert_eq!(extents(&volume, "d", 0..100), [(0, 100, compressed(at("d data"), 30, 100))]);
    }
}

#[test]
fn extents_are_cut_to_the_range_wherever_it_starts() {
    let made = made();
    let volume = made.open().unwrap();
    let at = made.labels["b data"] as u64;
    let wanted = [(4000, 96, ExtentFrom::Hole), (4096, 4, ExtentFrom::Stored(at))];
    assert_eq!(extents(&volume, "b", 4000..4100), wanted);
    assert_eq!(extents(&volume, "b", 8200..8300), [(8200, 100, ExtentFrom::Stored(at + 4104))]);
    let last = compressed(made.labels["b last"] as u64, 40, 100);
    let ExtentFrom::Block { block, .. } = last else { panic!("{last:?}") };
    let wanted = [(12_300, 88, ExtentFrom::Block { block, start: 12 })];
    assert_eq!(extents(&volume, "b", 12_300..20_000), wanted);
    assert_eq!(extents(&volume, "b", 12_388..20_000), []);
    assert_eq!(extents(&volume, "b", 20_000..20_001), []);
}

#[test]
fn missing_bytes_of_a_stored_block_are_zeros() {
    let made = made();
    let data = made.labels["a data"] as u32;
    let volume =
        made.word("a pointers", 4, CRAMFS_BLK_FLAG_UNCOMPRESSED | (data + 4096 + 10)).open().unwrap();
    let wanted = [(0, 4106, ExtentFrom::Stored(u64::from(data))), (4106, 894, ExtentFrom::Hole)];
    assert_eq!(extents(&volume, "a", 0..5000), wanted);
}

#[test]
fn a_plain_pointer_behind_a_direct_compressed_block_starts_where_that_ends() {
    let made = made();
    let at = made.labels["d len"] as u32;
    // The second block of /b: /d's data, then six bytes after them.
    let image = made.word("b pointers", 4, CRAMFS_BLK_FLAG_DIRECT_PTR | at >> 2).word(
        "b pointers",
        8,
        at + 2 + 30 + 6,
    );
    let found = extents(&image.open().unwrap(), "b", 0..12_288);
    let at = u64::from(at);
    assert_eq!(
        found[1..],
        [(4096, 4096, compressed(at + 2, 30, 4096)), (8192, 4096, compressed(at + 32, 6, 4096))]
    );
}

#[test]
fn the_last_page_that_linux_loses_is_there() {
    let made = made().inode("b", |inode| inode.size = 8192);
    let data = made.labels["b data"];
    let made = made.word(
        "b pointers",
        4,
        CRAMFS_BLK_FLAG_UNCOMPRESSED | CRAMFS_BLK_FLAG_DIRECT_PTR | (data >> 2) as u32,
    );
    // Two blocks have two pointers only, but those of a direct one do not care.
    let found = extents(&made.open().unwrap(), "b", 4096..8192);
    assert_eq!(found, [(4096, 4096, ExtentFrom::Stored(data as u64))]);
}

#[test]
fn without_the_flag_pointers_have_no_flags() {
    let made = made().word("super", 8, FLAGS & !CRAMFS_FLAG_EXT_BLOCK_POINTERS);
    let start = made.labels["b pointers"] as u32 + 16;
    let words = [start, start + 10, start + 10, start + 50];
    let made = words
        .into_iter()
        .zip((0..).step_by(4))
        .fold(made, |made, (word, at)| made.word("b pointers", at, word));
    let start = u64::from(start);
    let wanted = [
        (0, 4096, ExtentFrom::Hole),
        (4096, 4096, compressed(start, 10, 4096)),
        (8192, 4096, ExtentFrom::Hole),
        (12_288, 100, compressed(start + 10, 40, 100)),
    ];
    assert_eq!(extents(&made.open().unwrap(), "b", 0..20_000), wanted);
}

#[test]
fn the_figures_of_openrg_are_block_size_and_codec() {
    let facts = |flags: u32| made().word("super", 8, flags).open().unwrap().facts().unwrap();
    let zlib = facts(0x6003);
    assert_eq!(zlib.get("block_len"), Some(&FactValue::Bytes(65_536)));
    assert_eq!(zlib.get("codec"), Some(&FactValue::Text("gzip".into())));
    assert_eq!(zlib.get("openrg"), Some(&FactValue::Flag(true)));
    let stored = facts(0x1803);
    assert_eq!(stored.get("block_len"), Some(&FactValue::Bytes(32_768)));
    assert_eq!(stored.get("codec"), Some(&FactValue::Text("none".into())));
    assert_eq!(facts(FLAGS).get("openrg"), Some(&FactValue::Flag(false)));
}

#[test]
fn finds_the_superblock_behind_room_for_boot_code() {
    let mut made = made();
    // Offsets count from the start of the file, so positions do not move.
    let tail = made.bytes.len() as u32;
    made.bytes.resize(tail as usize + 4096, 0);
    let root_start = made.labels["a"];
    let listing = made.bytes[root_start..root_start + 112].to_vec();
    let len = made.open().unwrap().geometry.super_block.root.size;
    made.bytes[tail as usize..tail as usize + 112].copy_from_slice(&listing);
    let mut super_block = made.bytes[..SUPER_LEN as usize].to_vec();
    let root = CramfsInode { mode: 0o040_755, size: len, offset: tail, ..CramfsInode::default() };
    super_block[ROOT_AT as usize..].copy_from_slice(&root.to_bytes(ByteOrder::Little));
    super_block[4..8].copy_from_slice(&(made.bytes.len() as u32).to_le_bytes());
    super_block[8..12].copy_from_slice(&(FLAGS | CRAMFS_FLAG_SHIFTED_ROOT_OFFSET).to_le_bytes());
    let mut bytes = made.bytes.clone();
    bytes[..SUPER_LEN as usize].fill(0);
    // It is in /a's data, which is of no interest here.
    bytes[512..512 + SUPER_LEN as usize].copy_from_slice(&super_block);
    let volume = CramfsVolume::open(Arc::new(BytesImage(bytes))).unwrap();
    assert_eq!(volume.geometry.super_block_at, 512);
    assert_eq!(volume.root(), InodeId(512 + ROOT_AT));
    assert_eq!(volume.inode(find(&volume, "c")).unwrap().meta.mode, 0o600);
}

#[test]
fn version_1_is_as_long_as_what_is_in_it() {
    let mut made = made().word("super", 8, 0x800).word("super", 4, 0x10000);
    let len = made.bytes.len() as u64;
    made.bytes.resize(len as usize + 9000, 0xff);
    let volume = made.open().unwrap();
    assert_eq!(volume.image_len(), Some(len));
    assert_eq!(volume.inode_count_hint(), 0);
    assert_eq!(volume.facts().unwrap().get("version"), Some(&FactValue::Text("1".into())));
}

#[test]
fn every_byte_of_the_true_image_has_an_owner() {
    let made = made();
    let space = made.open().unwrap().space().unwrap();
    let owners: Vec<_> = space.iter().map(|owner| owner.owner).collect();
    assert_eq!(owners[..5], ["superblock", "directories", "block pointers", "file data", "block pointers"]);
    assert_eq!(owners.last(), Some(&"padding"));
    assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), made.bytes.len() as u64);
}

#[test]
fn lists_the_properties_of_an_image() {
    let facts = made_in(ByteOrder::Big).open().unwrap().facts().unwrap();
    for (key, value) in [
        ("name", "made by hand"),
        ("byte_order", "big"),
        ("version", "2"),
        ("minimum_kernel", "4.15, big-endian (extended block pointers)"),
    ] {
        assert_eq!(facts.get(key), Some(&FactValue::Text(value.into())), "{key}");
    }
    assert_eq!(facts.get("edition"), Some(&FactValue::Count(9)));
}
