//! Reading of sound images.

use super::*;
use packfs_core::ErrorKind;
use packfs_format::{FactValue, Health, Severity, Space};
use packfs_testkit::{assert_found, assert_refused};

#[test]
fn clusters_of_every_kind_are_read() {
    for version in [2, 3] {
        let made = made(version);
        assert!(whole(&made, Opening::default()).unwrap() == wanted(), "version {version}");
        assert_eq!(made.findings().iter().filter(|it| it.severity > Severity::Note).count(), 0);
        let volume = made.open().unwrap();
        let image = BytesImage(made.bytes.clone());
        for start in [0, 1, 511, 512, 700, 1024, 1536, 2048, 2459] {
            for len in [1, 100, 513, 2460] {
                let range = start..(start + len).min(2460);
                let part = read_range(&volume, &image, DISK, range.clone()).unwrap();
                assert!(part == wanted()[range.start as usize..range.end as usize], "{version} {range:?}");
            }
        }
    }
}

#[test]
fn stretches_that_go_on_are_one_extent() {
    let volume = made(3).open().unwrap();
    let mut extents = Vec::new();
    let visit = &mut |extent: Extent| {
        extents.push((extent.offset, extent.len, extent.from == ExtentFrom::Hole));
        ControlFlow::Continue(())
    };
    volume.extents(DISK, 0..u64::MAX, visit).unwrap();
    assert_eq!(extents, [(0, 512, false), (512, 512, false), (1024, 1024, true), (2048, 412, false)]);
}

#[test]
fn snapshots_are_found_by_number_and_name() {
    for wanted in ["1", "before"] {
        let opening = Opening { snapshot: Some(wanted.into()), ..Opening::default() };
        assert!(whole(&made(3), opening).unwrap() == before());
    }
    let opening = Opening { snapshot: Some("2".into()), ..Opening::default() };
    let error = whole(&made(3), opening).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.hints(), ["snapshots in it: before (1)"]);
    let facts = made(3).open().unwrap().facts().unwrap();
    assert_eq!(facts.get("snapshots"), Some(&FactValue::List(vec!["before (1), 1024 bytes".into()])));
}

#[test]
fn backing_files_have_what_the_image_does_not() {
    let base: Vec<u8> = Random::new(5).noise(1300);
    let given = |backing| Opening { backing, ..Opening::default() };
    // The third cluster is not allocated, and the backing file ends within it.
    let mut wanted = wanted();
    wanted[1024..1300].copy_from_slice(&base[1024..]);
    for format in [None, Some("raw")] {
        let top = backed(made(3), format);
        assert!(whole(&top, given(vec![memory(base.clone())])).unwrap() == wanted, "{format:?}");
    }
    // In between, an image that has only the compressed cluster.
    let middle = backed(made(3), Some("raw")).patch("l2", 0, &[0; 8]).patch("l2", 32, &[0; 8]);
    let top = backed(made(3), Some("qcow2")).patch("l2", 0, &[0; 40]);
    let files = vec![memory(middle.bytes.clone()), memory(base.clone())];
    let read = whole(&top, given(files)).unwrap();
    assert!(read[..512] == base[..512] && read[512..1024] == [b'c'; 512]);
    assert!(read[1024..1300] == base[1024..] && read[1300..].iter().all(|byte| *byte == 0));
    // What says that it is raw is raw, whatever it begins with.
    let raw = whole(&backed(made(3), Some("raw")), given(vec![memory(middle.bytes.clone())])).unwrap();
    assert!(raw[1024..1536] == middle.bytes[1024..1536]);
}

#[test]
fn backing_files_are_all_given_and_no_more() {
    let given = |backing| Opening { backing, ..Opening::default() };
    let top = backed(made(3), None);
    let error = whole(&top, Opening::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("\"base\\x1bimg\""), "{error}");
    assert!(error.hints()[0].contains("--allow-backing"), "{:?}", error.hints());
    assert!(error.hints()[1].contains("qemu-img convert"), "{:?}", error.hints());
    // Its own backing file: the chain does not end.
    let again = vec![memory(top.bytes.clone()), memory(top.bytes.clone())];
    assert_refused(whole(&top, given(again)), ErrorKind::Unsupported, "not given");
    let raw = || memory(vec![1; 10]);
    assert_refused(whole(&top, given(vec![raw(), raw()])), ErrorKind::Usage, "2 backing files are given");
    assert_refused(whole(&made(3), given(vec![raw()])), ErrorKind::Usage, "but the image has 0");
    let other = backed(made(3), Some("vmdk"));
    assert_refused(whole(&other, given(vec![raw()])), ErrorKind::Unsupported, "format \"vmdk\"");
}

#[test]
fn an_empty_name_of_a_backing_file_means_none() {
    let made = made(3).patch("header", 8, &400_u64.to_be_bytes());
    assert!(whole(&made, Opening::default()).unwrap() == wanted());
}

