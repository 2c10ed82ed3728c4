//! Makers, readers, unpackers and writable file systems against each other, on a small tree: what
//! goes in comes out, and nothing is left behind, whatever becomes of the process. packfs's own are
//! tested with its program.

mod holding;
mod tree;

use std::fs::File;
use std::path::{Path, PathBuf};

use packfs_lab::process::{Confinement, Invocation, Output, run};
use packfs_lab::results::Recipe;
use packfs_lab::scratch::{BlockFile, Scratch};
use packfs_lab::session::parse_recipe;
use packfs_lab::subject::{Input, Subjects, Unpack, WritableFs};
use packfs_testkit::{is_root, serves, skip};
use rustix::mount::MountFlags;

use tree::{Fixture, assert_nothing_left, assert_same};

/// Equipment of tests: a session's folder, a tree, and the programs of this machine. The folder,
/// which is below the tree's, is dropped first.
struct Workshop {
    scratch: Scratch,
    fixture: Fixture,
    subjects: Subjects,
}

impl Workshop {
    /// None, which is told, where something is not here that should be.
    fn open() -> Option<Self> {
        let subjects = subjects();
        has_all(&subjects).then(|| {
            let fixture = Fixture::new();
            Self { scratch: Scratch::new(fixture.parent()).unwrap(), fixture, subjects }
        })
    }

