//! Answers that are wrong, late, or missing.

use crate::{KIB, MIB, noise, open, options, read};
use packfs_core::{ErrorKind, Image};
use packfs_remote::{RemoteImage, TimeLimits};
use packfs_testkit::{RangeServer, Reply, Request};
use std::time::Duration;

const LEN: usize = 4 * MIB;

/// Answers requests after those of opening.
fn later(reply: impl Fn(u64) -> Reply + Send + Sync + 'static) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| if request.number < 2 { Reply::Right } else { reply(request.number - 2) }
}

#[test]
fn temporary_failures_are_repeated() {
    let status = |status| move || Reply::Status(status, vec![], "busy".into());
    type Fault = Box<dyn Fn() -> Reply + Send + Sync>;
    let replies: Vec<(&str, Fault)> = vec![
        ("408", Box::new(status(408))),
        ("429", Box::new(|| Reply::Status(429, vec![("Retry-After", "9999999".into())], String::new()))),
        ("500", Box::new(status(500))),
        ("503", Box::new(status(503))),
        ("drop", Box::new(|| Reply::Drop)),
        ("short", Box::new(|| Reply::Short(0))),
    ];
    for (name, fault) in replies {
        let bytes = noise(LEN);
        let server =
            RangeServer::with(bytes.clone(), later(move |n| if n < 3 { fault() } else { Reply::Right }));
        let image = open(&server).unwrap();
        assert_eq!(read(&image, 2 * MIB, 100).unwrap(), bytes[2 * MIB..2 * MIB + 100], "{name}");
        assert_eq!(image.fetched().unwrap().retries, 3, "{name}");
        assert_eq!(server.requests().len(), 6, "{name}");
    }
}

#[test]
fn failures_that_last_end_in_an_error() {
    let server = RangeServer::with(noise(LEN), later(|_| Reply::Status(503, vec![], String::new())));
    let image = open(&server).unwrap();
    let error = read(&image, 2 * MIB, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("status 503 (after 4 attempts)"), "{error}");
    assert_eq!(server.requests().len(), 6);
    // What is there can be read on.
    assert!(read(&image, 0, 100).is_ok());
}

#[test]
fn lasting_statuses_are_not_repeated() {
    // Numbers from `asm-generic/errno-base.h`: EACCES, ENOENT, EINVAL.
    for (status, kind, errno) in [
        (403, "refuses access", 13),
        (404, "no such object", 2),
        (501, "status 501", 22),
        (505, "status 505", 22),
    ] {
        let server =
            RangeServer::with(noise(LEN), later(move |_| Reply::Status(status, vec![], String::new())));
        let image = open(&server).unwrap();
        let error = read(&image, 2 * MIB, 1).unwrap_err();
        assert!(error.kind() == ErrorKind::Failed && error.to_string().contains(kind), "{error}");
        assert_eq!(error.errno(), errno, "{status}");
        assert_eq!(server.requests().len(), 3, "{status}");
    }
}

#[test]
fn short_bodies_are_resumed_at_the_byte_reached() {
    for cut in [|n| Reply::Short(n), |n| Reply::ShortLength(n)] {
        let bytes = noise(LEN);
        let server =
            RangeServer::with(bytes.clone(), later(move |n| if n < 6 { cut(10_000) } else { Reply::Right }));
        let image = open(&server).unwrap();
        server.forget();
        assert_eq!(read(&image, 2 * MIB, 100 * KIB).unwrap(), bytes[2 * MIB..2 * MIB + 100 * KIB]);
        let starts: Vec<usize> = server
            .requests()
            .iter()
            .map(|it| it.header("range").unwrap()[6..].split('-').next().unwrap().parse().unwrap())
            .collect();
        let wanted: Vec<usize> = (0..7).map(|n| 2 * MIB + n * 10_000).collect();
        assert_eq!(starts, wanted, "more attempts than allowed in a row, as each brings bytes");
        assert_eq!(image.fetched().unwrap().bytes, (2 * MIB + 128 * KIB) as u64);
    }
}

#[test]
fn a_short_head_is_resumed_too() {
    let bytes = noise(LEN);
    let server = RangeServer::with(bytes.clone(), |request| match request.header("range") {
        Some("bytes=0-1048575") => Reply::Short(1000),
        _ => Reply::Right,
    });
    let image = open(&server).unwrap();
    assert_eq!(read(&image, 0, LEN).unwrap(), bytes);
}

#[test]
fn a_changed_image_is_never_mixed_with_the_old_one() {
    // A server that has conditions, one that ignores them, one whose object has another length.
    type Change = fn(&RangeServer);
    type Answer = fn(u64) -> Reply;
    let changes: [(Change, Answer); 3] = [
        (|server| server.change(|served| served.etag = Some("\"2\"".into())), |_| Reply::Right),
        (|_| {}, |_| Reply::Other("\"2\"".into())),
        (|_| {}, |_| Reply::RangeHeader(format!("bytes 2097152-2162687/{}", LEN + 1))),
    ];
    for (change, reply) in changes {
        let bytes = noise(LEN);
        let server = RangeServer::with(bytes.clone(), later(reply));
        let image = open(&server).unwrap();
        change(&server);
        let error = read(&image, 2 * MIB, 1).unwrap_err();
        assert!(error.kind() == ErrorKind::Failed, "{error}");
        assert!(error.to_string().contains("the image changed while it was open"), "{error}");
        // Nothing is requested any more, and what was read before is of the old version.
        let count = server.requests().len();
        assert!(read(&image, 2 * MIB + 500 * KIB, 1).is_err());
        assert_eq!(server.requests().len(), count);
        assert_eq!(read(&image, 0, 100).unwrap(), bytes[..100]);
    }
}

