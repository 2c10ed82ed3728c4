//! Requests and rounds of a server that answers rightly.

use crate::{KIB, MIB, noise, open, read};
use packfs_core::Image;
use packfs_testkit::RangeServer;

#[test]
fn head_and_tail_come_in_the_first_round() {
    let bytes = noise(4 * MIB + 1000);
    let server = RangeServer::new(bytes.clone());
    let image = open(&server).unwrap();
    assert_eq!(image.len(), bytes.len() as u64);
    assert_eq!(read(&image, 100, MIB - 100).unwrap(), bytes[100..MIB]);
    // The block at the start of the tail is not whole, as the length is no multiple.
    let tail = bytes.len() - MIB + 64 * KIB;
    assert_eq!(read(&image, tail, 2 * MIB).unwrap(), bytes[tail..]);
    let fetched = image.fetched().unwrap();
    assert_eq!((fetched.requests, fetched.rounds, fetched.bytes), (2, 1, 2 * MIB as u64));
    let ranges: Vec<_> = server.requests().iter().map(|it| it.header("range").unwrap().to_owned()).collect();
    assert!(
        ranges.contains(&"bytes=0-1048575".into()) && ranges.contains(&"bytes=-1048576".into()),
        "{ranges:?}"
    );
    assert!(
        server.requests().iter().all(|it| it.header("accept-encoding").is_none_or(|it| it == "identity"))
    );
}

#[test]
fn ranges_that_are_announced_come_in_one_round() {
    let bytes = noise(32 * MIB);
    let server = RangeServer::new(bytes.clone());
    let image = open(&server).unwrap();
    server.forget();
    let places = [3 * MIB, 3 * MIB + 200 * KIB, 9 * MIB, 20 * MIB + 5];
    let ranges: Vec<_> = places.iter().map(|&at| at as u64..(at + 1000) as u64).collect();
    image.will_read(&ranges);
    // The first two are so near that one request brings both.
    assert_eq!(server.requests().len(), 3);
    for at in places {
        assert_eq!(read(&image, at, 1000).unwrap(), bytes[at..at + 1000]);
    }
    let fetched = image.fetched().unwrap();
    assert_eq!((fetched.requests, fetched.rounds), (5, 2));
    image.will_read(&[0..10, u64::MAX - 5..u64::MAX, 40 << 20..50 << 20]);
    assert_eq!(image.fetched().unwrap().requests, 5);
    assert!(server.requests().iter().all(|it| it.header("if-match") == Some("\"1\"")));
}

#[test]
fn a_sequence_of_reads_is_fetched_ahead() {
    let bytes = noise(32 * MIB);
    let server = RangeServer::new(bytes.clone());
    let image = open(&server).unwrap();
    for at in (0..bytes.len()).step_by(32 * KIB) {
        assert_eq!(read(&image, at, 32 * KIB).unwrap(), bytes[at..at + 32 * KIB]);
    }
    let fetched = image.fetched().unwrap();
    assert_eq!(fetched.bytes, bytes.len() as u64);
    assert!(fetched.rounds <= 12, "{fetched:?}");
    // A long read is fetched in parallel pieces.
    let image = open(&server).unwrap();
    server.forget();
    assert_eq!(read(&image, 2 * MIB, 8 * MIB).unwrap(), bytes[2 * MIB..10 * MIB]);
    assert_eq!((server.requests().len(), image.fetched().unwrap().rounds), (8, 2));
}

#[test]
fn sequences_of_readers_that_take_turns_are_fetched_ahead() {
    let bytes = noise(48 * MIB);
    let server = RangeServer::new(bytes.clone());
    let image = open(&server).unwrap();
    for at in (0..16 * MIB).step_by(32 * KIB) {
        for start in [0, 16 * MIB, 32 * MIB] {
            let at = start + at;
            assert_eq!(read(&image, at, 32 * KIB).unwrap(), bytes[at..at + 32 * KIB]);
        }
    }
    let fetched = image.fetched().unwrap();
    // The first two are fetched ahead beyond their ends, where the others began.
    assert!(fetched.bytes <= 64 * MIB as u64 && fetched.rounds <= 20, "{fetched:?}");
}

#[test]
fn readers_of_one_block_share_a_request() {
    let bytes = noise(8 * MIB);
    let server = RangeServer::new(bytes.clone());
    let image = open(&server).unwrap();
    server.forget();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(read(&image, 3 * MIB, 10).unwrap(), bytes[3 * MIB..3 * MIB + 10]));
        }
    });
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn short_and_empty_objects_are_images_too() {
    for len in [0, 1, 1000, 64 * KIB, MIB, MIB + 1] {
        let bytes = noise(len);
        let server = RangeServer::new(bytes.clone());
        let image = open(&server).unwrap();
        assert_eq!((image.len(), read(&image, 0, len + 10).unwrap()), (len as u64, bytes), "{len}");
        assert!(read(&image, len, 1).unwrap().is_empty());
        assert_eq!(image.read_at(u64::MAX, &mut [0]).unwrap(), 0);
        assert_eq!(image.warning(), None);
    }
}
