//! The manifest source and its writer: round trips, all features of lines, and errors.

use packfs_core::{ErrorKind, Held, NodeKind, Silent, Timestamp, Tree};
use packfs_source::{Loaded, Shape, load_dir, load_manifest, looks_like_manifest, write_manifest};
use packfs_testkit::{Compare, Random, is_root, odd_tree, path, snapshot_tree, write_dir};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// A directory with a manifest in it.
struct Fixture(TempDir);

impl Fixture {
    fn new(lines: &str) -> Self {
        let fixture = Fixture(tempfile::tempdir().unwrap());
        fs::write(fixture.path(), format!("#packfs-manifest 1\n{lines}")).unwrap();
        fixture
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("root.manifest")
    }

    fn file(self, name: &str, bytes: &[u8]) -> Self {
        fs::write(self.0.path().join(name), bytes).unwrap();
        self
    }

    #[track_caller]
    fn load(&self) -> Loaded {
        load_manifest(&self.path(), &Shape::default(), &Silent).unwrap_or_else(|error| panic!("{error}"))
    }

    #[track_caller]
    fn error(&self) -> packfs_core::Error {
        load_manifest(&self.path(), &Shape::default(), &Silent).err().expect("an error")
    }
}

fn written(tree: &Tree) -> Vec<u8> {
    let mut out = Vec::new();
    write_manifest(tree, &mut out).unwrap();
    out
}

fn bytes(loaded: &Loaded, at: &str) -> Vec<u8> {
    let NodeKind::File { len, content } = loaded.tree.node(loaded.tree.find(&path(at)).unwrap()).kind else {
        panic!("{at} is a file")
    };
    let mut bytes = vec![0xaa; len as usize];
    loaded.contents.open(content).unwrap().read_exact_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_written_manifest_makes_the_same_tree_and_the_same_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, is_root());
    write_dir(&tree, &contents, folder.path());
    let first = written(&tree);
    assert!(looks_like_manifest(&first));
    fs::write(folder.path().join("the-manifest"), &first).unwrap();
    let loaded = load_manifest(&folder.path().join("the-manifest"), &Shape::default(), &Silent).unwrap();
    assert!(written(&loaded.tree) == first, "the second manifest differs from the first");
    let compare = Compare { nanos: true, ..Compare::default() };
    snapshot_tree(&tree, &contents).assert_same(
        &snapshot_tree(&loaded.tree, &*loaded.contents),
        compare,
        "tree and loaded manifest",
    );
}

#[test]
fn a_manifest_of_a_directory_keeps_times_to_the_nanosecond() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("new"), "x").unwrap();
    let tree = load_dir(folder.path(), &Shape::default(), &Silent).unwrap().tree;
    fs::write(folder.path().join("m"), written(&tree)).unwrap();
    let loaded = load_manifest(&folder.path().join("m"), &Shape::default(), &Silent).unwrap();
    let mtime = |tree: &Tree| tree.node(tree.find(&path("new")).unwrap()).meta.mtime;
    assert_eq!(mtime(&loaded.tree), mtime(&tree));
}

