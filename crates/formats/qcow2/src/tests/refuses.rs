//! Refusal of images with one fault each.

use super::*;
use packfs_core::ErrorKind;
use packfs_format::{Check, Finding, Severity, Space};
use packfs_testkit::{assert_found, assert_refused};

/// Opening, or reading all of it, has to fail and say so.
#[track_caller]
fn refused(image: &Made, kind: ErrorKind, expected: &str) {
    assert_refused(image.read_all(), kind, expected);
}

/// One test each: name, label of a structure, offset within it, bytes written there, message.
macro_rules! rejects {
    ($($name:ident: $label:literal + $within:literal = $bytes:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            refused(&made(3).patch($label, $within, &$bytes), ErrorKind::Corrupt, $expected);
        }
    )*};
}

const U32_MAX: [u8; 4] = [0xff; 4];
const U64_MAX: [u8; 8] = [0xff; 8];

rejects! {
    rejects_another_magic: "header" + 0 = [b'X'] => "no \"QFI\\xfb\" at 0x0";
    rejects_small_clusters: "header" + 20 = 8_u32.to_be_bytes() => "clusters of 2^8 bytes, 2^9 to 2^21";
    rejects_huge_clusters: "header" + 20 = U32_MAX => "clusters of 2^4294967295 bytes";
    rejects_small_clusters_with_subclusters: "header 3" + 7 = [16] => "clusters of 2^9 bytes, 2^14 to 2^21";
    rejects_short_header: "header 3" + 28 = 96_u32.to_be_bytes() => "96 bytes long, multiples of 8 from 104 to 512";
    rejects_header_off_the_unit: "header 3" + 28 = 108_u32.to_be_bytes() => "108 bytes long";
    rejects_compression_without_its_bit: "header" + 104 = [1] => "compression type 1 does not go with";
    rejects_compression_bit_without_a_type: "header 3" + 7 = [8] => "compression type 0 does not go with";
    rejects_disk_longer_than_its_table: "header" + 24 = 32_769_u64.to_be_bytes() => "L1 table: a disk of 32769 bytes, but its L1 table has room for 32768";
    rejects_disk_of_any_length: "header" + 24 = U64_MAX => "a disk of 18446744073709551615 bytes";
    rejects_huge_l1_table: "header" + 36 = U32_MAX => "L1 table: 4294967295 entries, at most 4194304";
    rejects_l1_table_longer_than_the_file: "header" + 36 = 100_000_u32.to_be_bytes() => "800000 bytes, which have to end by";
    rejects_l1_table_behind_the_file: "header" + 40 = 0x10_0000_u64.to_be_bytes() => "L1 table at 0x100000: 8 bytes";
    rejects_l1_table_off_the_unit: "header" + 40 = 520_u64.to_be_bytes() => "L1 table at 0x208: multiples of 512";
    rejects_many_snapshots: "header" + 60 = U32_MAX => "snapshots: 4294967295 entries, at most 65536";
    rejects_endless_backing_name: "header" + 8 = [&400_u64.to_be_bytes()[..], &U32_MAX].concat() => "4294967295 bytes of backing file name at 0x190";
    rejects_backing_name_behind_its_cluster: "header" + 8 = [&508_u64.to_be_bytes()[..], &8_u32.to_be_bytes()].concat() => "8 bytes of backing file name at 0x1fc";
    rejects_endless_extension: "extensions" + 0 = [&EXTENSION_FEATURE_NAMES.to_be_bytes()[..], &U32_MAX].concat() => "header extension at 0x70: 4294967295 bytes";
    rejects_l2_table_behind_the_file: "l1" + 0 = 0x10_0000_u64.to_be_bytes() => "L2 table at 0x100000: 512 bytes";
    rejects_cluster_behind_the_file: "l2" + 0 = 0x10_0000_u64.to_be_bytes() => "byte 0x0 of the disk: in a cluster at 0x100000";
    rejects_compressed_cluster_behind_the_file: "l2" + 8 = (COMPRESSED | 0x10_0000).to_be_bytes() => "byte 0x200 of the disk: in a cluster at 0x100000";
}

#[test]
fn rejects_tables_and_clusters_off_the_unit() {
    // Units of 512 bytes leave no room for an offset that is not a multiple of them.
    let (table, cluster) = (made_big().patch("l1", 0, &512_u64.to_be_bytes()), made_big());
    refused(&table, ErrorKind::Corrupt, "L2 table at 0x200: multiples of 1024");
    refused(
        &cluster.patch("l2", 0, &512_u64.to_be_bytes()),
        ErrorKind::Corrupt,
        "byte 0x0 of the disk: in a cluster at 0x200, multiples of 1024 allowed",
    );
}

