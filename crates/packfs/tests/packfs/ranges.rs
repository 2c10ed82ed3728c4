//! Ranges of many files at once, and look-ups with error numbers.

use packfs::read::{FileRange, RangeTarget};
use packfs::{Opened, Silent};
use std::sync::Mutex;

/// Packs small files, a long one, and a link to itself.
fn image(folder: &std::path::Path) -> Opened {
    let source = folder.join("source");
    std::fs::create_dir_all(source.join("many")).unwrap();
    for number in 0..200_usize {
        std::fs::write(source.join(format!("many/{number}")), content(number)).unwrap();
    }
    let long: Vec<u8> = (0..20 << 20).map(|at: u32| (at / 1000) as u8).collect();
    std::fs::write(source.join("long"), long).unwrap();
    std::fs::File::create(source.join("hole")).unwrap().set_len(1 << 20).unwrap();
    std::os::unix::fs::symlink("loop", source.join("loop")).unwrap();
    std::fs::create_dir_all(source.join("deep/er/and")).unwrap();
    for name in ["deep/er/and/leaf", "deep/er/twig", "deep/branch"] {
        std::fs::write(source.join(name), name).unwrap();
    }
    std::os::unix::fs::symlink("deep/er", source.join("short")).unwrap();
    let path = folder.join("a.sqfs");
    packfs::pack(&source, &path).codec("lz4").run().unwrap();
    packfs::open(&path).unwrap()
}

fn content(number: usize) -> Vec<u8> {
    vec![number as u8; number * 10]
}

fn range(image: &Opened, path: &str, range: std::ops::Range<u64>) -> FileRange {
    FileRange::new(image.file_at(path).unwrap(), range)
}

/// Reads ranges into memory of their lengths.
fn read(image: &Opened, ranges: &[FileRange]) -> Vec<Vec<u8>> {
    let mut memory: Vec<Vec<u8>> = ranges.iter().map(|range| vec![0; range.bytes() as usize]).collect();
    let targets: Vec<Mutex<&mut [u8]>> = memory.iter_mut().map(|bytes| Mutex::new(&mut bytes[..])).collect();
    assert_eq!(image.read_ranges(ranges, &targets, &Silent).unwrap().len(), 0);
    drop(targets);
    memory
}

#[test]
fn ranges_of_many_files_are_those_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let all = |number| range(&image, &format!("many/{number}"), 0..u64::MAX);
    // Through the cache, in an order of its own.
    let found = read(&image, &(0..200).rev().map(all).collect::<Vec<_>>());
    assert!(found.into_iter().rev().enumerate().all(|(number, bytes)| bytes == content(number)));
    let parts = read(&image, &[range(&image, "many/9", 80..95), range(&image, "many/9", 95..99)]);
    assert_eq!(parts, [vec![9; 10], vec![]]);
    // In disk order, because it is more than the cache takes.
    let ranges = [range(&image, "long", 0..u64::MAX), range(&image, "hole", 0..u64::MAX), all(7)];
    let found = read(&image, &ranges);
    assert!(found[0].iter().enumerate().all(|(at, byte)| *byte == (at / 1000) as u8));
    assert_eq!((found[0].len(), &found[1], &found[2]), (20 << 20, &vec![0; 1 << 20], &content(7)));
}

#[test]
fn a_target_takes_what_fits() {
    let mut memory = [0; 4];
    let target = Mutex::new(&mut memory[..]);
    target.put(2, b"abc");
    target.put(9, b"abc");
    assert_eq!(&memory, b"\0\0ab");
}

#[test]
fn look_ups_fail_with_the_numbers_that_files_have() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let file = |path: &str| image.file_at(path).unwrap_err().errno();
    assert_eq!(["none", "many", "long/x", "loop"].map(file), [2, 21, 20, 40]);
    assert_eq!(image.dir_at("long").unwrap_err().errno(), 20);
    assert_eq!(image.link_at("long").unwrap_err().errno(), 22);
    assert_eq!(image.link_at("loop").unwrap(), b"loop");
}

#[test]
fn many_paths_are_found_as_single_ones_are() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let mut paths: Vec<String> = (0..200).rev().map(|number| format!("many/{number}")).collect();
    let odd =
        ["long", "long", "many", "many/none", "many/7/x", "none/7", "loop", "hole", "", "many/200", "many/3"];
    let deep = ["deep/er/and/leaf", "deep/er/twig", "deep/branch", "deep/er", "short/twig", "short/and/leaf"];
    paths.extend(odd.into_iter().chain(deep).map(str::to_owned));
    // Longer than what is searched together.
    paths.push(format!("{}x", "many/".repeat(1000)));
    let parsed: Vec<_> =
        paths.iter().map(|path| packfs::ImagePath::parse(path.as_bytes()).unwrap()).collect();
    let found = image.files_at(&parsed, &Silent).unwrap();
    assert_eq!(found.len(), paths.len());
    for (path, found) in paths.iter().zip(found) {
        match (found, image.file_at(path)) {
            (Ok(found), Ok(single)) => assert_eq!(found, single, "{path}"),
            (Err(found), Err(single)) => {
                let told = |error: &packfs::Error| (error.to_string(), error.errno(), error.hints().to_vec());
                assert_eq!(told(&found), told(&single), "{path}");
            }
            (found, single) => panic!("{path}: {found:?}, {single:?}"),
        }
    }
}
