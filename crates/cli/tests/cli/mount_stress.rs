//! Many readers at once, and images that are damaged: a mount gives the right bytes or an error,
//! and goes on.
//!
//! `PACKFS_STRESS_SECONDS=300` makes the readers work that long on each format instead of for a
//! moment, and `PACKFS_STRESS_TREE=target/corpora/debian` has them read a tree of that, which takes
//! root, instead of one that is made up.

use crate::fixture::{Fixture, words};
use crate::mounting::{Place, can_mount};
use packfs_testkit::Random;
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const READERS: u64 = 8;
/// In the environment of a reader: what it is to compare, and from which random number on.
const MARK: &str = "PACKFS_STRESS_READER";

/// A tree of files of all lengths, some of them long, some the same, some sparse.
fn tree(fixture: &Fixture) -> PathBuf {
    let root = fixture.path("tree");
    let mut random = Random::new(7);
    for dir in 0..20 {
        let dir = root.join(format!("d{}/e{dir}", dir % 4));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..25 {
            let len_max = 1 << random.below(17);
            let len = random.below(len_max) as usize;
            let mut bytes = words(len + 1000);
            bytes.drain(..random.below(1000) as usize);
            if file % 3 == 0 {
                bytes.iter_mut().for_each(|byte| *byte ^= random.below(256) as u8);
            }
            fs::write(dir.join(format!("file-{file}")), bytes).unwrap();
        }
        std::os::unix::fs::symlink("file-1", dir.join("link")).unwrap();
    }
    let long = File::create(root.join("long")).unwrap();
    for at in 0..40_u64 {
        let bytes: Vec<u8> = (0..100_000).map(|_| random.below(64) as u8).collect();
        long.write_all_at(&bytes, at * 150_000).unwrap();
    }
    root
}

