//! Makers, readers, unpackers and writable file systems against each other, on a small tree: what goes in comes out, and
//! nothing is left behind, whatever becomes of the process. packfs's own are tested with its program.

mod holding;
mod tree;

use std::fs::File;
use std::path::{Path, PathBuf};

use packfs_lab::process::{Invocation, Output, Within, run};
use packfs_lab::results::Recipe;
use packfs_lab::scratch::{BlockFile, Scratch};
use packfs_lab::subject::{Input, Subjects, Unpack, WritableFs};
use packfs_testkit::{is_root, skip};

use tree::{Fixture, assert_nothing_left, assert_same};

/// No test of this crate has a packfs to run.
fn subjects() -> Subjects {
    Subjects::find(Path::new("/nonexistent/packfs"))
}

/// What is not here and should be: Debian has no DwarFS, kernels may have no device mapper, and packfs is tested elsewhere.
fn has_all(subjects: &Subjects) -> bool {
    let excused = ["packfs", "packfs-fuse", "mkdwarfs", "dwarfs", "dwarfsextract", "luks"];
    let missing = subjects.missing.iter().find(|missing| !excused.contains(&missing.what.as_str()));
    if let Some(missing) = missing {
        skip(&format!("{}: {}", missing.what, missing.why));
    }
    missing.is_none()
}

/// `maker format codec[:level] block-length`, with `-` for what is left open.
fn recipe(of: &str) -> Recipe {
    let words: Vec<&str> = of.split(' ').collect();
    let [maker, format, codec, block_len] = words[..] else { panic!("{of}") };
    let (codec, level) = codec.split_once(':').map_or((codec, None), |(codec, level)| (codec, Some(level)));
    Recipe {
        maker: maker.into(),
        format: format.into(),
        codec: codec.into(),
        level: level.map(|level| level.parse().unwrap()),
        block_len: block_len.parse().ok(),
        ..Recipe::default()
    }
}

#[track_caller]
fn run_well(command: &Invocation, output: &Output) {
    let taken = run(command, output, &[]).unwrap_or_else(|error| panic!("{error} {:?}", error.hints()));
    assert!(taken.wall > 0.0);
}

/// Makes an image of the fixture, of its directory where the maker takes one; twice, as what is there is replaced.
fn make(subjects: &Subjects, fixture: &Fixture, of: &str, image: &Path) {
    let recipe = recipe(of);
    let maker = subjects.maker(&recipe.maker).unwrap();
    let is_for_tars = recipe.maker == "tar2sqfs";
    let input = if is_for_tars { Input::Tar(fixture.tar.clone()) } else { Input::Dir(fixture.dir.clone()) };
    let command = maker.command(&recipe, &input, image, 2).unwrap();
    run_well(&command, &Output::Null);
    let len = image.metadata().unwrap().len();
    run_well(&command, &Output::Null);
    assert!(len > 0 && image.metadata().unwrap().len() == len);
}

#[test]
fn every_reader_shows_what_every_maker_packed() {
    let subjects = subjects();
    if !has_all(&subjects) {
        return;
    }
    let fixture = Fixture::new();
    let scratch = Scratch::new(fixture.parent()).unwrap();
    let recipes = [
        "mksquashfs squashfs gzip:6 65536",
        "mksquashfs squashfs lz4hc:12 4096",
        "mksquashfs squashfs none -",
        "tar2sqfs squashfs zstd:3 -",
        "mkfs.erofs erofs lz4hc:12 16384",
        "mkfs.erofs erofs none -",
    ];
    for (number, of) in recipes.into_iter().enumerate() {
        let image = scratch.path(&format!("image.{number}"));
        make(&subjects, &fixture, of, &image);
        let format = recipe(of).format;
        let mut shown = vec![];
        for reader in subjects.readers.iter().filter(|reader| reader.reads(&format)) {
            let at = scratch.path(&format!("mount.{number}.{}", reader.name()));
            std::fs::create_dir(&at).unwrap();
            let mounted = reader.mount(&format, &image, &at, &Within::default()).unwrap_or_else(|error| {
                panic!("{of} {}: {error} {:?}", reader.name(), error.hints());
            });
            assert_eq!(mounted.server().is_none(), reader.name() == "kernel");
            assert_same(&fixture.dir, &at, reader.name());
            let servers: Vec<u32> = mounted.server().into_iter().collect();
            let all = Invocation::new("tar").args(["cf", "-", "."]).dir(mounted.at());
            let taken = run(&all, &Output::Through(Invocation::new("cat")), &servers).unwrap();
            assert!(taken.wall > 0.0 && taken.memory_peak.is_none());
            mounted.unmount().unwrap();
            assert_eq!(
                std::fs::read_dir(&at).unwrap().count(),
                0,
                "{of}: {} is still mounted",
                reader.name()
            );
            shown.push(reader.name());
        }
        let expected: &[&str] = match format.as_str() {
            "erofs" => &["kernel", "erofsfuse"],
            _ => &["kernel", "squashfuse", "squashfuse_ll"],
        };
        assert_eq!(shown, expected);
    }
    let dir = scratch.dir().to_owned();
    drop(scratch);
    assert_nothing_left(&dir);
}

