//! Physical volumes made by hand, byte for byte, and what the reader says of them and of damaged
//! copies.

use crate::disk::*;
use crate::label::checksum;
use crate::volume::LvmVolume;
use packfs_core::{ErrorKind, Image, MemoryImage, Result};
use packfs_format::{Check, Directories, Health, InodeId, Inside, Space, Volume};
use packfs_testkit::{assert_refused, read_all, read_range};
use std::ops::ControlFlow;
use std::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

const AREA: usize = 4096;
const AREA_LEN: usize = 4096;
const UUID: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Extents of 512 bytes from 8192 on: one volume of two segments, one that is striped, and one that
/// is hidden.
const TEXT: &str = r#"# made by hand
vg {
    seqno = 3 format = "lvm2" status = ["RESIZEABLE", "READ"] flags = []
    extent_size = 1
    physical_volumes {
        pv0 { id = "aaaaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaaaa" device = "/dev/\"x\"" pe_start = 16 pe_count = 8 }
        pv1 { id = "bbbbbb-bbbb-bbbb-bbbb-bbbb-bbbb-bbbbbb" pe_start = 16 pe_count = 8 }
    }
    logical_volumes {
        root {
            status = ["READ", "VISIBLE"] segment_count = 2
            segment1 { start_extent = 0 extent_count = 2 type = "striped" stripe_count = 1 stripes = ["pv0", 3] }
            segment2 { start_extent = 2 extent_count = 1 type = "striped" stripe_count = 1 stripes = ["pv0", 0] }
        }
        far { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv1", 0] } }
        wide { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 2 type = "striped" stripes = ["pv0", 5, "pv1", 1] } }
        thin { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 9 type = "thin" } }
        pool { status = ["READ"] segment1 { start_extent = 0 extent_count = 9 type = "thin-pool" } }
    }
}
contents = "Text Format Volume Group"
version = 1
"#;

/// A physical volume with this text, which starts this many bytes before the end of its area.
fn made(uuid: &str, text: &str, before_end: usize) -> Vec<u8> {
    let mut bytes = vec![0; 8192 + 8 * 512];
    let label =
        Label { id: LABEL, sector: 1.into(), checksum: 0.into(), offset: 32.into(), kind: LABEL_KIND };
    let header = Header { uuid: uuid.as_bytes().try_into().unwrap(), device_len: 12_288.into() };
    let area = |at: usize, len: usize| Area { at: (at as u64).into(), len: (len as u64).into() };
    let lists = [area(8192, 0), area(0, 0), area(AREA, AREA_LEN), area(0, 0)];
    let label = [label.as_bytes(), header.as_bytes(), lists.as_bytes()].concat();
    bytes[512..512 + label.len()].copy_from_slice(&label);
    let label_sum = checksum(&bytes[512 + 20..1024]);
    bytes[512 + 16..512 + 20].copy_from_slice(&label_sum.to_le_bytes());
    let (start, text) = (AREA_LEN - before_end, text.as_bytes());
    let area_header = AreaHeader {
        magic: AREA_MAGIC,
        version: 1.into(),
        start: (AREA as u64).into(),
        len: (AREA_LEN as u64).into(),
        text_at: (start as u64).into(),
        text_len: (text.len() as u64).into(),
        text_checksum: checksum(text).into(),
        ..AreaHeader::new_zeroed()
    };
    bytes[AREA..AREA + 64].copy_from_slice(area_header.as_bytes());
    sum(&mut bytes);
    let first = text.len().min(before_end);
    bytes[AREA + start..][..first].copy_from_slice(&text[..first]);
    bytes[AREA + AREA_HEADER_LEN..][..text.len() - first].copy_from_slice(&text[first..]);
    for (extent, sector) in bytes[8192..].chunks_mut(512).enumerate() {
        sector.fill(b'0' + extent as u8);
    }
    bytes
}

