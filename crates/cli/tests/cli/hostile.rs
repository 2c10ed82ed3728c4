//! Structures that no honest builder writes, in images of both formats: what every verb does with
//! them. The table of docs/design/reliability.md, "Hostile structures", is this file's in words.

use crate::fixture::{Fixture, Run};

/// Code 3: the input breaks the rules of its own format.
const CORRUPT: i32 = 3;

/// Entries of the root of every image here, in this order: files, and two directories.
const NAMES: [&str; 6] = ["aa", "bb", "dir1", "dir2", "x.y", "zz"];

/// An image without any compression, so that its bytes can be changed where they lie.
struct Image {
    bytes: Vec<u8>,
    /// Offsets of the record of each of [`NAMES`], and of its name.
    places: Vec<(usize, usize)>,
    is_erofs: bool,
}

impl Image {
    fn new(fixture: &Fixture, format: &str) -> Self {
        let image = format!("true.{format}");
        fixture.run(["pack", "m", &image, "-q", "-f", format, "--codec", "none"]).done();
        let mut bytes = fixture.bytes(&image);
        let find = |bytes: &[u8], wanted: &[u8]| {
            let found: Vec<_> =
                bytes.windows(wanted.len()).enumerate().filter(|(_, at)| *at == wanted).collect();
            assert_eq!(found.len(), 1, "{format}: {}", String::from_utf8_lossy(wanted));
            found[0].0
        };
        let is_erofs = format == "erofs";
        let places = if is_erofs {
            // Records of 12 bytes first, then all names: `.` and `..` sort before ours.
            let names = find(&bytes, format!("...{}", NAMES.concat()).as_bytes());
            let records = names - 12 * (NAMES.len() + 2);
            let mut name = names + 3;
            let place = |(index, text): (usize, &&str)| {
                name += text.len();
                (records + 12 * (index + 2), name - text.len())
            };
            // The superblock's checksum is none of our business: the feature is taken out.
            let places = NAMES.iter().enumerate().map(place).collect();
            bytes[1024 + 8] &= !1;
            places
        } else {
            // Each name behind 8 bytes of its own.
            NAMES
                .iter()
                .map(|name| {
                    let record = [&(name.len() as u16 - 1).to_le_bytes(), name.as_bytes()].concat();
                    let at = find(&bytes, &record) + 2;
                    (at - 8, at)
                })
                .collect()
        };
        Image { bytes, places, is_erofs }
    }

    fn place(&self, name: &str) -> (usize, usize) {
        self.places[NAMES.iter().position(|known| *known == name).unwrap()]
    }

    /// Another name of the same length.
    fn rename(&mut self, name: &str, to: &[u8]) {
        let (_, at) = self.place(name);
        assert_eq!(name.len(), to.len());
        self.bytes[at..at + to.len()].copy_from_slice(to);
    }

    /// Makes a name lead to the inode that `to` leads to.
    fn lead(&mut self, name: &str, to: &str) {
        let (own, other) = (self.place(name).0, self.place(to).0);
        let len = if self.is_erofs { 8 } else { 4 };
        self.bytes.copy_within(other..other + len, own);
    }

    /// Makes a directory lead to the root.
    fn lead_to_root(&mut self, name: &str) {
        let own = self.place(name).0;
        if self.is_erofs {
            // `.` is the first record of the root.
            let root = self.place(NAMES[0]).0 - 24;
            self.bytes.copy_within(root..root + 8, own);
        } else {
            // Its inode lies in the same block as all others: the lower 16 bits of the superblock's
            // reference.
            self.bytes.copy_within(32..34, own);
        }
    }
}

const MANIFEST: &str = "#packfs-manifest 1\ndefault uid=0 gid=0 mtime=0\ndefault dir mode=0755\n\
default file mode=0644\ndir /\nfile /aa data=1\nfile /bb data=22\ndir /dir1\nfile /dir1/inside data=333\ndir /dir2\n\
file /x.y data=4444\nfile /zz data=55555\n";

/// Every verb that looks at names, on an image called `image`.
const VERBS: [&[&str]; 9] = [
    &["ls", "-R", "image"],
    &["unpack", "image", "out"],
    &["tar", "image", "-o", "out.tar"],
    &["info", "--manifest", "image"],
    &["check", "image"],
    &["check", "--data", "image"],
    &["diff", "image", "m"],
    &["pack", "image", "new.sqfs"],
    &["pack", "image", "new.erofs"],
];

