//! Images at URLs: round trips to the first byte of a file, for both formats.
use packfs::remote::{Environment, RemoteOptions};
use packfs::{OpenOptions, Opened};
use packfs_testkit::{Random, RangeServer};
use std::path::Path;

const MIB: usize = 1 << 20;

/// A tree whose data is longer than what opening fetches, with a file deep in the middle.
fn pack(dir: &Path, name: &str) -> Vec<u8> {
    let source = dir.join("source");
    let deep = source.join("m/a/b/c/d/e");
    std::fs::create_dir_all(&deep).unwrap();
    let mut random = Random::new(1);
    for number in 0..40 {
        let folder = source.join(format!("{}{number}", if number < 20 { "a" } else { "z" }));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("noise"), random.noise(300_000)).unwrap();
        std::fs::write(folder.join("small"), random.noise(700)).unwrap();
    }
    std::fs::write(deep.join("file"), content()).unwrap();
    let image = dir.join(name);
    packfs::pack(&source, &image).run().unwrap();
    std::fs::read(image).unwrap()
}

/// Full blocks and a tail, which may be stored elsewhere.
fn content() -> Vec<u8> {
    Random::new(2).noise(300_000)
}

fn open(url: &str) -> Opened {
    let remote = RemoteOptions { cache_dir: None, ..RemoteOptions::new(Environment::of([])) };
    OpenOptions::new().jobs(1).remote(remote).open(url).unwrap()
}

#[test]
fn the_first_byte_of_a_deep_file_takes_two_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["image.sqfs", "image.erofs"] {
        let bytes = pack(dir.path(), name);
        assert!(bytes.len() > 8 * MIB);
        let server = RangeServer::new(bytes);
        let image = open(&server.url("/image"));
        let file = image.open_file("m/a/b/c/d/e/file").unwrap();
        let mut start = [0; 10];
        file.read_at(0, &mut start).unwrap();
        assert_eq!(start, content()[..10]);
        let counters = image.counters();
        assert_eq!((counters.remote_rounds, counters.remote_retries), (2, 0), "{name}");
        assert!(counters.remote_requests <= 4, "{name}: {counters:?}");
        // The rest of it, with its tail, takes no more than one further.
        let image = open(&server.url("/image"));
        assert_eq!(image.read("m/a/b/c/d/e/file").unwrap(), content());
        assert!(image.counters().remote_rounds <= 3, "{name}: {:?}", image.counters());
        assert_eq!(image.walk().count(), 2 * 40 + 40 + 1 + 6 + 1);
    }
}

#[test]
fn a_list_of_all_takes_one_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["image.sqfs", "image.erofs"] {
        let server = RangeServer::new(pack(dir.path(), name));
        let image = open(&server.url("/image"));
        assert_eq!(image.walk().filter(|entry| entry.is_ok()).count(), 128);
        assert_eq!(image.counters().remote_rounds, 1, "{name}");
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn everything_is_the_same_as_in_a_local_image() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = pack(dir.path(), "image.sqfs");
    let local = packfs::open(dir.path().join("image.sqfs")).unwrap();
    let server = RangeServer::new(bytes.clone());
    let remote = open(&server.url("/image"));
    let (mut a, mut b) = (Vec::new(), Vec::new());
    local.write_tar(&mut a).unwrap();
    remote.write_tar(&mut b).unwrap();
    assert!(a == b);
    // In a partition, hints go through the disk.
    let mut disk = vec![0; MIB];
    disk[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0]);
    disk[458..462].copy_from_slice(&((bytes.len() / 512 + 1) as u32).to_le_bytes());
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk.extend(&bytes);
    disk.resize(disk.len() + MIB, 0);
    let server = RangeServer::new(disk);
    let inner = open(&server.url("/disk"));
    assert_eq!(inner.layers().len(), 1);
    assert_eq!(inner.read("m/a/b/c/d/e/file").unwrap(), content());
    assert!(inner.counters().remote_requests > 0);
}
