//! Archives and manifests that are valid line by line, but too large as a whole.

use packfs_core::{Error, ErrorKind, Limit, Limits, Silent};
use packfs_source::{Shape, TarInput, load_manifest_within, load_tar_within};
use std::io::{Cursor, Write};

fn block(name: &[u8], typeflag: u8, size: u64, target: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name);
    block[100..108].copy_from_slice(b"0000755\0");
    block[108..116].copy_from_slice(b"0000001\0");
    block[116..124].copy_from_slice(b"0000002\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[136..148].copy_from_slice(b"00000001750\0");
    block[156] = typeflag;
    block[157..157 + target.len()].copy_from_slice(target);
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// Returns a member whose path and attributes come from records before it.
fn with_records(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut data = Vec::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let len = (1..).map(|digits| rest + digits).find(|len| rest + len.to_string().len() == *len).unwrap();
        write!(data, "{len} {key}=").unwrap();
        data.extend_from_slice(value);
        data.push(b'\n');
    }
    [block(b"records", b'x', data.len() as u64, b""), padded(data), block(b"f", b'0', 0, b"")].concat()
}

fn load(mut archive: Vec<u8>, limits: Limits) -> Result<u32, Error> {
    archive.extend([0; 1024]);
    load_stream(archive, limits)
}

fn load_stream(bytes: Vec<u8>, limits: Limits) -> Result<u32, Error> {
    let reader = Box::new(Cursor::new(bytes));
    let input = TarInput::Stream { reader, name: "test.tar".into(), spool_dir: std::env::temp_dir() };
    load_tar_within(input, &Shape::default(), limits, &Silent).map(|loaded| loaded.tree.node_count())
}

#[track_caller]
fn refused(outcome: Result<u32, Error>, words: &str, option: &str) {
    let error = outcome.expect_err("more than is allowed");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert!(error.hints()[0].starts_with(option), "{:?}", error.hints());
}

/// Asserts that a limit refuses a value, and accepts one less.
#[track_caller]
fn refused_from(archive: &[u8], limit: Limit, least: u64, words: &str, option: &str) {
    refused(load(archive.to_vec(), Limits::default().allow(limit, least - 1)), words, option);
    load(archive.to_vec(), Limits::default().allow(limit, least)).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn each_limit_of_an_archive_names_itself_and_its_option() {
    let names: Vec<u8> = (0..10).flat_map(|n| block(format!("f{n}").as_bytes(), b'0', 0, b"")).collect();
    refused_from(&names, Limit::Entries, 10, "10 names", "--max-entries");
    refused_from(&names, Limit::NameLen, 2, "2 bytes of one name", "--max-name");
    let link = block(b"link", b'2', 0, b"a/target");
    refused_from(&link, Limit::TargetLen, 8, "8 bytes of one link target", "--max-target");
    let files: Vec<u8> =
        (0..3).flat_map(|n| [block(&[b'a' + n], b'0', 512, b""), vec![n; 512]].concat()).collect();
    refused_from(&files, Limit::Bytes, 1536, "1536 bytes of all files", "--max-bytes");
    let marked = with_records(&[("SCHILY.xattr.user.a", &[b'v'; 94])]);
    refused_from(&marked, Limit::InodeXattrs, 100, "100 bytes of extended attributes", "--max-inode-xattrs");
    let twice = [marked, with_records(&[("path", b"g"), ("SCHILY.xattr.user.b", &[b'v'; 94])])].concat();
    refused_from(&twice, Limit::Xattrs, 200, "200 bytes of extended attributes", "--max-xattrs");
    refused(load(names, Limits::default().allow(Limit::Memory, 3000)), "bytes of memory", "--max-memory");
}

#[test]
fn directories_that_one_path_implies_count() {
    let deep = "d/".repeat(10_000) + "f";
    let archive = with_records(&[("path", deep.as_bytes())]);
    assert_eq!(load(archive.clone(), Limits::default()).unwrap(), 10_002);
    refused_from(&archive, Limit::Depth, 10_000, "10000 directories within each other", "--max-depth");
    refused_from(&archive, Limit::Entries, 10_001, "10001 names", "--max-entries");
    let too_deep = with_records(&[("path", ("d/".repeat(100_000) + "f").as_bytes())]);
    refused(load(too_deep, Limits::default()), "100000 directories", "--max-depth");
}

#[test]
fn a_sparse_member_counts_with_its_holes() {
    let records: &[(&str, &[u8])] = &[
        ("GNU.sparse.major", b"0"),
        ("GNU.sparse.minor", b"1"),
        ("GNU.sparse.size", b"4611686018427387904"),
        ("GNU.sparse.numblocks", b"0"),
        ("GNU.sparse.map", b""),
    ];
    let lie = with_records(records);
    refused(load(lie, Limits::default()), "bytes of all files, holes included", "--max-bytes");
}

#[test]
fn decoded_bytes_count_against_bytes_read() {
    let mut archive = block(b"zeros", b'0', 8 << 20, b"");
    archive.resize(archive.len() + (8 << 20) + 1024, 0);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&archive).unwrap();
    let zstd = zstd::encode_all(&archive[..], 3).unwrap();
    for bomb in [gzip.finish().unwrap(), zstd] {
        assert_eq!(load_stream(bomb.clone(), Limits::default()).unwrap(), 2);
        let limits = Limits::default().allow(Limit::Ratio, 100);
        refused(load_stream(bomb, limits), "bytes of file data", "--max-ratio");
    }
}

#[test]
fn a_manifest_has_the_same_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    let load = |text: &str, limits| {
        std::fs::write(
            &path,
            format!("#packfs-manifest 1\ndefault uid=0 gid=0 mtime=0\ndefault dir mode=0755\n{text}"),
        )
        .unwrap();
        load_manifest_within(&path, &Shape::default(), limits, &Silent).map(|loaded| loaded.tree.node_count())
    };
    let limits = Limits::default;
    let text = "dir /\ndir /a\nsymlink /a/b/c target=12345\nfile /hole mode=0644 size=1099511627776\n";
    assert_eq!(load(text, limits()).unwrap_or_else(|e| panic!("{e}")), 5);
    refused(load(text, limits().allow(Limit::Entries, 4)), "5 names", "--max-entries");
    refused(load(text, limits().allow(Limit::Depth, 1)), "2 directories", "--max-depth");
    refused(load(text, limits().allow(Limit::TargetLen, 4)), "5 bytes of one link target", "--max-target");
    refused(load(text, limits().allow(Limit::Bytes, 1 << 30)), "bytes of all files", "--max-bytes");
}