fn sum(bytes: &mut [u8]) {
    let sum = checksum(&bytes[AREA + 4..AREA + AREA_HEADER_LEN]);
    bytes[AREA..AREA + 4].copy_from_slice(&sum.to_le_bytes());
}

fn image(bytes: Vec<u8>) -> Arc<dyn Image> {
    Arc::new(MemoryImage::new("test", bytes))
}

fn open(bytes: Vec<u8>) -> Result<LvmVolume> {
    LvmVolume::open(image(bytes), Vec::new())
}

fn read(volume: &LvmVolume, image: &dyn Image, name: &str) -> Result<Vec<u8>> {
    let file = volume.lookup(InodeId(0), name.as_bytes()).unwrap().unwrap();
    read_range(volume, image, file, 0..u64::MAX)
}

fn rows(sectors: &[u8]) -> Vec<u8> {
    sectors.iter().flat_map(|byte| vec![*byte; 512]).collect()
}

#[test]
fn linear_volumes_are_read_and_others_refused_one_by_one() {
    // The text goes on at the start of its area.
    for before_end in [3000, 500] {
        let bytes = made(UUID, TEXT, before_end);
        let volume = open(bytes.clone()).unwrap();
        let names: Vec<String> = volume.inner_images().unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["root", "far", "wide", "thin"]);
        let file = image(bytes);
        assert!(read(&volume, &*file, "root").unwrap() == rows(b"340"));
        assert_refused(read(&volume, &*file, "thin"), ErrorKind::Unsupported, "of the type thin, linear");
        assert_refused(read(&volume, &*file, "wide"), ErrorKind::Unsupported, "striped over 2 volumes");
        assert_refused(read(&volume, &*file, "far"), ErrorKind::Failed, "\"pv1\", which is not given");
        assert_eq!(volume.space().unwrap().iter().map(|it| it.len).sum::<u64>(), file.len());
        assert!(format!("{:?}", volume.facts().unwrap()).contains("thin: thin, 4608 bytes"));
        let mut findings = Vec::new();
        volume.check(&mut |finding| findings.push(finding)).unwrap();
        assert!(findings.iter().all(|it| it.severity == packfs_format::Severity::Note), "{findings:?}");
    }
}

#[test]
fn further_physical_volumes_are_found_by_their_numbers() {
    let second = made(&"b".repeat(32), &TEXT.replace("seqno = 3", "seqno = 2"), 3000);
    let volume = LvmVolume::open(image(made(UUID, TEXT, 3000)), vec![image(second)]).unwrap();
    let data = volume.data_image().unwrap();
    assert!(read(&volume, &*data, "far").unwrap() == rows(b"0"));
    assert!(read(&volume, &*data, "root").unwrap() == rows(b"340"));
    let stranger = made(&"c".repeat(32), TEXT, 3000);
    let opened = LvmVolume::open(image(made(UUID, TEXT, 3000)), vec![image(stranger)]);
    assert_refused(opened, ErrorKind::Usage, "is no physical volume of the group \"vg\"");
}

#[test]
fn a_label_with_another_identifier_than_its_group_lists_is_damage() {
    let opened = open(made(&"c".repeat(32), TEXT, 3000));
    assert_refused(opened, ErrorKind::Corrupt, "is no physical volume of the group \"vg\"");
    let mut damaged = made(&"b".repeat(32), TEXT, 3000);
    damaged[512 + 32] ^= 1;
    let opened = LvmVolume::open(image(made(UUID, TEXT, 3000)), vec![image(damaged)]);
    assert_refused(opened, ErrorKind::Corrupt, "is no physical volume of the group \"vg\"");
}

