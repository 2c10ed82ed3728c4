//! composefs: images equal those of mkcomposefs, byte for byte, and are read as Linux's overlayfs
//! shows them.

mod generated;
mod hostile;
mod mounted;
mod written;

use packfs::composefs::{ComposefsOptions, Versions, dump, make, make_of_dump};
use packfs::{OpenOptions, Silent, open_bytes};
use packfs_testkit::{Random, is_root, peer, skip};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Every kind of file, with the fs-verity digests that mkcomposefs 1.0.8 prints for versions 0 and
/// 1 of the image.
const DUMP: &str = "\
/ 4096 40755 4 0 0 0 100.5 - - - security.selinux=system_u:object_r:root_t:s0\\x00
/00 0 100644 1 0 0 0 100.5 - - -
/-dash 2 120777 1 0 0 0 100.5 \\x2d - -
/a\\x20dir 0 40755 2 1000 1000 0 100.5 - - -
/a\\x20dir/gone 0 20000 1 0 0 0 200.0 - - - user.kept=1
/a\\x20dir/inline 5 100644 2 0 0 0 100.5 - abc\\n\\x00 -
/big 70000 100755 1 70000 0 0 100.5 ab/cd000000000000000000000000000000000000000000000000000000000000 - abcd000000000000000000000000000000000000000000000000000000000000 user.kept=1 trusted.overlay.opaque=y
/fifo 0 10600 1 0 0 0 100.5 - - -
/hard 5 @100644 2 0 0 0 100.5 /a\\x20dir/inline - -
/null 0 20666 1 0 0 259 100.5 - - - system.posix_acl_access=\\x02\\x00\\x00\\x00
/socket 0 140755 1 0 0 0 100.5 - - -
/unknown 9 100600 1 0 0 0 100.5 - - -
";
const DIGESTS: [&str; 2] = [
    "f0fe1ef5b842013b5fc7b3967bf38f5e8379215003d5fc4d72f2d2d3d12ca694",
    "18f748be332e297989fa918a3c9e7fefe4ac048d7ca322bec268401b325e99ae",
];

fn image(dump: &[u8], versions: Versions) -> Vec<u8> {
    make_of_dump(&mut &dump[..], versions).unwrap().bytes
}

fn dumped(image: Vec<u8>) -> Vec<u8> {
    let mut text = Vec::new();
    dump(&open_bytes(image).unwrap(), &mut text).unwrap();
    text
}

#[test]
fn images_have_the_digests_of_mkcomposefs() {
    for (version, digest) in DIGESTS.into_iter().enumerate() {
        let version = u32::try_from(version).unwrap();
        let made = make_of_dump(&mut DUMP.as_bytes(), Versions { min: version, max: version }).unwrap();
        assert_eq!(made.report.digest, digest, "version {version}");
    }
    // There is a whiteout.
    let made = make_of_dump(&mut DUMP.as_bytes(), Versions::default()).unwrap();
    assert_eq!(made.report.digest, DIGESTS[1]);
    let plain = make_of_dump(&mut &b"/ 0 40755 2 0 0 0 0.0 - - -\n"[..], Versions::default()).unwrap();
    assert_eq!(plain.bytes[12], 0);
}

#[test]
fn a_dump_of_an_image_makes_the_same_image() {
    for version in [0, 1] {
        let versions = Versions { min: version, max: version };
        let first = image(DUMP.as_bytes(), versions);
        let text = dumped(first.clone());
        assert!(image(&text, versions) == first, "{}", String::from_utf8_lossy(&text));
        assert_eq!(dumped(first), text);
    }
    let text = String::from_utf8(dumped(image(DUMP.as_bytes(), Versions::default()))).unwrap();
    // The whiteout, the escaped attribute and the names are those of the dump.
    for line in [
        "/a\\x20dir/gone 0 20000 1 0 0 0 200.0 - - - user.kept=1\n",
        "- abcd000000000000000000000000000000000000000000000000000000000000 trusted.overlay.opaque=y user.kept=1\n",
        "/hard 5 @100644 2 0 0 0 100.500000000 /a\\x20dir/inline abc\\n\\x00 -\n",
    ] {
        let line = line.replace("100.500000000", "100.5");
        assert!(text.contains(&line), "no {line:?} in {text}");
    }
    assert!(!text.contains("\n/01 "), "{text}");
}

