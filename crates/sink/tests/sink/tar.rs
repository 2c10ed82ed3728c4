//! Contents of tar archives, verified by our reader and by GNU tar.

use crate::support::Place;
use crate::support::*;
use packfs_core::*;
use packfs_format::*;
use packfs_sink::*;
use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;

/// A member of the archive.
#[derive(Debug)]
struct Member {
    letter: u8,
    name: Vec<u8>,
    target: Vec<u8>,
    header: Vec<u8>,
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    data: Vec<u8>,
}

impl Member {
    fn record(&self, keyword: &str) -> Option<&[u8]> {
        self.records.get(keyword.as_bytes()).map(|value| &value[..])
    }
}

fn until_nul(field: &[u8]) -> Vec<u8> {
    field.split(|&b| b == 0).next().unwrap().to_vec()
}

fn octal(field: &[u8]) -> u64 {
    u64::from_str_radix(std::str::from_utf8(&until_nul(field)).unwrap().trim(), 8).unwrap()
}

fn records(mut bytes: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|&b| b == b' ').unwrap();
        let len: usize = std::str::from_utf8(&bytes[..space]).unwrap().parse().unwrap();
        let record = &bytes[space + 1..len];
        let equals = record.iter().position(|&b| b == b'=').unwrap();
        assert_eq!(record.last(), Some(&b'\n'));
        found.insert(record[..equals].to_vec(), record[equals + 1..record.len() - 1].to_vec());
        bytes = &bytes[len..];
    }
    found
}

fn parse(archive: &[u8]) -> Vec<Member> {
    assert_eq!(archive.len() % 10_240, 0);
    let mut members = Vec::new();
    let mut pending = BTreeMap::new();
    let mut at = 0;
    loop {
        let block = &archive[at..at + 512];
        at += 512;
        if block.iter().all(|&b| b == 0) {
            assert!(archive[at..].iter().all(|&b| b == 0) && archive.len() - at >= 512);
            return members;
        }
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(i, &b)| u64::from(if (148..156).contains(&i) { b' ' } else { b }))
            .sum();
        assert_eq!(octal(&block[148..156]), sum);
        let recorded: Option<&Vec<u8>> = pending.get(&b"size"[..]);
        let len = recorded.map_or(octal(&block[124..136]) as usize, |size| {
            std::str::from_utf8(size).unwrap().parse().unwrap()
        });
        let data = archive[at..at + len].to_vec();
        at += len.next_multiple_of(512);
        if block[156] == b'x' {
            pending = records(&data);
            continue;
        }
        let own: BTreeMap<Vec<u8>, Vec<u8>> = std::mem::take(&mut pending);
        let mut name = until_nul(&block[345..500]);
        if !name.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(&until_nul(&block[..100]));
        let name = own.get(&b"path"[..]).or(own.get(&b"GNU.sparse.name"[..])).cloned().unwrap_or(name);
        let target = own.get(&b"linkpath"[..]).cloned().unwrap_or_else(|| until_nul(&block[157..257]));
        members.push(Member { letter: block[156], name, target, header: block.to_vec(), records: own, data });
    }
}

fn archive_with(fake: Fake, options: &TarOptions) -> (Vec<u8>, TarReport) {
    let opened = fake.open();
    let mut out = Vec::new();
    let report = write_tar(&opened.engine, &opened.loaded, &mut out, options, &Silent).unwrap();
    assert_eq!(report.archive_len, out.len() as u64);
    (out, report)
}

fn archive(fake: Fake) -> Vec<u8> {
    archive_with(fake, &TarOptions::default()).0
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect()
}

#[test]
fn members_come_in_the_order_of_the_tree_with_the_root_first() {
    let mut fake = Fake::new();
    let dir = fake.dir(ROOT, b"b");
    let file = fake.file(dir, b"f", &[Part::Data(&noise(EXTENT_LEN * 2 + 5))]);
    fake.text(ROOT, b"c", "text");
    fake.text(ROOT, b"empty", "");
    fake.symlink(ROOT, b"a", b"/else/where");
    fake.link(ROOT, b"z", file);
    let (bytes, report) = archive_with(fake, &TarOptions::default());
    let members = parse(&bytes);
    let names: Vec<_> =
        members.iter().map(|m| (m.letter as char, String::from_utf8_lossy(&m.name))).collect();
    let expected =
        [('5', "./"), ('2', "a"), ('5', "b/"), ('0', "b/f"), ('0', "c"), ('0', "empty"), ('1', "z")];
    assert_eq!(names, expected.map(|(letter, name)| (letter, name.into())));
    assert!(members[3].data == noise(EXTENT_LEN * 2 + 5) && members[4].data == b"text");
    assert_eq!((&members[1].target[..], &members[6].target[..]), (&b"/else/where"[..], &b"b/f"[..]));
    assert!(members.iter().all(|member| member.records.is_empty()), "plain things need no records");
    assert_eq!((report.entries, report.sockets), (7, 0));
}

