//! One question at every door: which tree is this? Lists, archives, unpacked and mounted
//! directories, images that are packed or merged, comparisons, and digests give one answer.

use crate::fixture::Fixture;
use crate::mounting::{Place, can_mount};
use packfs::source::{Loaded, Notes};
use packfs::{DeviceNumber, ImagePath, Meta, NodeKind, Pack, TreeBuilder, Xattrs};
use packfs_testkit::{Random, SparseFiles};
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Paths of all entries but the root, sorted.
type Paths = Vec<String>;

fn sorted(paths: impl IntoIterator<Item = Vec<u8>>) -> Paths {
    let shown = paths.into_iter().map(|path| String::from_utf8_lossy(&path).into_owned());
    let mut paths: Vec<String> = shown.map(|path| path.trim_matches('/').to_owned()).collect();
    paths.retain(|path| !path.is_empty());
    paths.sort();
    paths
}

fn by_ls(fixture: &Fixture, image: &str) -> Paths {
    let list = fixture.run(["ls", "-R", "-0", image]);
    sorted(list.warned(&[]).stdout.split(|&byte| byte == 0).map(<[u8]>::to_vec))
}

fn open(fixture: &Fixture, image: &str) -> packfs::Opened {
    packfs::open(fixture.path(image.trim_start_matches("oci-layout:"))).unwrap()
}

fn by_walk(fixture: &Fixture, image: &str) -> Paths {
    let opened = open(fixture, image);
    sorted(opened.walk().map(|entry| {
        let entry = entry.unwrap();
        assert_eq!(opened.find(&entry.path).unwrap(), entry.id, "{image}: {}", entry.path);
        entry.path.as_bytes().to_vec()
    }))
}

fn by_tar(fixture: &Fixture, archive: &str) -> Paths {
    let list = Command::new("tar")
        .args(["--quoting-style=literal", "-tf", archive])
        .current_dir(fixture.path(""))
        .output();
    let list = list.unwrap();
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    let lines = list.stdout.split(|&byte| byte == b'\n');
    sorted(lines.map(|line| line.strip_prefix(b"./").unwrap_or(line).to_vec()))
}

fn by_host(top: &Path) -> Paths {
    let (mut open, mut found) = (vec![top.to_owned()], Vec::new());
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            found.push(entry.path().strip_prefix(top).unwrap().as_os_str().as_bytes().to_vec());
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            }
        }
    }
    sorted(found)
}

/// Returns true unless files with several names say that they have one, as in formats without
/// counts: a mount shows no links there.
fn counts_links(fixture: &Fixture, image: &str) -> bool {
    let opened = open(fixture, image);
    let mut seen = HashSet::new();
    opened.walk().map(Result::unwrap).all(|entry| {
        let is_dir = entry.inode.kind == packfs::InodeKind::Directory;
        is_dir || seen.insert(entry.id) || entry.inode.links > 1
    })
}

/// Asserts that trees have one digest.
fn assert_same_digest(fixture: &Fixture, facts: &str, trees: &[&str]) {
    let run = fixture.run([&["digest", "--facts", facts], trees].concat());
    let digests: Vec<&str> =
        run.warned(&[]).text().lines().map(|line| line.split(' ').next().unwrap()).collect();
    for (tree, digest) in trees.iter().zip(&digests) {
        assert_eq!(digest, &digests[0], "{tree} of {}", trees[0]);
    }
}