/// An image with clusters of 1 KiB and nothing in it.
fn made_big() -> Made {
    let mut made = LabelledImage::new(open);
    let header = Header {
        magic: MAGIC,
        version: 2.into(),
        cluster_bits: 10.into(),
        size: 1024.into(),
        l1_size: 1.into(),
        l1_table_offset: 1024.into(),
        ..Header::new_zeroed()
    };
    made.put("header", header.as_bytes());
    made.bytes.resize(1024, 0);
    made.put("l1", &2048_u64.to_be_bytes());
    made.bytes.resize(2048, 0);
    made.put("l2", &[0; 1024]);
    made
}

#[test]
fn rejects_zeros_in_version_2() {
    refused(
        &made(2).patch("l2", 31, &[1]),
        ErrorKind::Corrupt,
        "byte 0x600 of the disk: in a cluster of zeros",
    );
}

#[test]
fn rejects_files_shorter_than_a_header() {
    let mut made = made(2);
    made.bytes.truncate(71);
    refused(&made, ErrorKind::Corrupt, "71 bytes long, 72 needed");
}

#[test]
fn a_cluster_that_is_lost_costs_no_other() {
    let made = made(3).patch("l2", 0, &0x10_0000_u64.to_be_bytes());
    let volume = made.open().unwrap();
    let image = BytesImage(made.bytes.clone());
    assert!(read_range(&volume, &image, DISK, 512..2460).unwrap() == wanted()[512..]);
    assert_refused(read_range(&volume, &image, DISK, 0..2460), ErrorKind::Corrupt, "byte 0x0 of the disk");
    assert_found(&made.findings(), Severity::Error, "byte 0x0 of the disk");
}

#[test]
fn rejects_snapshots_that_cannot_be_there() {
    let opened = |made: &Made| {
        let image = Arc::new(BytesImage(made.bytes.clone()));
        QcowVolume::open(image, Opening { snapshot: Some("1".into()), ..Opening::default() })
    };
    for (within, bytes, expected) in [
        (36, &2000_u32.to_be_bytes()[..], "2000 bytes of extra data, at most 1024"),
        (14, &[0xff; 2], "65592 bytes, which have to end by"),
        (0, &[0xff; 8], "L1 table of the snapshot at 0xffffffffffffffff"),
        (8, &[0xff; 4], "L1 table of the snapshot: 4294967295 entries"),
        (48, &[0xff; 8], "L1 table of the snapshot: a disk of 18446744073709551615 bytes"),
    ] {
        let made = made(3).patch("snapshots", within, bytes);
        assert_refused(opened(&made), ErrorKind::Corrupt, expected);
        let findings = made.findings();
        assert!(
            findings.iter().any(|finding| finding.severity == Severity::Error),
            "{expected}: {findings:?}"
        );
        // The current state is as sound as before.
        assert!(whole(&made, Opening::default()).unwrap() == wanted());
    }
    let end = made(3).end();
    let far = made(3).patch("header", 64, &(end + 512).to_be_bytes());
    assert_refused(opened(&far), ErrorKind::Corrupt, "snapshot table at");
}

#[test]
fn snapshots_do_not_share_tables_again_and_again() {
    let mut made = made(3);
    let row = made.labels["snapshots"];
    let rows = made.bytes[row..row + 64].repeat(2000);
    let at = put(&mut made, "more", &rows);
    let made = made.patch("header", 60, &2000_u32.to_be_bytes()).patch("header", 64, &at.to_be_bytes());
    // They are not counted as often as they are used, and that is all.
    let found = made.findings();
    assert!(error_count(&found) == 1 && found.iter().any(|it| it.place == "reference counts"), "{found:?}");
    let large = (made.end() / 512 * 64) as u32;
    let rows = [&rows[..8], &large.to_be_bytes(), &rows[12..64]].concat().repeat(2000);
    let made = made.patch("more", 0, &rows);
    assert!(error_count(&made.findings()) > 0);
}

fn error_count(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.severity == Severity::Error).count()
}

#[test]
fn a_table_of_two_stretches_is_found() {
    let mut made = made(3);
    let l2 = made.labels["l2"] as u64;
    let at = put(&mut made, "longer l1", &table(&[l2, l2]));
    let made = made.patch("header", 36, &2_u32.to_be_bytes()).patch("header", 40, &at.to_be_bytes());
    let made = made.patch("header", 24, &40_000_u64.to_be_bytes());
    assert_found(&made.findings(), Severity::Error, "is that of another entry, too");
}

