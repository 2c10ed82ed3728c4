//! VHD.

use super::*;
use crate::Vhd;

fn sum(bytes: &mut [u8], at: usize) {
    bytes[at..at + 4].fill(0);
    let sum = bytes.iter().fold(0_u32, |sum, byte| sum + u32::from(*byte));
    bytes[at..at + 4].copy_from_slice(&(!sum).to_be_bytes());
}

fn footer(kind: u8, disk_len: u64, data_offset: u64) -> Vec<u8> {
    let mut footer = vec![0; 512];
    footer[..8].copy_from_slice(b"conectix");
    footer[16..24].copy_from_slice(&data_offset.to_be_bytes());
    footer[48..56].copy_from_slice(&disk_len.to_be_bytes());
    footer[63] = kind;
    sum(&mut footer, 64);
    footer
}

fn fixed() -> Vec<u8> {
    [vec![b'f'; 1500], vec![0; 36], footer(2, 1500, u64::MAX)].concat()
}

/// Blocks of 512 bytes: one that is stored, one that is not, and one that is cut.
fn dynamic() -> Vec<u8> {
    let footer = footer(3, 1100, 512);
    let mut header = vec![0; 1024];
    header[..8].copy_from_slice(b"cxsparse");
    header[16..24].copy_from_slice(&1536_u64.to_be_bytes());
    header[28..32].copy_from_slice(&3_u32.to_be_bytes());
    header[32..36].copy_from_slice(&512_u32.to_be_bytes());
    sum(&mut header, 36);
    let mut table = vec![0xff; 512];
    table[..4].copy_from_slice(&6_u32.to_be_bytes());
    table[8..12].copy_from_slice(&4_u32.to_be_bytes());
    let blocks = [vec![0xff; 512], vec![b'z'; 512], vec![0xff; 512], vec![b'a'; 512]].concat();
    [footer.clone(), header, table, blocks, footer].concat()
}

#[test]
fn fixed_and_dynamic_disks_are_read() {
    assert_sound(&Vhd, &fixed());
    assert!(disk(&Vhd, &fixed()) == [b'f'; 1500]);
    assert_sound(&Vhd, &dynamic());
    assert!(disk(&Vhd, &dynamic()) == [vec![b'a'; 512], vec![0; 512], vec![b'z'; 76]].concat());
    assert!(!Vhd.probe(&MemoryImage::new("test", vec![0; 2000])).unwrap());
}

#[test]
fn the_copy_serves_where_the_footer_is_damaged() {
    let made = dynamic();
    for bytes in [patched(&made, made.len() - 10, &[1]), made[..made.len() - 512].to_vec()] {
        assert!(disk(&Vhd, &bytes).starts_with(&[b'a'; 512]));
        let findings = findings(&Vhd, &bytes);
        assert!(
            findings.iter().any(|it| it.place == "footer" && it.severity == Severity::Error),
            "{findings:?}"
        );
    }
    let fixed = fixed();
    assert!(disk(&Vhd, &patched(&fixed, fixed.len() - 10, &[1])) == [b'f'; 1500]);
}

#[test]
fn footers_of_old_programs_and_damaged_copies_are_found() {
    let (fixed, made) = (fixed(), dynamic());
    assert_sound(&Vhd, &fixed[..fixed.len() - 1]);
    assert!(disk(&Vhd, &fixed[..fixed.len() - 1]) == [b'f'; 1500]);
    assert!(disk(&Vhd, &made[..made.len() - 1]) == disk(&Vhd, &made));
    assert_eq!(findings(&Vhd, &made), []);
    let copy = findings(&Vhd, &patched(&made, 100, &[1]));
    assert!(copy.iter().any(|it| it.place == "copy of the footer" && it.severity == Severity::Warning));
    // A block where the header is.
    assert!(findings(&Vhd, &patched(&made, 1536, &[0, 0, 0, 1])).iter().any(|it| it.place == "header"));
}

#[test]
fn faults_are_told_with_their_place() {
    let made = dynamic();
    refused(&Vhd, &vec![0; 2000], ErrorKind::Corrupt, "no footer with \"conectix\"");
    let end = made.len() - 512;
    let both = |at: usize, byte: u8| patched(&patched(&made, at, &[byte]), end + at, &[byte]);
    refused(&Vhd, &both(100, 1), ErrorKind::Corrupt, "footer: checksum 0x");
    let with = |footer: Vec<u8>| [&made[..end], &footer].concat();
    refused(&Vhd, &with(footer(7, 10, 512)), ErrorKind::Corrupt, "footer: type 7");
    refused(&Vhd, &with(footer(4, 10, 512)), ErrorKind::Unsupported, "the difference to another disk");
    refused(
        &Vhd,
        &with(footer(3, 1537, 512)),
        ErrorKind::Corrupt,
        "a disk of 1537 bytes, but there is room for 1536",
    );
    refused(
        &Vhd,
        &with(footer(3, 1, u64::MAX)),
        ErrorKind::Corrupt,
        "header at 0xffffffffffffffff: 1024 bytes",
    );
    refused(&Vhd, &with(footer(3, 1, 0)), ErrorKind::Corrupt, "header at 0x0: no \"cxsparse\"");
    rejects(
        &Vhd,
        &made,
        &[(512 + 50, &[1], "header at 0x200: checksum 0x"), (1536, &[0xf0], "block 0: is at 0x")],
    );
    let header = |at: usize, bytes: &[u8]| {
        let mut made = patched(&made, 512 + at, bytes);
        sum(&mut made[512..1536], 36);
        made
    };
    refused(&Vhd, &header(32, &[0, 0, 3]), ErrorKind::Corrupt, "block size");
    refused(&Vhd, &header(28, &[0xff; 4]), ErrorKind::Corrupt, "block table at 0x600: 4294967295 entries");
    survives(&Vhd, &made, (0..70).chain(512..560).chain(1536..1560).chain(end..made.len()));
    survives(&Vhd, &fixed(), 1500..2048);
}