/// Asks every door for the tree of `source`; `merged` is what merging makes of it.
fn ask(fixture: &Fixture, source: &str, merged: Option<&str>) -> Paths {
    let paths = by_ls(fixture, source);
    let same = |door: &str, answer: &Paths, paths: &Paths| {
        let only = |some: &Paths, other: &Paths| -> Paths {
            some.iter().filter(|path| other.binary_search(path).is_err()).cloned().collect()
        };
        assert_eq!((only(answer, paths), only(paths, answer)), Default::default(), "{source} by {door}");
        assert_eq!(answer.len(), paths.len(), "{source} by {door}");
    };
    fixture.run(["tar", source, "-o", "door.tar", "-q"]).warned(&[]);
    fixture.run(["unpack", source, "door", "-q"]).warned(&[]);
    fixture.run(["pack", source, "door.erofs", "-q"]).warned(&[]);
    same("walk", &by_walk(fixture, source), &paths);
    same("unpack", &by_host(&fixture.path("door")), &paths);
    same("pack", &by_ls(fixture, "door.erofs"), &paths);
    let mut trees = vec![source, "door", "door.erofs"];
    // No archive holds sockets.
    let is_socket =
        |path: &String| fixture.path("door").join(path).symlink_metadata().unwrap().file_type().is_socket();
    let without =
        paths.iter().filter(|path| path.contains('\u{fffd}') || !is_socket(path)).cloned().collect();
    same("tar", &by_tar(fixture, "door.tar"), &without);
    trees.extend((without == paths).then_some("door.tar"));
    if let Some(merged) = merged {
        same("merge", &by_ls(fixture, merged), &paths);
        trees.push(merged);
    }
    assert_same_digest(fixture, "+mode", &trees);
    for tree in &trees[1..] {
        fixture.run(["diff", source, tree, "-q"]).warned(&[]);
    }
    if can_mount() {
        let place = Place::new(fixture, "at");
        fixture.run(["mount", "--fuse", source, "at"]).warned(&[]);
        same("mount", &by_host(place.path()), &paths);
        let facts = if counts_links(fixture, source) { "+mode" } else { "-links" };
        assert_same_digest(fixture, facts, &[source, "at"]);
    }
    paths
}

/// Old images of every format, as their tools made them, by their names; variants of one format
/// have longer names.
fn legacy_images() -> impl Iterator<Item = (String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/legacy");
    std::fs::read_dir(folder).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_image = !name.ends_with(".json") && !name.ends_with(".md") && !name.starts_with("tree-");
        let is_taken = is_image && name.split('-').count() <= 3;
        is_taken.then(|| match (std::fs::read(&path).unwrap(), name.strip_suffix(".zst")) {
            (bytes, Some(name)) => (name.to_owned(), zstd::decode_all(&*bytes).unwrap()),
            (bytes, None) => (name, bytes),
        })
    })
}

/// A tree in the formats that packfs writes.
fn packed_images() -> impl Iterator<Item = (String, Vec<u8>)> {
    let fixture = Fixture::with_tree();
    ["root.sqfs", "root.erofs", "root.cramfs", "root.iso"].into_iter().map(move |image| {
        fixture.run(["pack", "rootfs", image, "-q", "--lossy"]).warned(&[]);
        (image.to_owned(), fixture.bytes(image))
    })
}

#[test]
fn images_of_every_format_are_one_tree_at_every_door() {
    let images = packed_images().chain(legacy_images()).map(|(name, bytes)| {
        let fixture = Fixture::new();
        fixture.write(&name, bytes);
        ask(&fixture, &name, None)
    });
    assert!(images.filter(|paths| paths.len() > 5).count() > 30);
}

/// Packs a layer: `a/` is a directory, `a/!` an opaque one, `a/?` one with other whiteouts than
/// devices, `a=` a device that hides, `a~` and `a^` empty files that do, `a>b` a symbolic link, and
/// anything else a file with the text of `number`.
fn layer(fixture: &Fixture, number: usize, lines: &[&str]) -> String {
    let meta = |mode| Meta { mode, ..Meta::default() };
    let (mut tree, mut held) = (TreeBuilder::new(meta(0o755)), SparseFiles::default());
    for line in lines {
        let mut xattrs = Xattrs::new();
        let mut mark = |name: &str, value: &str| xattrs.insert(name.into(), value.into());
        let (path, kind) = match *line {
            line if line.ends_with('/') => (line, NodeKind::Directory),
            line if line.ends_with("/!") => {
                mark(["trusted.overlay.opaque", "user.overlay.opaque"][number % 2], "y");
                (line, NodeKind::Directory)
            }
            line if line.ends_with("/?") => {
                mark("user.overlay.opaque", "x");
                (line, NodeKind::Directory)
            }
            line if line.ends_with('=') => (line, NodeKind::CharDevice(DeviceNumber { major: 0, minor: 0 })),
            line if line.ends_with(['~', '^']) => {
                let name =
                    if line.ends_with('~') { "user.overlay.whiteout" } else { "trusted.overlay.whiteout" };
                mark(name, "");
                (line, NodeKind::File { len: 0, content: held.push(0, Vec::new()) })
            }
            line => match line.split_once('>') {
                Some((path, target)) => (path, NodeKind::Symlink(target.as_bytes().into())),
                None => {
                    let text = number.to_string();
                    (line, NodeKind::File { len: 1, content: held.push(1, vec![(0, text.into_bytes())]) })
                }
            },
        };
        let path =
            ImagePath::parse(path.trim_end_matches(['/', '!', '?', '=', '~', '^']).as_bytes()).unwrap();
        tree.add(&path, kind, meta(0o644 + number as u16 % 8), xattrs).unwrap();
    }
    let loaded = Loaded { tree: tree.finish().unwrap(), contents: Arc::new(held), notes: Notes::default() };
    let name = format!("l{number}.erofs");
    Pack::of_loaded(Arc::new(loaded), fixture.path(&name)).run().unwrap();
    name
}

