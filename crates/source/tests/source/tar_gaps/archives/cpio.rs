//! cpio archives: every dialect, links, joined archives as Linux reads them, and damage.

use super::{Warnings, content, load, load_watched, path, refused};
use crate::tar_gaps::gzip;
use packfs_core::{ErrorKind, NodeKind, Timestamp};
use packfs_testkit::{Compare, is_root, odd_tree, peer, snapshot_dir, snapshot_tree, write_dir};
use std::io::Write;
use std::process::Command;

#[derive(Clone)]
struct Member<'a> {
    name: &'a [u8],
    mode: u32,
    links: u32,
    inode: u32,
    data: &'a [u8],
    device: (u32, u32),
    sum: Option<u32>,
}

fn member<'a>(name: &'a str, mode: u32, data: &'a [u8]) -> Member<'a> {
    Member { name: name.as_bytes(), mode, links: 1, inode: 0, data, device: (0, 0), sum: None }
}

fn link<'a>(name: &'a str, inode: u32, data: &'a [u8]) -> Member<'a> {
    Member { links: 2, inode, ..member(name, 0o100_644, data) }
}

fn padded(mut bytes: Vec<u8>, align: usize) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(align), 0);
    bytes
}

fn newc(member: &Member<'_>) -> Vec<u8> {
    let (magic, sum) = member.sum.map_or(("070701", 0), |sum| ("070702", sum));
    let fields = [
        member.inode,
        member.mode,
        1,
        2,
        member.links,
        1000,
        member.data.len() as u32,
        3,
        4,
        member.device.0,
        member.device.1,
        member.name.len() as u32 + 1,
        sum,
    ];
    let digits: String = fields.iter().map(|field| format!("{field:08X}")).collect();
    let head = [magic.as_bytes(), digits.as_bytes(), member.name, b"\0"].concat();
    [padded(head, 4), padded(member.data.to_vec(), 4)].concat()
}

fn odc(member: &Member<'_>) -> Vec<u8> {
    let device = member.device.0 << 8 | member.device.1;
    let Member { inode, mode, links, .. } = *member;
    let (name_len, len) = (member.name.len() + 1, member.data.len());
    let digits = format!(
        "070707000003{inode:06o}{mode:06o}000001000002{links:06o}{device:06o}00000001750{name_len:06o}{len:011o}"
    );
    [digits.as_bytes(), member.name, b"\0", member.data].concat()
}

fn old(member: &Member<'_>, bytes_of: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let device = (member.device.0 << 8 | member.device.1) as u16;
    let (inode, mode, links) = (member.inode as u16, member.mode as u16, member.links as u16);
    let (name_len, len) = (member.name.len() as u16 + 1, member.data.len() as u32);
    let time = [0, 1000];
    let len = [(len >> 16) as u16, len as u16];
    let words = [0o070_707, 3, inode, mode, 1, 2, links, device, time[0], time[1], name_len, len[0], len[1]];
    let head: Vec<u8> = words.into_iter().flat_map(bytes_of).collect();
    [padded([&head, member.name, b"\0"].concat(), 2), padded(member.data.to_vec(), 2)].concat()
}

fn old_little(member: &Member<'_>) -> Vec<u8> {
    old(member, u16::to_le_bytes)
}

fn old_big(member: &Member<'_>) -> Vec<u8> {
    old(member, u16::to_be_bytes)
}

