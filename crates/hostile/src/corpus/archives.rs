//! Archives of other kinds than tar: cpio in every dialect, joined ones, and zip.

use super::Base;
use std::fmt::Write;

/// Name, mode, number of names, inode, and data of a member.
type Member = (&'static str, u16, u16, u16, &'static [u8]);

const MEMBERS: [Member; 7] = [
    (".", 0o040_755, 2, 1, b""),
    ("first", 0o100_644, 2, 2, b""),
    ("second", 0o100_644, 2, 2, b"data of both names"),
    ("link", 0o120_777, 1, 3, b"second"),
    ("null", 0o020_666, 1, 4, b""),
    ("fifo", 0o010_600, 1, 5, b""),
    ("TRAILER!!!", 0, 1, 0, b""),
];

/// An archive of Info-ZIP: a directory, a deflated file, and a link, with its fields for Unix.
const ZIP: &str = "504b03040a00000000000d727c5d00000000000000000000000002001c00642f55540900033ae20a6b3ae20a6b\
    75780b000104000000000400000000504b03041400000008000d727c5d370d7979060000003800000003001c00\
    642f6655540900033ae20a6b3ae20a6b75780b0001040000000004000000004b4c240f0000504b03040a000000\
    00000d727c5de02bd376010000000100000003001c00642f6c55540900033ae20a6b3ae20a6b75780b00010400\
    000000040000000066504b01021e030a00000000000d727c5d0000000000000000000000000200180000000000\
    00001000ed4100000000642f55540500033ae20a6b75780b000104000000000400000000504b01021e03140000\
    0008000d727c5d370d79790600000038000000030018000000000001000000a4813c000000642f665554050003\
    3ae20a6b75780b000104000000000400000000504b01021e030a00000000000d727c5de02bd376010000000100\
    0000030018000000000000000000ffa17f000000642f6c55540500033ae20a6b75780b00010400000000040000\
    0000504b05060000000003000300da000000bd0000000000";

/// Valid archives.
pub(super) fn bases(zstd: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<Base> {
    let new = cpio(new_header, 4);
    let joined = [new.clone(), vec![0; 512], zstd(&new)].concat();
    let all = [
        ("cpio newc", new),
        ("cpio crc", cpio(crc_header, 4)),
        ("cpio odc", cpio(octal_header, 1)),
        ("cpio bin", cpio(old_header, 2)),
        ("cpio joined", joined),
        ("zip stored", zip()),
        ("zip deflated", from_hex(ZIP)),
    ];
    all.map(|(name, bytes)| Base { name: name.into(), bytes }).into()
}

fn from_hex(digits: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| {
        pair.iter().fold(0, |sum, &digit| sum << 4 | char::from(digit).to_digit(16).unwrap_or(0) as u8)
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}

fn cpio(header: fn(&Member) -> Vec<u8>, align: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for member in &MEMBERS {
        bytes.extend(header(member));
        bytes.extend([member.0.as_bytes(), b"\0"].concat());
        bytes.resize(bytes.len().next_multiple_of(align), 0);
        bytes.extend(member.4);
        bytes.resize(bytes.len().next_multiple_of(align), 0);
    }
    bytes
}

fn new_header(member: &Member) -> Vec<u8> {
    digits("070701", member, 0)
}

fn crc_header(member: &Member) -> Vec<u8> {
    digits("070702", member, member.4.iter().map(|byte| u32::from(*byte)).sum())
}

fn digits(magic: &str, &(name, mode, links, inode, data): &Member, sum: u32) -> Vec<u8> {
    let (len, name_len) = (data.len() as u32, name.len() as u32 + 1);
    let (mode, links, inode) = (mode.into(), links.into(), inode.into());
    let fields = [inode, mode, 0, 0, links, 1000, len, 8, 1, 1, 3, name_len, sum];
    let mut header = magic.to_owned();
    fields.iter().for_each(|field: &u32| write!(header, "{field:08x}").unwrap_or_default());
    header.into_bytes()
}

fn octal_header(&(name, mode, links, inode, data): &Member) -> Vec<u8> {
    let (len, name_len) = (data.len(), name.len() + 1);
    let start = format!("070707000001{inode:06o}{mode:06o}000000000000{links:06o}000403");
    format!("{start}00000001750{name_len:06o}{len:011o}").into_bytes()
}

fn old_header(&(name, mode, links, inode, data): &Member) -> Vec<u8> {
    let (len, name_len) = (data.len() as u16, name.len() as u16 + 1);
    let words = [0o070_707, 1, inode, mode, 0, 0, links, 0x103, 0, 1000, name_len, 0, len];
    words.into_iter().flat_map(u16::to_le_bytes).collect()
}

/// An archive whose entries are not compressed.
fn zip() -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for &(name, mode, _, _, data) in &MEMBERS[1..4] {
        let (at, crc) = (bytes.len() as u32, crc32fast::hash(data));
        let lens = [crc, data.len() as u32, data.len() as u32].map(u32::to_le_bytes).concat();
        let shared = [&[0; 8][..], &lens, &(name.len() as u16).to_le_bytes(), &[0, 0]].concat();
        bytes.extend([b"PK\x03\x04\x14\0", &shared[..], name.as_bytes(), data].concat());
        directory.extend([b"PK\x01\x02\x14\x03\x14\0", &shared[..], &[0; 8]].concat());
        directory.extend(mode.to_le_bytes());
        directory.extend([&at.to_le_bytes()[..], name.as_bytes()].concat());
    }
    let (start, len) = (bytes.len() as u32, directory.len() as u32);
    let end = [&b"PK\x05\x06\0\0\0\0\x03\0\x03\0"[..], &len.to_le_bytes(), &start.to_le_bytes(), &[0, 0]];
    [bytes, directory, end.concat()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs::source::{Shape, TarInput, load_archive};
    use packfs::{Limits, Silent};

    #[test]
    fn every_archive_is_sound() {
        for base in bases(&<[u8]>::to_vec) {
            let spool_dir = std::env::temp_dir();
            let reader = Box::new(std::io::Cursor::new(base.bytes));
            let input = TarInput::Stream { reader, name: base.name.clone(), spool_dir };
            let loaded = load_archive(input, &Shape::default(), Limits::default(), &Silent);
            let loaded = loaded.unwrap_or_else(|error| panic!("{}: {error}", base.name));
            assert!(loaded.tree.node_count() >= 3, "{}", base.name);
        }
    }
}
