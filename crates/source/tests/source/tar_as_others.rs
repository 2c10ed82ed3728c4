//! Tar archives that GNU tar and libarchive read with or without a warning: damaged, padded,
//! truncated or redundant ones.

use packfs_core::{Error, ErrorKind, ImagePath, NodeKind, Progress, Result};
use packfs_source::{Loaded, Shape, TarInput, is_empty_tar, load_tar, looks_like_tar};
use packfs_testkit::{Random, peer};
use std::io::{Cursor, Write};
use std::process::Stdio;
use std::sync::Mutex;

#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Progress for Warnings {
    fn warn(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// Loads an archive from a stream and, unless it is compressed, from a file, with equal results.
fn load(bytes: &[u8]) -> Result<(Loaded, Vec<String>)> {
    let warnings = Warnings::default();
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    let spool_dir = std::env::temp_dir();
    let streamed =
        load_tar(TarInput::Stream { reader, name: "t.tar".into(), spool_dir }, &Shape::default(), &warnings);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let in_place_warnings = Warnings::default();
    let in_place = load_tar(TarInput::File(file.path().into()), &Shape::default(), &in_place_warnings);
    let warnings = warnings.0.into_inner().unwrap();
    let outcome =
        |loaded: &Result<Loaded>| loaded.as_ref().map(|loaded| loaded.tree.node_count()).map_err(Error::kind);
    assert_eq!(outcome(&in_place), outcome(&streamed));
    assert_eq!(in_place_warnings.0.into_inner().unwrap().len(), warnings.len());
    streamed.map(|loaded| (loaded, warnings))
}

fn names(loaded: &Loaded) -> Vec<String> {
    let (mut names, mut walk) = (Vec::new(), loaded.tree.walk());
    while let Some((path, _)) = walk.next() {
        names.push(path.to_string());
    }
    names.split_off(1)
}

fn node<'a>(loaded: &'a Loaded, at: &str) -> &'a packfs_core::Node {
    let path = ImagePath::parse(at.as_bytes()).unwrap();
    loaded.tree.node(loaded.tree.find(&path).unwrap_or_else(|| panic!("{at} is there")))
}

fn content(loaded: &Loaded, at: &str) -> Vec<u8> {
    let NodeKind::File { len, content } = node(loaded, at).kind else { panic!("{at} is a file") };
    let mut bytes = vec![1; len as usize];
    loaded.contents.open(content).unwrap().read_exact_at(0, &mut bytes).unwrap();
    bytes
}

