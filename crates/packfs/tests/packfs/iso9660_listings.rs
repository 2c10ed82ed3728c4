//! Names in ISO 9660 images of every kind: those that others write, and those that packfs writes,
//! as bsdtar, xorriso, 7-Zip and isoinfo list them.

use crate::common::{Wish, open_image};
use packfs_core::Silent;
use packfs_format::PackSettings;
use packfs_pack::{PackOptions, pack};
use packfs_source::{Shape, load_dir};
use packfs_testkit::peer;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Names that every view of an image can hold.
fn simple_tree(root: &Path) {
    fs::create_dir_all(root.join("deep/1/2/3/4/5/6/7/8/9")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("deep/1/2/3/4/5/6/7/8/9/file.txt"), "deep").unwrap();
    fs::write(root.join("boot.bin"), [0x90; 3000]).unwrap();
    fs::write(root.join("nothing"), "").unwrap();
    fs::write(root.join("text.txt"), "compressible ".repeat(20_000)).unwrap();
    fs::hard_link(root.join("text.txt"), root.join("hard.txt")).unwrap();
}

/// Names that need Rock Ridge, and areas in which its records go on: so many that they fill several
/// sectors.
fn rich_tree(root: &Path) {
    simple_tree(root);
    symlink("../lib//foo", root.join("doubled")).unwrap();
    symlink("part-of-a-target/".repeat(30) + "end", root.join("long-target")).unwrap();
    fs::write(root.join("e".repeat(240)), "").unwrap();
    fs::write(root.join("d".repeat(240)), "with data").unwrap();
    fs::create_dir(root.join("f".repeat(240))).unwrap();
    fs::write(root.join("f".repeat(240)).join("x y"), "1").unwrap();
    fs::create_dir(root.join("many")).unwrap();
    for number in 0..70 {
        let name = format!("{}{number}.txt", "n".repeat(220));
        fs::write(root.join("many").join(name), number.to_string()).unwrap();
    }
}

/// Names without what readers of plain names differ in: case, versions, a dot at the end.
fn normalised(line: &str) -> Option<String> {
    let path = line.trim_matches('\'').trim_start_matches('.').trim_matches('/');
    let path = path.strip_suffix(";1").unwrap_or(path).trim_end_matches('.').to_lowercase();
    // 7-Zip shows what firmware loads as files, and xorriso where directories were moved to.
    let is_none = path.is_empty() || path.starts_with("[boot]") || path.starts_with("rr_moved");
    (!is_none).then_some(path)
}

/// Names that a tool lists; `None` if it is missing.
fn listed(tool: &str, arguments: &[&dyn AsRef<OsStr>]) -> Option<BTreeSet<String>> {
    let output = peer(tool)?.run(arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| match tool {
        "7zz" => line.strip_prefix("Path = ").filter(|path| !path.ends_with(".iso")),
        // What it warns of.
        "isoinfo" => Some(line).filter(|line| !line.starts_with("**")),
        _ => Some(line),
    });
    Some(lines.filter_map(normalised).collect())
}

fn listed_by_packfs(image: &Path) -> BTreeSet<String> {
    let loaded = open_image(image).load_tree(&Silent).unwrap_or_else(|error| panic!("{image:?}: {error}"));
    let (mut names, mut walk) = (BTreeSet::new(), loaded.tree.walk());
    while let Some((path, _)) = walk.next() {
        names.extend(normalised(&path.to_string()));
    }
    names
}

/// Has every tool list an image; 7-Zip only where no name is long, as it does not follow records
/// into other areas. `view` is isoinfo's option for what is to be seen; `None` where it cannot.
#[track_caller]
fn all_agree(image: &Path, view: Option<&str>, expected: Option<&BTreeSet<String>>, kind: &str) {
    let ours = listed_by_packfs(image);
    if let Some(expected) = expected {
        assert_eq!(&ours, expected, "{kind}");
    }
    let mut listings = vec![
        ("bsdtar", listed("bsdtar", &[&"-tf", &image])),
        ("xorriso", listed("xorriso", &[&"-report_about", &"FATAL", &"-indev", &image, &"-find", &"/"])),
    ];
    if ours.iter().flat_map(|path| path.split('/')).all(|name| name.len() < 50) {
        listings.push(("7zz", listed("7zz", &[&"l", &"-slt", &image])));
    }
    match view {
        Some("") => listings.push(("isoinfo", listed("isoinfo", &[&"-f", &"-i", &image]))),
        Some(view) => listings.push(("isoinfo", listed("isoinfo", &[&view, &"-f", &"-i", &image]))),
        None => {}
    }
    for (tool, names) in listings {
        if let Some(names) = names {
            assert_eq!(names, ours, "{kind}: {tool}");
        }
    }
}

