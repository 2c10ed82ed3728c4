//! Refusal of disks without a table and of damaged tables.

use super::*;
use packfs_core::ErrorKind;
use packfs_format::{Check, Severity, Space};
use packfs_testkit::assert_found;

#[track_caller]
fn found(disk: &Disk, expected: &str) {
    assert_found(&disk.findings(), Severity::Error, expected);
}

#[test]
fn boot_sectors_of_file_systems_are_no_tables() {
    // What mkfs.fat and mkfs.ntfs write, with rubbish that passes for a row.
    let fat = [&[0xeb, 0x3c, 0x90][..], b"mkfs.fat", &[0, 2, 4, 1, 0, 2, 0, 2, 0, 0, 0xf8]].concat();
    let ntfs = [&[0xeb, 0x52, 0x90][..], b"NTFS    "].concat();
    let exfat = [&[0xeb, 0x76, 0x90][..], b"EXFAT   "].concat();
    for start in [fat, ntfs, exfat] {
        assert!(!mbr().patch(0, &start).probe(), "{start:?}");
    }
    // The beginning of GRUB, with space for such a block, left empty.
    assert!(mbr().patch(0, &[0xeb, 0x63, 0x90]).probe());
}

#[test]
fn two_bytes_make_no_table() {
    let signed = Disk::empty(10).patch(510, &[0x55, 0xaa]);
    assert!(!signed.probe());
    assert_eq!(signed.open().err().unwrap().kind(), ErrorKind::Corrupt);
    let mut random = packfs_testkit::Random::new(5);
    for _ in 0..2000 {
        let disk = Disk { bytes: random.noise(2048), sector_len: 512 }.patch(510, &[0x55, 0xaa]);
        assert!(!disk.probe());
    }
    for len in [0, 1, 511, 512, 600] {
        let mut disk = mbr();
        disk.bytes.truncate(len);
        assert!(!disk.probe(), "{len}: its partitions start behind its end");
    }
}

#[test]
fn hybrids_of_cds_and_sticks_are_cds() {
    let mut disk = Disk::empty(100);
    disk.record(0, &[(0x17, 0, 100)]);
    assert!(!disk.probe(), "the partition is the disk itself");
}

#[test]
fn a_disk_that_only_keeps_others_off_needs_its_gpt() {
    let mut disk = Disk::empty(64);
    disk.record(0, &[(0xee, 1, 63)]);
    assert!(disk.probe(), "a missing GPT is a damaged one");
    let both = gpt().patch(512 + 60, b"?").patch(63 * 512 + 60, b"?");
    assert!(both.probe(), "a damaged GPT is one");
    let error = both.open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("GPT header at 0x200: checksum"), "{error}");
}

#[test]
fn chains_of_any_content_end() {
    // To itself, to the first, out of the extended partition, to where no record is, and on and on.
    let again = |first: u32| {
        let mut disk = mbr();
        disk.record(60, &[(0x83, 1, 5), (0x05, first, 20)]);
        disk
    };
    found(&again(40), "the chain returns here");
    found(&again(0), "the chain returns here");
    found(&again(80), "extended boot record at 0xc800: 0x2800 up to 0xc800 allowed");
    found(&again(u32::MAX), "up to 0xc800 allowed");
    found(&again(50), "it has no signature");
    for disk in [again(40), again(0), again(80), again(50)] {
        assert_eq!(disk.partitions().len(), 4);
        disk.read_all().unwrap();
    }
    let mut long = Disk::empty(1000);
    long.record(0, &[(0x05, 1, 999)]);
    for link in 1..999 {
        long.record(link, &[(0x83, 1, 1), (0x05, link as u32, 1)]);
    }
    found(&long, "more than the 256");
    assert_eq!(long.partitions().len(), 256);
}

#[test]
fn partitions_behind_the_end_are_listed_and_cannot_be_read() {
    let mut disk = mbr();
    disk.bytes.truncate(63 * 512);
    assert_eq!(disk.partitions().len(), 4);
    found(&disk, "partition 6: ends at 0x8400, but the disk at 0x7e00");
    let error = disk.read_all().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.hints().iter().any(|hint| hint.contains("truncated")));
}

