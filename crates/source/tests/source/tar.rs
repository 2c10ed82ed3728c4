//! Tar archives of every dialect, whole and damaged.

use packfs_core::{ErrorKind, NodeKind, Result, Silent, Timestamp};
use packfs_source::{Loaded, Shape, TarInput, TarReading, load_tar};
use packfs_testkit::{
    Compare, Random, is_root, odd_tree, path, peer, snapshot_dir, snapshot_tree, write_dir,
};
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::{Command, Stdio};

fn from_bytes(bytes: Vec<u8>) -> Result<Loaded> {
    let reader = Box::new(Cursor::new(bytes));
    let input = TarInput::Stream { reader, name: "test.tar".into(), spool_dir: std::env::temp_dir() };
    load_tar(input, &Shape::default(), &Silent)
}

fn error_of(bytes: Vec<u8>) -> String {
    let error = from_bytes(bytes).map(|_| ()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Failed),
        "{error:?}"
    );
    error.to_string()
}

fn content(loaded: &Loaded, at: &str) -> Vec<u8> {
    let id = loaded.tree.find(&path(at)).unwrap_or_else(|| panic!("{at} is there"));
    let NodeKind::File { len, content } = loaded.tree.node(id).kind else { panic!("{at} is a file") };
    let mut bytes = vec![1; len as usize];
    loaded.contents.open(content).unwrap().read_exact_at(0, &mut bytes).unwrap();
    bytes
}

/// Returns a header with the relevant fields; the others as GNU tar writes them.
fn header(name: &[u8], typeflag: u8, size: u64) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name);
    block[100..108].copy_from_slice(b"0000644\0");
    block[108..116].copy_from_slice(b"0000001\0");
    block[116..124].copy_from_slice(b"0000002\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[136..148].copy_from_slice(b"00000001750\0");
    block[156] = typeflag;
    block[257..265].copy_from_slice(b"ustar\x0000");
    with_checksum(block)
}

fn with_checksum(mut block: Vec<u8>) -> Vec<u8> {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn member(name: &str, typeflag: u8, data: &[u8]) -> Vec<u8> {
    [header(name.as_bytes(), typeflag, data.len() as u64), padded(data)].concat()
}

fn records(pairs: &[(&str, &[u8])]) -> Vec<u8> {
    let mut all = Vec::new();
    for (key, value) in pairs {
        let rest = key.len() + value.len() + 3;
        let len = (1..).find(|digits| (rest + digits).to_string().len() == *digits).unwrap() + rest;
        all.extend_from_slice(format!("{len} {key}=").as_bytes());
        all.extend_from_slice(value);
        all.push(b'\n');
    }
    all
}

fn pax(pairs: &[(&str, &[u8])]) -> Vec<u8> {
    member("pax", b'x', &records(pairs))
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1024]].concat()
}

#[test]
fn reads_plain_members_of_every_type() {
    let link = |name: &str, typeflag, target: &[u8]| {
        let mut block = header(name.as_bytes(), typeflag, 0);
        block[157..157 + target.len()].copy_from_slice(target);
        with_checksum(block)
    };
    let device = |name: &str, typeflag| {
        let mut block = header(name.as_bytes(), typeflag, 0);
        block[329..337].copy_from_slice(b"0000010\0");
        block[337..345].copy_from_slice(b"0000021\0");
        with_checksum(block)
    };
    let loaded = from_bytes(archive(&[
        member("./dir/", b'5', b""),
        member("dir/file", b'0', b"content"),
        member("/old-file", 0, b"old"),
        member("old-dir/", 0, b""),
        member("contiguous", b'7', b"c"),
        link("dir/symlink", b'2', b"../x"),
        link("hard", b'1', b"dir/file"),
        device("char", b'3'),
        device("block", b'4'),
        member("fifo", b'6', b""),
    ]))
    .unwrap();
    assert_eq!(content(&loaded, "dir/file"), b"content");
    assert_eq!(content(&loaded, "old-file"), b"old");
    let find = |at: &str| loaded.tree.find(&path(at)).unwrap();
    let node = loaded.tree.node(find("dir/file"));
    assert_eq!((node.meta.mode, node.meta.owner.uid, node.meta.owner.gid, node.links), (0o644, 1, 2, 2));
    assert_eq!(node.meta.mtime, Timestamp::from_seconds(1000));
    assert_eq!(find("hard"), find("dir/file"));
    assert!(loaded.tree.node(find("old-dir")).is_dir());
    assert_eq!(loaded.tree.node(find("dir/symlink")).kind, NodeKind::Symlink(b"../x".as_slice().into()));
    assert!(
        matches!(&loaded.tree.node(find("char")).kind, NodeKind::CharDevice(n) if n.major == 8 && n.minor == 17)
    );
}