fn names_below(root: &Path) -> BTreeSet<String> {
    let loaded = load_dir(root, &Shape::default(), &Silent).unwrap();
    let (mut names, mut walk) = (BTreeSet::new(), loaded.tree.walk());
    while let Some((path, _)) = walk.next() {
        names.extend(normalised(&path.to_string()));
    }
    names
}

/// Options of the program, and of isoinfo, whether the tree is the rich one, and whether all its
/// names are kept.
type Written<'a> = (&'a str, &'a [&'a str], Option<&'a str>, bool, bool);

const BY_OTHERS: &[Written<'_>] = &[
    ("genisoimage", &["-D", "-iso-level", "1"], Some(""), false, false),
    ("genisoimage", &["-D", "-iso-level", "3"], Some(""), false, true),
    ("genisoimage", &["-D", "-iso-level", "4"], Some(""), false, true),
    ("genisoimage", &["-D", "-R"], Some("-R"), true, true),
    ("genisoimage", &["-R"], None, true, true),
    ("genisoimage", &["-D", "-J"], Some("-J"), false, true),
    ("genisoimage", &["-D", "-R", "-J"], Some("-R"), false, true),
    (
        "genisoimage",
        &["-D", "-R", "-b", "boot.bin", "-no-emul-boot", "-c", "boot.bin.cat"],
        Some("-R"),
        false,
        false,
    ),
    ("xorriso", &["-R"], Some("-R"), true, true),
    ("xorriso", &["-R", "-J"], Some("-R"), false, true),
    ("xorriso", &["-R", "-z"], Some("-R"), true, true),
    ("xorriso", &["-R", "-b", "boot.bin", "-no-emul-boot"], Some("-R"), false, false),
];

#[test]
fn every_tool_lists_the_same_names_of_images_by_others() {
    for (index, &(program, options, view, is_rich, keeps_names)) in BY_OTHERS.iter().enumerate() {
        let Some(tool) = peer(program) else { continue };
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        if is_rich {
            rich_tree(&root)
        } else {
            simple_tree(&root)
        }
        let image = folder.path().join("image.iso");
        let mut arguments: Vec<&dyn AsRef<OsStr>> = Vec::new();
        if program == "xorriso" {
            arguments.extend([&"-as" as &dyn AsRef<OsStr>, &"mkisofs"]);
        }
        arguments.push(&"-quiet");
        arguments.extend(options.iter().map(|option| option as &dyn AsRef<OsStr>));
        arguments.extend([&"-o" as &dyn AsRef<OsStr>, &image, &root]);
        tool.run(&arguments);
        let expected = names_below(&root);
        let expected = Some(&expected).filter(|_| keeps_names);
        all_agree(&image, view, expected, &format!("{index}: {program} {options:?}"));
    }
}

fn written(root: &Path, wish: Wish<'_>, image: &Path) {
    let loaded = load_dir(root, &Shape::default(), &Silent).unwrap();
    let options = wish.options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = PackSettings {
        codec: Some(wish.codec.into()),
        block_size: Some(wish.block_len),
        made_at: 1_700_000_000,
        options,
        ..PackSettings::default()
    };
    let packer = packfs_formats::by_name("iso9660").unwrap().packer(&settings).unwrap();
    let pack_options = PackOptions { jobs: 2, sync: false, lossy: true, ..PackOptions::default() };
    pack(&loaded.tree, &*loaded.contents, &*packer, image, &pack_options, &Silent).unwrap();
}

#[test]
fn every_tool_lists_the_same_names_of_images_by_packfs() {
    for (codec, options, is_rich) in [
        ("none", &[][..], true),
        ("none", &[("joliet", "long")], false),
        ("gzip:6", &[("zisofs", "1")], true),
        ("gzip:6", &[("zisofs", "2"), ("joliet", "on")], false),
        ("gzip:6", &[("boot", "boot.bin"), ("efi-boot", "text.txt")], true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        if is_rich {
            rich_tree(&root)
        } else {
            simple_tree(&root)
        }
        let image = folder.path().join("image.iso");
        written(&root, Wish { codec, block_len: 32 << 10, options, jobs: 2 }, &image);
        all_agree(&image, Some("-R"), Some(&names_below(&root)), &format!("{codec} {options:?}"));
    }
}

/// libarchive reads an image from start to end and refuses areas behind a file's data.
#[test]
fn all_that_describes_files_lies_in_front_of_their_data() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    rich_tree(&root);
    for (codec, options) in [("none", &[][..]), ("gzip:6", &[("joliet", "on"), ("boot", "boot.bin")])] {
        let image = folder.path().join("image.iso");
        written(&root, Wish { codec, block_len: 32 << 10, options, jobs: 2 }, &image);
        let space = open_image(&image).volume().space().unwrap();
        let first_data = space.iter().position(|owner| owner.owner == "file data").unwrap();
        let behind: Vec<&str> = space[first_data..].iter().map(|owner| owner.owner).collect();
        assert!(
            behind.iter().all(|owner| matches!(*owner, "file data" | "padding" | "unused")),
            "{behind:?}"
        );
    }
}