fn header(name: &str, typeflag: u8, size: usize, target: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(b"0000664\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[148..156].fill(b' ');
    block[156] = typeflag;
    block[157..157 + target.len()].copy_from_slice(target.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn member(name: &str, typeflag: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = [&header(name, typeflag, data.len(), ""), data].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn pax(key: &str, value: &str) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let len = (rest + 1..).find(|len| len.to_string().len() + rest == *len).unwrap();
    member("pax", b'x', format!("{len} {key}={value}\n").as_bytes())
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1024]].concat()
}

#[test]
fn types_without_data_may_have_a_size_with_or_without_data() {
    let target = |typeflag| if matches!(typeflag, b'1' | b'2') { "first" } else { "" };
    for (name, typeflag) in [
        ("d/", b'5'),
        ("d/", b'0'),
        ("d/", 0),
        ("l", b'2'),
        ("c", b'3'),
        ("b", b'4'),
        ("p", b'6'),
        ("h", b'1'),
    ] {
        for data in [&[][..], &[b'x'; 1000]] {
            let mut with_size = [&header(name, typeflag, 1000, target(typeflag)), data].concat();
            with_size.resize(with_size.len().next_multiple_of(512), 0);
            let (loaded, warnings) =
                load(&archive(&[member("first", b'0', b"1"), with_size, member("later", b'0', b"2")]))
                    .unwrap_or_else(|error| panic!("{name} {typeflag}: {error}"));
            assert_eq!(names(&loaded).len(), 3, "{name} {typeflag} {}: {:?}", data.len(), names(&loaded));
            assert_eq!(content(&loaded, "later"), b"2");
            assert!(warnings.is_empty(), "{warnings:?}");
        }
    }
    // A name with a slash is that of a directory, unless data follow.
    let (loaded, _) = load(&archive(&[member("f/", b'0', b"data"), member("d/", b'0', b"")])).unwrap();
    assert_eq!((content(&loaded, "f"), &node(&loaded, "d").kind), (b"data".to_vec(), &NodeKind::Directory));
    // A directory's list is always data, even if it looks like a header.
    let dump = [header("d/", b'D', 512, ""), header("hidden", b'0', 0, "")].concat();
    let (loaded, _) = load(&archive(&[dump, member("later", b'0', b"2")])).unwrap();
    assert_eq!(names(&loaded), ["d", "later"]);
    // At the end of the archive, a size without data is accepted.
    let (loaded, _) = load(&archive(&[header("d/", b'5', 4096, "")])).unwrap();
    assert_eq!(names(&loaded), ["d"]);
}

#[test]
fn zeros_alone_are_an_archive_without_members() {
    for (len, warned) in [(10_240, 0), (1024, 0), (512, 1), (700, 1)] {
        let zeros = vec![0; len];
        assert!(is_empty_tar(&zeros) && !looks_like_tar(&zeros));
        let (loaded, warnings) = load(&zeros).unwrap();
        assert_eq!((names(&loaded).len(), warnings.len()), (0, warned), "{len}: {warnings:?}");
    }
    assert!(!is_empty_tar(&[0; 511]) && !is_empty_tar(b"") && !is_empty_tar(&[[0; 512], [1; 512]].concat()));
    assert_eq!(load(b"").err().unwrap().kind(), ErrorKind::Corrupt);
}

#[test]
fn one_block_of_zeros_ends_an_archive_with_a_warning() {
    let first = member("first", b'0', b"1");
    for behind in [vec![], member("late", b'0', b"2"), b"garbage".to_vec()] {
        let (loaded, warnings) = load(&[&first[..], &[0; 512], &behind].concat()).unwrap();
        assert_eq!(names(&loaded), ["first"]);
        assert!(warnings.len() == 1 && warnings[0].contains("one block of zeros"), "{warnings:?}");
    }
    let (_, warnings) = load(&[&archive(&[first])[..], b"garbage"].concat()).unwrap();
    assert!(warnings.is_empty(), "behind the end anything may stand: {warnings:?}");
}

fn compressed(command: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let tool = peer(command[0])?;
    let arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = command[1..].iter().map(|a| a as _).collect();
    let mut child = tool.command(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let feeder = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    assert!(output.status.success(), "{command:?}");
    Some(output.stdout)
}

/// Compressors, and true if truncation and damage are detectable.
const COMPRESSORS: [(&[&str], bool); 17] = [
    (&["gzip", "-c"], true),
    (&["xz", "-c"], true),
    (&["xz", "-c", "--check=sha256", "--block-size=65536"], true),
    (&["zstd", "-c", "--check"], true),
    (&["bzip2", "-c"], true),
    (&["lzip", "-c"], true),
    (&["lzip", "-c", "-b", "100000", "-1"], true),
    (&["lz4", "-c", "-q"], true),
    (&["lz4", "-c", "-q", "-9", "-BX", "-B4", "--content-size"], true),
    (&["lz4", "-c", "-q", "-BD", "-B4"], true),
    (&["lz4", "-c", "-q", "-BD", "-B7", "-9"], true),
    (&["lz4", "-c", "-q", "-l"], false),
    (&["xz", "-c", "--format=lzma"], false),
    (&["compress", "-c", "-f"], false),
    (&["compress", "-c", "-f", "-b", "10"], false),
    (&["compress", "-c", "-f", "-b", "12"], false),
    (&["compress", "-c", "-f", "-b", "15"], false),
];

/// Returns an archive that is long enough to fill and reset tables, and for several blocks.
fn varied() -> Vec<u8> {
    let mut random = Random::new(17);
    let text = random.text(300_000);
    let noise = random.noise(150_000);
    archive(&[
        member("text", b'0', &text),
        member("noise", b'0', &noise),
        member("zeros", b'0', &[0; 200_000]),
        member("again", b'0', &text[..200_000]),
        member("alternating", b'0', &b"ab".repeat(40_000)),
    ])
}

#[test]
fn every_compression_gives_what_went_in() {
    let plain = varied();
    let (expected, _) = load(&plain).unwrap();
    for (command, _) in COMPRESSORS {
        let Some(packed) = compressed(command, &plain) else { continue };
        let (loaded, warnings) = load(&packed).unwrap_or_else(|error| panic!("{command:?}: {error}"));
        for name in names(&expected) {
            assert!(content(&loaded, &name) == content(&expected, &name), "{command:?}: {name}");
        }
        assert!(warnings.is_empty(), "{command:?}: {warnings:?}");
    }
}

#[test]
fn members_of_every_compression_may_follow_one_another() {
    let plain = varied();
    let (front, back) = plain.split_at(300_001);
    for (command, _) in COMPRESSORS {
        // Neither format has an end marker.
        if command[0] == "compress" {
            continue;
        }
        let Some(first) = compressed(command, front) else { continue };
        let second = compressed(command, back).unwrap();
        let (loaded, warnings) =
            load(&[first, second].concat()).unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert_eq!((names(&loaded).len(), warnings.len()), (5, 0), "{command:?}");
    }
    // LZ4 and Zstandard share skippable frames.
    let skipped = [&0x184d_2a53_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
    for command in [&["lz4", "-c", "-q"][..], &["zstd", "-c"]] {
        let Some(packed) = compressed(command, &plain) else { continue };
        for bytes in [[&skipped[..], &packed].concat(), [&packed[..], &skipped].concat()] {
            let (loaded, warnings) = load(&bytes).unwrap();
            assert_eq!((names(&loaded).len(), warnings.len()), (5, 0), "{command:?}");
        }
    }
}

#[test]
fn garbage_behind_compressed_data_is_left_out_with_a_warning() {
    let plain = varied();
    for (command, _) in COMPRESSORS {
        // Its end cannot be detected.
        if command[0] == "compress" || command.contains(&"-l") {
            continue;
        }
        let Some(packed) = compressed(command, &plain) else { continue };
        for garbage in [&b"garbage"[..], b"\n", &[0, 0, 0, 0, 7], &[0xff; 100]] {
            let (loaded, warnings) = load(&[&packed[..], garbage].concat())
                .unwrap_or_else(|error| panic!("{command:?} {garbage:?}: {error}"));
            assert_eq!(names(&loaded).len(), 5, "{command:?}");
            assert!(
                warnings.len() == 1 && warnings[0].contains("ignored data after"),
                "{command:?}: {warnings:?}"
            );
        }
        let (_, warnings) = load(&[&packed[..], &[0; 10_000]].concat()).unwrap();
        assert!(warnings.is_empty(), "{command:?}: zeros are padding: {warnings:?}");
        // Missing members are an error, not just garbage.
        let Some(half) = compressed(command, &plain[..300_544 + 512]) else { continue };
        let error = load(&[&half[..], b"garbage"].concat()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{command:?}: {error}");
    }
}

#[test]
fn cut_and_damaged_compressed_archives_are_refused_and_never_panic() {
    let plain = archive(&[member("text", b'0', &Random::new(5).text(9000)), member("b", b'0', b"2")]);
    let mut random = Random::new(23);
    for (command, has_checksum) in COMPRESSORS {
        let Some(packed) = compressed(command, &plain) else { continue };
        for cut in (1..packed.len()).step_by(397) {
            let outcome = load(&packed[..cut]).map(|_| ());
            assert!(outcome.is_err() || !has_checksum, "{command:?}: cut to {cut} of {}", packed.len());
        }
        for _ in 0..20 {
            let mut damaged = packed.clone();
            let at = random.below(packed.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            if let Err(error) = load(&damaged).map(|_| ()) {
                let kind = error.kind();
                assert!(
                    matches!(
                        kind,
                        ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Io | ErrorKind::Failed
                    ),
                    "{command:?}: {error}"
                );
            }
        }
    }
}

#[test]
fn an_lz4_archive_with_a_wrong_checksum_is_corrupt() {
    let Some(packed) = compressed(&["lz4", "-c", "-q", "-BX"], &varied()) else { return };
    let last = packed.len() - 1;
    for at in [5, 100, last] {
        let mut damaged = packed.clone();
        damaged[at] ^= 1;
        assert_eq!(load(&damaged).err().unwrap().kind(), ErrorKind::Corrupt, "byte {at}");
    }
}

fn with_list(key: &str, text: &str, typeflag: u8) -> (Loaded, Vec<String>) {
    let name = if typeflag == b'5' { "a/" } else { "a" };
    load(&archive(&[pax(key, text), member(name, typeflag, b""), member("later", b'0', b"2")])).unwrap()
}

#[test]
fn an_access_list_by_name_is_that_of_this_machines_ids() {
    let access = b"system.posix_acl_access".to_vec();
    for text in [
        "user::rw-\nuser:root:rwx\ngroup::r--\ngroup:root:r-x\nmask::rwx\nother::---\n",
        "user::rw-\nuser:root:rwx\t#effective:r-x\ngroup::r--\ngroup:0:r-x\nmask::rwx\nother::---\n",
        "user::rw-,user:no-such-user:rwx:0,group::r--,group:x:r-x:0,mask::rwx,other::---",
    ] {
        let (loaded, warnings) = with_list("SCHILY.acl.access", text, b'0');
        let lists = loaded.tree.xattrs(node(&loaded, "a").xattrs);
        assert_eq!(lists[&access][12..20], [2, 0, 7, 0, 0, 0, 0, 0], "{text}");
        assert_eq!(lists[&access].len(), 4 + 6 * 8);
        assert!(warnings.is_empty(), "{warnings:?}");
    }
    let (loaded, _) = with_list(
        "SCHILY.acl.default",
        "user::rwx\nuser:root:rwx\ngroup::r-x\nmask::rwx\nother::---\n",
        b'5',
    );
    let node = node(&loaded, "a");
    assert!(loaded.tree.xattrs(node.xattrs).contains_key(&b"system.posix_acl_default"[..]));
    assert_eq!(node.meta.mode, 0o664, "a default list is not about the directory itself");
}

#[test]
fn drops_lists_of_unknown_users_with_one_warning_and_grants_nothing() {
    let text = "user::rw-\nuser:nobody here:rw-\ngroup::r--\nmask::rw-\nother::r--\n";
    let (loaded, warnings) = with_list("SCHILY.acl.access", text, b'0');
    assert!(loaded.tree.xattrs(node(&loaded, "a").xattrs).is_empty());
    assert_eq!(node(&loaded, "a").meta.mode, 0o644, "the mask was not the group's own");
    assert!(warnings.len() == 1 && warnings[0].contains("nobody here"), "{warnings:?}");
    let many: Vec<Vec<u8>> = (0..5)
        .map(|n| [pax("SCHILY.acl.access", text), member(&format!("f{n}"), b'0', b"")].concat())
        .collect();
    let (_, warnings) = load(&archive(&many)).unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("4 more"), "{warnings:?}");
    for wrong in ["nonsense", "user::rw-,user:1:r--,group::r--,other::r--", "user::rw-"] {
        let (_, warnings) = with_list("SCHILY.acl.access", wrong, b'0');
        assert_eq!(warnings.len(), 1, "{wrong}");
    }
}

#[test]
fn permission_bits_are_those_of_the_list_with_the_mask_as_the_groups() {
    for (text, mode) in [
        ("user::rwx,user:1000:rw-,group::r--,mask::r-x,other::--x", 0o751),
        ("user::rw-,group::rw-,mask::r--,other::---", 0o640),
        ("user::rwx,group::r-x,other::---", 0o750),
    ] {
        let (loaded, _) = with_list("SCHILY.acl.access", text, b'0');
        assert_eq!(node(&loaded, "a").meta.mode, mode, "{text}");
    }
}

#[test]
fn a_global_access_list_counts_as_attributes_do() {
    let text = "user:1:r--,".repeat(7000);
    let record = pax("SCHILY.acl.access", &text);
    let mut global = record.clone();
    global[..512].copy_from_slice(&header("g", b'g', record.len() - 512, ""));
    // The header contains the length of the record without its padding.
    let len = record.iter().rposition(|&b| b == b'\n').unwrap() + 1 - 512;
    global[..512].copy_from_slice(&header("g", b'g', len, ""));
    let error = load(&archive(&[global, member("a", b'0', b"")])).err().unwrap();
    assert!(error.to_string().contains("global"), "{error}");
}
