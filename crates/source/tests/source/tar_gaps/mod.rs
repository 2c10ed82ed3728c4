//! Rare tar archives that must be read correctly: cases that other tools ignore, and endless input.

mod archives;

use packfs_core::{ErrorKind, NodeKind, Progress, Result, Silent};
use packfs_source::{Loaded, Shape, TarInput, TarReading, load_tar};
use packfs_testkit::{Random, path};
use std::io::{Cursor, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

fn from_reader(reader: impl Read + Send + 'static) -> Result<Loaded> {
    watched(reader, &Silent)
}

fn watched(reader: impl Read + Send + 'static, progress: &dyn Progress) -> Result<Loaded> {
    let spool_dir = std::env::temp_dir();
    let input = TarInput::Stream { reader: Box::new(reader), name: "test.tar".into(), spool_dir };
    load_tar(input, &Shape::default(), progress)
}

fn from_bytes(bytes: Vec<u8>) -> Result<Loaded> {
    from_reader(Cursor::new(bytes))
}

fn with_checksum(mut block: Vec<u8>) -> Vec<u8> {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn header(name: &str, typeflag: u8, size: usize, target: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(b"0000644\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[156] = typeflag;
    block[157..157 + target.len()].copy_from_slice(target.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    with_checksum(block)
}

fn member(name: &str, typeflag: u8, target: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = [&header(name, typeflag, data.len(), target), data].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn record(text: &[u8]) -> Vec<u8> {
    let len = (text.len() + 3..).find(|len| len.to_string().len() + text.len() + 2 == *len).unwrap();
    [format!("{len} ").as_bytes(), text, b"\n"].concat()
}

fn pax(records: &[&[u8]]) -> Vec<u8> {
    member("pax", b'x', "", &records.iter().map(|text| record(text)).collect::<Vec<_>>().concat())
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1024]].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn content(loaded: &Loaded, at: &str) -> Vec<u8> {
    let NodeKind::File { len, content } = loaded.tree.node(loaded.tree.find(&path(at)).unwrap()).kind else {
        panic!("{at} is a file")
    };
    let mut bytes = vec![1; len as usize];
    loaded.contents.open(content).unwrap().read_exact_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_hard_link_that_repeats_its_contents_stays_a_hard_link() {
    let loaded = from_bytes(archive(&[
        member("a", b'0', "", b"contents"),
        member("b", b'1', "a", b"contents"),
        member("c", b'0', "", b"last"),
    ]))
    .unwrap();
    assert_eq!(loaded.tree.find(&path("a")), loaded.tree.find(&path("b")));
    assert_eq!(content(&loaded, "c"), b"last");
}

#[test]
fn a_hard_link_keeps_the_contents_it_was_made_to_when_the_name_is_used_again() {
    let loaded = from_bytes(archive(&[
        member("a", b'0', "", b"first"),
        member("b", b'1', "a", b""),
        member("a", b'0', "", b"second"),
    ]))
    .unwrap();
    assert_eq!(content(&loaded, "a"), b"second");
    assert_eq!(content(&loaded, "b"), b"first");
}

#[test]
fn a_file_archived_twice_may_be_a_hard_link_to_itself() {
    let loaded = from_bytes(archive(&[member("a", b'0', "", b"x"), member("a", b'1', "a", b"")])).unwrap();
    assert_eq!(content(&loaded, "a"), b"x");
    assert!(from_bytes(archive(&[member("a", b'1', "a", b"")])).is_err(), "but not before it was there");
}

#[test]
fn a_file_does_not_replace_a_directory_with_entries() {
    let error = from_bytes(archive(&[member("d/x", b'0', "", b"1"), member("d", b'0', "", b"2")]));
    assert!(error.err().unwrap().to_string().contains("directory with entries"));
}

#[test]
fn holes_in_dialects_of_others_are_refused_not_packed_as_they_stand() {
    for records in
        [&[&b"SUN.holesdata= 0 10 20 30"[..]][..], &[b"SCHILY.realsize=100"], &[b"GNU.volume.size=9"]]
    {
        let error = from_bytes(archive(&[pax(records), member("a", b'0', "", b"x")])).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}

#[test]
fn a_global_header_gives_no_member_another_size_or_name() {
    for text in [&b"size=0"[..], b"path=b", b"linkpath=b"] {
        let global = member("g", b'g', "", &record(text));
        let error = from_bytes(archive(&[global, member("a", b'0', "", b"x")])).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    let git = member("g", b'g', "", &record(b"comment=0123456789abcdef"));
    assert!(from_bytes(archive(&[git, member("a", b'0', "", b"x")])).is_ok());
}

#[test]
fn large_device_numbers_come_from_their_records() {
    let records: [&[u8]; 2] = [b"SCHILY.devmajor=259", b"SCHILY.devminor=1048575"];
    let loaded = from_bytes(archive(&[pax(&records), member("disk", b'4', "", b"")])).unwrap();
    let kind = &loaded.tree.node(loaded.tree.find(&path("disk")).unwrap()).kind;
    assert!(matches!(kind, NodeKind::BlockDevice(n) if (n.major, n.minor) == (259, 1_048_575)), "{kind:?}");
    let records: [&[u8]; 1] = [b"SCHILY.devmajor=4096"];
    assert!(from_bytes(archive(&[pax(&records), member("disk", b'4', "", b"")])).is_err());
}

#[test]
fn a_selinux_label_is_kept_even_without_attributes() {
    let loaded = from_bytes(archive(&[
        member("g", b'g', "", &record(b"RHT.security.selinux=for:all")),
        pax(&[b"RHT.security.selinux=u:r:t"]),
        member("own", b'0', "", b""),
        member("global", b'0', "", b""),
        pax(&[b"RHT.security.selinux="]),
        member("none", b'0', "", b""),
        pax(&[b"SCHILY.xattr.security.selinux=attribute\0"]),
        member("attribute", b'0', "", b""),
    ]))
    .unwrap();
    let label = |at: &str| {
        let node = loaded.tree.node(loaded.tree.find(&path(at)).unwrap());
        loaded.tree.xattrs(node.xattrs).get(&b"security.selinux"[..]).cloned()
    };
    assert_eq!(label("own").unwrap(), b"u:r:t\0");
    assert_eq!(label("global").unwrap(), b"for:all\0");
    assert_eq!(label("none"), None);
    assert_eq!(label("attribute").unwrap(), b"attribute\0");
}

#[test]
fn extended_headers_of_one_member_are_limited_together() {
    let large = pax(&[&[b"comment=".as_slice(), &vec![b'x'; 40 << 20]].concat()]);
    let error = from_bytes(archive(&[large.clone(), large, member("a", b'0', "", b"")])).err().unwrap();
    assert!(error.to_string().contains("67108864 allowed"), "{error}");
}

#[test]
fn damage_to_compressed_data_is_damage_not_an_error_of_the_system() {
    let packed = gzip(&archive(&[member("a", b'0', "", &Random::new(3).noise(100_000))]));
    for cut in (20..packed.len()).step_by(4001) {
        let error = from_bytes(packed[..cut].to_vec()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "cut to {cut}: {error}");
    }
    let mut damaged = packed;
    let checksum = damaged.len() - 6;
    damaged[checksum] ^= 1;
    let error = from_bytes(damaged).err().unwrap();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("gzip"), "{error}");
}

/// Fails after its contents were read.
struct Failing(Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buf)? {
            0 => Err(std::io::Error::from_raw_os_error(5)),
            len => Ok(len),
        }
    }
}

#[test]
fn an_error_of_the_system_below_compressed_data_is_one_of_the_system() {
    let mut packed = gzip(&archive(&[member("a", b'0', "", &Random::new(3).noise(100_000))]));
    packed.truncate(50_000);
    let error = from_reader(Failing(Cursor::new(packed))).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(error.io_source().and_then(std::io::Error::raw_os_error), Some(5));
}

#[derive(Default)]
struct Watching {
    warnings: AtomicU32,
    looks: AtomicU32,
    looks_max: u32,
}

impl Progress for Watching {
    fn warn(&self, _message: &str) {
        self.warnings.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.looks_max > 0 && self.looks.fetch_add(1, Ordering::Relaxed) > self.looks_max
    }
}

#[test]
fn endless_input_can_be_cancelled_and_is_bounded() {
    let endless = || Cursor::new(archive(&[member("a", b'0', "", b"x")])).chain(std::io::repeat(0));
    let watching = Watching { looks_max: 10, ..Watching::default() };
    assert_eq!(watched(endless(), &watching).err().unwrap().kind(), ErrorKind::Cancelled);
    assert_eq!(from_reader(endless()).err().unwrap().kind(), ErrorKind::Corrupt);
}

/// Blocks without data until its sender ends.
struct Stalled(mpsc::Receiver<()>);

impl Read for Stalled {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        Ok(0)
    }
}

#[test]
fn waiting_behind_compressed_data_can_be_stopped_and_padding_there_ends() {
    let packed = gzip(&archive(&[member("a", b'0', "", b"x")]));
    let (sender, receiver) = mpsc::channel();
    let stalled = Cursor::new(packed.clone()).chain(Stalled(receiver));
    let watching = Watching { looks_max: 10, ..Watching::default() };
    assert_eq!(watched(stalled, &watching).err().unwrap().kind(), ErrorKind::Cancelled);
    drop(sender);
    let error = from_reader(Cursor::new(packed).chain(std::io::repeat(0))).err().unwrap();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("zeros"), "{error}");
}

#[test]
fn keeping_one_huge_member_can_be_stopped() {
    let huge = Cursor::new(header("a", b'0', 0o7_777_777_777, "")).chain(std::io::repeat(b'x'));
    let watching = Watching { looks_max: 10, ..Watching::default() };
    assert_eq!(watched(huge, &watching).err().unwrap().kind(), ErrorKind::Cancelled);
    assert_eq!(watching.looks.load(Ordering::Relaxed), 12, "the first that says so is heeded");
}

#[test]
fn a_gnu_tar_label_is_not_a_multi_volume_archive() {
    if packfs_testkit::peer("tar").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "x").unwrap();
    for format in ["--format=posix", "--format=gnu"] {
        let mut tar = std::process::Command::new("tar");
        tar.args(["--create", format, "--label=backup", "--file=-", "--directory"]).arg(folder.path());
        let output = tar.arg("a").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(content(&from_bytes(output.stdout).unwrap(), "a"), b"x", "{format}");
    }
}

#[test]
fn warns_of_an_archive_without_an_end() {
    for (end, warnings) in [(0, 1), (1024, 0)] {
        let watching = Watching::default();
        let bytes = [member("a", b'0', "", b"x"), vec![0; end]].concat();
        watched(Cursor::new(bytes), &watching).unwrap();
        assert_eq!(watching.warnings.load(Ordering::Relaxed), warnings);
    }
}

fn loaded_with(bytes: Vec<u8>, tar: TarReading) -> Result<Loaded> {
    let (reader, spool_dir) = (Box::new(std::io::Cursor::new(bytes)), std::env::temp_dir());
    let input = TarInput::Stream { reader, name: "test.tar".into(), spool_dir };
    load_tar(input, &Shape { tar, ..Shape::default() }, &Silent)
}

#[test]
fn archives_that_were_joined_are_read_on_if_zeros_are_to_be_ignored() {
    let (first, second) =
        (archive(&[member("a", b'0', "", b"one")]), archive(&[member("b", b'0', "", b"two")]));
    let joined = [&first[..], &[7; 512], &second].concat();
    let found = loaded_with(joined.clone(), TarReading::default()).unwrap();
    assert!(found.tree.find(&path("b")).is_none());
    let ignoring = TarReading { ignore_zeros: true, ..TarReading::default() };
    let found = loaded_with(joined, ignoring).unwrap();
    assert_eq!((content(&found, "a"), content(&found, "b")), (b"one".to_vec(), b"two".to_vec()));
    let damaged = [&[7; 512][..], &first].concat();
    assert!(loaded_with(damaged, ignoring).is_err(), "only zeros excuse what is no header");
}

#[test]
fn names_of_owners_are_preferred_only_on_request() {
    let owned = |user: &[u8], group: &[u8]| {
        let mut header = member("a", b'0', "", b"x");
        header[108..124].copy_from_slice(b"0000021\x000000022\0");
        header[265..265 + user.len()].copy_from_slice(user);
        header[297..297 + group.len()].copy_from_slice(group);
        let rest = header.split_off(512);
        [with_checksum(header), rest].concat()
    };
    let named = |user: &[u8], group: &[u8]| archive(&[owned(user, group)]);
    let owner = |bytes: Vec<u8>, names: bool| {
        let found = loaded_with(bytes, TarReading { names, ..TarReading::default() }).unwrap();
        let owner = found.tree.node(found.tree.find(&path("a")).unwrap()).meta.owner;
        (owner.uid, owner.gid)
    };
    let numbers = (0o21, 0o22);
    assert_eq!(owner(named(b"root", b"root"), false), numbers);
    assert_eq!(owner(named(b"root", b"root"), true), (0, 0));
    assert_eq!(owner(named(b"no such user", b"0"), true), numbers, "a number is no name");
    let recorded = archive(&[pax(&[b"uname=root", b"gname=no such group"]), owned(b"", b"root")]);
    assert_eq!(owner(recorded, true), (0, numbers.1));
}

#[test]
fn a_list_of_headers_has_files_of_zeros() {
    let mut headers = Vec::new();
    for name in ["a", "b"] {
        let mut header = member(name, b'0', "", b"0123456789");
        header.truncate(512);
        headers.push(header);
    }
    let only = TarReading { headers_only: true, ..TarReading::default() };
    let found = loaded_with(archive(&headers), only).unwrap();
    assert_eq!((content(&found, "a"), content(&found, "b")), (vec![0; 10], vec![0; 10]));
}