#[test]
fn many_processes_see_what_was_packed() {
    if let Some(work) = std::env::var_os(MARK) {
        return read_at_random(&work.into_string().unwrap());
    }
    if !can_mount() {
        return;
    }
    let seconds = std::env::var("PACKFS_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let fixture = Fixture::new();
    let source = match std::env::var_os("PACKFS_STRESS_TREE") {
        // Tests run in the folder of their package.
        Some(given) => Path::new("../..").join(given).canonicalize().unwrap(),
        None => tree(&fixture),
    };
    for (image, codec) in
        [("a.sqfs", "zstd:3"), ("a.erofs", "lz4hc"), ("b.sqfs", "gzip:1"), ("b.erofs", "zstd:3")]
    {
        fixture.run(["pack", source.to_str().unwrap(), image, "-q", "--codec", codec]).done();
        let place = Place::new(&fixture, "at");
        // So little memory that blocks are dropped and decoded again all the time.
        fixture.run(["mount", "--fuse", "--cache-size", "1M", image, "at"]).done();
        let readers: Vec<_> = (0..READERS)
            .map(|number| {
                let work = format!("{seconds} {number} {} {}", source.display(), place.path().display());
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["mount_stress::many_processes_see_what_was_packed", "--exact", "--nocapture"]);
                command.env(MARK, work).stdout(std::process::Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut reader in readers {
            assert!(reader.wait().unwrap().success(), "a reader of {image} found a difference");
        }
        fixture.run(["umount", "at"]).done();
    }
}

fn read_at_random(work: &str) {
    let parts: Vec<&str> = work.splitn(4, ' ').collect();
    let (seconds, seed): (u64, u64) = (parts[0].parse().unwrap(), parts[1].parse().unwrap());
    let (source, mounted) = (Path::new(parts[2]), Path::new(parts[3]));
    let paths = all_paths(source);
    let mut random = Random::new(seed + 1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut rounds, mut inodes) = (0, HashMap::new());
    while Instant::now() < end || rounds < 200 {
        rounds += 1;
        let path = &paths[random.below(paths.len() as u64) as usize];
        let (ours, theirs) = (mounted.join(path), source.join(path));
        let (found, expected) =
            (fs::symlink_metadata(&ours).unwrap(), fs::symlink_metadata(&theirs).unwrap());
        assert_eq!(kept(&found), kept(&expected), "{path:?}");
        assert_eq!(xattrs(&ours), xattrs(&theirs), "{path:?}");
        let first = *inodes.entry(path).or_insert(found.ino());
        assert_eq!(found.ino(), first, "{path:?}");
        if expected.is_symlink() {
            assert_eq!(fs::read_link(&ours).unwrap(), fs::read_link(&theirs).unwrap());
        } else if expected.is_dir() {
            assert_eq!(names(&ours), names(&theirs), "{path:?}");
        } else {
            same_bytes(&ours, &theirs, &mut random);
        }
        if rounds % 50 == 0 {
            // So that the server is asked again, not the page cache.
            let file = File::open(&ours).unwrap();
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }
}

/// Metadata that an image keeps of an inode: length and links of a folder are the filesystem's own.
fn kept(found: &Metadata) -> ([u32; 3], i64, Option<[u64; 3]>) {
    let rest = (!found.is_dir()).then(|| [found.len(), found.nlink(), found.rdev()]);
    ([found.mode(), found.uid(), found.gid()], found.mtime(), rest)
}

/// Names and values of extended attributes, in the order of names.
fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = Vec::with_capacity(64 << 10);
    rustix::fs::llistxattr(path, rustix::buffer::spare_capacity(&mut names)).unwrap();
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut all: Vec<_> = names
        .map(|name| {
            let mut value = Vec::with_capacity(64 << 10);
            rustix::fs::lgetxattr(path, name, rustix::buffer::spare_capacity(&mut value)).unwrap();
            (name.to_owned(), value)
        })
        .collect();
    all.sort();
    all
}

fn same_bytes(ours: &Path, theirs: &Path, random: &mut Random) {
    let (ours_file, theirs_file) = (File::open(ours).unwrap(), File::open(theirs).unwrap());
    let len = theirs_file.metadata().unwrap().len();
    let offset = random.below(len + 1);
    let len_max = 1 << random.below(20);
    let mut found = vec![0; random.below(len_max) as usize];
    let mut expected = found.clone();
    let found_len = ours_file.read_at(&mut found, offset).unwrap();
    let expected_len = theirs_file.read_at(&mut expected, offset).unwrap();
    assert_eq!(found_len, expected_len, "{ours:?} at {offset}");
    assert!(found[..found_len] == expected[..found_len], "{ours:?} at {offset}");
    let _ = rustix::fs::fadvise(&ours_file, 0, None, rustix::fs::Advice::DontNeed);
}

fn all_paths(root: &Path) -> Vec<PathBuf> {
    let mut open = vec![PathBuf::new()];
    let mut all = Vec::new();
    while let Some(path) = open.pop() {
        if root.join(&path).symlink_metadata().unwrap().is_dir() {
            open.extend(
                fs::read_dir(root.join(&path)).unwrap().map(|entry| path.join(entry.unwrap().file_name())),
            );
        }
        all.push(path);
    }
    all.sort();
    all
}

fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Each file in a block of its own, so that damage to one leaves the others whole.
#[test]
fn damaged_files_fail_and_the_others_are_right() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("tree")).unwrap();
    let noise = |seed: u64| {
        let mut random = Random::new(seed);
        // Compresses a little, so that damage shows when it is decoded.
        (0..400_000).map(|_| random.below(100) as u8).collect::<Vec<u8>>()
    };
    for number in 0..8 {
        fixture.write(&format!("tree/{number}"), noise(number));
    }
    for (image, codec) in [("x.sqfs", "xz"), ("x.erofs", "deflate")] {
        fixture.run(["pack", "tree", image, "-q", "--codec", codec]).done();
        let mut bytes = fixture.bytes(image);
        let (from, to) = (bytes.len() / 3, bytes.len() / 3 + 20_000);
        bytes[from..to].fill(0xa5);
        fixture.write(image, bytes);
        let place = Place::new(&fixture, "at");
        fixture.run(["mount", "--fuse", image, "at"]).done();
        let (mut right, mut failed) = (0, 0);
        for _ in 0..2 {
            for number in 0..8 {
                match fs::read(place.path().join(number.to_string())) {
                    Ok(found) => {
                        assert!(found == noise(number), "{image}: {number} differs");
                        right += 1;
                    }
                    Err(error) => {
                        assert_eq!(Errno::from_io_error(&error), Some(Errno::IO), "{image}: {error}");
                        failed += 1;
                    }
                }
            }
        }
        assert!(right >= 10 && failed >= 2, "{image}: {right} right, {failed} failed");
        fixture.run(["umount", "at"]).done();
    }
}

/// Whatever is damaged: what can be mounted can be walked and unmounted.
#[test]
fn damaged_metadata_takes_no_mount_down() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    for image in ["root.sqfs", "root.erofs"] {
        let whole = fixture.bytes(image);
        let mut random = Random::new(3);
        let mut mounted = 0;
        for attempt in 0..12 {
            let mut bytes = whole.clone();
            for _ in 0..1 + attempt / 2 {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            fixture.write("damaged", bytes);
            let place = Place::new(&fixture, "at");
            let run = fixture.run(["mount", "--fuse", "damaged", "at"]);
            assert!(matches!(run.code, Some(0 | 1 | 3 | 4)), "{:?} {}", run.code, run.stderr);
            if run.code == Some(0) {
                walk(place.path());
                assert!(fs::metadata(place.path()).is_ok());
                fixture.run(["umount", "at"]).done();
                mounted += 1;
            }
        }
        assert!(mounted > 0, "{image}");
    }
}

/// Looks at everything, as deep as a tree of the fixture can be, and does not mind errors.
fn walk(root: &Path) {
    let mut open = vec![(root.to_owned(), 0)];
    // A directory that holds itself would never end.
    for _ in 0..500 {
        let Some((path, depth)) = open.pop() else { return };
        let Ok(found) = path.symlink_metadata() else { continue };
        if found.is_file() && found.len() < 1 << 20 {
            let _ = fs::read(&path);
        } else if found.is_dir() && depth < 8 {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            open.extend(entries.take(100).map(|entry| (entry.path(), depth + 1)));
        }
    }
}
