//! Archives by GNU tar, bsdtar, Python and by hand, of every format and compression: all three
//! programs find the same names, types, modes, owners, times, contents, links and attributes in
//! them.

use packfs_core::Silent;
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{Compare, Random, Snapshot, is_root, peer, skip, snapshot_dir, snapshot_tree};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Returns a list in version 2 of Linux's format, with a named user and group, and a mask that
/// differs from the group.
fn list() -> Vec<u8> {
    let entries: [(u16, u16, u32); 6] = [
        (0x01, 6, u32::MAX),
        (0x02, 7, 1),
        (0x04, 4, u32::MAX),
        (0x08, 5, 1),
        (0x10, 6, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

fn run(program: &str, arguments: &[&dyn AsRef<OsStr>]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Creates entries that every format supports.
fn simple(root: &Path) {
    let mut random = Random::new(9);
    fs::create_dir_all(root.join("dir/sub")).unwrap();
    fs::create_dir(root.join("empty-dir")).unwrap();
    fs::write(root.join("dir/text"), random.text(30_000)).unwrap();
    fs::write(root.join("dir/sub/noise"), random.noise(5000)).unwrap();
    fs::write(root.join("empty"), "").unwrap();
    fs::write(root.join("block"), [7; 512]).unwrap();
    fs::hard_link(root.join("dir/text"), root.join("hard")).unwrap();
    symlink("dir/text", root.join("link")).unwrap();
    for (mode, name) in [(0o640, "block"), (0o755, "dir/sub/noise"), (0o700, "empty-dir")] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::open(root.join("block")).unwrap().set_modified(time).unwrap();
}

/// Creates entries that require extended headers.
fn full(root: &Path) {
    simple(root);
    let deep = root.join("a-long-name-of-a-directory/".repeat(5)).join("and-more".repeat(14));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("f".repeat(200)), "deep").unwrap();
    symlink("target/".repeat(60), root.join("long-link")).unwrap();
    let sparse = File::create(root.join("sparse")).unwrap();
    for at in [0, 200_000, 1_000_000] {
        sparse.write_all_at(b"data between holes", at).unwrap();
    }
    sparse.set_len(1_500_000).unwrap();
    let mut holes = File::create(root.join("only-holes")).unwrap();
    std::io::Write::flush(&mut holes).unwrap();
    holes.set_len(300_000).unwrap();
    run("mkfifo", &[&root.join("fifo")]);
    if is_root() {
        run("mknod", &[&root.join("device"), &"c", &"5", &"300"]);
    }
}

/// Sets access lists on a file and a directory; returns false if the filesystem does not support
/// them.
fn with_lists(root: &Path) -> bool {
    simple(root);
    let Some(_) = peer("setfacl") else { return false };
    let set = |options: &[&str], name: &str| {
        Command::new("setfacl").args(options).arg(root.join(name)).status().unwrap().success()
    };
    // Names, because GNU tar writes those it knows, and one unknown number.
    set(&["-m", "u:daemon:rwx,g:daemon:r-x,m::rw-"], "block")
        && set(&["-m", "u:4000000:r--"], "dir/sub/noise")
        && set(&["-d", "-m", "u:root:rwx"], "dir")
}

/// An archive, and the attributes that a comparison ignores.
struct Sample {
    name: String,
    path: PathBuf,
    compare: Compare,
}

const PLAIN: Compare = Compare {
    nanos: false,
    xattrs: false,
    owners: true,
    dir_links: false,
    hard_links: true,
    symlink_times: true,
    root: false,
};
const WITH_XATTRS: Compare = Compare { xattrs: true, ..PLAIN };

/// Creates archives in a directory.
struct Maker {
    folder: tempfile::TempDir,
    samples: Vec<Sample>,
}

impl Maker {
    fn new() -> Self {
        Maker { folder: tempfile::tempdir().unwrap(), samples: Vec::new() }
    }

    fn source(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    }

    fn by(&mut self, program: &str, options: &[&str], suffix: &str, source: &Path, compare: Compare) {
        let path = self.folder.path().join(format!("{}.tar{suffix}", self.samples.len()));
        let mut command = Command::new(program);
        command.args(options).arg("-cf").arg(&path).arg("-C").arg(source).arg(".");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
        self.samples.push(Sample { name: format!("{program} {options:?}"), path, compare });
    }

    fn bytes(&mut self, name: &str, suffix: &str, bytes: &[u8]) {
        let path = self.folder.path().join(format!("{}.tar{suffix}", self.samples.len()));
        fs::write(&path, bytes).unwrap();
        self.samples.push(Sample { name: name.into(), path, compare: PLAIN });
    }

    /// Has both programs unpack each archive, and compares.
    fn compare(self) -> usize {
        let mut failures = Vec::new();
        for sample in &self.samples {
            let loaded = load_tar(TarInput::File(sample.path.clone()), &Shape::default(), &Silent);
            let loaded = loaded.unwrap_or_else(|error| panic!("{}: {error}", sample.name));
            let ours = without_labels(snapshot_tree(&loaded.tree, &*loaded.contents));
            let compare = Compare { owners: is_root() && sample.compare.owners, ..sample.compare };
            for program in ["tar", "bsdtar"] {
                let to = tempfile::tempdir().unwrap();
                extract(program, sample, to.path());
                let theirs = without_labels(snapshot_dir(to.path()));
                for difference in ours.differences(&theirs, compare) {
                    failures.push(format!("{} {}: {difference}", program, sample.name));
                }
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        self.samples.len()
    }
}

/// Removes the labels that a system with SELinux adds when unpacking.
fn without_labels(mut snapshot: Snapshot) -> Snapshot {
    for row in snapshot.0.values_mut() {
        row.xattrs.remove(&b"security.selinux"[..]);
    }
    snapshot
}

fn extract(program: &str, sample: &Sample, to: &Path) {
    let archive = &sample.path;
    let mut command = Command::new(program);
    command.args(["-xp", "--acls", "--xattrs"]);
    // With numeric ids, bsdtar drops access lists with names.
    if !sample.compare.xattrs {
        command.arg("--numeric-owner");
    }
    if program == "tar" {
        command.args(["--xattrs-include=*", "--warning=none", "--delay-directory-restore"]);
        if archive.extension() == Some(OsStr::new("lz4")) {
            command.arg("--use-compress-program=lz4");
        }
    }
    // Warnings cause a failure exit code in one program, and not in the other.
    command.arg("-f").arg(archive).arg("-C").arg(to).output().unwrap();
}

/// Returns true if both programs are installed.
fn have_both() -> bool {
    peer("tar").is_some() && peer("bsdtar").is_some()
}

#[test]
fn archives_of_every_format() {
    if !have_both() {
        return;
    }
    let mut maker = Maker::new();
    let (small, large) = (maker.source("simple"), maker.source("full"));
    simple(&small);
    full(&large);
    for format in ["v7", "ustar", "oldgnu", "gnu", "posix"] {
        maker.by("tar", &[&format!("--format={format}")], "", &small, PLAIN);
    }
    for options in [
        &["--format=gnu"][..],
        &["--format=posix"],
        &["--format=oldgnu", "--sparse"],
        &["--format=gnu", "--sparse"],
        &["--format=posix", "--sparse", "--sparse-version=0.0"],
        &["--format=posix", "--sparse", "--sparse-version=0.1"],
        &["--format=posix", "--sparse", "--sparse-version=1.0"],
        &["--format=gnu", "--incremental"],
        &["--format=gnu", "--blocking-factor=1"],
        &["--format=posix", "--blocking-factor=128"],
        &["--format=gnu", "--hard-dereference"],
        &["--format=gnu", "--mtime=1960-02-03"],
        // bsdtar reads a fraction before 1970 differently from GNU tar, which wrote it, and packfs.
        &["--format=posix", "--mtime=1960-02-03 04:05:06"],
        &["--format=gnu", "--owner=+3000000", "--group=+4000000000"],
        &["--format=posix", "--owner=+3000000", "--group=+4000000000"],
        &["--format=posix", "--pax-option=globexthdr.name=g,comment=of all"],
        &["--format=gnu", "--no-recursion"],
    ] {
        maker.by("tar", options, "", &large, PLAIN);
    }
    for format in ["v7", "ustar", "gnutar", "pax", "restricted"] {
        maker.by(
            "bsdtar",
            &["--format", if format == "restricted" { "paxr" } else { format }],
            "",
            &small,
            PLAIN,
        );
    }
    for format in ["gnutar", "pax"] {
        maker.by("bsdtar", &["--format", format], "", &large, PLAIN);
    }
    assert!(maker.compare() >= 29);
}

#[test]
fn access_lists_by_name_and_by_number() {
    if !have_both() {
        return;
    }
    let mut maker = Maker::new();
    let source = maker.source("lists");
    if !with_lists(&source) {
        skip("setfacl is missing, or the file system keeps no access lists");
        return;
    }
    for options in [&["--acls"][..], &["--acls", "--numeric-owner"], &["--acls", "--xattrs"]] {
        maker.by("tar", &[&["--format=posix"], options].concat(), "", &source, WITH_XATTRS);
    }
    maker.by("bsdtar", &["--format", "pax", "--acls"], "", &source, WITH_XATTRS);
    let loaded = load_tar(TarInput::File(maker.samples[0].path.clone()), &Shape::default(), &Silent).unwrap();
    let row = &snapshot_tree(&loaded.tree, &*loaded.contents).0[&b"block"[..]];
    assert_eq!((&row.xattrs[&b"system.posix_acl_access"[..]], row.mode), (&list(), 0o660));
    maker.compare();
}

#[test]
fn archives_of_every_compression() {
    if !have_both() {
        return;
    }
    let mut maker = Maker::new();
    let source = maker.source("simple");
    simple(&source);
    for (program, suffix) in [
        ("gzip", ".gz"),
        ("xz", ".xz"),
        ("zstd", ".zst"),
        ("bzip2", ".bz2"),
        ("lz4", ".lz4"),
        ("lzip", ".lz"),
        ("lzma", ".lzma"),
        ("compress", ".Z"),
    ] {
        if peer(program).is_none() {
            continue;
        }
        let option = format!("--use-compress-program={program}");
        maker.by("tar", &["--format=gnu", &option], suffix, &source, PLAIN);
        maker.by("bsdtar", &["--format", "pax", &option], suffix, &source, PLAIN);
    }
    maker.compare();
}

#[test]
fn archives_by_python() {
    if !have_both() || peer("python3").is_none() {
        return;
    }
    let mut maker = Maker::new();
    let source = maker.source("full");
    full(&source);
    for format in ["GNU_FORMAT", "PAX_FORMAT"] {
        for (mode, suffix) in [("w", ""), ("w:gz", ".gz"), ("w:xz", ".xz"), ("w:bz2", ".bz2")] {
            let path = maker.folder.path().join(format!("{format}.tar{suffix}"));
            let script = format!(
                "import sys, tarfile\nwith tarfile.open(sys.argv[1], '{mode}', format=tarfile.{format}) as t: t.add(sys.argv[2], '.')"
            );
            run("python3", &[&"-c", &script, &path, &source]);
            maker.samples.push(Sample { name: format!("python {format} {mode}"), path, compare: PLAIN });
        }
    }
    assert_eq!(maker.compare(), 8);
}

fn header(name: &str, typeflag: u8, size: usize, target: &str, magic: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(if typeflag == b'5' { b"0000755\0" } else { b"0000640\0" });
    block[108..116].copy_from_slice(b"0000001\0");
    block[116..124].copy_from_slice(b"0000002\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[136..148].copy_from_slice(b"07346545000\0");
    block[148..156].fill(b' ');
    block[156] = typeflag;
    block[157..157 + target.len()].copy_from_slice(target.as_bytes());
    block[257..257 + magic.len()].copy_from_slice(magic);
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

const USTAR: &[u8] = b"ustar\x0000";
const GNU: &[u8] = b"ustar  \0";

fn member(name: &str, typeflag: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = [&header(name, typeflag, data.len(), "", USTAR), data].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn archives_by_hand() {
    if !have_both() {
        return;
    }
    let mut maker = Maker::new();
    let (file, end) = (member("file", b'0', b"contents"), vec![0; 1024]);
    let late = member("late", b'0', b"late");
    let whole = |members: &[&[u8]]| [members.concat(), end.clone()].concat();
    maker.bytes("zeros alone", "", &[0; 10_240]);
    maker.bytes("two blocks of zeros", "", &[0; 1024]);
    maker.bytes("no end", "", &file);
    maker.bytes("half an end", "", &[&file[..], &[0; 512]].concat());
    maker.bytes("one block of zeros between", "", &whole(&[&file, &[0; 512], &late]));
    maker.bytes("more behind the end", "", &whole(&[&file, &end, &late]));
    maker.bytes("garbage behind the end", "", &whole(&[&file, &end, &[9; 700]]));
    maker.bytes("a directory with a size", "", &whole(&[&header("d/", b'5', 5000, "", USTAR), &late]));
    maker.bytes("the same in GNU's format", "", &whole(&[&header("d/", b'5', 5000, "", GNU), &late]));
    maker.bytes("what a directory held", "", &whole(&[&member("d/", b'D', b"Yfile\0\0"), &late]));
    maker.bytes("a directory by its name", "", &whole(&[&header("d/", 0, 0, "", b""), &late]));
    maker.bytes("a hard link with a size", "", &whole(&[&file, &header("h", b'1', 8, "file", USTAR), &late]));
    maker.bytes("contiguous", "", &whole(&[&member("c", b'7', b"1"), &late]));
    maker.bytes("an old file", "", &whole(&[&header("v7", 0, 0, "", b""), &late]));
    maker.bytes(
        "dots and slashes",
        "",
        &whole(&[
            &header("./a/", b'5', 0, "", USTAR),
            &header("a/./b//", b'5', 0, "", USTAR),
            &member("/a//b/./c", b'0', b"1"),
        ]),
    );
    maker.bytes("a name twice", "", &whole(&[&file, &member("file", b'0', b"again")]));
    let mut huge_size = header("base-256", b'0', 0, "", GNU);
    huge_size[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]);
    huge_size[148..156].fill(b' ');
    let sum: u32 = huge_size.iter().map(|&byte| u32::from(byte)).sum();
    huge_size[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    maker.bytes("a size to base 256", "", &whole(&[&huge_size, &[b'x'; 512], &late]));
    let record = |name: &str, typeflag, text: &str| member(name, typeflag, text.as_bytes());
    let sized =
        [record("p", b'x', "10 size=4\n"), header("pax", b'0', 0, "", USTAR), vec![b'y'; 512]].concat();
    maker.bytes("a size in a record", "", &whole(&[&sized, &late]));
    maker.bytes("a comment on all", "", &whole(&[&record("g", b'g', "16 comment=abcd\n"), &file]));
    let long_name = format!("{}\0", "n".repeat(180));
    let long = [record("././@LongLink", b'L', &long_name), member("short", b'0', b"1")].concat();
    maker.bytes("a long name", "", &whole(&[&long, &late]));
    let long = [record("././@LongLink", b'K', &long_name), header("s", b'2', 0, "cut", GNU)].concat();
    maker.bytes("a long target", "", &whole(&[&long, &late]));
    let archive = whole(&[&file, &late]);
    maker.bytes("two members of gzip", ".gz", &[gzip(&archive[..1500]), gzip(&archive[1500..])].concat());
    maker.bytes("zeros behind gzip", ".gz", &[&gzip(&archive)[..], &[0; 5000]].concat());
    maker.bytes("garbage behind gzip", ".gz", &[&gzip(&archive)[..], b"garbage"].concat());
    maker.bytes("zeros alone in gzip", ".gz", &gzip(&[0; 10_240]));
    assert_eq!(maker.compare(), 25);
}