    /// A new folder of the session.
    fn folder(&self, name: &str) -> PathBuf {
        let path = self.scratch.path(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    /// Makes an image of the fixture, of its directory where the maker takes one; twice, as what is
    /// there is replaced.
    fn make(&self, of: &str, image: &Path) {
        let recipe = recipe(of);
        let maker = self.subjects.maker(&recipe.maker).unwrap();
        let is_for_tars = recipe.maker == "tar2sqfs";
        let Fixture { dir, tar, .. } = &self.fixture;
        let input = if is_for_tars { Input::Tar(tar.clone()) } else { Input::Dir(dir.clone()) };
        let command = maker.command(&recipe, &input, image, 2).unwrap();
        run_well(&command, &Output::Null);
        let len = image.metadata().unwrap().len();
        run_well(&command, &Output::Null);
        assert!(len > 0 && image.metadata().unwrap().len() == len);
    }

    /// Ends the session, of which nothing is left.
    fn close(self) {
        let dir = self.scratch.dir().to_owned();
        drop(self.scratch);
        assert_nothing_left(&dir);
    }
}

/// No test of this crate has a packfs to run.
fn subjects() -> Subjects {
    Subjects::find(Path::new("/nonexistent/packfs"))
}

/// True if all is here, in versions that tests are written for; reports what is not. Some may
/// be missing: Debian has no DwarFS, kernels may have no device mapper, and packfs is tested
/// elsewhere.
fn has_all(subjects: &Subjects) -> bool {
    let excused =
        ["packfs", "packfs-fuse", "packfs-fuse-uring", "mkdwarfs", "dwarfs", "dwarfsextract", "luks"];
    let missing = subjects.missing.iter().find(|missing| !excused.contains(&missing.what.as_str()));
    if let Some(missing) = missing {
        skip(&format!("{}: {}", missing.what, missing.why));
    }
    let programs = subjects.programs();
    missing.is_none() && programs.iter().all(|program| serves(&program.name, &program.version))
}

fn recipe(of: &str) -> Recipe {
    parse_recipe(of).unwrap()
}

#[track_caller]
fn run_well(command: &Invocation, output: &Output) {
    let taken = run(command, output, &[]).unwrap_or_else(|error| panic!("{error} {:?}", error.hints()));
    assert!(taken.wall > 0.0);
}

#[test]
fn every_reader_shows_what_every_maker_packed() {
    let Some(workshop) = Workshop::open() else { return };
    let recipes = [
        "mksquashfs:squashfs:gzip:6:64K",
        "mksquashfs:squashfs:lz4hc:12:4K",
        "mksquashfs:squashfs:none",
        "tar2sqfs:squashfs:zstd:3",
        "mkfs.erofs:erofs:lz4hc:12:16K",
        "mkfs.erofs:erofs:none",
    ];
    for (number, of) in recipes.into_iter().enumerate() {
        let image = workshop.scratch.path(&format!("image.{number}"));
        workshop.make(of, &image);
        let format = recipe(of).format;
        let mut shown = vec![];
        for reader in workshop.subjects.readers.iter().filter(|reader| reader.reads(&format)) {
            let at = workshop.folder(&format!("mount.{number}.{}", reader.name()));
            let mounted =
                reader.mount(&format, &image, &at, &Confinement::default()).unwrap_or_else(|error| {
                    panic!("{of} {}: {error} {:?}", reader.name(), error.hints());
                });
            assert_eq!(mounted.server().is_none(), reader.name() == "kernel");
            assert_same(&workshop.fixture.dir, &at, reader.name());
            let servers: Vec<u32> = mounted.server().into_iter().collect();
            let all = Invocation::new("tar").args(["cf", "-", "."]).dir(mounted.at());
            let taken = run(&all, &Output::Through(Invocation::new("cat")), &servers).unwrap();
            assert!(taken.wall > 0.0);
            // With several programs, none of which serves, there is no such figure.
            assert_eq!(taken.memory_peak.is_some(), mounted.server().is_some());
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
    workshop.close();
}

#[test]
fn tars_become_images() {
    let Some(workshop) = Workshop::open() else { return };
    for of in ["mksquashfs:squashfs:gzip:1", "mkfs.erofs:erofs:lz4"] {
        let recipe = recipe(of);
        let image = workshop.scratch.path(&format!("{}.image", recipe.format));
        let maker = workshop.subjects.maker(&recipe.maker).unwrap();
        let command = maker.command(&recipe, &Input::Tar(workshop.fixture.tar.clone()), &image, 1).unwrap();
        run_well(&command, &Output::Null);
        let at = workshop.folder(&recipe.format);
        let _mounted = workshop
            .subjects
            .reader("kernel")
            .unwrap()
            .mount(&recipe.format, &image, &at, &Confinement::default())
            .unwrap();
        assert_same(&workshop.fixture.dir, &at, of);
    }
}

#[test]
fn unpackers_decode_what_was_packed() {
    let Some(workshop) = Workshop::open() else { return };
    let mut done = vec![];
    for of in ["mksquashfs:squashfs:zstd:3:128K", "mkfs.erofs:erofs:deflate"] {
        let format = recipe(of).format;
        let image = workshop.scratch.path(&format);
        workshop.make(of, &image);
        for unpacker in workshop.subjects.unpackers.iter().filter(|unpacker| unpacker.reads(&format)) {
            let dir = workshop.scratch.path(&format!("{format}.{}", unpacker.name()));
            if let Some(command) = unpacker.command(&Unpack::Dir(dir.clone()), &image, 2) {
                run_well(&command, &Output::Null);
                assert_same(&workshop.fixture.dir, &dir, unpacker.name());
                done.push(format!("{} dir", unpacker.name()));
            }
            if let Some(command) = unpacker.command(&Unpack::Tar, &image, 2) {
                let tar = workshop.scratch.path("out.tar");
                run_well(&command, &Output::File(tar.clone()));
                let dir = workshop.folder(&format!("{format}.{}.tar", unpacker.name()));
                let untar = Invocation::new("tar").arg("xpf").arg(&tar).args(["--numeric-owner", "-C"]);
                run_well(&untar.arg(&dir), &Output::Null);
                assert_same(&workshop.fixture.dir, &dir, unpacker.name());
                done.push(format!("{} tar", unpacker.name()));
            }
        }
    }
    assert_eq!(done, ["unsquashfs dir", "sqfs2tar tar", "fsck.erofs dir"]);
}

/// Makes a file system, copies the fixture to it, and finds it there again after another mount.
fn write_and_read(workshop: &Workshop, writable: &WritableFs, recipe: &Recipe) {
    let device = BlockFile::new(&workshop.scratch.path("disk"), 512 << 20).unwrap();
    let at = workshop.folder("mount");
    writable.make(recipe, device.device()).unwrap_or_else(|error| panic!("{error} {:?}", error.hints()));
    let mounted = writable.mount(recipe, device.device(), &at, MountFlags::empty()).unwrap();
    let empty = writable.taken(&at).unwrap();
    run_well(&Invocation::new("cp").arg("-a").arg(&workshop.fixture.dir).arg(at.join("tree")), &Output::Null);
    assert!(writable.taken(&at).unwrap() > empty);
    mounted.unmount().unwrap();

    let mounted = writable.mount(recipe, device.device(), &at, MountFlags::RDONLY).unwrap();
    assert_same(&workshop.fixture.dir, &at.join("tree"), writable.name());
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
    let Some(workshop) = Workshop::open() else { return };
    let mut done = vec![];
    let recipes = [
        "mkfs.btrfs:btrfs",
        "mkfs.btrfs:btrfs:zstd:3",
        "mkfs.btrfs:btrfs:lzo",
        "mkfs.ext4:ext4",
        "mkfs.xfs:xfs",
    ];
    for of in recipes {
        let mut recipe = recipe(of);
        let writable = workshop.subjects.writable(&recipe.maker).unwrap();
        write_and_read(&workshop, writable, &recipe);
        done.push(writable.name());
        recipe.luks = true;
        match workshop.subjects.missing.iter().find(|missing| missing.what == "luks") {
            None => write_and_read(&workshop, writable, &recipe),
            Some(missing) => {
                // It says so before it writes anything.
                let device = BlockFile::new(&workshop.scratch.path("disk"), 64 << 20).unwrap();
                let error = writable.make(&recipe, device.device()).unwrap_err();
                assert!(error.to_string().contains(&missing.why), "{error}");
            }
        }
    }
    assert_eq!(done, ["btrfs", "btrfs", "btrfs", "ext4", "xfs"]);
    workshop.close();
}

#[test]
fn a_mount_in_use_is_detached_and_reported() {
    let Some(workshop) = Workshop::open() else { return };
    let (image, at) = (workshop.scratch.path("image"), workshop.folder("mount"));
    workshop.make("mksquashfs:squashfs:gzip:1", &image);
    let mounted = workshop
        .subjects
        .reader("kernel")
        .unwrap()
        .mount("squashfs", &image, &at, &Confinement::default())
        .unwrap();
    let user = File::open(at.join("large")).unwrap();
    let error = mounted.unmount().unwrap_err();
    assert!(error.to_string().contains("still in use"), "{error}");
    assert_eq!(std::fs::read_dir(&at).unwrap().count(), 0);
    // Who has it open goes on; then the rest goes.
    assert!(user.metadata().unwrap().len() > 0);
    drop(user);
    workshop.close();
}

#[test]
fn missing_things_are_reported_by_name() {
    let subjects = subjects();
    let Err(missing) = subjects.maker("packfs") else { panic!("there is a packfs") };
    assert!(missing.why.contains("/nonexistent/packfs"), "{missing:?}");
    assert!(subjects.maker("no-such-maker").is_err() && subjects.reader("no-such-reader").is_err());
    if !is_root() {
        assert!(subjects.reader("kernel").err().unwrap().why.contains("root"));
        assert!(subjects.writable("mkfs.ext4").err().unwrap().why.contains("root"));
    }
    for program in subjects.programs().iter().filter(|program| program.path.is_some()) {
        // It prints no version.
        let is_silent = program.name == "extract_compressed_fs";
        assert!(is_silent || program.version != "unknown", "{program:?}");
        assert!(PathBuf::from(program.path.as_ref().unwrap()).is_file());
    }
}
