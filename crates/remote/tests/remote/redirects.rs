//! Redirects, and credentials that stay with their host.

use crate::{MIB, noise, options, options_with, read};
use packfs_remote::RemoteImage;
use packfs_testkit::{RangeServer, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn redirect(to: String) -> Reply {
    Reply::Status(307, vec![("Location", to)], "elsewhere".into())
}

#[test]
fn credentials_are_not_sent_to_another_host() {
    let bytes = noise(4 * MIB);
    let store = RangeServer::new(bytes.clone());
    let target = store.url_as("evil:evil", "/signed?token=1");
    let front = RangeServer::with(Vec::new(), move |_| redirect(target.clone()));
    let url = front.url_as("user:p%40ss", "/image");
    let image = RemoteImage::open(&url, options()).unwrap();
    assert_eq!(read(&image, 2 * MIB, 9).unwrap(), bytes[2 * MIB..2 * MIB + 9]);
    assert!(front.requests().iter().all(|it| it.header("authorization") == Some("Basic dXNlcjpwQHNz")));
    assert!(store.requests().iter().all(|it| it.header("authorization").is_none()));
    assert_eq!(store.requests().len(), 3);
    assert!(front.requests().len() <= 2, "later requests go to the place that was found");
}

#[test]
fn credentials_stay_on_redirects_within_the_host() {
    let bytes = noise(4 * MIB);
    let server = RangeServer::with(bytes.clone(), |request| match request.path.as_str() {
        "/image" => redirect("/moved".into()),
        _ => Reply::Right,
    });
    let netrc = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(netrc.path(), "machine 127.0.0.1 login user password secret\n").unwrap();
    let options = options_with(&[("NETRC", netrc.path().to_str().unwrap())]);
    let image = RemoteImage::open(&server.url("/image"), options).unwrap();
    server.forget();
    assert_eq!(read(&image, 0, 4 * MIB).unwrap(), bytes);
    assert!(server.requests().iter().all(|it| it.path == "/moved"));
    assert!(server.requests().iter().all(|it| it.header("authorization") == Some("Basic dXNlcjpzZWNyZXQ=")));
}

#[test]
fn an_address_that_expired_is_resolved_again_once() {
    let bytes = noise(8 * MIB);
    let is_expired = Arc::new(AtomicBool::new(false));
    let expired = Arc::clone(&is_expired);
    let store = RangeServer::with(bytes.clone(), move |request| {
        if expired.load(Ordering::Relaxed) && request.path == "/1" {
            Reply::Status(403, vec![], "expired".into())
        } else {
            Reply::Right
        }
    });
    let (first, second) = (store.url("/1"), store.url("/2"));
    let renewed = Arc::clone(&is_expired);
    let front = RangeServer::with(Vec::new(), move |_| {
        redirect(if renewed.load(Ordering::Relaxed) { second.clone() } else { first.clone() })
    });
    let image = RemoteImage::open(&front.url("/image"), options()).unwrap();
    is_expired.store(true, Ordering::Relaxed);
    front.forget();
    assert_eq!(read(&image, 2 * MIB, 9).unwrap(), bytes[2 * MIB..2 * MIB + 9]);
    assert_eq!(front.requests().len(), 1);
    // Refused at the new place, too: no circle.
    let refusing = RangeServer::with(bytes, |request| match request.number {
        0 | 1 => Reply::Right,
        _ => Reply::Status(403, vec![], String::new()),
    });
    let target = refusing.url("/1");
    let front = RangeServer::with(Vec::new(), move |_| redirect(target.clone()));
    let image = RemoteImage::open(&front.url("/image"), options()).unwrap();
    front.forget();
    let error = read(&image, 2 * MIB, 9).unwrap_err();
    assert!(error.to_string().contains("status 403"), "{error}");
    assert_eq!(front.requests().len(), 1);
}

#[test]
fn circles_and_other_schemes_are_refused() {
    for place in ["/image", "ftp://127.0.0.1/a", "file:///etc/passwd", "http://"] {
        let server = RangeServer::with(Vec::new(), move |_| redirect(place.into()));
        let error = RemoteImage::open(&server.url("/image"), options()).err().unwrap();
        assert!(error.to_string().contains("redirect"), "{error}");
        assert!(server.requests().len() <= 12);
    }
}

#[test]
fn secrets_are_in_no_message() {
    let server = RangeServer::with(Vec::new(), |_| Reply::Status(404, vec![], String::new()));
    let url = server.url_as("user:secret1", "/a?sig=secret2#secret3");
    let error = RemoteImage::open(&url, options()).err().unwrap();
    let text = format!("{error:?} {error} {:?}", error.hints());
    assert!(!text.contains("secret") && text.contains("/a?sig=..."), "{text}");
    assert_eq!(server.requests()[0].path, "/a?sig=secret2");
    for wrong in [
        "http://user:secret@[bad/a",
        "http://user:secret@/a",
        "ftp://user:secret@host/a",
        "s3://k:secret@b/k",
    ] {
        let error = RemoteImage::open(wrong, options()).err().unwrap();
        assert_eq!(error.kind(), packfs_core::ErrorKind::Usage, "{wrong}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
}