#[test]
fn members_of_unknown_types_are_regular_files_or_skipped() {
    let bytes = archive(&[member("a", b'0', b"a\n"), member("q", b'Q', b"qqq\n"), member("b", b'0', b"b\n")]);
    for skip_unknown in [false, true] {
        let reader = Box::new(Cursor::new(bytes.clone()));
        let input = TarInput::Stream { reader, name: "test.tar".into(), spool_dir: std::env::temp_dir() };
        let tar = TarReading { skip_unknown, ..TarReading::default() };
        let warnings = Warnings::default();
        let loaded = load_tar(input, &Shape { tar, ..Shape::default() }, &warnings).unwrap();
        assert_eq!((content(&loaded, "a"), content(&loaded, "b")), (b"a\n".to_vec(), b"b\n".to_vec()));
        assert_eq!(loaded.tree.find(&path("q")).is_none(), skip_unknown);
        if !skip_unknown {
            assert_eq!(content(&loaded, "q"), b"qqq\n");
        }
        let end = if skip_unknown { "skipped" } else { "packed as a regular file" };
        let wanted = format!("test.tar: \"q\" at 0x400 has the unknown type \"Q\": {end}");
        assert_eq!(*warnings.0.lock().unwrap(), [wanted]);
    }
}

#[derive(Default)]
struct Warnings(std::sync::Mutex<Vec<String>>);

impl packfs_core::Progress for Warnings {
    fn warn(&self, message: &str) {
        self.0.lock().unwrap().push(message.into());
    }
}

#[test]
fn extended_headers_override_the_header() {
    let long = "very-long-directory-name/".repeat(20) + "file";
    let loaded = from_bytes(archive(&[
        member("globals", b'g', &records(&[("uid", b"77"), ("mtime", b"5")])),
        pax(&[
            ("path", long.as_bytes()),
            ("mtime", b"-1.5"),
            ("uid", b"4000000000"),
            ("SCHILY.xattr.user.a%3Db", b"1\n\0"),
        ]),
        member("short", b'0', b"1"),
        member("globally-owned", b'0', b"2"),
        // The size of an extended header counts, or the data after it would be taken for members.
        pax(&[("size", b"1024")]),
        [header(b"desync", b'0', 0), vec![b'x'; 512], member("hidden", b'0', b"")].concat(),
        member("././@LongLink", b'L', b"gnu-long-name\0"),
        member("././@LongLink", b'K', b"gnu-long-target\0"),
        header(b"short", b'2', 0),
    ]))
    .unwrap();
    let node = |at: &str| loaded.tree.node(loaded.tree.find(&path(at)).unwrap_or_else(|| panic!("{at}")));
    assert_eq!(node(&long).meta.mtime, Timestamp { seconds: -2, nanos: 500_000_000 });
    assert_eq!(node(&long).meta.owner.uid, 4_000_000_000);
    assert_eq!(loaded.tree.xattrs(node(&long).xattrs)[&b"user.a=b"[..]], b"1\n\0");
    assert_eq!((node("globally-owned").meta.owner.uid, node("globally-owned").meta.mtime.seconds), (77, 5));
    assert!(loaded.tree.find(&path("hidden")).is_none());
    assert_eq!(content(&loaded, "desync").len(), 1024);
    assert_eq!(node("gnu-long-name").kind, NodeKind::Symlink(b"gnu-long-target".as_slice().into()));
}

