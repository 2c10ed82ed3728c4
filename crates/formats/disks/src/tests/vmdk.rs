//! VMDK.

use super::*;
use crate::Vmdk;
use packfs_codec::{Algorithm, CodecSpec, DictLens, encoder};

const GRAIN: usize = 4096;
const TEXT: &str =
    "# Disk DescriptorFile\nparentCID=ffffffff\ncreateType=\"monolithicSparse\"\nRW 20 SPARSE \"a\"\n";

fn header(flags: u32, gd: u64, compression: u8) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..4].copy_from_slice(b"KDMV");
    header[4] = 1;
    header[8..12].copy_from_slice(&flags.to_le_bytes());
    // 20 sectors in grains of 8, and a descriptor of one sector.
    (header[12], header[20], header[28], header[36], header[44]) = (20, 8, 1, 1, 4);
    header[56..64].copy_from_slice(&gd.to_le_bytes());
    header[73..77].copy_from_slice(b"\n \r\n");
    header[77] = compression;
    header
}

fn sectors(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    sectors(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
}

/// Grains: one that is stored, zeros, and one that is cut.
fn made() -> Vec<u8> {
    let head = [header(3 | 4, 2, 0), sectors(TEXT.as_bytes()), words(&[3]), words(&[12, 1, 4, 0])].concat();
    [head, vec![b'z'; GRAIN], vec![b'a'; GRAIN]].concat()
}

fn compressed(grain: u64, plain: &[u8]) -> Vec<u8> {
    let spec: CodecSpec = "gzip".parse().unwrap();
    let settings = spec.resolve(&[Algorithm::Zlib], DictLens::of_block(4096)).unwrap().unwrap();
    let mut out = vec![0; 8192];
    let len = encoder(&settings).unwrap().compress(plain, &mut out).unwrap().unwrap();
    sectors(&[&(grain * 8).to_le_bytes()[..], &(len as u32).to_le_bytes(), &out[..len]].concat())
}

fn stream() -> Vec<u8> {
    let text = TEXT.replace("monolithicSparse", "streamOptimized");
    let head = [header(0x3_0001, u64::MAX, 1), sectors(text.as_bytes())].concat();
    let grains = [compressed(0, &[b'a'; GRAIN]), compressed(2, &[b'z'; GRAIN])].concat();
    let tables = [words(&[5]), words(&[2, 0, 3, 0])].concat();
    [head, grains, tables, vec![0; 512], header(0x3_0001, 4, 1), vec![0; 512]].concat()
}

fn wanted() -> Vec<u8> {
    [vec![b'a'; GRAIN], vec![0; GRAIN], vec![b'z'; GRAIN / 2]].concat()
}

#[test]
fn grains_are_found_through_tables_and_footers() {
    for image in [made(), stream()] {
        assert_sound(&Vmdk, &image);
        assert!(disk(&Vmdk, &image) == wanted());
    }
}

#[test]
fn faults_are_told_with_their_place() {
    let made = made();
    rejects(
        &Vmdk,
        &made,
        &[
            (0, &[0], "header at 0x0: no \"KDMV\""),
            (20, &[7], "grains of 7 sectors"),
            (44, &[0], "0 entries of a table"),
            (45, &[0xff; 3], "entries of a table, 1 to 512 allowed"),
            (12, &[0], "a disk of 0 sectors"),
            (12, &[0xff; 8], "a disk of 18446744073709551615 sectors"),
            (28, &[0, 1], "descriptor at 0x20000: 512 bytes"),
            (56, &[0, 1], "grain directory at 0x20000: 1 entries"),
            (1024, &[0, 1], "grain table 0: is at 0x20000"),
            (1536, &[0, 1], "grain 0: 4096 bytes at 0x20000"),
        ],
    );
    let many = [header(3, 2, 0), sectors(TEXT.as_bytes()), words(&[3; 128]), words(&[0; 4])].concat();
    let many = patched(&patched(&many, 12, &4096_u32.to_le_bytes()), 44, &[4]);
    refused(
        &Vmdk,
        &patched(&many, 45, &[1, 0, 0]),
        ErrorKind::Corrupt,
        "grain directory: 2 tables, room for 1",
    );
    refused(&Vmdk, &made[..70], ErrorKind::Corrupt, "70 bytes long, too short");
    refused(&Vmdk, &patched(&made, 4, &[4]), ErrorKind::Unsupported, "version 4");
    let stream = stream();
    refused(
        &Vmdk,
        &patched(&stream, stream.len() - 1024 + 77, &[9]),
        ErrorKind::Unsupported,
        "compression 9",
    );
    let end = stream.len() - 1024;
    refused(&Vmdk, &patched(&stream, end + 77, &[0]), ErrorKind::Corrupt, "flags 0x30001 with compression 0");
    refused(&Vmdk, &patched(&stream, end + 10, &[1]), ErrorKind::Unsupported, "grains without heads");
    refused(&Vmdk, &patched(&stream, 1024, &[1]), ErrorKind::Corrupt, "its head says");
    refused(&Vmdk, &stream[..stream.len() - 512], ErrorKind::Corrupt, "no \"KDMV\"");
    assert!(findings(&Vmdk, &patched(&made, 73, b"\r\n")).iter().any(|it| it.fault.contains("as text")));
    assert!(
        findings(&Vmdk, &patched(&made, 72, &[1])).iter().any(|it| it.fault.contains("not closed cleanly"))
    );
    survives(&Vmdk, &made, (0..80).chain(512..620).chain(1024..1028).chain(1536..1552));
    survives(&Vmdk, &stream, (0..80).chain(1024..1040).chain(2048..stream.len()));
}

#[test]
fn grains_beyond_the_file_are_lost_alone() {
    let made = made();
    let cut = &made[..made.len() - 1];
    let volume = open(&Vmdk, cut).unwrap();
    let visit = &mut |_: packfs_format::Extent| ControlFlow::Continue(());
    volume.extents(DISK, GRAIN as u64..u64::MAX, visit).unwrap();
    assert_refused(volume.extents(DISK, 0..10, visit), ErrorKind::Corrupt, "grain 0: 4096 bytes at 0x1800");
}

#[test]
fn sound_images_have_no_unused_bytes_and_other_tables_are_findings() {
    let made = made();
    assert_eq!((findings(&Vmdk, &made), findings(&Vmdk, &stream())), (vec![], vec![]));
    let copies = [&made[..], &words(&[made.len() as u32 / 512 + 1]), &words(&[12, 1, 4, 0])].concat();
    let copies = patched(&copies, 48, &(made.len() as u64 / 512).to_le_bytes());
    assert_eq!(findings(&Vmdk, &copies), []);
    let other = patched(&copies, copies.len() - 512, &[4]);
    assert!(findings(&Vmdk, &other).iter().any(|it| it.fault == "table 0 is not that of the first"));
}