#[test]
fn tars_become_images() {
    let subjects = subjects();
    if !has_all(&subjects) {
        return;
    }
    let fixture = Fixture::new();
    let scratch = Scratch::new(fixture.parent()).unwrap();
    for of in ["mksquashfs squashfs gzip:1 -", "mkfs.erofs erofs lz4 -"] {
        let recipe = recipe(of);
        let image = scratch.path(&format!("{}.image", recipe.format));
        let maker = subjects.maker(&recipe.maker).unwrap();
        let command = maker.command(&recipe, &Input::Tar(fixture.tar.clone()), &image, 1).unwrap();
        run_well(&command, &Output::Null);
        let at = scratch.path(&recipe.format);
        std::fs::create_dir(&at).unwrap();
        let _mounted = subjects
            .reader("kernel")
            .unwrap()
            .mount(&recipe.format, &image, &at, &Within::default())
            .unwrap();
        assert_same(&fixture.dir, &at, of);
    }
}

#[test]
fn unpackers_decode_what_was_packed() {
    let subjects = subjects();
    if !has_all(&subjects) {
        return;
    }
    let fixture = Fixture::new();
    let scratch = Scratch::new(fixture.parent()).unwrap();
    let mut done = vec![];
    for of in ["mksquashfs squashfs zstd:3 131072", "mkfs.erofs erofs deflate -"] {
        let format = recipe(of).format;
        let image = scratch.path(&format);
        make(&subjects, &fixture, of, &image);
        for unpacker in subjects.unpackers.iter().filter(|unpacker| unpacker.reads(&format)) {
            let dir = scratch.path(&format!("{format}.{}", unpacker.name()));
            if let Some(command) = unpacker.command(&Unpack::Dir(dir.clone()), &image, 2) {
                run_well(&command, &Output::Null);
                assert_same(&fixture.dir, &dir, unpacker.name());
                done.push(format!("{} dir", unpacker.name()));
            }
            if let Some(command) = unpacker.command(&Unpack::Tar, &image, 2) {
                let tar = scratch.path("out.tar");
                run_well(&command, &Output::File(tar.clone()));
                let dir = scratch.path(&format!("{format}.{}.tar", unpacker.name()));
                std::fs::create_dir(&dir).unwrap();
                let untar = Invocation::new("tar").arg("xpf").arg(&tar).args(["--numeric-owner", "-C"]);
                run_well(&untar.arg(&dir), &Output::Null);
                assert_same(&fixture.dir, &dir, unpacker.name());
                done.push(format!("{} tar", unpacker.name()));
            }
        }
    }
    assert_eq!(done, ["unsquashfs dir", "sqfs2tar tar", "fsck.erofs dir"]);
}