#[test]
fn the_same_image_gives_the_same_bytes() {
    let image = || {
        let mut fake = Fake::new();
        for index in 0..50 {
            let file = fake.file(ROOT, format!("f{index}").as_bytes(), &[Part::Data(&noise(index * 997))]);
            fake.xattr(file, b"user.a", b"b");
        }
        fake
    };
    assert!(archive(image()) == archive(image()));
}

#[test]
fn everything_an_inode_holds_comes_through() {
    let mut fake = Fake::new();
    let owner = Owner { uid: 4_294_967_294, gid: 3_000_000 };
    let ids = [
        fake.dir(ROOT, b"dir"),
        fake.text(ROOT, b"file", "text"),
        fake.symlink(ROOT, b"link", b"x"),
        fake.add(ROOT, b"char", InodeKind::CharDevice(DeviceNumber { major: 0xfff, minor: 0xf_ffff })),
        fake.add(ROOT, b"block", InodeKind::BlockDevice(DeviceNumber { major: 8, minor: 1 })),
        fake.add(ROOT, b"fifo", InodeKind::Fifo),
        ROOT,
    ];
    for id in ids {
        *fake.meta(id) = Meta { mode: 0o7751, owner, mtime: Timestamp { seconds: -5, nanos: 1 } };
        fake.xattr(id, b"trusted.a=b", b"1\n2\0");
        fake.xattr(id, b"security.selinux", b"");
    }
    let members = parse(&archive(fake));
    assert_eq!(members.len(), 7);
    for member in &members {
        assert_eq!(octal(&member.header[100..108]), 0o7751);
        assert_eq!(member.record("uid"), Some(&b"4294967294"[..]));
        assert_eq!(member.record("gid"), Some(&b"3000000"[..]));
        assert_eq!(member.record("mtime"), Some(&b"-4.999999999"[..]));
        assert_eq!(member.record("SCHILY.xattr.trusted.a%3Db"), Some(&b"1\n2\0"[..]));
        assert_eq!(member.record("SCHILY.xattr.security.selinux"), Some(&b""[..]));
    }
    let device = members.iter().find(|m| m.name == b"char").unwrap();
    assert_eq!((octal(&device.header[329..337]), octal(&device.header[337..345])), (0xfff, 0xf_ffff));
}

#[test]
fn holes_are_left_out() {
    let mut fake = Fake::new();
    let data = noise(2 * EXTENT_LEN);
    fake.file(ROOT, b"ends", &[Part::Hole(1 << 33), Part::Data(&data), Part::Hole(1 << 33)]);
    fake.file(ROOT, b"whole", &[Part::Hole(100 << 30)]);
    fake.file(ROOT, b"middle", &[Part::Data(&data), Part::Hole(1 << 20), Part::Data(&data)]);
    fake.file(ROOT, b"tiny", &[Part::Data(b"x"), Part::Hole(9)]);
    let bytes = archive(fake);
    assert!(bytes.len() < 100_000);
    let members = parse(&bytes);
    let map = |name: &[u8]| {
        let member = members.iter().find(|member| member.name == name).unwrap();
        let text = until_nul(&member.data[..512]);
        let numbers: Vec<u64> =
            std::str::from_utf8(&text).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        let len: u64 =
            std::str::from_utf8(member.record("GNU.sparse.realsize").unwrap()).unwrap().parse().unwrap();
        (numbers, len, member.data[512..].to_vec())
    };
    let data_len = data.len() as u64;
    let end = (2 << 33) + data_len;
    assert_eq!(map(b"ends"), (vec![2, 1 << 33, data_len, end, 0], end, data.clone()));
    assert_eq!(map(b"whole"), (vec![1, 100 << 30, 0], 100 << 30, Vec::new()));
    let second = data_len + (1 << 20);
    assert_eq!(map(b"middle"), (vec![2, 0, data_len, second, data_len], second + data_len, data.repeat(2)));
    let tiny = members.iter().find(|member| member.name == b"tiny").unwrap();
    assert_eq!((&tiny.data[..], tiny.records.len()), (&b"x\0\0\0\0\0\0\0\0\0"[..], 0));
}

