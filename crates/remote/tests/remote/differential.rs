//! Random reads over a server with faults, compared with the bytes themselves.
#![allow(clippy::print_stderr, reason = "the test harness captures it")]

use crate::{MIB, noise, options, read};
use packfs_core::Image;
use packfs_remote::{RemoteImage, RemoteOptions, Retries};
use packfs_testkit::{Random, RangeServer, Reply};

/// Reads of a run; more by `PACKFS_REMOTE_READS`.
const READS: u64 = 10_000;

/// Faults of a third of all requests, in an order that does not depend on the client.
fn fault(number: u64) -> Reply {
    let mut random = Random::new(number);
    match random.below(24) {
        0 => Reply::Drop,
        1 => Reply::Status(503, vec![], "busy".into()),
        2 => Reply::Status(429, vec![("Retry-After", "0".into())], String::new()),
        3 | 4 => Reply::Short(random.below(100_000) as usize),
        5 | 6 => Reply::ShortLength(1 + random.below(100_000) as usize),
        7 => Reply::Status(500, vec![], String::new()),
        _ => Reply::Right,
    }
}

#[test]
fn random_reads_over_a_faulty_server_are_right() {
    let bytes = noise(24 * MIB + 12_345);
    let server = RangeServer::with(bytes.clone(), |request| fault(request.number));
    let reads = std::env::var("PACKFS_REMOTE_READS").ok().and_then(|it| it.parse().ok()).unwrap_or(READS);
    // A small memory makes blocks come more than once.
    let retries = Retries { attempts: 30, ..options().retries };
    let options = RemoteOptions { memory_len: 2 << 20, retries, ..options() };
    let image = RemoteImage::open(&server.url("/image"), options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (image, bytes) = (&image, &bytes);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                let mut at = 0;
                for _ in 0..reads / 4 {
                    // Near the last place, mostly: as files are read.
                    at = match random.below(8) {
                        0 => random.below(bytes.len() as u64 + 10) as usize,
                        _ => (at + random.below(200_000) as usize) % bytes.len(),
                    };
                    let len = random.below(20_000) as usize;
                    if random.below(16) == 0 {
                        let far = random.below(bytes.len() as u64);
                        image.will_read(&[at as u64..(at + len) as u64, far..far + 1000]);
                    }
                    let end = bytes.len().min(at + len);
                    let wanted = bytes.get(at..end).unwrap_or_default();
                    assert!(read(image, at, len).unwrap() == wanted, "{len} bytes at {at}");
                }
            });
        }
    });
    let fetched = image.fetched().unwrap();
    assert!(fetched.retries > 0 && fetched.requests > fetched.retries);
    if reads != READS {
        eprintln!("{reads} reads: {fetched:?}");
    }
}