/// Makes a file system, copies the fixture to it, and finds it there again after another mount.
fn write_and_read(writable: &dyn WritableFs, recipe: &Recipe, fixture: &Fixture, scratch: &Scratch) {
    let device = BlockFile::new(&scratch.path("disk"), 512 << 20).unwrap();
    let at = scratch.path("mount");
    std::fs::create_dir(&at).unwrap();
    writable.make(recipe, device.device()).unwrap_or_else(|error| panic!("{error} {:?}", error.hints()));
    let mounted = writable.mount(recipe, device.device(), &at).unwrap();
    let empty = writable.taken(&at).unwrap();
    run_well(&Invocation::new("cp").arg("-a").arg(&fixture.dir).arg(at.join("tree")), &Output::Null);
    assert!(writable.taken(&at).unwrap() > empty);
    mounted.unmount().unwrap();

    let mounted = writable.mount(recipe, device.device(), &at).unwrap();
    assert_same(&fixture.dir, &at.join("tree"), writable.name());
    let usage = writable.usage(&at).unwrap();
    let codecs: Vec<&str> = usage.iter().map(|row| row.codec.as_str()).collect();
    match (writable.name(), recipe.codec.as_str()) {
        ("btrfs", "none") => assert_eq!(codecs, ["total", "none"]),
        ("btrfs", codec) => {
            let row = usage.iter().find(|row| row.codec == codec).expect("a row of the codec");
            assert!(row.disk > 0 && row.disk < row.uncompressed, "{usage:?}");
        }
        _ => assert!(codecs.is_empty()),
    }
    mounted.unmount().unwrap();
    std::fs::remove_dir(&at).unwrap();
}

#[test]
fn writable_file_systems_keep_what_is_copied_to_them() {
    let subjects = subjects();
    if !has_all(&subjects) {
        return;
    }
    let fixture = Fixture::new();
    let scratch = Scratch::new(fixture.parent()).unwrap();
    let mut done = vec![];
    for of in ["- btrfs none -", "- btrfs zstd:3 -", "- btrfs lzo -", "- ext4 none -", "- xfs none -"] {
        let mut recipe = recipe(of);
        let writable = subjects.writable(&recipe.format).unwrap();
        write_and_read(writable, &recipe, &fixture, &scratch);
        done.push(writable.name());
        recipe.luks = true;
        match subjects.missing.iter().find(|missing| missing.what == "luks") {
            None => write_and_read(writable, &recipe, &fixture, &scratch),
            Some(missing) => {
                // It says so before it writes anything.
                let device = BlockFile::new(&scratch.path("disk"), 64 << 20).unwrap();
                let error = writable.make(&recipe, device.device()).unwrap_err();
                assert!(error.to_string().contains(&missing.why), "{error}");
            }
        }
    }
    assert_eq!(done, ["btrfs", "btrfs", "btrfs", "ext4", "xfs"]);
    let dir = scratch.dir().to_owned();
    drop(scratch);
    assert_nothing_left(&dir);
}

#[test]
fn a_mount_in_use_is_detached_and_told() {
    let subjects = subjects();
    if !has_all(&subjects) {
        return;
    }
    let fixture = Fixture::new();
    let scratch = Scratch::new(fixture.parent()).unwrap();
    let (image, at) = (scratch.path("image"), scratch.path("mount"));
    make(&subjects, &fixture, "mksquashfs squashfs gzip:1 -", &image);
    std::fs::create_dir(&at).unwrap();
    let mounted =
        subjects.reader("kernel").unwrap().mount("squashfs", &image, &at, &Within::default()).unwrap();
    let user = File::open(at.join("large")).unwrap();
    let error = mounted.unmount().unwrap_err();
    assert!(error.to_string().contains("still in use"), "{error}");
    assert_eq!(std::fs::read_dir(&at).unwrap().count(), 0);
    // Who has it open goes on; then the rest goes.
    assert!(user.metadata().unwrap().len() > 0);
    drop(user);
    let dir = scratch.dir().to_owned();
    drop(scratch);
    assert_nothing_left(&dir);
}

#[test]
fn what_is_missing_is_told_by_name() {
    let subjects = subjects();
    let Err(missing) = subjects.maker("packfs") else { panic!("there is a packfs") };
    assert!(missing.why.contains("/nonexistent/packfs"), "{missing:?}");
    assert!(subjects.maker("no-such-maker").is_err() && subjects.reader("no-such-reader").is_err());
    if !is_root() {
        assert!(subjects.reader("kernel").err().unwrap().why.contains("root"));
        assert!(subjects.writable("mkfs.ext4").err().unwrap().why.contains("root"));
    }
    for program in subjects.programs().iter().filter(|program| program.path.is_some()) {
        assert_ne!(program.version, "unknown", "{program:?}");
        assert!(PathBuf::from(program.path.as_ref().unwrap()).is_file());
    }
}