#[test]
fn reads_holes_in_all_four_dialects() {
    let mut expected = vec![0; 10_000];
    expected[1000..1003].copy_from_slice(b"abc");
    expected[5000..5002].copy_from_slice(b"de");
    let mut old = header(b"old", b'S', 5);
    for (at, (offset, len)) in [(1000, 3), (5000, 2)].into_iter().enumerate() {
        let entry = format!("{offset:011o}\0{len:011o}\0");
        old[386 + at * 24..][..24].copy_from_slice(entry.as_bytes());
    }
    old[483..495].copy_from_slice(format!("{:011o}\0", 10_000).as_bytes());
    let in_data = [padded(b"2\n1000\n3\n5000\n2\n"), padded(b"abcde")].concat();
    let loaded = from_bytes(archive(&[
        [with_checksum(old), padded(b"abcde")].concat(),
        pax(&[
            ("GNU.sparse.size", b"10000"),
            ("GNU.sparse.numblocks", b"2"),
            ("GNU.sparse.offset", b"1000"),
            ("GNU.sparse.numbytes", b"3"),
            ("GNU.sparse.offset", b"5000"),
            ("GNU.sparse.numbytes", b"2"),
        ]),
        member("pax-0.0", b'0', b"abcde"),
        pax(&[
            ("GNU.sparse.name", b"pax-0.1"),
            ("GNU.sparse.size", b"10000"),
            ("GNU.sparse.map", b"1000,3,5000,2"),
        ]),
        member("GNUSparseFile.1/pax-0.1", b'0', b"abcde"),
        pax(&[
            ("GNU.sparse.major", b"1"),
            ("GNU.sparse.minor", b"0"),
            ("GNU.sparse.name", b"pax-1.0"),
            ("GNU.sparse.realsize", b"10000"),
        ]),
        [header(b"GNUSparseFile.1/pax-1.0", b'0', 512 + 5), in_data].concat(),
    ]))
    .unwrap();
    for name in ["old", "pax-0.0", "pax-0.1", "pax-1.0"] {
        assert!(content(&loaded, name) == expected, "{name}");
    }
}

#[test]
fn the_last_member_of_a_name_wins_and_links_may_come_first() {
    let mut early = header(b"early", b'1', 0);
    early[157..161].copy_from_slice(b"late");
    let loaded = from_bytes(archive(&[
        with_checksum(early),
        member("late", b'0', b"first"),
        member("late", b'0', b"second"),
    ]))
    .unwrap();
    assert_eq!(content(&loaded, "early"), b"second");
}

#[test]
fn refuses_contradictory_archives() {
    for (bytes, fault) in [
        (vec![], "empty"),
        (b"not a tar archive at all".to_vec(), "cut off"),
        (vec![b'x'; 512], "checksum"),
        (archive(&[member("a/../../etc/passwd", b'0', b"")]), "\"..\""),
        (archive(&[pax(&[("path", b"a\0b")]), member("a", b'0', b"")]), "path"),
        (archive(&[pax(&[("uid", b"4294967296")]), member("a", b'0', b"")]), "uid"),
        (archive(&[member("volume", b'M', b"")]), "multi-volume"),
        (archive(&[header(b"link", b'1', 0)]), "no such file"),
        (archive(&[pax(&[("path", b"a")])]), "extended header"),
        (archive(&[pax(&[("path", &[b'n'; 300])]), member("a", b'0', b"")]), "255"),
        (
            archive(&[
                pax(&[("GNU.sparse.map", b"5,1,0,1"), ("GNU.sparse.size", b"9")]),
                member("a", b'0', b"12"),
            ]),
            "sparse",
        ),
        (
            archive(&[
                pax(&[("GNU.sparse.map", b"0,2"), ("GNU.sparse.size", b"9223372036854775808")]),
                member("a", b'0', b"12"),
            ]),
            "at most 9223372036854775807",
        ),
        (header(b"huge", b'0', 0o77_777_777_777), "cut off"),
        (header(b"huge", b'x', 0o77_777_777_777), "at most"),
    ] {
        let error = from_bytes(bytes.clone()).map(|_| ()).unwrap_err();
        let text = format!("{error} {}", error.hints().join(" "));
        assert!(text.contains(fault), "expected {fault:?} in: {text}");
    }
}