/// libarchive knows no image that is shorter.
#[test]
fn an_image_of_almost_nothing_has_24_sectors() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    for names in [&[][..], &["empty"]] {
        for name in names {
            fs::write(root.join(name), "").unwrap();
        }
        let image = folder.path().join("image.iso");
        written(&root, Wish { codec: "none", block_len: 32 << 10, options: &[], jobs: 1 }, &image);
        assert_eq!(fs::metadata(&image).unwrap().len(), 24 * 2048);
        all_agree(&image, Some("-R"), Some(&names_below(&root)), &format!("{names:?}"));
    }
}

fn targets(image: &Path) -> Vec<String> {
    let loaded = open_image(image).load_tree(&Silent).unwrap();
    let mut targets: Vec<String> = loaded
        .tree
        .nodes()
        .filter_map(|(_, node)| match &node.kind {
            packfs_core::NodeKind::Symlink(target) => Some(String::from_utf8(target.to_vec()).unwrap()),
            _ => None,
        })
        .collect();
    targets.sort();
    targets
}

#[test]
fn link_targets_keep_doubled_slashes_of_every_writer() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    let mut wanted =
        ["../lib//foo", "//", "/", "///x", "/./x//y/../z", "a/b/.", "..", ".", "a///b", "//a", "../..//../x"];
    for (index, target) in wanted.iter().enumerate() {
        symlink(target, root.join(format!("link-{index}"))).unwrap();
    }
    wanted.sort_unstable();
    let image = folder.path().join("ours.iso");
    written(&root, Wish { codec: "none", block_len: 32 << 10, options: &[], jobs: 1 }, &image);
    assert_eq!(targets(&image), wanted);
    let images: Vec<PathBuf> =
        [("genisoimage", &["-quiet", "-R"][..]), ("xorriso", &["-as", "mkisofs", "-quiet", "-R"])]
            .into_iter()
            .filter_map(|(program, options)| {
                let image = folder.path().join(format!("{program}.iso"));
                let mut arguments: Vec<&dyn AsRef<OsStr>> =
                    options.iter().map(|option| option as _).collect();
                arguments.extend([&"-o" as &dyn AsRef<OsStr>, &image, &root]);
                peer(program)?.run(&arguments);
                Some(image)
            })
            .collect();
    for other in images {
        assert_eq!(targets(&other), wanted, "{other:?}");
    }
    let Some(bsdtar) = peer("bsdtar") else { return };
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    bsdtar.run(&[&"-xf", &image, &"-C", &out]);
    let mut found: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| fs::read_link(entry.unwrap().path()).unwrap().into_os_string().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, wanted);
}

/// Reads as the kernel's driver does, which identifies a directory by its record of itself.
#[test]
fn a_plain_directorys_time_is_that_of_its_own_record() {
    let Some(tool) = peer("genisoimage") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("dir")).unwrap();
    fs::write(root.join("dir/file"), "x").unwrap();
    let image = folder.path().join("image.iso");
    tool.run(&[&"-quiet", &"-o", &image, &root]);
    let mut bytes = fs::read(&image).unwrap();
    // The record that leads to the directory, and behind it the directory: 33 bytes of head and its
    // name.
    let at = bytes.windows(4).position(|bytes| bytes == b"\x03DIR").unwrap() - 32;
    let extent = u32::from_le_bytes(bytes[at + 2..at + 6].try_into().unwrap()) as usize * 2048;
    bytes[at + 18..at + 25].copy_from_slice(&[100, 1, 1, 0, 0, 0, 0]);
    bytes[extent + 18..extent + 25].copy_from_slice(&[70, 1, 1, 0, 0, 7, 0]);
    fs::write(&image, bytes).unwrap();
    let loaded = open_image(&image).load_tree(&Silent).unwrap();
    let dir = loaded.tree.find(&packfs_core::ImagePath::parse(b"dir").unwrap()).unwrap();
    assert_eq!({ loaded.tree.node(dir).meta.mtime.seconds }, 7);
}