#[test]
fn a_change_between_the_first_two_answers_is_noticed() {
    let bytes = noise(LEN);
    let server = RangeServer::with(bytes.clone(), |request| match request.header("range") {
        Some("bytes=-1048576") => Reply::Other("\"2\"".into()),
        _ => Reply::Right,
    });
    let image = open(&server).unwrap();
    assert_eq!(read(&image, 0, LEN).unwrap(), bytes);
}

#[test]
fn other_validators_are_used_if_there_is_no_strong_etag() {
    let bytes = noise(LEN);
    let time = "Thu, 26 Nov 2026 19:00:00 GMT";
    for etag in [None, Some("W/\"weak\"")] {
        let server = RangeServer::new(bytes.clone());
        server.change(|served| {
            served.etag = etag.map(str::to_owned);
            served.modified = Some(time.into());
        });
        let image = open(&server).unwrap();
        assert_eq!(image.warning(), None);
        assert_eq!(read(&image, 2 * MIB, 9).unwrap(), bytes[2 * MIB..2 * MIB + 9]);
        assert_eq!(server.requests()[2].header("if-unmodified-since"), Some(time));
        server.change(|served| served.modified = Some("Fri, 27 Nov 2026 19:00:00 GMT".into()));
        assert!(read(&image, 2 * MIB + 300 * KIB, 9).unwrap_err().to_string().contains("changed"));
    }
}

#[test]
fn a_server_without_validators_is_warned_of_and_its_length_compared() {
    let bytes = noise(LEN);
    let server = RangeServer::new(bytes.clone());
    server.change(|served| served.etag = None);
    let image = open(&server).unwrap();
    assert!(image.warning().unwrap().contains("neither ETag nor Last-Modified"));
    assert_eq!(read(&image, 2 * MIB, 9).unwrap(), bytes[2 * MIB..2 * MIB + 9]);
    server.change(|served| served.bytes = noise(LEN + 1).into());
    assert!(read(&image, 2 * MIB + 300 * KIB, 9).unwrap_err().to_string().contains("changed"));
}

#[test]
fn the_whole_object_is_no_answer_to_a_range() {
    let server = RangeServer::with(noise(LEN), later(|_| Reply::Whole));
    let image = open(&server).unwrap();
    let error = read(&image, 2 * MIB, 1).unwrap_err();
    assert!(error.to_string().contains("status 200"), "{error}");
    assert_eq!(image.fetched().unwrap().bytes, 2 * MIB as u64, "the body is not read");
    let error = open(&RangeServer::with(noise(LEN), |_| Reply::Whole)).err().unwrap();
    assert!(error.hints()[0].contains("range requests"), "{error}");
    // A short object may come whole.
    let bytes = noise(MIB);
    let image = open(&RangeServer::with(bytes.clone(), |_| Reply::Whole)).unwrap();
    assert_eq!(read(&image, 0, 2 * MIB).unwrap(), bytes);
}

#[test]
fn ranges_that_were_not_requested_are_refused() {
    for wrong in
        ["bytes 0-65535/4194304", "bytes 2097152-2162686/4194304", "bytes */4194304", "pages 1-2/3", "x"]
    {
        let server = RangeServer::with(noise(LEN), later(|_| Reply::RangeHeader(wrong.into())));
        let image = open(&server).unwrap();
        let error = read(&image, 2 * MIB, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed, "{wrong}: {error}");
        assert_eq!(server.requests().len(), 3, "{wrong}");
    }
    for wrong in ["bytes 0-1048575/*", "bytes 1-1048576/4194304", "bytes 0-1048575/99999999999999999999", ""]
    {
        let server = RangeServer::with(noise(LEN), |_| Reply::RangeHeader(wrong.into()));
        assert!(open(&server).is_err(), "{wrong}");
    }
}

#[test]
fn encoded_bodies_are_refused() {
    let gzip = |_| Reply::With("Content-Encoding", "gzip".into());
    let image = open(&RangeServer::with(noise(LEN), later(gzip)));
    assert!(read(&image.unwrap(), 2 * MIB, 1).unwrap_err().to_string().contains("encoded"));
    assert!(
        open(&RangeServer::with(noise(LEN), |_| Reply::With("Content-Encoding", "gzip".into()))).is_err()
    );
}

#[test]
fn a_silent_server_ends_in_an_error() {
    let silent = later(|_| Reply::Silent(Duration::from_secs(3)));
    let server = RangeServer::with(noise(LEN), silent);
    let limits = TimeLimits::within(Duration::from_millis(300));
    let image =
        RemoteImage::open(&server.url("/"), packfs_remote::RemoteOptions { limits, ..options() }).unwrap();
    let error = read(&image, 2 * MIB, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("within 0.3 s"), "{error}");
    assert_eq!(error.errno(), 110, "ETIMEDOUT of `asm-generic/errno.h`");
}

#[test]
fn a_port_without_a_server_ends_in_an_error() {
    // Servers of other tests, which may take the port next, have another address.
    let listener = std::net::TcpListener::bind("127.0.0.77:0").unwrap();
    let url = format!("http://{}/image", listener.local_addr().unwrap());
    drop(listener);
    let error = RemoteImage::open(&url, options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Io);
    // A server that has not answered yet is not waited for as long as one that has.
    assert!(error.to_string().contains("after 3 attempts"), "{error}");
    assert_eq!(error.errno(), 111, "ECONNREFUSED of `asm-generic/errno.h`");
}