#[test]
fn lines_describe_everything_in_a_tree() {
    let fixture = Fixture::new(concat!(
        "# a comment, and an empty line\n",
        "\n",
        "default uid=1 gid=2 mtime=10\n",
        "default dir mode=0750\n",
        "dir / uid=0\n",
        "  # another comment\n",
        "file etc/motd data=\"hello\\n\\x00\" mode=0600 xattr.user.a=b xattr.\"user.c d\"=\"\\xff\"\r\n",
        "file etc/empty\n",
        "symlink etc/link target=../motd\n",
        "block dev/sda major=8 minor=0 mode=0660\n",
        "char dev/null major=1 minor=3\n",
        "fifo run/pipe\n",
        "socket run/socket mtime=-1.5\n",
        "link etc/later target=etc/z\n",
        "file \"etc/z\" data=z\n",
        "file \"#odd\\\\ name\"",
    ));
    let loaded = fixture.load();
    let expected = concat!(
        "#packfs-manifest 1\n",
        "dir / mode=0750 uid=0 gid=2 mtime=10\n",
        "file \"#odd\\\\ name\" mode=0644 uid=1 gid=2 mtime=10\n",
        "dir dev mode=0755 uid=0 gid=0 mtime=0\n",
        "char dev/null mode=0600 uid=1 gid=2 mtime=10 major=1 minor=3\n",
        "block dev/sda mode=0660 uid=1 gid=2 mtime=10 major=8 minor=0\n",
        "dir etc mode=0755 uid=0 gid=0 mtime=0\n",
        "file etc/empty mode=0644 uid=1 gid=2 mtime=10\n",
        "file etc/later mode=0644 uid=1 gid=2 mtime=10 size=1 from=etc/later\n",
        "symlink etc/link mode=0777 uid=1 gid=2 mtime=10 target=../motd\n",
        "file etc/motd mode=0600 uid=1 gid=2 mtime=10 size=7 from=etc/motd xattr.user.a=b",
        " xattr.\"user.c d\"=\"\\xff\"\n",
        "link etc/z target=etc/later\n",
        "dir run mode=0755 uid=0 gid=0 mtime=0\n",
        "fifo run/pipe mode=0644 uid=1 gid=2 mtime=10\n",
        "socket run/socket mode=0644 uid=1 gid=2 mtime=-1.5\n",
    );
    assert_eq!(String::from_utf8(written(&loaded.tree)).unwrap(), expected);
    assert_eq!(bytes(&loaded, "etc/motd"), b"hello\n\0");
    assert_eq!(bytes(&loaded, "etc/z"), b"z");
    let socket = loaded.tree.node(loaded.tree.find(&path("run/socket")).unwrap());
    assert_eq!(socket.meta.mtime, Timestamp { seconds: -2, nanos: 500_000_000 });
}

#[test]
fn contents_come_from_files_beside_the_manifest_whole_or_in_part() {
    let fixture = Fixture::new(concat!(
        "file whole from=f\n",
        "file sized size=10 from=f\n",
        "file rest from=f offset=7\n",
        "file part from=\"f\" offset=2 size=3\n",
        "file none from=f offset=10\n",
        "file zeros size=5\n",
    ))
    .file("f", b"0123456789");
    let loaded = fixture.load();
    for (name, expected) in [
        ("whole", &b"0123456789"[..]),
        ("sized", b"0123456789"),
        ("rest", b"789"),
        ("part", b"234"),
        ("none", b""),
        ("zeros", &[0; 5]),
    ] {
        assert_eq!(bytes(&loaded, name), expected, "{name}");
    }
    let NodeKind::File { content, .. } = loaded.tree.node(loaded.tree.find(&path("part")).unwrap()).kind
    else {
        panic!("a file")
    };
    let mut reader = loaded.contents.open(content).unwrap();
    assert_eq!(reader.next_data(1).unwrap(), Some(1..3));
    assert_eq!(reader.next_data(3).unwrap(), None);
    assert!(reader.read_exact_at(1, &mut [0; 3]).is_err(), "a part ends where it was said to end");
}