#[test]
fn long_and_odd_names_come_through() {
    let mut fake = Fake::new();
    let mut at = ROOT;
    for _ in 0..20 {
        at = fake.dir(at, &[b'd'; 255]);
    }
    let file = fake.text(at, b"\xff\n\x1b", "text");
    fake.symlink(ROOT, b"link", &[b'x'; 5000]);
    fake.link(ROOT, b"z", file);
    let members = parse(&archive(fake));
    let deep = [[b'd'; 255].as_slice(); 20].join(&b'/');
    let deep_file = [&deep[..], b"/\xff\n\x1b"].concat();
    assert!(members.iter().any(|member| member.name == deep_file && member.data == b"text"));
    assert!(members.iter().any(|member| member.name == [&deep[..], b"/"].concat()));
    let link = members.iter().find(|member| member.name == b"link").unwrap();
    assert_eq!(link.target, [b'x'; 5000]);
    let again = members.iter().find(|member| member.name == b"z").unwrap();
    assert_eq!((again.letter, &again.target), (b'1', &deep_file));
}

#[test]
fn sockets_are_counted_and_left_out() {
    let mut fake = Fake::new();
    let socket = fake.add(ROOT, b"s", InodeKind::Socket);
    fake.link(ROOT, b"t", socket);
    let (bytes, report) = archive_with(fake, &TarOptions::default());
    assert_eq!((parse(&bytes).len(), report.sockets), (1, 2));
    assert_eq!(report.socket_example.unwrap().as_bytes(), b"s");
}

#[test]
fn writes_only_requested_paths() {
    let mut fake = Fake::new();
    let dir = fake.dir(ROOT, b"d");
    let file = fake.text(dir, b"f", "text");
    fake.text(dir, b"g", "other");
    fake.link(ROOT, b"a", file);
    let paths = vec![Pattern::parse(b"d/f").unwrap()];
    let options = TarOptions { paths, without_root: true };
    let members = parse(&archive_with(fake, &options).0);
    let names: Vec<_> = members.iter().map(|member| &member.name[..]).collect();
    assert_eq!(names, [&b"d/"[..], b"d/f"]);
    assert_eq!((members[1].letter, &members[1].data[..]), (b'0', &b"text"[..]));
}

#[test]
fn damaged_contents_fail_and_are_named() {
    let mut fake = Fake::new();
    fake.file(ROOT, b"a", &[Part::Data(b"sound")]);
    let dir = fake.dir(ROOT, b"d");
    fake.file(dir, b"f", &[Part::Data(b"sound"), Part::Unreadable(10)]);
    fake.file(ROOT, b"z", &[Part::Data(b"sound")]);
    let opened = fake.open();
    let outcome = write_tar(&opened.engine, &opened.loaded, &mut Vec::new(), &TarOptions::default(), &Silent);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().starts_with("\"d/f\": "), "{error}");
}