#[test]
fn warnings_are_those_of_backing_files_too() {
    let middle = made(3).patch("header 3", 7, &[1]);
    let opening = Opening { backing: vec![memory(middle.bytes.clone())], ..Opening::default() };
    let volume = QcowVolume::open(memory(backed(made(3), None).bytes.clone()), opening).unwrap();
    let warnings = Health::warnings(&volume);
    assert!(warnings.len() == 1 && warnings[0].contains("was not closed cleanly"), "{warnings:?}");
}

#[test]
fn the_end_of_the_last_cluster_may_be_cut_off() {
    let mut made = made(3);
    let at = made.end();
    made.put("end", &[b'z'; 100]);
    let made = made.patch("l2", 0, &at.to_be_bytes());
    let read = whole(&made, Opening::default()).unwrap();
    assert!(read[..100] == [b'z'; 100] && read[100..512] == [0; 412]);
}

#[test]
fn the_user_is_told_of_images_that_were_not_closed() {
    assert_eq!(made(3).open().unwrap().warnings(), [""; 0]);
    let made = made(3).patch("header 3", 7, &[3]);
    let warnings = made.open().unwrap().warnings();
    assert!(warnings[0].contains("not closed cleanly") && warnings[1].contains("corrupt"), "{warnings:?}");
    assert_found(&made.findings(), Severity::Warning, "marked corrupt");
    assert!(whole(&made, Opening::default()).unwrap() == wanted());
}

/// An image with clusters of 16 KiB, and their bitmaps.
fn extended(entries: &[(u64, u64)]) -> Made {
    const LEN: usize = 16 << 10;
    let mut made = LabelledImage::new(open);
    let header = Header {
        magic: MAGIC,
        version: 3.into(),
        cluster_bits: 14.into(),
        size: (2 * LEN as u64).into(),
        l1_size: 1.into(),
        l1_table_offset: (LEN as u64).into(),
        ..Header::new_zeroed()
    };
    let v3 = HeaderV3 {
        incompatible_features: EXTENDED_L2.into(),
        refcount_order: 4.into(),
        header_length: 104.into(),
        ..HeaderV3::new_zeroed()
    };
    made.put("header", header.as_bytes());
    made.put("header 3", v3.as_bytes());
    made.label("extensions", 104);
    made.bytes.resize(LEN, 0);
    made.put("l1", &(2 * LEN as u64).to_be_bytes());
    made.bytes.resize(2 * LEN, 0);
    let words = entries.iter().flat_map(|(entry, bitmap)| [entry.to_be_bytes(), bitmap.to_be_bytes()]);
    made.put("l2", &words.collect::<Vec<_>>().concat());
    made.bytes.resize(3 * LEN, 0);
    made.put("data", &Random::new(3).noise(LEN));
    made
}

#[test]
fn subclusters_are_allocated_zero_or_neither() {
    let data_at = 3 * (16_u64 << 10);
    // The first and third of those of the first cluster; the second of the second reads as zeros.
    let made = extended(&[(data_at, 0b101), (0, 0b10 << 32)]);
    let read = whole(&made, Opening::default()).unwrap();
    let data = &made.bytes[data_at as usize..];
    assert!(read[..512] == data[..512] && read[1024..1536] == data[1024..1536]);
    assert!(read[512..1024] == [0; 512] && read[1536..].iter().all(|byte| *byte == 0));
    let base = memory(vec![7; 32 << 10]);
    let backed = backed(made, Some("raw"));
    let read = whole(&backed, Opening { backing: vec![base], ..Opening::default() }).unwrap();
    assert!(read[512..1024] == [7; 512] && read[(16 << 10) + 512..][..512] == [0; 512]);
    assert!(read[(16 << 10) + 1024..].iter().all(|byte| *byte == 7));
}

#[test]
fn rejects_subclusters_that_are_two_things() {
    for (offset, bitmap) in [(3 << 14, 1 << 32 | 1), (0, 1)] {
        let made = extended(&[(offset, bitmap)]);
        assert_refused(
            whole(&made, Opening::default()),
            ErrorKind::Corrupt,
            "byte 0x0 of the disk: subclusters 0x",
        );
        assert_found(&made.findings(), Severity::Error, "subclusters");
    }
}

#[test]
fn every_byte_has_an_owner() {
    let made = made(3);
    let volume = made.open().unwrap();
    let owners = volume.space().unwrap();
    assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), made.end());
    let of = |name: &str| owners.iter().filter(|it| it.owner == name).map(|it| it.len).sum::<u64>();
    assert_eq!((of("header"), of("L1 table"), of("L2 table")), (512, 16, 1024));
    assert_eq!((of("reference counts"), of("file data")), (1024, 4 * 512 - 10));
    assert_eq!(volume.image_len(), Some(made.end()));
}
