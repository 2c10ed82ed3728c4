//! The cache on disk: shared, checked, limited.

use crate::{KIB, MIB, noise, options, read};
use packfs_core::Image;
use packfs_remote::{RemoteImage, RemoteOptions, Store};
use packfs_testkit::{RangeServer, Reply};
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

fn cached(dir: &Path) -> RemoteOptions {
    RemoteOptions { cache_dir: Some(dir.join("cache")), ..options() }
}

#[test]
fn another_process_reads_what_one_has_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = noise(8 * MIB + 77);
    let server = RangeServer::new(bytes.clone());
    let url = server.url_as("user:secret", "/image?v=secret");
    let image = RemoteImage::open(&url, cached(dir.path())).unwrap();
    assert_eq!(read(&image, 0, 4 * MIB).unwrap(), bytes[..4 * MIB]);
    server.forget();
    let again = RemoteImage::open(&url, cached(dir.path())).unwrap();
    assert_eq!(read(&again, 0, 4 * MIB).unwrap(), bytes[..4 * MIB]);
    assert_eq!(read(&again, 8 * MIB - 1000, 9 * MIB).unwrap(), bytes[8 * MIB - 1000..]);
    let fetched = again.fetched().unwrap();
    assert_eq!((fetched.requests, fetched.bytes), (1, 0), "one question for the version");
    assert_eq!(server.requests()[0].header("if-none-match"), Some("\"1\""));
    // Offline, what is there can be read, and nothing else.
    let offline = RemoteImage::open(&url, RemoteOptions { is_offline: true, ..cached(dir.path()) }).unwrap();
    drop(server);
    assert_eq!(read(&offline, 100, MIB).unwrap(), bytes[100..100 + MIB]);
    let error = read(&offline, 6 * MIB, 1).unwrap_err();
    assert!(error.to_string().contains("offline"), "{error}");
    let folder = dir.path().join("cache");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0);
        let start = std::fs::read(entry.path()).unwrap();
        assert!(!start.windows(6).any(|window| window == b"secret"));
    }
}

#[test]
fn another_version_has_another_file() {
    let dir = tempfile::tempdir().unwrap();
    let server = RangeServer::new(noise(3 * MIB));
    read(&RemoteImage::open(&server.url("/a"), cached(dir.path())).unwrap(), 0, 3 * MIB).unwrap();
    let newer = noise(3 * MIB + 1);
    server.change(|served| {
        served.bytes = newer.clone().into();
        served.etag = Some("\"2\"".into());
    });
    let image = RemoteImage::open(&server.url("/a"), cached(dir.path())).unwrap();
    assert_eq!(read(&image, 0, 4 * MIB).unwrap(), newer);
    let store = Store::at(dir.path().join("cache"));
    let list = store.list().unwrap();
    assert_eq!(list.len(), 2);
    assert!(list.iter().all(|it| it.url.as_deref() == Some(&*server.url("/a"))));
    store.remove(&list[0]).unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn damage_is_found_and_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = noise(3 * MIB);
    let server = RangeServer::new(bytes.clone());
    read(&RemoteImage::open(&server.url("/a"), cached(dir.path())).unwrap(), 0, 3 * MIB).unwrap();
    let store = Store::at(dir.path().join("cache"));
    let stored = store.list().unwrap().remove(0);
    assert_eq!((store.verify(&stored).unwrap().good, store.verify(&stored).unwrap().bad), (48, 0));
    let path = store.dir().join(&stored.name);
    let file = File::options().write(true).open(&path).unwrap();
    // A block, the word of another, and the end of the file.
    file.write_all_at(b"damage", 64 * KIB as u64 * 5).unwrap();
    file.write_all_at(&[9], 4096 + 8 * 20).unwrap();
    file.set_len(64 * KIB as u64 * 49 - 10).unwrap();
    let verified = store.verify(&stored).unwrap();
    assert_eq!((verified.good, verified.bad), (45, 3));
    server.forget();
    let image = RemoteImage::open(&server.url("/a"), cached(dir.path())).unwrap();
    assert_eq!(read(&image, 0, 3 * MIB).unwrap(), bytes);
    assert_eq!(image.fetched().unwrap().bytes, 3 * 64 * KIB as u64);
    // A damaged header is no version.
    file.write_all_at(b"x", 100).unwrap();
    assert_eq!(store.list().unwrap()[0].url, None);
    assert_eq!(store.verify(&stored).unwrap().bad, 1);
    let image = RemoteImage::open(&server.url("/a"), cached(dir.path())).unwrap();
    assert_eq!(read(&image, 0, 3 * MIB).unwrap(), bytes);
    assert_eq!(store.verify(&store.list().unwrap()[0]).unwrap().bad, 0);
}

#[test]
fn what_was_used_longest_ago_is_evicted() {
    let dir = tempfile::tempdir().unwrap();
    let server = RangeServer::new(noise(2 * MIB));
    let limited = |len| RemoteOptions { cache_len: len, ..cached(dir.path()) };
    for path in ["/a", "/b", "/c"] {
        let image = RemoteImage::open(&server.url(path), limited(5 << 20)).unwrap();
        read(&image, 0, 2 * MIB).unwrap();
        // Times of files are compared.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let store = Store::at(dir.path().join("cache"));
    let mut urls: Vec<_> = store.list().unwrap().into_iter().filter_map(|it| it.url).collect();
    urls.sort();
    assert_eq!(urls, [server.url("/b"), server.url("/c")]);
    // One image over the limit: reading goes on.
    let big = RangeServer::new(noise(16 * MIB));
    let image = RemoteImage::open(&big.url("/big"), limited(5 << 20)).unwrap();
    assert_eq!(read(&image, 0, 16 * MIB).unwrap(), noise(16 * MIB));
    let held: u64 = store.list().unwrap().iter().map(|it| it.held).sum();
    assert!(held <= 14 << 20, "{held}");
    // No cache at all.
    let none = RemoteImage::open(&server.url("/d"), limited(0)).unwrap();
    read(&none, 0, MIB).unwrap();
    assert!(store.list().unwrap().iter().all(|it| it.url.as_ref() != Some(&server.url("/d"))));
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("cache"), "a file").unwrap();
    let bytes = noise(3 * MIB);
    let server = RangeServer::new(bytes.clone());
    let image = RemoteImage::open(&server.url("/a"), cached(dir.path())).unwrap();
    assert_eq!(read(&image, 0, 3 * MIB).unwrap(), bytes);
}

#[test]
fn versions_without_a_strong_etag_are_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let server = RangeServer::new(noise(MIB));
    server.change(|served| served.etag = Some("W/\"1\"".into()));
    read(&RemoteImage::open(&server.url("/a"), cached(dir.path())).unwrap(), 0, MIB).unwrap();
    assert_eq!(Store::at(dir.path().join("cache")).list().unwrap(), []);
    let error =
        RemoteImage::open(&server.url("/a"), RemoteOptions { is_offline: true, ..cached(dir.path()) });
    assert!(error.err().unwrap().to_string().contains("not in the cache"));
}

#[test]
fn faults_leave_nothing_wrong_in_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = noise(6 * MIB);
    let server = RangeServer::with(bytes.clone(), |request| match request.number % 3 {
        2 => Reply::Short(70_000),
        _ => Reply::Right,
    });
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let image = RemoteImage::open(&server.url("/a"), cached(dir.path())).unwrap();
                assert!(read(&image, 0, 6 * MIB).unwrap() == bytes);
            });
        }
    });
    let store = Store::at(dir.path().join("cache"));
    for stored in store.list().unwrap() {
        assert_eq!(store.verify(&stored).unwrap().bad, 0);
    }
}
