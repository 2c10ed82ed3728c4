//! Objects that are read from start to end.

use crate::{KIB, noise, options};
use packfs_remote::Download;
use packfs_testkit::{RangeServer, Reply, Request};
use std::io::{Error, Read};

const LEN: usize = 700 * KIB;

/// Reads all of what a server with this behavior serves; with how many requests.
fn downloaded(
    behavior: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Result<Vec<u8>, Error>, usize) {
    let server = RangeServer::with(noise(LEN), behavior);
    let mut bytes = Vec::new();
    let read = Download::new(&server.url("/image"), options()).unwrap().read_to_end(&mut bytes);
    (read.map(|_| bytes), server.requests().len())
}

#[test]
fn one_request_reads_a_whole_object() {
    let (bytes, requests) = downloaded(|_| Reply::Whole);
    assert!(bytes.is_ok_and(|bytes| bytes == noise(LEN)));
    assert_eq!(requests, 1);
}

#[test]
fn an_answer_that_breaks_off_is_resumed_at_the_byte_reached() {
    let (bytes, requests) =
        downloaded(|request| if request.number < 3 { Reply::Short(100_001) } else { Reply::Right });
    assert!(bytes.is_ok_and(|bytes| bytes == noise(LEN)));
    assert_eq!(requests, 4);
}

#[test]
fn a_server_without_ranges_is_asked_for_all_of_it_again() {
    let (bytes, _) =
        downloaded(|request| if request.number == 0 { Reply::Short(100_001) } else { Reply::Whole });
    assert!(bytes.is_ok_and(|bytes| bytes == noise(LEN)));
}

#[test]
fn an_object_that_is_cut_each_time_or_changes_is_an_error_and_no_end() {
    let (error, requests) = downloaded(|request| match request.number {
        0 => Reply::Short(100_001),
        _ => Reply::Short(0),
    });
    assert!(error.map(|_| ()).unwrap_err().to_string().contains("after 4 attempts"));
    assert!(requests > 4);
    let (error, _) = downloaded(|request| match request.number {
        0 => Reply::Short(100_001),
        _ => Reply::Other("\"2\"".into()),
    });
    let error = error.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("changed"), "{error}");
    let (error, _) = downloaded(|_| Reply::Unbounded);
    assert!(error.map(|_| ()).unwrap_err().to_string().contains("no length"));
    let (error, requests) = downloaded(|_| Reply::Status(404, vec![], String::new()));
    assert!(error.map(|_| ()).unwrap_err().to_string().contains("no such object"));
    assert_eq!(requests, 1);
}
