//! VHD.

use super::*;
use crate::Vhd;
use packfs_format::Opening;

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
    refused(
        &Vhd,
        &with(footer(4, 10, 512)),
        ErrorKind::Unsupported,
        "in its backing file \"\", which is not",
    );
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

/// A footer with a unique id of these bytes.
fn footer_of(kind: u8, disk_len: u64, uuid: u8) -> Vec<u8> {
    let mut footer = footer(kind, disk_len, if kind == 2 { u64::MAX } else { 512 });
    footer[68..84].fill(uuid);
    sum(&mut footer, 64);
    footer
}

/// The difference of a disk to another: blocks of 1024 bytes, of which the second is stored, and
/// in it the sectors of `bitmap`.
fn difference(uuid: u8, parent: u8, bitmap: u8, fill: u8) -> Vec<u8> {
    let footer = footer_of(4, 3000, uuid);
    let mut header = vec![0; 1024];
    header[..8].copy_from_slice(b"cxsparse");
    header[16..24].copy_from_slice(&1536_u64.to_be_bytes());
    header[28..32].copy_from_slice(&3_u32.to_be_bytes());
    header[32..36].copy_from_slice(&1024_u32.to_be_bytes());
    header[40..56].fill(parent);
    let name: Vec<u8> = "a\n\u{e9}.vhd".encode_utf16().flat_map(u16::to_be_bytes).collect();
    header[64..64 + name.len()].copy_from_slice(&name);
    sum(&mut header, 36);
    let mut table = vec![0xff; 512];
    table[4..8].copy_from_slice(&4_u32.to_be_bytes());
    let mut bits = vec![0; 512];
    bits[0] = bitmap;
    [footer.clone(), header, table, bits, vec![fill; 1024], footer].concat()
}

fn open_over(bytes: &[u8], below: &[&[u8]]) -> Result<Box<dyn Volume>> {
    let image = |bytes: &[u8]| Arc::new(MemoryImage::new("test", bytes.to_vec())) as Arc<dyn Image>;
    let backing = below.iter().map(|bytes| image(bytes)).collect();
    Vhd.open_with(image(bytes), Opening { backing, ..Opening::default() })
}

/// The disk of the first of these files, whose parents the others are.
fn disk_over(bytes: &[u8], below: &[&[u8]]) -> Vec<u8> {
    let volume = open_over(bytes, below).unwrap_or_else(|error| panic!("{error}"));
    disk_of(&*volume, bytes)
}

#[test]
fn sectors_that_a_disk_does_not_have_are_those_of_its_parents() {
    // Shorter than the others.
    let base = [vec![b'f'; 2600], vec![0; 472], footer_of(2, 2600, 1)].concat();
    let middle = difference(2, 1, 0b1000_0000, b'm');
    let top = difference(3, 2, 0b0100_0000, b't');
    let parts = |parts: &[(u8, usize)]| -> Vec<u8> {
        parts.iter().flat_map(|(byte, len)| std::iter::repeat_n(*byte, *len)).collect()
    };
    let wanted = parts(&[(b'f', 1024), (b'm', 512), (b'f', 1064), (0, 400)]);
    assert!(disk_over(&middle, &[&base]) == wanted);
    let wanted = parts(&[(b'f', 1024), (b'm', 512), (b't', 512), (b'f', 552), (0, 400)]);
    assert!(disk_over(&top, &[&middle, &base]) == wanted);
    // A block without own sectors, and one of them all.
    assert!(disk_over(&difference(3, 1, 0, b't'), &[&base])[..2600] == base[..2600]);
    assert!(disk_over(&difference(3, 1, 0xff, b't'), &[&base])[1024..2048] == [b't'; 1024]);
    let volume = open_over(&top, &[&middle, &base]).unwrap();
    volume.check(&mut |finding| assert!(finding.severity == Severity::Note, "{finding:?}")).unwrap();
    let owners = volume.space().unwrap();
    assert!(owners.iter().any(|owner| owner.owner == "file data" && owner.len == 1536), "{owners:?}");
    assert_eq!(volume.image_len(), Some(top.len() as u64));
    let facts = volume.facts().unwrap();
    assert_eq!(facts.get("version"), Some(&packfs_format::FactValue::Text("differencing".into())));
    survives_as(
        &|bytes| open_over(bytes, &[&middle, &base]),
        &top,
        (0..90).chain(512..1700).chain(1536..2060),
    );
    for at in (60..90).chain(512..620).chain(1536..2060) {
        let read = |bytes: &[u8]| open_over(&top, &[bytes, &base]).and_then(|volume| read_all(&*volume, 10));
        let _ = (read(&patched(&middle, at, &[middle[at] ^ 0x81])), read(&middle[..at]));
    }
}

#[test]
fn parents_have_to_be_given_and_to_be_those_that_are_named() {
    let base = [vec![b'f'; 3072], footer_of(2, 3000, 1)].concat();
    let (middle, top) = (difference(2, 1, 0x80, b'm'), difference(3, 2, 0x40, b't'));
    let name = "\"a\\n\u{e9}.vhd\"";
    for below in [&[][..], &[&middle[..]]] {
        let error = open_over(&top, below).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(&format!("backing file {name}, which is not given")), "{error}");
        assert!(error.hints()[0].contains("--allow-backing FILE reads it"), "{:?}", error.hints());
    }
    // Itself, again and again.
    let own = difference(2, 2, 0, b'o');
    assert_refused(open_over(&own, &[&own[..]; 9]), ErrorKind::Unsupported, "which is not given");
    for (below, expected) in [
        (&[&base[..]][..], "its disk is 01010101010101010101010101010101, but 0202"),
        (&[&middle, &base, &base], "3 backing files are given, but the image has 2"),
    ] {
        assert_refused(open_over(&top, below), ErrorKind::Usage, expected);
    }
    assert_refused(open_over(&fixed(), &[&base]), ErrorKind::Usage, "given, but the image has 0");
    assert_refused(open_over(&top, &[&[0; 600]]), ErrorKind::Corrupt, "backing file test: corrupt vhd image");
    let damaged = patched(&base, 3072 + 200, &[1]);
    let volume = open_over(&middle, &[&damaged]).unwrap();
    assert!(volume.warnings()[0].starts_with("backing file test: footer: its checksum is wrong"));
}