#[test]
fn faults_of_labels_and_areas_are_told() {
    let patched = |at: usize, other: &[u8], sums: bool| {
        let mut bytes = made(UUID, TEXT, 3000);
        bytes[at..at + other.len()].copy_from_slice(other);
        if sums {
            sum(&mut bytes);
        }
        bytes
    };
    for (at, other, sums, expected) in [
        (512, &b"X"[..], false, "no label with \"LABELONE\""),
        (512 + 20, &[0xff; 4], false, "a header at 4294967295 of its sector"),
        (512 + 72 + 32, &[0xff; 8], false, "which have to end by"),
        (AREA + 4, b"X", false, "no \" LVM2 x[5A%r0N*>\""),
        (AREA + 30, &[9], false, "area of metadata at 0x1000: checksum 0x"),
        (AREA + 48, &[0xff; 8], true, "18446744073709551615 bytes, at most 3584"),
        (AREA + 40, &[1], true, "text: checksum"),
        (AREA + 56, &[1], true, "text: checksum 0x"),
        (AREA + 60, &[1], true, "no area of metadata has a text"),
    ] {
        assert_refused(open(patched(at, other, sums)), ErrorKind::Corrupt, expected);
    }
}

#[test]
fn faults_of_the_text_are_told() {
    for (from, to, expected) in [
        ("extent_size = 1\n", "extent_size = 0\n", "extent_size 0 is not allowed"),
        ("extent_size = 1\n", "\n", "text: no extent_size"),
        ("seqno = 3", "seqno = ?", "expected at byte"),
        ("flags = []", "flags = [", "expected at byte"),
        ("flags = []", "flags = \"", "expected at byte"),
        ("seqno", "a {b {c {d {e {f {g {h {i { seqno", "expected at byte"),
        ("        far {", "        root {", "no file name, or that of another"),
        ("        far {", "        .. {", "no file name"),
        ("vg {", "vg = 1 #", "expected at byte"),
    ] {
        assert!(TEXT.contains(from), "{from}");
        assert_refused(open(made(UUID, &TEXT.replacen(from, to, 1), 3500)), ErrorKind::Corrupt, expected);
    }
    assert_refused(open(made(UUID, "a = 1", 3500)), ErrorKind::Corrupt, "text: no group");
}

#[test]
fn faults_of_one_volume_leave_the_others_readable() {
    for (from, to, kind, expected) in [
        ("\"pv0\", 3", "\"pv9\", 3", ErrorKind::Unsupported, "of the type linear over the volume \"pv9\""),
        ("start_extent = 2", "start_extent = 3", ErrorKind::Corrupt, "a segment starts at extent 3"),
        (
            "extent_count = 1 type",
            "extent_count = 99999999999999999 type",
            ErrorKind::Corrupt,
            "extent_count 99999999999999999",
        ),
        (
            "type = \"striped\" stripe_count = 1 stripes = [\"pv0\", 0]",
            "",
            ErrorKind::Corrupt,
            "text: no type",
        ),
        ("status = [\"READ\", \"VISIBLE\"]", "", ErrorKind::Corrupt, "text: no status"),
        ("status = [\"READ\", \"VISIBLE\"]", "status = -1.5", ErrorKind::Corrupt, "text: no status"),
    ] {
        assert!(TEXT.contains(from), "{from}");
        let text = TEXT.replacen(from, to, 1).replacen("\"pv1\", 0", "\"pv0\", 1", 1);
        let bytes = made(UUID, &text, 3500);
        let volume = open(bytes.clone()).unwrap();
        let file = image(bytes);
        assert_refused(read(&volume, &*file, "root"), kind, expected);
        assert!(read(&volume, &*file, "far").unwrap() == rows(b"1"), "{from}");
    }
}

#[test]
fn snapshots_have_the_names_that_users_gave_them() {
    let snapshot = |store: &str| {
        format!(
            "snap1 {{ status = [\"READ\"] segment1 {{ start_extent = 0 extent_count = 1 type = \"striped\" stripes = [\"pv0\", 6] }} }}\n\
             snapshot0 {{ status = [\"VISIBLE\"] segment1 {{ start_extent = 0 extent_count = 3 type = \"snapshot\" origin = \"root\" {store} = \"snap1\" }} }}\n far {{"
        )
    };
    for (store, is_read) in [("cow_store", true), ("merging_store", false)] {
        let bytes = made(UUID, &TEXT.replacen("far {", &snapshot(store), 1), 3500);
        let volume = open(bytes.clone()).unwrap();
        let names: Vec<String> = volume.inner_images().unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["root", "snap1", "far", "wide", "thin"]);
        assert_refused(
            read(&volume, &*image(bytes.clone()), "snap1"),
            ErrorKind::Unsupported,
            "type snapshot,",
        );
        // The origin is as it is now, unless changes are on their way into it.
        assert_eq!(read(&volume, &*image(bytes), "root").is_ok(), is_read);
    }
}