/// Answers of each verb for a changed image, in both formats.
fn each(change: impl Fn(&mut Image), told: impl Fn(&str, &[&str], &Run)) {
    for format in ["squashfs", "erofs"] {
        let fixture = Fixture::new();
        fixture.write("m", MANIFEST);
        let mut image = Image::new(&fixture, format);
        change(&mut image);
        fixture.write("image", &image.bytes);
        for verb in VERBS {
            let run = fixture.run(verb);
            told(format, verb, &run);
            if run.code != Some(0) {
                for name in ["out.tar", "new.sqfs", "new.erofs"] {
                    assert!(!fixture.path(name).exists(), "{format} {verb:?} left {name}");
                }
                // All that is sound is there.
                let made = std::fs::read_dir(fixture.path("out")).map_or(0, Iterator::count);
                let least = if *verb == ["unpack", "image", "out"] { NAMES.len() - 1 } else { 0 };
                assert!(made >= least, "{format} {verb:?} made {made}");
            }
            let _ = std::fs::remove_dir_all(fixture.path("out"));
            for name in ["out.tar", "new.sqfs", "new.erofs"] {
                let _ = std::fs::remove_file(fixture.path(name));
            }
        }
    }
}

/// Every verb refuses it, and says why in these words; nothing is made.
fn refused_by_all(words: &[&str], change: impl Fn(&mut Image)) {
    each(change, |format, verb, run| {
        assert_eq!(run.code, Some(CORRUPT), "{format} {verb:?}: {}", run.stderr);
        let said = format!("{}{}", run.stderr, String::from_utf8_lossy(&run.stdout));
        assert!(words.iter().any(|words| said.contains(words)), "{format} {verb:?}: {said}");
    });
}

#[test]
fn true_images_are_what_the_others_are_made_of() {
    each(
        |_| {},
        |format, verb, run| {
            assert_eq!(run.code, Some(0), "{format} {verb:?}: {}", run.stderr);
        },
    );
}

#[test]
fn a_directory_that_holds_itself_is_refused() {
    refused_by_all(&["reached", "second", "loop", "more than one"], |image| image.lead_to_root("dir2"));
}

#[test]
fn a_second_name_of_a_directory_is_refused() {
    refused_by_all(&["reached", "second", "more than one"], |image| image.lead("dir2", "dir1"));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [&b"b/"[..], b"/b", b"b\0", b"\0b"] {
        refused_by_all(&["name"], |image| image.rename("bb", name));
    }
}

/// Every directory of an EROFS image has entries `.` and `..`; others of these names are files that
/// lost their own.
#[test]
fn a_name_of_dots_is_never_passed_over() {
    refused_by_all(&["..", "name"], |image| image.rename("bb", b".."));
    refused_by_all(&["..", "name"], |image| image.rename("dir2", b"..\0\0"));
}

/// Lookups go by the order of names: one that stands elsewhere is listed, and found, and told of.
#[test]
fn unsorted_names_are_reported_and_still_found() {
    for (name, to) in [("aa", &b"yy"[..]), ("zz", b"AA"), ("dir1", b"zdir")] {
        refused_by_all(&["out of order"], |image| image.rename(name, to));
        for format in ["squashfs", "erofs"] {
            let fixture = Fixture::new();
            fixture.write("m", MANIFEST);
            let mut image = Image::new(&fixture, format);
            image.rename(name, to);
            fixture.write("image", &image.bytes);
            let listed = fixture.run(["ls", "image"]);
            assert_eq!(listed.code, Some(CORRUPT), "{}", listed.stderr);
            assert_eq!(listed.text().lines().count(), NAMES.len(), "{}", listed.text());
            for line in listed.text().lines().filter(|line| !line.contains("dir")) {
                fixture.run(["cat", "image", line]).done();
            }
            assert_eq!(fixture.run(["unpack", "image", "out"]).code, Some(CORRUPT));
            assert!(fixture.path("out").join(std::str::from_utf8(to).unwrap()).exists());
            assert_eq!(fixture.run(["unpack", "image", "none", "--fail-fast"]).code, Some(CORRUPT));
            assert!(!fixture.path("none").exists());
        }
    }
}

