//! Zip archives: what programs for Unix and Windows write, and hostile ones.

use super::{Warnings, content, load, load_watched, path, refused, stream};
use crate::tar_gaps::gzip;
use packfs_core::{ErrorKind, Limit, Limits, NodeKind, Silent, Timestamp};
use packfs_source::{Shape, load_archive};
use packfs_testkit::{Compare, is_root, odd_tree, peer, snapshot_dir, snapshot_tree, write_dir};
use std::io::{Cursor, Write};
use std::process::Command;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// One entry as it lies in an archive: every number can be wrong.
#[derive(Clone)]
struct Entry<'a> {
    name: &'a [u8],
    data: &'a [u8],
    system: u8,
    flags: u16,
    method: u16,
    attributes: u32,
    extra: Vec<u8>,
    crc: Option<u32>,
}

fn entry<'a>(name: &'a [u8], data: &'a [u8]) -> Entry<'a> {
    let attributes = 0o100_644 << 16;
    Entry { name, data, system: 3, flags: 0, method: 0, attributes, extra: Vec::new(), crc: None }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The fields that both headers of an entry share, from its flags to the lengths of name and extra.
fn shared(entry: &Entry<'_>) -> Vec<u8> {
    let (crc, len) = (entry.crc.unwrap_or_else(|| crc32(entry.data)), entry.data.len() as u32);
    let mut bytes = Vec::new();
    // 20 s, 10:09 on the 2nd of March 2001.
    for number in [entry.flags, entry.method, 10 << 11 | 9 << 5 | 10, 21 << 9 | 3 << 5 | 2] {
        bytes.extend(number.to_le_bytes());
    }
    for number in [crc, len, len] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend((entry.name.len() as u16).to_le_bytes());
    bytes.extend((entry.extra.len() as u16).to_le_bytes());
    bytes
}

/// An archive whose entries lie at `places`, or after each other.
fn archive(entries: &[Entry<'_>], places: Option<u32>) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let at = places.unwrap_or(bytes.len() as u32);
        bytes.extend(b"PK\x03\x04\x14\0");
        bytes.extend(shared(entry));
        bytes.extend([entry.name, &entry.extra, entry.data].concat());
        directory.extend(b"PK\x01\x02\x14");
        directory.extend([entry.system, 20, 0]);
        directory.extend(shared(entry));
        directory.extend([0; 6]);
        directory.extend(entry.attributes.to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend([entry.name, &entry.extra].concat());
    }
    let (start, len, count) = (bytes.len() as u32, directory.len() as u32, entries.len() as u16);
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend([len.to_le_bytes(), start.to_le_bytes()].concat());
    bytes.extend([0, 0]);
    bytes
}

fn alone(entry: Entry<'_>) -> Vec<u8> {
    archive(&[entry], None)
}

fn deflated(data: &[u8]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    writer.start_file("f", options).unwrap();
    writer.write_all(data).unwrap();
    writer.finish().unwrap().into_inner()
}

#[test]
fn reads_types_owners_and_times_of_unix() {
    let times = [&b"UT\x05\0\x01"[..], &(-5_i32).to_le_bytes()].concat();
    let owner = b"ux\x0b\0\x01\x04\xe8\x03\0\0\x04\xff\xff\xff\xfe".to_vec();
    let with = |name, mode: u32, data, extra| Entry { attributes: mode << 16, extra, ..entry(name, data) };
    let loaded = load(&archive(
        &[
            with(b"dir/", 0o041_755, b"", Vec::new()),
            with(b"dir/set-id", 0o104_755, b"content", [times, owner].concat()),
            with(b"link", 0o120_777, b"../dir", Vec::new()),
            with(b"fifo", 0o010_600, b"", Vec::new()),
            with(b"plain", 0, b"1", Vec::new()),
            with(b"implied/", 0, b"", Vec::new()),
            with(b"/absolute//./name", 0o100_600, b"", Vec::new()),
        ],
        None,
    ));
    let node = |at: &str| loaded.tree.node(loaded.tree.find(&path(at)).unwrap());
    let meta = node("dir/set-id").meta;
    assert_eq!((meta.mode, meta.owner.uid, meta.owner.gid), (0o4755, 1000, 0xfeff_ffff));
    assert_eq!((meta.mtime, node("dir").meta.mode), (Timestamp::from_seconds(-5), 0o1755));
    assert_eq!(node("link").kind, NodeKind::Symlink(b"../dir".as_slice().into()));
    assert_eq!((&node("fifo").kind, node("plain").meta.mode), (&NodeKind::Fifo, 0o644));
    assert!(node("implied").is_dir() && node("implied").meta.mode == 0o755);
    assert_eq!(node("plain").meta.mtime, Timestamp::from_seconds(983_527_760));
    assert_eq!(node("absolute/name").meta.mode, 0o600);
    assert_eq!(content(&loaded, "dir/set-id"), b"content");
}

#[test]
fn names_are_what_their_system_means() {
    let warnings = Warnings::default();
    let dos = |name, flags| Entry { system: 0, attributes: 0x20, flags, ..entry(name, b"") };
    let bytes = archive(
        &[
            dos(b"caf\x82", 0),
            dos("caf\u{e9}2".as_bytes(), 1 << 11),
            entry(b"raw\xff", b""),
            dos(b"dir\\file", 0),
            entry(b"back\\slash", b""),
        ],
        None,
    );
    let loaded = load_watched(&bytes, &warnings).unwrap();
    for name in ["caf\u{e9}".as_bytes(), "caf\u{e9}2".as_bytes(), b"raw\xff", b"dir/file", b"back\\slash"] {
        let path = packfs_core::ImagePath::parse(name).unwrap();
        assert!(loaded.tree.find(&path).is_some(), "{path:?}");
    }
    assert!(warnings.all()[0].contains("backslashes"), "{:?}", warnings.all());
}

#[test]
fn contents_are_decoded_and_compared() {
    let data: Vec<u8> = (0..300_000_u32).flat_map(|number| (number / 9).to_le_bytes()).collect();
    assert_eq!(content(&load(&deflated(&data)), "f"), data);
    // A compressed archive, and one of 64-bit lengths.
    assert_eq!(content(&load(&gzip(&deflated(&data))), "f"), data);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("f", SimpleFileOptions::default().large_file(true)).unwrap();
    writer.write_all(&data).unwrap();
    assert_eq!(content(&load(&writer.finish().unwrap().into_inner()), "f"), data);
    refused(&alone(Entry { crc: Some(5), ..entry(b"f", b"data") }), ErrorKind::Corrupt, "\"f\"");
}

#[test]
fn the_last_entry_of_a_name_counts_and_that_is_told() {
    let warnings = Warnings::default();
    let bytes = archive(&[entry(b"a", b"old"), entry(b"a", b"new")], None);
    assert_eq!(content(&load_watched(&bytes, &warnings).unwrap(), "a"), b"new");
    assert!(warnings.all()[0].contains("more than once"), "{:?}", warnings.all());
}

#[test]
fn bombs_are_refused() {
    let entries = [entry(b"a", b"shared"), entry(b"b", b"shared")];
    refused(&archive(&entries, Some(0)), ErrorKind::Corrupt, "share bytes");
    let bomb = deflated(&vec![0; 8 << 20]);
    for limits in [Limits::default().allow(Limit::Ratio, 100), Limits::default().allow(Limit::Bytes, 1 << 20)]
    {
        let error = load_archive(stream(&bomb), &Shape::default(), limits, &Silent).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }
}

#[test]
fn hostile_entries_are_refused_by_name() {
    for (entry, kind, fault) in [
        (entry(b"../up", b""), ErrorKind::Corrupt, "name \"..\""),
        (entry(b"nul\0name", b""), ErrorKind::Corrupt, "NUL"),
        (Entry { flags: 1, ..entry(b"secret", b"x") }, ErrorKind::Unsupported, "\"secret\": encrypted"),
        (Entry { method: 9, ..entry(b"f", b"x") }, ErrorKind::Unsupported, "compression method 9"),
        (Entry { attributes: 0o120_777 << 16, ..entry(b"l", b"") }, ErrorKind::Corrupt, "target of 0 bytes"),
        (Entry { attributes: 0o020_600 << 16, ..entry(b"d", b"") }, ErrorKind::Unsupported, "device"),
    ] {
        refused(&alone(entry), kind, fault);
    }
    let slashes = Entry { system: 0, attributes: 0x20, ..entry(b"..\\up", b"") };
    refused(&alone(slashes), ErrorKind::Corrupt, "name \"..\"");
}

#[test]
fn whatever_is_cut_off_is_damaged() {
    let whole = archive(&[entry(b"a", b"12345"), entry(b"b", b"6")], None);
    for end in 40..whole.len() {
        refused(&whole[..end], ErrorKind::Corrupt, "");
    }
}

#[test]
fn agrees_with_info_zip() {
    if peer("zip").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, is_root());
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    write_dir(&tree, &contents, &source);
    // What Info-ZIP leaves out.
    let script = "find . ! -type f ! -type d ! -type l -delete; zip -qry ../t.zip .";
    let shell = Command::new("sh").args(["-c", script]).current_dir(&source).output().unwrap();
    let loaded = load(&std::fs::read(dir.path().join("t.zip")).unwrap_or_else(|_| panic!("{shell:?}")));
    let compare =
        Compare { xattrs: false, nanos: false, hard_links: false, root: false, ..Compare::default() };
    let found = snapshot_tree(&loaded.tree, &*loaded.contents);
    found.assert_same(&snapshot_dir(&source), compare, "zip");
}