#[test]
fn faults_of_single_partitions_leave_the_others() {
    let mut disk = gpt();
    let entries =
        [entry(1, 10, 19, ""), entry(2, 30, 20, ""), entry(3, u64::MAX, u64::MAX, ""), entry(4, 15, 25, "")];
    disk.gpt(1, 63, 2, &entries);
    assert_eq!(disk.partitions().len(), 2);
    found(&disk, "partition 2: ends with sector 20, before it starts with 30");
    found(&disk, "partition 3: ends at");
    found(&disk, "partition 4: shares sectors with partition 1");
}

/// Puts the checksum of a header right.
fn resum(mut disk: Disk) -> Disk {
    disk.bytes[512 + 16..512 + 20].fill(0);
    let crc = crc32fast::hash(&disk.bytes[512..512 + 92]);
    disk.patch(512 + 16, &crc.to_le_bytes())
}

#[test]
fn figures_of_a_gpt_that_cannot_be_are_refused() {
    // The second copy is damaged beyond use, so that the first has to tell.
    let broken = |at: usize, value: &[u8]| resum(gpt().patch(512 + at, value)).patch(63 * 512, b"?");
    for (at, value, expected) in [
        (84, 127_u32, "entry size 127"),
        (84, 132, "entry size 132"),
        (84, u32::MAX, "entry size 4294967295"),
        (80, 4097, "4097 entries"),
        (80, u32::MAX, "4294967295 entries"),
        (72, 1_000_000, "1024 bytes of entries in sector 1000000"),
        (12, 91, "header size 91"),
        (12, 513, "header size 513"),
        (24, 2, "says it is sector 2, but it is 1"),
    ] {
        let error = broken(at, &value.to_le_bytes()).open().err().unwrap();
        assert!(error.to_string().contains(expected), "{expected} in {error}");
    }
    let error = broken(72, &u64::MAX.to_le_bytes()).open().err().unwrap();
    assert!(error.to_string().contains("1024 bytes of entries"), "{error}");
}

#[test]
fn every_cut_is_survived() {
    for disk in [mbr(), gpt()] {
        for len in (0..disk.bytes.len()).step_by(61) {
            let mut cut = disk.clone();
            cut.bytes.truncate(len);
            if let Ok(volume) = cut.open() {
                let _ = read_all(&volume, 10);
                volume.check(&mut |_| {}).unwrap();
                assert_eq!(volume.space().unwrap().iter().map(|it| it.len).sum::<u64>(), len as u64);
            }
        }
    }
}

#[test]
fn nothing_packs_partition_tables() {
    let error = Partitions.packer(&packfs_format::PackSettings::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let volume = mbr().open().unwrap();
    assert!(volume.inode(InodeId(99)).is_err() && volume.image.len() == 51_200);
}

#[test]
fn any_byte_of_a_table_may_be_anything() {
    let sectors = |disk: Disk, sectors: &[usize]| {
        let bytes: Vec<usize> = sectors.iter().flat_map(|sector| sector * 512..sector * 512 + 512).collect();
        (disk, bytes)
    };
    for (whole, places) in [sectors(mbr(), &[0, 20, 60]), sectors(gpt(), &[0, 1, 2, 61, 63])] {
        for at in places {
            for change in [0x01, 0x80, 0xff] {
                let byte = whole.bytes[at] ^ change;
                let disk = whole.clone().patch(at, &[byte]);
                let Ok(volume) = disk.open() else { continue };
                let _ = (read_all(&volume, 10), volume.facts(), volume.image_len());
                volume.check(&mut |_| {}).unwrap();
                let owned = volume.space().unwrap().iter().map(|owner| owner.len).sum::<u64>();
                assert_eq!(owned, disk.bytes.len() as u64, "at {at}");
            }
        }
    }
}
