//! Reading of the sound image.

use super::*;
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{Timestamp, Xattrs};
use packfs_format::{Directories, Extent, ExtentFrom, FactValue, Space};

fn extents(volume: &ErofsVolume, name: &str, range: std::ops::Range<u64>) -> Vec<(u64, u64, ExtentFrom)> {
    let mut found = Vec::new();
    let visit = &mut |Extent { offset, len, from }| {
        found.push((offset, len, from));
        ControlFlow::Continue(())
    };
    volume.extents(find(volume, name), range, visit).unwrap();
    found
}

fn lz4(offset: u64, stored_len: u32, decoded_len: u32, decodes_to: DecodedLen) -> ExtentFrom {
    let algorithm = Some(Algorithm::Lz4);
    let block = BlockRef { offset, stored_len, decoded_len, decodes_to, zero_padded: true, algorithm };
    ExtentFrom::Block { block, start: 0 }
}

#[test]
fn the_true_image_has_no_faults() {
    let made = made();
    made.read_all().unwrap();
    assert_eq!(made.findings(), []);
}

#[test]
fn a_volume_returns_the_abilities_that_its_image_has_and_no_others() {
    let volume = made().open().unwrap();
    assert!(volume.health().is_some() && volume.caching().is_some() && volume.stored().is_some());
    assert!(volume.digests().is_none(), "the image names no attribute for digests");
    assert!(volume.inside().is_none() && volume.objects().is_none() && volume.storage().is_none());
    let all: &dyn Volume = &volume;
    assert!(all.inner_images().unwrap().is_empty() && all.object(volume.root()).unwrap().is_none());
    let mut own = Vec::new();
    let plain = find(&volume, "plain");
    all.stored_extents(plain, 5000, &mut |extent| {
        own.push(extent);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(!own.is_empty(), "extents without figures of their own are those of the file");
}

#[test]
fn reads_names_types_times_and_targets() {
    let volume = made().open().unwrap();
    let plain = volume.inode(find(&volume, "plain")).unwrap();
    assert_eq!(plain.kind, InodeKind::File { len: 5000 });
    assert_eq!(plain.meta.mtime, Timestamp::from_seconds(1_000_000_000));
    assert_eq!(volume.read_link(find(&volume, "link")).unwrap(), b"target");
    assert_eq!(volume.lookup(volume.root(), b"nosuch").unwrap(), None);
    assert_eq!(volume.lookup(volume.root(), b"..").unwrap(), None);
    let mut names = Vec::new();
    let mut cursors = Vec::new();
    volume
        .read_dir(volume.root(), DirCursor::default(), &mut |entry, cursor| {
            names.push(String::from_utf8(entry.name).unwrap());
            cursors.push(cursor);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(names, ["chunks", "compact", "encoded", "full", "inline", "link", "plain"]);
    let mut rest = Vec::new();
    volume
        .read_dir(volume.root(), cursors[4], &mut |entry, _| {
            rest.push(String::from_utf8(entry.name).unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(rest, ["link", "plain"]);
}

#[test]
fn reads_attributes_behind_the_inode() {
    let volume = made().open().unwrap();
    let wanted = Xattrs::from([(b"user.x".to_vec(), b"value".to_vec())]);
    assert_eq!(volume.xattrs(find(&volume, "inline")).unwrap(), wanted);
}

#[test]
fn flat_files_lie_in_blocks_and_behind_their_inodes() {
    let made = made();
    let volume = made.open().unwrap();
    assert_eq!(extents(&volume, "plain", 0..9999), [(0, 5000, ExtentFrom::Stored(8 << 12))]);
    let tail = ExtentFrom::Stored(made.labels["tail"] as u64);
    let wanted = [(0, 4096, ExtentFrom::Stored(10 << 12)), (4096, 4, tail)];
    assert_eq!(extents(&volume, "inline", 0..4100), wanted);
    assert_eq!(extents(&volume, "inline", 4090..4097)[0], (4090, 6, ExtentFrom::Stored((10 << 12) + 4090)));
}

#[test]
fn consecutive_chunks_are_joined_and_holes_reported() {
    let volume = made().open().unwrap();
    let wanted = [
        (0, 4096, ExtentFrom::Stored(11 << 12)),
        (4096, 4096, ExtentFrom::Hole),
        (8192, 1808, ExtentFrom::Stored(12 << 12)),
    ];
    assert_eq!(extents(&volume, "chunks", 0..10_000), wanted);
    let joined = made().patch("rows", 8, &[0, 0, 0, 0, 12, 0, 0, 0]).open().unwrap();
    assert_eq!(extents(&joined, "chunks", 0..8192), [(0, 8192, ExtentFrom::Stored(11 << 12))]);
}

#[test]
fn full_indexes_encode_heads_and_partial_references() {
    let volume = made().open().unwrap();
    let first = lz4(13 << 12, 4096, 8292, DecodedLen::Exactly);
    let second = lz4(14 << 12, 4096, 20_000 - 8292, DecodedLen::Prefix);
    assert_eq!(extents(&volume, "full", 0..20_000), [(0, 8292, first), (8292, 11_708, second)]);
    let ExtentFrom::Block { block, .. } = second else { panic!() };
    let wanted = [(19_000, 1000, ExtentFrom::Block { block, start: 10_708 })];
    assert_eq!(extents(&volume, "full", 19_000..20_000), wanted);
}

#[test]
fn compact_indexes_count_blocks_and_lead_into_the_packed_inode() {
    let volume = made().open().unwrap();
    let wanted = [
        (0, 8192, lz4(16 << 12, 4096, 8192, DecodedLen::Exactly)),
        (8192, 4096, ExtentFrom::Stored(17 << 12)),
        (12_288, 3712, ExtentFrom::Stored((20 << 12) + 96)),
    ];
    assert_eq!(extents(&volume, "compact", 0..16_000), wanted);
}

#[test]
fn encoded_extents_are_found_by_halving() {
    let volume = made().open().unwrap();
    let last = lz4(75_001, 3000, 98_500, DecodedLen::Exactly);
    let wanted = [
        (0, 200_000, ExtentFrom::Hole),
        (200_000, 1500, ExtentFrom::Stored(70_000)),
        (201_500, 98_500, last),
    ];
    assert_eq!(extents(&volume, "encoded", 0..300_000), wanted);
    for (at, index) in [(0, 0), (199_999, 0), (200_000, 1), (201_499, 1), (201_500, 2), (299_999, 2)] {
        let found = extents(&volume, "encoded", at..at + 1);
        assert_eq!(found.len(), 1);
        assert_eq!(std::mem::discriminant(&found[0].2), std::mem::discriminant(&wanted[index].2), "{at}");
    }
}

#[test]
fn owners_add_up_to_the_length_of_the_image() {
    let made = made();
    let space = made.open().unwrap().space().unwrap();
    assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), made.bytes.len() as u64);
    assert!(space.iter().any(|owner| owner.owner == "superblock" && owner.len == 144));
    assert!(space.iter().any(|owner| owner.owner == "packed tails" && owner.len == 4096));
}

#[test]
fn facts_name_the_oldest_kernel_and_why() {
    let facts = made().open().unwrap().facts().unwrap();
    assert_eq!(facts.get("minimum_kernel"), Some(&FactValue::Text("6.15 (48bit)".into())));
    assert_eq!(facts.get("codec"), Some(&FactValue::List(vec!["lz4".into()])));
}

#[test]
fn tails_follow_inode_and_xattrs() {
    let reader = reader(&made());
    let raw = reader.raw_inode(nid(3)).unwrap();
    assert_eq!(raw.tail_at() - raw.at, 32 + 24);
}

#[test]
fn reports_distances_past_a_cluster_and_missing_blocks() {
    // The second entry of the full index: the next head is one logical cluster on.
    let texts = |made: Made| made.findings().iter().map(|found| found.fault.to_string()).collect::<Vec<_>>();
    let found = texts(made().patch("full index", 8 + 6, &3_u16.to_le_bytes()));
    assert!(matches!(&*found, [text] if text.contains("\"full\", logical cluster 2")), "{found:?}");
    assert_eq!(
        texts(made().patch("full index", 24 + 6, &9_u16.to_le_bytes())),
        [""; 0],
        "behind the last head"
    );
    let found = texts(made().patch("full", 16, &3_u32.to_le_bytes()));
    assert_eq!(found, ["claims 3 stored blocks, has 2"]);
    assert_eq!(
        texts(made().patch("full", 16, &0_u32.to_le_bytes())),
        [""; 0],
        "shared blocks need not count"
    );
}
