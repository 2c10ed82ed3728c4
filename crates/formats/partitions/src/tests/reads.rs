//! Reading of sound tables.

use super::*;
use packfs_core::ErrorKind;
use packfs_format::{Directories, Extent, ExtentFrom, FactValue, InodeKind, Inside, Severity, Space};
use packfs_testkit::{assert_found, assert_refused};
use std::ops::ControlFlow;

fn named(rows: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    rows.iter().map(|&(name, start, len)| (name.into(), start * 512, len * 512)).collect()
}

#[test]
fn primary_and_logical_partitions_are_numbered_as_linux_does() {
    let disk = mbr();
    assert!(disk.probe());
    disk.read_all().unwrap();
    assert_eq!(disk.partitions(), named(&[("p1", 4, 10), ("p3", 14, 6), ("p5", 22, 10), ("p6", 61, 5)]));
    assert_eq!(disk.findings(), []);
    let volume = disk.open().unwrap();
    let inner: Vec<String> = volume.inner_images().unwrap().into_iter().map(|inner| inner.name).collect();
    assert_eq!(inner, ["p1", "p3", "p5", "p6"]);
    assert_eq!(volume.facts().unwrap().get("disk_id"), Some(&FactValue::Text("0x12345678".into())));
}

#[test]
fn partitions_of_a_gpt_keep_the_numbers_of_their_rows() {
    let disk = gpt();
    assert!(disk.probe());
    disk.read_all().unwrap();
    assert_eq!(disk.partitions(), named(&[("p1", 10, 10), ("p3", 20, 31)]));
    assert_eq!(disk.findings(), []);
    let facts = disk.open().unwrap().facts().unwrap();
    let Some(FactValue::List(words)) = facts.get("partitions") else { panic!("{facts:?}") };
    assert!(words[0].contains("\"böot\"") && words[0].contains("5120 bytes at 0x1400"), "{words:?}");
    assert_eq!(disk.open().unwrap().image_len(), Some(64 * 512));
}

#[test]
fn sectors_may_be_4096_bytes_long() {
    let mut disk = Disk { bytes: vec![0; 64 * 4096], sector_len: 4096 };
    disk.record(0, &[(0xee, 1, 63)]);
    let entries = [entry(1, 10, 19, "")];
    disk.gpt(1, 63, 2, &entries);
    disk.gpt(63, 1, 61, &entries);
    assert!(disk.probe());
    assert_eq!(disk.partitions(), [("p1".into(), 40_960, 40_960)]);
    assert_eq!(disk.findings(), []);
}

#[test]
fn a_partition_is_a_stretch_of_the_disk() {
    let volume = mbr().open().unwrap();
    let p3 = volume.lookup(volume.root(), b"p3").unwrap().unwrap();
    assert_eq!(volume.inode(p3).unwrap().kind, InodeKind::File { len: 6 * 512 });
    let mut extents = Vec::new();
    let visit = &mut |extent| {
        extents.push(extent);
        ControlFlow::Continue(())
    };
    volume.extents(p3, 100..u64::MAX, visit).unwrap();
    assert_eq!(
        extents,
        [Extent { offset: 100, len: 6 * 512 - 100, from: ExtentFrom::Stored(14 * 512 + 100) }]
    );
    volume.extents(p3, 6 * 512..u64::MAX, &mut |_| panic!("nothing is there")).unwrap();
}

#[test]
fn every_byte_has_an_owner() {
    for disk in [mbr(), gpt()] {
        let volume = disk.open().unwrap();
        let owners = volume.space().unwrap();
        assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), disk.bytes.len() as u64);
        let partitions: u64 = owners.iter().filter(|it| it.owner == "partition").map(|it| it.len).sum();
        assert_eq!(partitions, volume.table.partitions.iter().map(|it| it.len).sum::<u64>());
    }
}

#[test]
fn the_second_copy_serves_where_the_first_is_damaged() {
    // In its signature, its header, its rows, its position.
    for at in [512, 512 + 56, 1024 + 40, 512 + 24] {
        let disk = gpt().patch(at, b"?");
        assert!(disk.probe(), "{at}");
        assert_eq!(disk.partitions(), gpt().partitions(), "{at}");
        let findings = disk.findings();
        assert!(
            findings.iter().any(|it| it.severity == Severity::Error && it.place == "table"),
            "{findings:?}"
        );
        assert!(findings.iter().any(|it| it.fault.contains("the second is used")), "{findings:?}");
    }
}