/// The kernel refuses to mount such an image; `--ignore-checksum` reads it all the same.
#[test]
fn every_verb_reports_a_wrong_checksum() {
    let fixture = Fixture::new();
    fixture.write("m", MANIFEST);
    fixture.run(["pack", "m", "image", "-q", "-f", "erofs"]).done();
    let mut bytes = fixture.bytes("image");
    bytes[1024 + 4] ^= 1;
    fixture.write("image", &bytes);
    let others: [&[&str]; 5] = [
        &["ls", "image"],
        &["cat", "image", "aa"],
        &["stat", "image", "aa"],
        &["info", "image"],
        &["digest", "image"],
    ];
    for verb in VERBS.into_iter().chain(others) {
        let run = fixture.run(verb);
        assert_eq!(run.code, Some(CORRUPT), "{verb:?}: {}", run.stderr);
        let said = format!("{}{}", run.stderr, String::from_utf8_lossy(&run.stdout));
        assert!(said.contains("checksum 0x"), "{verb:?}: {said}");
        assert!(!fixture.path("out").exists());
        if verb[0] != "check" {
            let run = fixture.run(verb.iter().chain(&["--ignore-checksum"]));
            assert_eq!(run.code, Some(0), "{verb:?}: {}", run.stderr);
            let _ = std::fs::remove_dir_all(fixture.path("out"));
        }
    }
}

/// Linux does not check it, so single files stay readable; reading the whole image reports it.
#[test]
fn every_full_read_verifies_the_checksum_of_a_cramfs_image() {
    let fixture = Fixture::new();
    fixture.write("m", MANIFEST);
    fixture.run(["pack", "m", "image", "-q", "-f", "cramfs", "--lossy"]).done();
    let mut bytes = fixture.bytes("image");
    bytes[32] ^= 1;
    fixture.write("image", &bytes);
    fixture.run(["ls", "image"]).done();
    for verb in VERBS.into_iter().filter(|verb| verb[0] != "ls" && verb[0] != "check") {
        let run = fixture.run(verb);
        assert_eq!(run.code, Some(CORRUPT), "{verb:?}: {}", run.stderr);
        assert!(run.stderr.contains("checksum"), "{verb:?}: {}", run.stderr);
        let _ = std::fs::remove_dir_all(fixture.path("out"));
        let run = fixture.run(verb.iter().chain(&["--ignore-checksum"]));
        assert!(matches!(run.code, Some(0 | 1)), "{verb:?}: {}", run.stderr);
        let _ = std::fs::remove_dir_all(fixture.path("out"));
    }
}

/// A directory with such a name is refused, or one of the two is left out.
#[test]
fn a_name_that_stands_twice_is_refused() {
    for (name, twin) in [("bb", &b"aa"[..]), ("zz", b"aa"), ("dir2", b"dir1")] {
        refused_by_all(&["twice", "two entries", "out of order"], |image| image.rename(name, twin));
    }
}

#[test]
fn names_with_line_ends_and_escapes_are_names() {
    for name in [&b"z\n"[..], b"z\x1b", b"z\x7f", b"z\\", b"z ", b"\xff\xfe"] {
        each(
            |image| image.rename("zz", name),
            |format, verb, run| {
                let expected = i32::from(verb[0] == "diff");
                assert_eq!(run.code, Some(expected), "{format} {verb:?} {name:?}: {}", run.stderr);
                let acts = |byte: &u8| matches!(byte, 0..=9 | 11..=31 | 127);
                assert!(!run.stdout.iter().any(acts) && !run.stderr.bytes().any(|byte| acts(&byte)));
            },
        );
    }
}

#[test]
fn the_type_in_the_inode_counts_and_a_contradiction_is_reported() {
    each(
        |image| image.lead("dir2", "zz"),
        |format, verb, run| {
            let expected = if verb[0] == "ls" { 0 } else { CORRUPT };
            assert_eq!(run.code, Some(expected), "{format} {verb:?}: {}", run.stderr);
            if expected == CORRUPT {
                let said = format!("{}{}", run.text(), run.stderr);
                assert!(said.contains("its entry says directory, its inode file"), "{format}: {said}");
            }
        },
    );
}