#[test]
fn holes_are_known_if_stated_or_detected() {
    let fixture = Fixture::new(
        "file said size=1099511627776\nfile found from=sparse\nfile part from=sparse offset=1048576\n",
    );
    let sparse = fs::File::create(fixture.0.path().join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(b"x", 32 << 20).unwrap();
    let loaded = fixture.load();
    let next = |name: &str| {
        let NodeKind::File { content, len } = loaded.tree.node(loaded.tree.find(&path(name)).unwrap()).kind
        else {
            panic!("a file")
        };
        (len, loaded.contents.open(content).unwrap().next_data(0).unwrap())
    };
    assert_eq!(next("said"), (1 << 40, None));
    let (_, Some(found)) = next("found") else { panic!("data") };
    assert!(found.start > 16 << 20 && found.contains(&(32 << 20)) && found.end < 48 << 20, "{found:?}");
    let shifted = found.start - (1 << 20)..found.end - (1 << 20);
    assert_eq!(next("part"), (63 << 20, Some(shifted)));
}

#[test]
fn a_file_that_changes_after_it_was_looked_at_is_an_error_that_names_it() {
    let fixture =
        Fixture::new("file a from=grows\nfile b from=vanishes\n").file("grows", b"1").file("vanishes", b"2");
    let loaded = fixture.load();
    fs::write(fixture.0.path().join("grows"), b"12").unwrap();
    fs::remove_file(fixture.0.path().join("vanishes")).unwrap();
    for (name, host) in [("a", "grows"), ("b", "vanishes")] {
        let NodeKind::File { content, .. } = loaded.tree.node(loaded.tree.find(&path(name)).unwrap()).kind
        else {
            panic!("a file")
        };
        let error = loaded.contents.open(content).err().expect("an error").to_string();
        assert!(error.contains(host), "{error}");
    }
}

#[test]
fn errors_name_the_line_what_was_found_and_what_is_allowed() {
    for (lines, at, words) in [
        ("flie a\n", 2, &["type \"flie\"", "file, dir, symlink"][..]),
        ("\n# x\nfile a mod=0644\n", 4, &["key \"mod\"", "mode, uid"]),
        ("file a\nfile ./a\n", 3, &["\"a\"", "already on line 2"]),
        ("dir d\ndir d/\n", 3, &["\"d\"", "already on line 2"]),
        ("file a uid=x\n", 2, &["uid \"x\"", "0 to 4294967295"]),
        ("file \"a\\q\"\n", 2, &["escape \\q", "\\xNN"]),
        ("file \"a\n", 2, &["quote is not closed"]),
        ("file ../a\n", 2, &["name \"..\""]),
        ("link a target=b\n", 2, &["\"b\"", "no line has this path"]),
        ("dir d\nlink a target=d\n", 3, &["\"d\"", "directory"]),
        ("file d/a\nfile d\n", 3, &["\"d\"", "directory with entries"]),
        ("file d\nfile d/a\n", 3, &["\"d/a\"", "below a file"]),
        ("link d target=a\nfile d/x/y\nfile a\n", 2, &["\"d\"", "directory with entries"]),
        ("file /\n", 2, &["root must be a directory"]),
        ("file a from=nowhere\n", 2, &["cannot open", "nowhere"]),
        ("file a from=.\n", 2, &["not a regular file"]),
        ("file a from=root.manifest size=1\n", 2, &["bytes, the line says", "size=1"]),
        ("file a from=root.manifest offset=1000000\n", 2, &["bytes, the line says", "offset=1000000"]),
    ] {
        let error = Fixture::new(lines).error().to_string();
        assert!(error.contains(&format!("root.manifest:{at}: ")), "{lines:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{lines:?}: {error}");
    }
    let fixture = Fixture::new("");
    fs::write(fixture.path(), b"#packfs-manifest 1\nfile \xff\n").unwrap();
    let error = fixture.error();
    assert!(
        error.to_string().contains("root.manifest:2: ") && error.to_string().contains("UTF-8"),
        "{error}"
    );
    assert_eq!((error.kind(), error.hints().len()), (ErrorKind::Corrupt, 1));
}

#[test]
fn the_first_line_identifies_a_manifest_and_its_version() {
    let fixture = Fixture::new("");
    for (first, kind) in [
        ("", ErrorKind::Corrupt),
        ("file a\n", ErrorKind::Corrupt),
        ("#packfs-manifest\n", ErrorKind::Corrupt),
        ("#packfs-manifest 1x\n", ErrorKind::Corrupt),
        ("#packfs-manifest 2\nwhatever\n", ErrorKind::Unsupported),
    ] {
        fs::write(fixture.path(), first).unwrap();
        let error = fixture.error();
        assert_eq!(error.kind(), kind, "{first:?}: {error}");
        assert!(error.to_string().contains("root.manifest:1: "), "{error}");
    }
    assert!(looks_like_manifest(b"#packfs-manifest 2\n"));
    assert!(!looks_like_manifest(b"# packfs-manifest 1\n") && !looks_like_manifest(b""));
}

#[test]
fn hard_links_in_a_circle_are_refused() {
    let error = Fixture::new("link a target=b\nlink b target=a\n").error().to_string();
    assert!(error.contains("circle") && error.contains("root.manifest"), "{error}");
}

#[test]
fn skips_unreadable_files_and_their_links_with_keep_going() {
    let lines = "link d target=b\nfile a from=nowhere\nlink b target=a\nfile c data=c\nlink e target=c\n";
    let fixture = Fixture::new(&(lines.to_string() + "file f from=.\nfile g from=root.manifest size=1\n"));
    let shape = Shape { keep_going: true, ..Shape::default() };
    let loaded = load_manifest(&fixture.path(), &shape, &Silent).unwrap();
    let there: Vec<&str> = ["a", "b", "c", "d", "e", "f", "g"]
        .into_iter()
        .filter(|at| loaded.tree.find(&path(at)).is_some())
        .collect();
    assert_eq!(there, ["c", "e"]);
    let notes = &loaded.notes.unreadable;
    let expected =
        [(3, "nowhere"), (7, "regular file"), (8, "bytes, the line says"), (2, "left out"), (4, "left out")];
    assert_eq!(notes.len(), expected.len(), "{notes:?}");
    for (note, (line, words)) in notes.iter().zip(expected) {
        assert!(note.contains(&format!("root.manifest:{line}: ")) && note.contains(words), "{note}");
    }
}

#[test]
fn is_shaped_as_every_source_is() {
    let fixture = Fixture::new("file usr/a data=a\nlink usr/b target=usr/a\nfile var/c data=c\n");
    let shape = Shape {
        exclude: vec!["usr/a".into(), "var".into()],
        strip_prefix: path("usr"),
        uid: Some(9),
        ..Shape::default()
    };
    let loaded = load_manifest(&fixture.path(), &shape, &Silent).unwrap();
    assert_eq!(bytes(&loaded, "b"), b"a");
    assert_eq!(loaded.tree.node(loaded.tree.find(&path("b")).unwrap()).meta.owner.uid, 9);
    assert_eq!(loaded.tree.entry_count(), 1);
}

#[test]
fn a_fifo_in_a_files_place_does_not_make_it_wait() {
    let fixture = Fixture::new("file a from=pipe\n");
    let pipe = fixture.0.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(fixture.error().to_string().contains("not a regular file"));
}

#[test]
fn damaged_manifests_are_read_or_refused_but_never_panic() {
    let (tree, _): (Tree, Held) = odd_tree(512, true);
    let whole = written(&tree);
    // Lines of every type except files, which do not exist.
    let lines: Vec<&[u8]> = whole.split_inclusive(|&b| b == b'\n').collect();
    assert!(lines.len() > 100);
    let is_file = |line: &&&[u8]| line.starts_with(b"file") && line.windows(6).any(|w| w == b" from=");
    let sample: Vec<u8> = lines
        .iter()
        .filter(|line| !is_file(line) && !line.starts_with(b"link"))
        .take(60)
        .copied()
        .collect::<Vec<_>>()
        .concat();
    let fixture = Fixture::new("");
    let mut random = Random::new(7);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..2000 {
        let mut bytes = sample.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = b"\\\"= \n#x\0"[random.below(8) as usize],
                2 => bytes.truncate(at.max(1)),
                _ => {
                    let part = bytes[at..].iter().take(20).copied().collect::<Vec<_>>();
                    bytes.splice(at / 2..at / 2, part);
                }
            }
        }
        fs::write(fixture.path(), &bytes).unwrap();
        match load_manifest(&fixture.path(), &Shape::default(), &Silent) {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                refused += 1;
            }
        }
    }
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}

#[test]
fn an_added_file_that_changes_before_it_is_read_is_an_error() {
    let fixture = Fixture::new("file /a data=x\n").file("host", b"host");
    fs::write(fixture.0.path().join("table"), "f /b 0644 0 0 host\n").unwrap();
    let mut shape = Shape::default();
    shape.additions.add_file(&fixture.0.path().join("table")).unwrap();
    let loaded = load_manifest(&fixture.path(), &shape, &Silent).unwrap();
    assert_eq!((bytes(&loaded, "a"), bytes(&loaded, "b")), (b"x".to_vec(), b"host".to_vec()));
    fs::write(fixture.0.path().join("host"), b"another").unwrap();
    let NodeKind::File { content, .. } = loaded.tree.node(loaded.tree.find(&path("b")).unwrap()).kind else {
        panic!("b is a file")
    };
    let error = loaded.contents.open(content).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("changed during packing"), "{error}");
}