type Writer = fn(&Member<'_>) -> Vec<u8>;

const WRITERS: [Writer; 4] = [newc, odc, old_little, old_big];

fn archive(write: Writer, members: &[Member<'_>]) -> Vec<u8> {
    members.iter().chain([&member("TRAILER!!!", 0, b"")]).flat_map(write).collect()
}

#[test]
fn reads_members_of_every_type_in_every_dialect() {
    for write in WRITERS {
        let members = [
            member(".", 0o040_700, b""),
            member("./dir/file", 0o104_755, b"content"),
            member("dir", 0o041_777, b""),
            member("/absolute", 0o100_600, b""),
            member("symlink", 0o120_777, b"../x"),
            member("symlink-nul", 0o120_777, b"y\0"),
            Member { device: (8, 17), ..member("char", 0o020_600, b"") },
            Member { device: (7, 1), ..member("block", 0o060_600, b"") },
            member("fifo", 0o010_600, b""),
            member("socket", 0o140_600, b""),
            Member { name: b"odd \xff\n\\..", ..member("", 0o100_644, b"x") },
        ];
        let loaded = load(&archive(write, &members));
        assert_eq!(content(&loaded, "dir/file"), b"content");
        let node = |at: &str| loaded.tree.node(loaded.tree.find(&path(at)).unwrap());
        let meta = node("dir/file").meta;
        assert_eq!((meta.mode, meta.owner.uid, meta.owner.gid), (0o4755, 1, 2));
        assert_eq!(meta.mtime, Timestamp::from_seconds(1000));
        assert_eq!(
            (node("").meta.mode, node("dir").meta.mode, node("absolute").meta.mode),
            (0o700, 0o1777, 0o600)
        );
        assert_eq!(node("symlink").kind, NodeKind::Symlink(b"../x".as_slice().into()));
        assert_eq!(node("symlink-nul").kind, NodeKind::Symlink(b"y".as_slice().into()));
        assert!(matches!(&node("char").kind, NodeKind::CharDevice(n) if (n.major, n.minor) == (8, 17)));
        assert!(matches!(&node("block").kind, NodeKind::BlockDevice(n) if (n.major, n.minor) == (7, 1)));
        assert_eq!((&node("fifo").kind, &node("socket").kind), (&NodeKind::Fifo, &NodeKind::Socket));
        let odd = packfs_core::ImagePath::parse(b"odd \xff\n\\..").unwrap();
        assert!(loaded.tree.find(&odd).is_some());
    }
}

#[test]
fn names_of_one_file_are_links_wherever_the_data_comes() {
    for (write, datas) in [
        (newc as Writer, [&b""[..], b"", b"data"]),
        (newc, [b"", b"data", b""]),
        (newc, [b"data", b"", b""]),
        (odc, [b"data", b"data", b"data"]),
        (old_little, [b"data", b"data", b"data"]),
    ] {
        let members = [
            link("a", 9, datas[0]),
            member("between", 0o100_644, b"other"),
            link("b", 9, datas[1]),
            link("alone", 8, b""),
            link("c", 9, datas[2]),
        ];
        let loaded = load(&archive(write, &members));
        let find = |at: &str| loaded.tree.find(&path(at)).unwrap();
        assert!(find("a") == find("b") && find("b") == find("c") && find("alone") != find("a"));
        assert_eq!(
            (content(&loaded, "a"), content(&loaded, "between")),
            (b"data".to_vec(), b"other".to_vec())
        );
        assert_eq!(loaded.tree.node(find("a")).links, 3);
        assert_eq!(content(&loaded, "alone"), b"");
    }
    // Numbers that were cut off to 16 bits mean nothing, and neither do those of another archive.
    let loaded = load(&archive(odc, &[link("a", 9, b"one"), link("b", 9, b"three")]));
    assert_eq!((content(&loaded, "a"), content(&loaded, "b")), (b"one".to_vec(), b"three".to_vec()));
    let joined = [archive(newc, &[link("a", 9, b"same")]), archive(newc, &[link("b", 9, b"")])].concat();
    assert_eq!(content(&load(&joined), "b"), b"");
}

#[test]
fn joined_archives_are_read_as_linux_reads_an_initramfs() {
    let part = |name: &str, data: &[u8]| archive(newc, &[member(name, 0o100_644, data)]);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let xz = |bytes: &[u8]| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let early = padded(part("early", b"microcode"), 512);
    let main = part("main", b"system");
    for joined in [
        [early.clone(), main.clone()].concat(),
        [early.clone(), gzip(&main)].concat(),
        [early.clone(), zstd(&main)].concat(),
        [gzip(&early), xz(&main)].concat(),
        [xz(&early), vec![0; 12], main.clone()].concat(),
        [gzip(&early), gzip(&main)].concat(),
        [vec![0; 4], early.clone(), zstd(&part("x", b"")), vec![0; 8], gzip(&main), vec![0; 100]].concat(),
        gzip(&[early.clone(), zstd(&main)].concat()),
    ] {
        // Zeros before the first archive tell nothing of what follows.
        let joined = joined.strip_prefix(&[0; 4]).unwrap_or(&joined);
        let loaded = load(joined);
        assert_eq!(content(&loaded, "early"), b"microcode");
        assert_eq!(content(&loaded, "main"), b"system");
    }
    let warnings = Warnings::default();
    let loaded = load_watched(&[&main[..], b"rest"].concat(), &warnings).unwrap();
    assert_eq!(content(&loaded, "main"), b"system");
    assert!(warnings.all()[0].contains("ignored data"), "{:?}", warnings.all());
}

#[test]
fn the_last_member_of_a_name_counts() {
    let members = [member("a", 0o100_644, b"old"), member("a", 0o100_600, b"new")];
    assert_eq!(content(&load(&archive(newc, &members)), "a"), b"new");
}

#[test]
fn sums_of_the_crc_dialect_are_compared() {
    let with_sum = |sum| Member { sum: Some(sum), ..member("f", 0o100_644, b"abc") };
    assert_eq!(content(&load(&archive(newc, &[with_sum(97 + 98 + 99)])), "f"), b"abc");
    refused(&archive(newc, &[with_sum(5)]), ErrorKind::Corrupt, "adds up to 0x126, its header says 0x5");
}

#[test]
fn whatever_is_cut_off_is_damaged() {
    for write in WRITERS {
        let whole = archive(write, &[member("dir/name", 0o100_644, b"12345"), member("b", 0o040_755, b"")]);
        for end in 80..whole.len() {
            refused(&whole[..end], ErrorKind::Corrupt, "");
        }
        let packed = gzip(&whole);
        refused(&packed[..packed.len() - 9], ErrorKind::Corrupt, "");
    }
}

#[test]
fn hostile_members_are_refused_by_name() {
    for (member, fault) in [
        (member("../escape", 0o100_644, b""), "name \"..\""),
        (member("f", 0o170_644, b""), "unknown type"),
        (member("l", 0o120_777, b""), "target of 0 bytes"),
        (Member { device: (4096, 0), ..member("d", 0o020_600, b"") }, "device number 4096, 0"),
    ] {
        refused(&archive(newc, &[member]), ErrorKind::Corrupt, fault);
    }
    let whole = archive(newc, &[member("name", 0o100_644, b"data")]);
    for (at, digits, fault) in [
        (94, &b"FFFFFFFF"[..], "name of 4294967295 bytes"),
        (94, b"00000000", "not a"),
        (54, b"FFFFFFFF", "cut off"),
        (54, b"+0000004", "not a"),
        (114, b"x", "does not end with NUL"),
    ] {
        let mut bytes = [newc(&member("first", 0o100_644, b"")), whole.clone()].concat();
        let at = at + newc(&member("first", 0o100_644, b"")).len();
        bytes[at..at + digits.len()].copy_from_slice(digits);
        let error = load_watched(&bytes, &packfs_core::Silent).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{fault}: {error}");
    }
}

#[test]
fn agrees_with_gnu_cpio_and_bsdtar_in_every_dialect() {
    let dir = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, is_root());
    write_dir(&tree, &contents, dir.path());
    // Old dialects have 8 bits for each number of a device.
    for number in ["259-1048575", "4095-1", "8-256"] {
        for kind in ["block", "char"] {
            let _ = std::fs::remove_file(dir.path().join(format!("dev/{kind}-{number}")));
        }
    }
    let compare = Compare { xattrs: false, nanos: false, ..Compare::default() };
    for (tool, options) in [
        ("cpio", "cpio -0 -o -H newc"),
        ("cpio", "cpio -0 -o -H crc"),
        ("cpio", "cpio -0 -o -H odc"),
        ("cpio", "cpio -0 -o -H bin"),
        ("bsdtar", "bsdtar -c --null -T - -n --format newc"),
        ("bsdtar", "bsdtar -c --null -T - -n --format odc"),
    ] {
        if peer(tool).is_none() {
            continue;
        }
        let script = format!("find . -print0 | {options}");
        let made = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
        let loaded = load(&made.stdout);
        let found = snapshot_tree(&loaded.tree, &*loaded.contents);
        found.assert_same(&snapshot_dir(dir.path()), compare, options);
    }
}