#[test]
fn the_newest_sound_text_counts() {
    let older = TEXT.replace("seqno = 3", "seqno = 2").replace("\"pv0\", 3", "\"pv0\", 4");
    let newer = TEXT.replace("seqno = 3", "seqno = 4").replace("\"pv0\", 3", "\"pv0\", 1");
    let second = |text: &str| made(&"b".repeat(32), text, 3500);
    for (text, wanted) in [(&older, b"340"), (&newer, b"120")] {
        let volume = LvmVolume::open(image(made(UUID, TEXT, 3500)), vec![image(second(text))]).unwrap();
        let data = volume.data_image().unwrap();
        assert!(read(&volume, &*data, "root").unwrap() == rows(wanted));
        assert!(volume.warnings()[0].contains("sequence number"), "{:?}", volume.warnings());
    }
    // A separate text is not needed, and a group of the same name is another.
    let mut damaged = made(UUID, TEXT, 3500);
    damaged[AREA + AREA_LEN - 3500] ^= 1;
    let volume = LvmVolume::open(image(damaged), vec![image(second(TEXT))]).unwrap();
    assert!(read(&volume, &*volume.data_image().unwrap(), "root").unwrap() == rows(b"340"));
    assert!(volume.warnings()[0].contains("text: checksum"), "{:?}", volume.warnings());
    let other = newer.replace("flags = []", "flags = [] id = \"other\"").replace("aaaa-aaaa", "dddd-dddd");
    let opened =
        LvmVolume::open(image(made(UUID, TEXT, 3500)), vec![image(made(&"c".repeat(32), &other, 3500))]);
    assert_refused(opened, ErrorKind::Usage, "is no physical volume of the group \"vg\"");
}

#[test]
fn what_the_file_has_of_a_volume_is_read() {
    let far = made(UUID, &TEXT.replacen("\"pv0\", 3", "\"pv0\", 7", 1), 3500);
    let volume = open(far.clone()).unwrap();
    assert_refused(
        read(&volume, &*image(far), "root"),
        ErrorKind::Corrupt,
        "1024 bytes, but its physical volume ends at",
    );
    let id = volume.lookup(InodeId(0), b"root").unwrap().unwrap();
    volume.extents(id, 0..512, &mut |_| ControlFlow::Continue(())).unwrap();
    volume.extents(id, 1024..1536, &mut |_| ControlFlow::Continue(())).unwrap();
    let mut findings = Vec::new();
    volume.check(&mut |finding| findings.push(finding)).unwrap();
    assert!(findings.iter().any(|it| it.place == "root" && it.severity == packfs_format::Severity::Error));
}

#[test]
fn any_byte_may_be_anything() {
    let whole = made(UUID, TEXT, 3500);
    let text = AREA + AREA_LEN - 3500;
    for at in (512..640).chain(AREA..AREA + 64).chain(text..text + TEXT.len()) {
        for change in [0x01, 0x10, 0x7f, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            let end = text + TEXT.len();
            let sum_of_text = checksum(&bytes[text..end]);
            bytes[AREA + 56..AREA + 60].copy_from_slice(&sum_of_text.to_le_bytes());
            sum(&mut bytes);
            let Ok(volume) = open(bytes) else { continue };
            let _ = (read_all(&volume, 10), volume.facts(), volume.space());
            volume.check(&mut |_| {}).unwrap();
        }
    }
}