/// Returns an archive with every type of member.
fn mixed() -> Vec<u8> {
    let mut link = header(b"link", b'1', 0);
    link[157..160].copy_from_slice(b"dir");
    let mut hard = header(b"hard", b'1', 0);
    hard[157..165].copy_from_slice(b"dir/text");
    archive(&[
        member("dir/", b'5', b""),
        pax(&[("path", b"dir/text"), ("SCHILY.xattr.user.a", b"value")]),
        member("text", b'0', &Random::new(1).text(3000)),
        member("././@LongLink", b'L', b"dir/long\0"),
        member("x", b'0', b"long"),
        with_checksum(hard),
        pax(&[("GNU.sparse.map", b"600,5"), ("GNU.sparse.size", b"10000"), ("GNU.sparse.name", b"sparse")]),
        member("s", b'0', b"abcde"),
    ])
}

#[test]
fn every_cut_in_the_middle_is_an_error() {
    let whole = mixed();
    let end = whole.len() - 1024;
    for cut in (0..end).step_by(512).chain((1..end).step_by(397)) {
        let outcome = from_bytes(whole[..cut].to_vec());
        // Between members, an archive may end without its two blocks.
        if let Ok(loaded) = outcome {
            assert!(cut % 512 == 0 && loaded.tree.node_count() > 1, "cut at {cut}");
        }
    }
    assert!(from_bytes(whole[..end].to_vec()).is_ok(), "the end may be missing");
    assert!(from_bytes(whole[..end + 512].to_vec()).is_ok(), "or half of it");
    assert!(error_of(whole[..end - 1].to_vec()).contains("ends"));
}

#[test]
fn damaged_archives_neither_panic_nor_grow() {
    let whole = mixed();
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        // Most damage to a header is found by its checksum; some of it is repaired here to test
        // later checks.
        if random.below(2) == 0 {
            let at = random.below(bytes.len() as u64 / 512) as usize * 512;
            let fixed = with_checksum(bytes[at..at + 512].to_vec());
            bytes[at..at + 512].copy_from_slice(&fixed);
        }
        if let Ok(loaded) = from_bytes(bytes) {
            for (_, node) in loaded.tree.nodes() {
                if let NodeKind::File { len, content } = node.kind {
                    let mut reader = loaded.contents.open(content).unwrap();
                    let mut part = vec![0; len.min(20_000) as usize];
                    reader.read_exact_at(0, &mut part).unwrap();
                    let _ = reader.next_data(len / 2).unwrap();
                }
            }
        }
    }
}

fn compressed(tool: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    peer(tool)?;
    let mut child =
        Command::new(tool).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let feeder = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Some(output.stdout)
}

#[test]
fn reads_compressed_archives_and_notices_every_cut() {
    let plain = mixed();
    let expected = content(&from_bytes(plain.clone()).unwrap(), "dir/text");
    for tool in ["gzip", "xz", "zstd", "bzip2"] {
        let Some(packed) = compressed(tool, &plain) else { continue };
        assert_eq!(content(&from_bytes(packed.clone()).unwrap(), "dir/text"), expected, "{tool}");
        for cut in (1..packed.len()).step_by(41) {
            assert!(from_bytes(packed[..cut].to_vec()).is_err(), "{tool}: cut to {cut} of {}", packed.len());
        }
        if tool != "zstd" {
            // The checksum at the end is verified although the archive ends before it.
            let mut damaged = packed.clone();
            let at = damaged.len() - 6;
            damaged[at] ^= 1;
            assert!(from_bytes(damaged).is_err(), "{tool}: wrong checksum");
        }
        let twice = [packed, compressed(tool, &[0; 4096]).unwrap()].concat();
        assert!(from_bytes(twice).is_ok(), "{tool}: two members");
    }
}