#[test]
fn only_check_reports_a_damaged_second_copy() {
    let disk = gpt().patch(63 * 512 + 60, b"?");
    assert_eq!(disk.partitions(), gpt().partitions());
    let findings = disk.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].fault.contains("checksum"), "{findings:?}");
    let mut disk = gpt();
    disk.gpt(63, 1, 61, &[entry(1, 10, 18, "other")]);
    assert!(disk.findings().iter().any(|it| it.fault.contains("are others than")));
}

#[test]
fn a_gpt_counts_only_if_the_mbr_keeps_a_place_for_it() {
    let (mbr, both) = (Some(PartitionTable::Mbr), Some(PartitionTable::Gpt));
    // An old GPT below a newer MBR; an entry of its type elsewhere does not count.
    for other in [(0, 0, 0), (0xee, 2, 10)] {
        let mut disk = gpt();
        disk.record(0, &[(0x83, 20, 31), other]);
        assert!(disk.probe());
        assert_eq!(disk.partitions()[0], named(&[("p1", 20, 31)])[0]);
        assert_eq!(disk.partitions_as(both), gpt().partitions());
        let known = disk.open().unwrap().known_faults();
        assert!(known.iter().any(|it| it.fault.contains("--partition-table gpt reads it")), "{known:?}");
    }
    // One that covers it is the protective one with another type.
    let mut disk = gpt();
    disk.record(0, &[(0xef, 1, 63)]);
    assert_found(&disk.findings(), Severity::Error, "partition 1: covers the GPT header at 0x200");
    // Without any other, the disk is a damaged one.
    for rows in [&[][..], &[(0, 0, 0)]] {
        let mut disk = gpt();
        disk.record(0, rows);
        assert!(disk.probe());
        assert_refused(disk.open(), ErrorKind::Corrupt, "has no entry of type 0xee");
        assert_eq!(disk.partitions_as(both), gpt().partitions());
    }
    assert_eq!(gpt().partitions_as(mbr), named(&[("p1", 1, 63)]));
    assert_refused(super::mbr().open_as(both), ErrorKind::Corrupt, "no \"EFI PART\"");
    // A hybrid without its GPT is an MBR.
    let mut hybrid = Disk::empty(64);
    hybrid.record(0, &[(0xee, 1, 10), (0x83, 20, 10)]);
    assert_eq!(hybrid.partitions(), named(&[("p1", 1, 10), ("p2", 20, 10)]));
}

#[test]
fn an_odd_entry_is_named_and_leaves_the_others() {
    for (odd, listed, expected) in [
        ((0x83, 0, 50), false, "partition 2: starts with sector 0"),
        ((0x83, 30, 0), false, "partition 2: type 0x83 without sectors"),
        ((0, 30, 5), true, "partition 2: type 0x00, which marks an unused entry, with 5 sectors"),
        ((0x83, 99, 5), true, "partition 2: ends at 0xd000, but the disk at 0xc800"),
        ((0x83, 5000, 5), true, "partition 2: ends at"),
        ((0x83, 8, 20), true, "partition 2: shares sectors with partition 1"),
        ((0x05, 5000, 5), false, "it has no signature"),
        ((0x05, 0, 5), false, "partition 2: starts with sector 0"),
    ] {
        let mut disk = Disk::empty(100);
        disk.record(0, &[(0x83, 4, 10), odd, (0x83, 40, 5)]);
        assert!(disk.probe(), "{expected}");
        let names: Vec<String> = disk.partitions().into_iter().map(|it| it.0).collect();
        let wanted: &[&str] = if listed { &["p1", "p2", "p3"] } else { &["p1", "p3"] };
        assert_eq!(names, wanted, "{expected}");
        assert_found(&disk.findings(), Severity::Error, expected);
        assert_found(&disk.open().unwrap().known_faults(), Severity::Error, expected);
    }
    // The same of logical partitions.
    let mut disk = mbr();
    disk.record(60, &[(0, 1, 5)]);
    assert_found(&disk.findings(), Severity::Error, "partition 6: type 0x00");
    assert_eq!(disk.partitions(), mbr().partitions());
    disk.record(60, &[(0x82, 0, 5)]);
    assert_found(&disk.findings(), Severity::Error, "partition 6: covers the extended boot record at 0x7800");
    // One that covers several shares sectors with each.
    let mut disk = Disk::empty(100);
    disk.record(0, &[(0x83, 4, 90), (0x83, 10, 5), (0x83, 40, 5)]);
    assert_found(&disk.findings(), Severity::Error, "partition 3: shares sectors with partition 1");
}