#[test]
fn gnu_tar_reads_it_back() {
    if std::process::Command::new("tar").arg("--version").output().is_err() {
        return skip("needs GNU tar");
    }
    if !is_root() {
        return skip("needs root");
    }
    let place = Place::new();
    let mut fake = Fake::new();
    let data = noise(100_000);
    let long = fake.dir(ROOT, &[b'd'; 200]);
    let file = fake.file(long, &[b'f'; 200], &[Part::Data(&data)]);
    fake.link(ROOT, b"again", file);
    fake.file(ROOT, b"sparse", &[Part::Hole(1 << 30), Part::Data(&data), Part::Hole(1 << 30)]);
    fake.file(ROOT, b"hole", &[Part::Hole(1 << 30)]);
    fake.add(ROOT, b"null", InodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }));
    fake.xattr(file, b"user.name", b"a\0\nb");
    *fake.meta(file) = Meta {
        mode: 0o4750,
        owner: Owner { uid: 3_000_000_000, gid: 2_097_152 },
        mtime: Timestamp { seconds: 1_000_000_000, nanos: 250_000_000 },
    };
    let path = place.outside().join("x.tar");
    std::fs::write(&path, archive(fake)).unwrap();
    std::fs::create_dir(place.target()).unwrap();
    let output = std::process::Command::new("tar")
        .args(["--xattrs", "--xattrs-include=*", "--numeric-owner", "-xpf"])
        .arg(&path)
        .arg("-C")
        .arg(place.target())
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let at = place.target().join("d".repeat(200)).join("f".repeat(200));
    assert!(std::fs::read(&at).unwrap() == data);
    let meta = std::fs::metadata(&at).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid(), meta.gid()), (0o4750, 3_000_000_000, 2_097_152));
    assert_eq!((meta.mtime(), meta.mtime_nsec(), meta.nlink()), (1_000_000_000, 250_000_000, 2));
    let mut value = [0; 10];
    assert_eq!(rustix::fs::getxattr(&at, c"user.name", &mut value[..]).unwrap(), 4);
    let sparse = std::fs::metadata(place.target().join("sparse")).unwrap();
    assert!(sparse.len() == (2 << 30) + 100_000 && sparse.blocks() < 1000);
    assert_eq!(std::fs::metadata(place.target().join("hole")).unwrap().len(), 1 << 30);
    assert_eq!(std::fs::metadata(place.target().join("null")).unwrap().rdev(), rustix::fs::makedev(1, 3));
}

/// Returns a tree of more than 1 MiB, with holes, hard links and nodes without contents.
fn large() -> Fake {
    let mut fake = Fake::new();
    let dir = fake.dir(ROOT, b"d");
    fake.interleaved_files(dir, 40, 1 + (1 << 20) / 40 / EXTENT_LEN);
    let data = noise(3 * EXTENT_LEN + 5);
    let first = fake.file(ROOT, b"odd", &[Part::Data(&data)]);
    fake.file(ROOT, b"sparse", &[Part::Data(&data), Part::Hole(1 << 20), Part::Data(&data), Part::Hole(7)]);
    fake.file(ROOT, b"short", &[Part::Data(b"x"), Part::Hole(9), Part::Data(b"y")]);
    fake.file(ROOT, b"hole", &[Part::Hole(1 << 20)]);
    fake.file(ROOT, b"empty", &[]);
    fake.symlink(ROOT, b"link", b"d");
    fake.link(dir, b"again", first);
    fake
}

#[test]
fn a_file_that_is_written_by_all_threads_holds_the_same_bytes() {
    let (expected, report) = archive_with(large(), &TarOptions::default());
    let opened = large().open();
    for (before, appends) in [(&b""[..], false), (b"something", false), (b"something", true)] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(before).unwrap();
        let reopened = std::fs::File::options().append(true).open(file.path()).unwrap();
        let mut out = if appends { &reopened } else { file.as_file() };
        let written = write_tar_file(&opened.engine, &opened.loaded, out, &TarOptions::default(), &Silent);
        assert_eq!(written.unwrap(), report);
        // The next writer continues after the archive.
        out.write_all(b"behind").unwrap();
        let found = std::fs::read(file.path()).unwrap();
        assert!(found == [before, &expected, b"behind"].concat(), "{} and {appends}", before.len());
    }
}

#[test]
fn overwrites_existing_bytes_in_order() {
    let (expected, _) = archive_with(large(), &TarOptions::default());
    let opened = large().open();
    let mut file = tempfile::tempfile().unwrap();
    let old = vec![0xff; expected.len() + 10];
    file.write_all(&old).unwrap();
    file.rewind().unwrap();
    write_tar_file(&opened.engine, &opened.loaded, &file, &TarOptions::default(), &Silent).unwrap();
    let mut found = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut found).unwrap();
    assert!(found == [&expected[..], &[0xff; 10]].concat());
}

#[test]
fn nothing_is_left_of_an_archive_in_a_file_that_fails() {
    let mut fake = large();
    fake.file(ROOT, b"z", &[Part::Data(b"sound"), Part::Unreadable(10)]);
    let opened = fake.open();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before").unwrap();
    let outcome = write_tar_file(&opened.engine, &opened.loaded, &file, &TarOptions::default(), &Silent);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().starts_with("\"z\": "), "{error}");
    assert_eq!(file.metadata().unwrap().len(), 6);
}