#[test]
fn names_what_it_does_not_read() {
    for (label, within, bytes, expected) in [
        ("header", 4, &[0, 0, 0, 1][..], "version 1, 2 and 3 are supported"),
        ("header", 35, &[1], "encrypted with AES"),
        ("header", 35, &[2], "encrypted with LUKS"),
        ("header", 35, &[9], "encryption method 9"),
        ("header 3", 7, &[4], "external data file"),
        ("header 3", 6, &[1, 32], "unknown incompatible features: bit 5, bit 8"),
        ("header 3", 7, &[8, 0, 0, 0, 0], "compression type"),
    ] {
        let made = made(3).patch(label, within, bytes);
        let made = if expected == "compression type" { made.patch("header", 104, &[2]) } else { made };
        refused(&made, ErrorKind::Unsupported, expected);
        assert!(made.open().err().unwrap().hints()[0].contains("qemu-img convert"));
    }
    let mut row = FeatureName { kind: 0, bit: 5, name: [0; 46] };
    row.name[..8].copy_from_slice(b"teapots!");
    let named = made(3).patch("extensions", 0, &extension(EXTENSION_FEATURE_NAMES, row.as_bytes()));
    refused(&named.patch("header 3", 7, &[32]), ErrorKind::Unsupported, "teapots! (bit 5)");
}

#[test]
fn refcounts_behind_the_file_hinder_no_reader() {
    let made = made(3).patch("header", 48, &0x10_0000_u64.to_be_bytes());
    assert!(whole(&made, Opening::default()).unwrap() == wanted());
    assert_found(&made.findings(), Severity::Error, "reference counts at 0x100000");
}

#[test]
fn any_byte_may_be_anything() {
    for version in [2, 3] {
        let image = made(version);
        for at in 0..image.bytes.len() {
            for change in [0x01, 0x10, 0x7f, 0x80, 0xff] {
                let mut image = image.clone();
                image.bytes[at] ^= change;
                let Ok(volume) = image.open() else { continue };
                let _ = read_all(&volume, 10);
                let _ = (volume.facts(), volume.image_len());
                volume.check(&mut |_| {}).unwrap();
                if let Ok(owners) = volume.space() {
                    let owned = owners.iter().map(|owner| owner.len).sum::<u64>();
                    assert_eq!(owned, image.bytes.len() as u64, "version {version} at {at}");
                }
            }
        }
    }
}

#[test]
fn rejects_every_cut_without_panic() {
    let whole = made(3);
    for len in 0..whole.bytes.len() {
        let mut image = whole.clone();
        image.bytes.truncate(len);
        if let Ok(volume) = image.open() {
            let _ = (read_all(&volume, 10), volume.facts(), volume.space());
            volume.check(&mut |_| {}).unwrap();
        }
    }
}

#[test]
fn clusters_that_are_used_more_often_than_counted_are_findings() {
    // The data of the current state, and the stream that the snapshot shares.
    for (label, count, text) in
        [("data", 0, "used 1 times, counted 0"), ("stream", 1, "used 2 times, counted 1")]
    {
        let cluster = made(3).labels[label] / CLUSTER;
        let found = made(3).patch("counts", 2 * cluster, &[0, count]).findings();
        assert!(
            found.iter().any(|it| it.place == "reference counts" && it.fault.contains(text)),
            "{found:?}"
        );
    }
    // Those of an image that was not closed are not looked at.
    let dirty = made(3).patch("counts", 0, &[0; 40]).patch("header 3", 7, &[1]);
    assert!(!dirty.findings().iter().any(|it| it.place == "reference counts"));
}

#[test]
fn a_last_cluster_that_was_cut_is_told_of() {
    let mut made = made(3);
    let tail = put(&mut made, "tail", &[b't'; CLUSTER]);
    let mut made = made.patch("l2", 0, &(1 << 63 | tail).to_be_bytes());
    made.bytes.truncate(made.bytes.len() - 100);
    let volume = open(Arc::new(BytesImage(made.bytes.clone()))).unwrap();
    let text = "the file ends within a cluster: the disk reads as zeros from 0x19c";
    assert!(packfs_format::Container::warnings(&volume)[0].contains(text));
    assert!(made.findings().iter().any(|it| it.severity == Severity::Warning && it.fault.contains(text)));
}