/// Asks every door for layers over each other, the lowest first.
fn ask_layers(name: &str, layers: &[Vec<&str>]) -> Paths {
    let (fixture, layout) = (Fixture::new(), format!("oci-layout:{name}"));
    let names: Vec<String> =
        layers.iter().enumerate().map(|(number, lines)| layer(&fixture, number, lines)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fixture.run([&["oci", "push"], &names[..], &[&layout, "-q"]].concat()).done();
    let rules = ["--on-conflict", "last", "--apply-whiteouts", "-o", "merged.erofs", "-q"];
    fixture.run([&["merge"], &names[..], &rules].concat()).done();
    let shown = ask(&fixture, &layout, Some("merged.erofs"));
    // What is hidden cannot be named, either.
    let opened = open(&fixture, &layout);
    for path in names.iter().flat_map(|name| by_walk(&fixture, name)) {
        assert_eq!(opened.find(&*path).is_ok(), shown.contains(&path), "{path}");
    }
    shown
}

#[test]
fn layers_with_every_kind_of_mark_are_one_tree_at_every_door() {
    let lower = ["gone", "kept", "d/", "d/gone", "d/kept", "o/", "o/old", "t/", "t/x", "f", "l>kept"];
    let upper =
        ["gone~", "d/?", "d/gone~", "o/!", "o/new", "t=", "f/", "f/new", "l^", "never=", "empty/", "empty/?"];
    let paths = ask_layers("marks", &[lower.to_vec(), upper.to_vec()]);
    assert_eq!(paths, ["d", "d/kept", "empty", "f", "f/new", "kept", "o", "o/new"]);
    // A directory over what hides, and what hides over a directory over a file.
    let layers = [vec!["a/x", "b", "c/"], vec!["a=", "b/", "b/x", "c~"], vec!["a/", "a/y", "b^", "c"]];
    assert_eq!(ask_layers("over", &layers), ["a", "a/y", "c"]);
}

/// Adds what a layer has in a directory.
fn add_random(random: &mut Random, dir: &str, depth: u32, lines: &mut Vec<String>) {
    for name in ["a", "b", "c"] {
        let path = format!("{dir}{name}");
        match random.below(9) {
            0 | 1 => lines.push(path),
            2 => lines.push(format!("{path}>target")),
            3..6 if depth < 3 => {
                lines.push(format!("{path}/{}", ["", "!", "?"][random.below(3) as usize]));
                add_random(random, &format!("{path}/"), depth + 1, lines);
            }
            6 => lines.push(path + ["=", "~", "^"][random.below(3) as usize]),
            _ => {}
        }
    }
}

#[test]
fn any_layers_are_one_tree_at_every_door() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let layers: Vec<Vec<String>> = (0..2 + random.below(4))
            .map(|_| {
                let mut lines = Vec::new();
                add_random(&mut random, "", 0, &mut lines);
                lines
            })
            .collect();
        let layers: Vec<Vec<&str>> =
            layers.iter().map(|lines| lines.iter().map(String::as_str).collect()).collect();
        ask_layers(&format!("seed{seed}"), &layers);
    }
}