fn gnu_tar(source: &Path, to: &Path, options: &[&str]) {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--numeric-owner", "--sort=name"]).args(options);
    let output = tar.arg("--file").arg(to).arg("--directory").arg(source).arg(".").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn damage_to_a_compressed_archive_is_damage_and_not_a_failed_disk() {
    let packed = gzip(&mixed());
    let mut wrong_checksum = packed.clone();
    let at = packed.len() - 6;
    wrong_checksum[at] ^= 1;
    for (what, bytes) in
        [("cut off", packed[..packed.len() / 2].to_vec()), ("wrong checksum", wrong_checksum)]
    {
        let error = from_bytes(bytes).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    }
    assert!(from_bytes([&packed[..], &[0; 10_000]].concat()).is_ok(), "padded as on a tape");

    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from_raw_os_error(5))
        }
    }
    let reader = Box::new(std::io::Read::chain(Cursor::new(packed[..100].to_vec()), Failing));
    let input = TarInput::Stream { reader, name: "test.tar".into(), spool_dir: std::env::temp_dir() };
    let error = load_tar(input, &Shape::default(), &Silent).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

#[test]
fn global_records_cannot_make_a_small_archive_take_forever() {
    let value = vec![b'v'; 40_000];
    let both: [(&str, &[u8]); 2] = [("SCHILY.xattr.user.a", &value), ("SCHILY.xattr.user.b", &value)];
    let attributes = member("globals", b'g', &records(&both));
    assert!(error_of(archive(&[attributes, member("a", b'0', b"")])).contains("global"));
    for key in ["size", "path", "linkpath", "GNU.sparse.map"] {
        let globals = member("globals", b'g', &records(&[(key, b"0")]));
        assert!(error_of(archive(&[globals, member("a", b'0', b"")])).contains("no two members"), "{key}");
    }
}

#[test]
fn access_lists_become_attributes_unless_equal_to_permissions() {
    let acl = |text: &[u8]| archive(&[pax(&[("SCHILY.acl.access", text)]), member("a", b'0', b"")]);
    let count = |text: &[u8]| {
        let loaded = from_bytes(acl(text)).unwrap();
        loaded.tree.xattrs(loaded.tree.node(loaded.tree.find(&path("a")).unwrap()).xattrs).len()
    };
    assert_eq!(count(b"user::rw-,user:1000:rw-,group::r--,mask::rw-,other::r--"), 1);
    assert_eq!(count(b"user::rw-,group::r--,other::r--"), 0);
}

#[test]
fn agrees_with_gnu_tar_in_every_format() {
    if peer("tar").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(4096, is_root());
    write_dir(&tree, &contents, &source);
    // GNU tar omits sockets and splits hard links to FIFOs.
    for name in ["socket", "xattrs/socket", "links/same-fifo"] {
        let _ = fs::remove_file(source.join(name));
    }
    let expected = snapshot_dir(&source);
    let tar = folder.path().join("test.tar");
    let all = ["--xattrs", "--xattrs-include=*"];
    for (options, compare) in [
        (&["--format=posix", all[0], all[1]][..], Compare { nanos: true, ..Compare::default() }),
        (&["--format=posix", "--sparse", all[0], all[1]], Compare::default()),
        (&["--format=posix", "--sparse", "--sparse-version=0.0", all[0], all[1]], Compare::default()),
        (&["--format=posix", "--sparse", "--sparse-version=0.1", all[0], all[1]], Compare::default()),
        (&["--format=gnu", "--sparse"], Compare { xattrs: false, ..Compare::default() }),
        (&["--format=oldgnu", "--sparse"], Compare { xattrs: false, ..Compare::default() }),
    ] {
        gnu_tar(&source, &tar, options);
        let loaded = load_tar(TarInput::File(tar.clone()), &Shape::default(), &Silent).unwrap();
        let found = snapshot_tree(&loaded.tree, &*loaded.contents);
        found.assert_same(&expected, compare, &format!("{options:?}"));
    }
}