#[test]
fn dumps_that_mean_nothing_are_refused_with_their_line() {
    let root = "/ 0 40755 2 0 0 0 0.0 - - -\n";
    let long = "x".repeat(256);
    let value = "v".repeat(33_000);
    for (line, words) in [
        ("", "no lines"),
        ("/ 0 100644 1 0 0 0 0.0 - - -\n", "root must be a directory"),
        ("/a 0 100644 1 0 0 0 0.0 - - -\n", "must come in a line before"),
        (&format!("{root}{root}"), "twice"),
        (&format!("{root}// 0 40755 2 0 0 0 0.0 - - -\n"), "no name"),
        (&format!("{root}/.. 0 40755 2 0 0 0 0.0 - - -\n"), "line 2"),
        (&format!("{root}/a 0 755 2 0 0 0 0.0 - - -\n"), "no file type"),
        (&format!("{root}/a 0 120777 1 0 0 0 0.0 - - -\n"), "target of a symlink"),
        (&format!("{root}/a 3 100644 1 0 0 0 0.0 - ab -\n"), "CONTENT has 2 bytes"),
        (&format!("{root}/a 0 100644 1 0 0 0 0 - - -\n"), "MTIME"),
        (&format!("{root}/a 0 100644 1 0 0 0 0.1000000000 - - -\n"), "nanoseconds"),
        (&format!("{root}/a 1 100644 1 0 0 0 0.0 - - abc\n"), "DIGEST"),
        (&format!("{root}/a 9500000000000000 100644 1 0 0 0 0.0 - - -\n"), "do not fit"),
        (&format!("{root}/a 0 @100644 1 0 0 0 0.0 /b - -\n"), "missing"),
        (&format!("{root}/a 0 @100644 1 0 0 0 0.0 /a - -\n"), "leads to itself"),
        (&format!("{root}/a 0 @100644 1 0 0 0 0.0 / - -\n"), "directory"),
        (&format!("{root}/a 0 100644 1 0 0 0 0.0 - - - =x\n"), "name of an attribute"),
        (&format!("{root}/a 0 100644 1 0 0 0 0.0 - - - user.a\n"), "has no ="),
        (&format!("{root}/a 0 100644 1 0 0 0 0.0 - - - user.{long}=x\n"), "name of an attribute"),
        (&format!("{root}/a 0 100644 1 0 0 0 0.0 - - - user.a={value}\n"), "32767"),
        (&format!("{root}/{long} 0 100644 1 0 0 0 0.0 - - -\n"), "255"),
        (&format!("{root}/a\\x0 0 100644 1 0 0 0 0.0 - - -\n"), "hexadecimal"),
        (&format!("{root}/a 0 100644 1 0 0\n"), "RDEV is missing"),
    ] {
        let error = make_of_dump(&mut line.as_bytes(), Versions::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{line:?}: {error}");
    }
    let wide = Versions { min: 2, max: 2 };
    assert!(make_of_dump(&mut root.as_bytes(), wide).is_err());
}

#[test]
fn an_empty_last_line_without_an_end_is_read() {
    let with_end =
        image(b"/ 0 40755 2 0 0 0 0.0 - - -\n/a 0 100644 1 0 0 0 0.0 - - -\n", Versions::default());
    let without = image(b"/ 0 40755 2 0 0 0 0.0 - - -\n/a 0 100644 1 0 0 0 0.0 - - -", Versions::default());
    assert!(with_end == without);
}

/// A tree of a machine with what an ordinary user can create.
fn write_tree(root: &Path) {
    let mut random = Random::new(7);
    for dir in ["etc", "usr/bin", "usr/share/many", "empty"] {
        std::fs::create_dir_all(root.join(dir)).unwrap();
    }
    for len in [0, 1, 63, 64, 65, 4095, 4096, 4097, 600_000] {
        std::fs::write(root.join(format!("usr/bin/{len}")), random.noise(len)).unwrap();
    }
    std::fs::write(root.join("etc/same"), std::fs::read(root.join("usr/bin/4097")).unwrap()).unwrap();
    for number in 0..700 {
        let name = format!("usr/share/many/{number}-{}", "n".repeat(number % 200));
        std::fs::write(root.join(name), "x".repeat(number % 60)).unwrap();
    }
    symlink("usr/bin", root.join("bin")).unwrap();
    symlink("t".repeat(3000), root.join("long")).unwrap();
    symlink("t".repeat(4090), root.join("longer")).unwrap();
}

#[test]
fn contents_come_from_verified_objects() {
    let folder = tempfile::tempdir().unwrap();
    let (root, objects) = (folder.path().join("root"), folder.path().join("objects"));
    write_tree(&root);
    let options = ComposefsOptions { objects: Some(objects.clone()), ..ComposefsOptions::default() };
    let made = make(&root, &options, &Silent).unwrap();
    let counts = made.report.objects.clone().unwrap();
    // Two files of 4,097 bytes have one object.
    assert_eq!((counts.written, counts.written_bytes), (5, 65 + 4095 + 4096 + 4097 + 600_000));
    let again = make(&root, &options, &Silent).unwrap();
    assert!(again.bytes == made.bytes);
    assert_eq!(again.report.objects.unwrap().written, 0);

    let path = folder.path().join("root.cfs");
    std::fs::write(&path, &made.bytes).unwrap();
    let opened =
        OpenOptions::new().objects(folder.path().join("root")).objects(&objects).open(&path).unwrap();
    for name in ["usr/bin/0", "usr/bin/64", "usr/bin/65", "usr/bin/600000", "etc/same"] {
        assert!(opened.read(name).unwrap() == std::fs::read(root.join(name)).unwrap(), "{name}");
    }
    let without = packfs::open(&path).unwrap();
    assert_eq!(without.read("usr/bin/64").unwrap().len(), 64);
    let error = without.read("usr/bin/65").unwrap_err();
    assert!(error.to_string().contains("object") && error.hints()[0].contains("--objects"), "{error}");

    // An object that was changed, one of another length, and a missing one.
    let found = packfs::composefs::objects(&opened).unwrap();
    let place = |name: &str| {
        let used = found.iter().find(|used| used.path.as_bytes() == name.as_bytes()).unwrap();
        objects.join(std::str::from_utf8(&used.object.path).unwrap())
    };
    let mut bytes = std::fs::read(place("usr/bin/4095")).unwrap();
    bytes[17] ^= 1;
    std::fs::write(place("usr/bin/4095"), bytes).unwrap();
    std::fs::write(place("usr/bin/4096"), "short").unwrap();
    std::fs::remove_file(place("usr/bin/65")).unwrap();
    let opened = OpenOptions::new().objects(&objects).open(&path).unwrap();
    for (name, words) in [
        ("usr/bin/4095", "its fs-verity digest is"),
        ("usr/bin/4096", "it has 5 bytes, and the image says 4096"),
        ("usr/bin/65", "missing in"),
    ] {
        let error = opened.read(name).unwrap_err();
        assert_eq!(error.kind(), packfs::ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(words) && error.to_string().contains(name), "{error}");
    }
    let missing = packfs::composefs::missing(found, &[objects]).unwrap();
    assert_eq!(missing.len(), 1);
}

#[test]
fn images_of_directories_equal_those_of_mkcomposefs() {
    let Some(mkcomposefs) = peer("mkcomposefs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    write_tree(&root);
    std::fs::hard_link(root.join("usr/bin/64"), root.join("etc/hard")).unwrap();
    std::fs::hard_link(root.join("usr/bin/4095"), root.join("etc/hard-object")).unwrap();
    if is_root() {
        generated::add_special_files(&root);
    } else {
        skip("devices and trusted attributes need root");
    }
    let (theirs, objects) = (folder.path().join("theirs.cfs"), folder.path().join("their-objects"));
    let store = format!("--digest-store={}", objects.display());
    mkcomposefs.run(&[&store, &root, &theirs]);
    let own_objects = folder.path().join("objects");
    let options = ComposefsOptions {
        objects: Some(own_objects.clone()),
        splits_links: true,
        ..ComposefsOptions::default()
    };
    let made = make(&root, &options, &Silent).unwrap();
    assert!(made.bytes == std::fs::read(&theirs).unwrap(), "the images differ");
    let names = |dir: &Path| {
        let dirs = std::fs::read_dir(dir).unwrap().map(|dir| dir.unwrap().path());
        let files = dirs.flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()));
        let mut files: Vec<_> = files.map(|file| file.strip_prefix(dir).unwrap().to_owned()).collect();
        files.sort();
        files
    };
    assert_eq!(names(&objects), names(&own_objects));
}
