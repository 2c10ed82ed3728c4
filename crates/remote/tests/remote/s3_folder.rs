//! Objects created in a bucket, by a store that loses answers.

use crate::{noise, options_with};
use packfs_core::{Copied, Error, ErrorKind, Image, MemoryImage, Progress, Result, Silent, Store};
use packfs_remote::{RemoteImage, RemoteOptions, S3Folder};
use packfs_testkit::{BucketFault, BucketServer, Reply, Request};
use std::sync::atomic::{AtomicU64, Ordering};

const MIB: usize = 1 << 20;

fn settings(server: &BucketServer) -> RemoteOptions {
    let endpoint = server.endpoint();
    options_with(&[
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "hidden"),
    ])
}

fn folder(server: &BucketServer, url: &str) -> S3Folder {
    S3Folder::open(url, settings(server)).unwrap()
}

fn create_at(folder: &S3Folder, name: &str) -> bool {
    folder.create(name, &MemoryImage::new("a", b"bytes".to_vec()), &[], &Silent).unwrap().is_some()
}

fn create(folder: &S3Folder, bytes: &[u8]) -> Result<bool> {
    Ok(folder.create("a", &MemoryImage::new("a", bytes.to_vec()), &[], &Silent)?.is_some())
}

/// The n-th request with this method fails so.
fn at(
    method: &'static str,
    number: u64,
    fault: BucketFault,
) -> impl Fn(&Request) -> Option<BucketFault> + Send + Sync + 'static {
    let count = AtomicU64::new(0);
    move |request| {
        let is_it = request.method == method && count.fetch_add(1, Ordering::Relaxed) + 1 == number;
        is_it.then(|| fault.clone())
    }
}

fn busy() -> BucketFault {
    BucketFault::Refused(Reply::Status(503, vec![], "<Error><Code>SlowDown</Code></Error>".into()))
}

#[test]
fn objects_are_created_once_read_and_removed() {
    let server = BucketServer::new(|_| None);
    let folder = folder(&server, "s3://bucket/some/prefix/");
    assert_eq!(folder.place("a").to_str().unwrap(), "s3://bucket/some/prefix/a");
    assert!(folder.get("a", 9).unwrap().is_none() && folder.open("a").unwrap().is_none());
    for bytes in [noise(10), noise(40 * MIB + 1)] {
        assert!(create(&folder, &bytes).unwrap());
        assert!(!create(&folder, b"other").unwrap());
        assert!(!create(&folder, &noise(20 * MIB)).unwrap());
        assert!(server.objects()["/bucket/some/prefix/a"] == bytes);
        let image = folder.open("a").unwrap().unwrap();
        let mut end = [0; 5];
        image.read_exact_at(bytes.len() as u64 - 5, &mut end).unwrap();
        assert_eq!(end, bytes[bytes.len() - 5..]);
        folder.remove("a").unwrap();
        folder.remove("a").unwrap();
    }
    assert!(server.objects().is_empty() && server.unfinished() == 0);
    create(&folder, b"four").unwrap();
    assert_eq!(folder.get("a", 4).unwrap().unwrap(), b"four");
    assert_eq!(folder.get("a", 3).unwrap_err().kind(), ErrorKind::Corrupt);
    let is_signed =
        |request: &Request| request.header("authorization").is_some_and(|it| it.contains(",Signature="));
    assert!(server.requests().iter().all(is_signed));
    let is_conditional = |request: &&Request| request.header("if-none-match") == Some("*");
    assert!(server.requests().iter().filter(is_conditional).count() >= 7);
}

#[test]
fn requests_are_repeated_until_the_object_is_there() {
    let bytes = noise(50 * MIB);
    for (method, number) in [("POST", 1), ("PUT", 1), ("PUT", 3), ("POST", 2)] {
        let server = BucketServer::new(at(method, number, busy()));
        assert!(create(&folder(&server, "s3://bucket/p"), &bytes).unwrap(), "{method} {number}");
        assert!(server.objects()["/bucket/p/a"] == bytes, "{method} {number}");
        assert_eq!(server.unfinished(), 0);
    }
    // An object whose answer was lost is known again.
    for (bytes, method, number) in [(&bytes[..9], "PUT", 1), (&bytes, "POST", 2)] {
        let server = BucketServer::new(at(method, number, BucketFault::Lost));
        assert!(create(&folder(&server, "s3://bucket/p"), bytes).unwrap(), "{method}");
        assert!(server.objects()["/bucket/p/a"] == bytes, "{method}");
    }
}

#[test]
fn parts_of_an_upload_that_fails_are_removed() {
    let refused = || Reply::Status(403, vec![], "<Error><Code>AccessDenied</Code></Error>".into());
    let bytes = noise(50 * MIB);
    for (method, number) in [("PUT", 2), ("POST", 2)] {
        let server = BucketServer::new(at(method, number, BucketFault::Refused(refused())));
        let error = create(&folder(&server, "s3://bucket/p"), &bytes).unwrap_err();
        assert!(error.to_string().contains("403 (AccessDenied)"), "{error}");
        assert!(error.hints()[0].contains("credentials") && !error.to_string().contains("Signature"));
        assert!(server.objects().is_empty() && server.unfinished() == 0, "{method}");
    }
    struct Stopped;
    impl Progress for Stopped {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let server = BucketServer::new(|_| None);
    let image = MemoryImage::new("a", bytes);
    let error = folder(&server, "s3://bucket/p").create("a", &image, &[], &Stopped).unwrap_err();
    assert_eq!((error.kind(), server.unfinished()), (ErrorKind::Cancelled, 0));
}

#[test]
fn errors_tell_bucket_region_and_condition() {
    let said = |error: Error| format!("{error} {:?}", error.hints());
    let server = BucketServer::new(|_| None);
    assert!(said(folder(&server, "s3://none/p").get("a", 9).unwrap_err()).contains("no such bucket"));
    assert!(said(create(&folder(&server, "s3://none/p"), b"1").unwrap_err()).contains("no such bucket"));
    for (status, words) in [(501, "If-None-Match"), (301, "AWS_REGION=eu-west-1")] {
        let headers = vec![("x-amz-bucket-region", "eu-west-1".to_owned())];
        let fault = BucketFault::Refused(Reply::Status(status, headers, String::new()));
        let server = BucketServer::new(at("PUT", 1, fault));
        let error = said(create(&folder(&server, "s3://bucket/p"), b"1").unwrap_err());
        assert!(error.contains(words), "{error}");
    }
    let error = S3Folder::open("https://host/p", options_with(&[])).err().unwrap();
    assert!(error.kind() == ErrorKind::Usage && error.hints()[0].contains("s3://BUCKET/PREFIX"));
    assert!(S3Folder::open("s3://bucket", options_with(&[])).is_err());
}

#[test]
fn hostile_answers_are_refused() {
    let answers: [(&str, u64, &str, &str); 3] = [
        ("POST", 1, "<UploadId></UploadId>", "gives the upload no name"),
        ("POST", 1, &"<UploadId>".repeat(9000), "breaks off"),
        ("POST", 2, "<html>", "no result"),
    ];
    for (method, number, body, words) in answers {
        let count = AtomicU64::new(0);
        let body = body.to_owned();
        let server = BucketServer::new(move |request| {
            let is_it = request.method == method && count.fetch_add(1, Ordering::Relaxed) + 1 >= number;
            is_it.then(|| BucketFault::Refused(Reply::Status(200, vec![], body.clone())))
        });
        let error = create(&folder(&server, "s3://bucket/p"), &noise(17 * MIB)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Bytes that differ from those of the objects that are copied, as holes do.
fn holes(parts: &[(usize, &[u8])]) -> MemoryImage {
    let len = parts.iter().map(|(at, bytes)| at + bytes.len()).max().unwrap();
    let mut all = vec![0; len];
    for (at, bytes) in parts {
        all[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    MemoryImage::new("a", all)
}

#[test]
fn long_ranges_of_other_objects_are_copied_by_the_store() {
    let server = BucketServer::new(|_| None);
    let folder = folder(&server, "s3://bucket/p");
    let (one, two) = (noise(30 * MIB), noise(21 * MIB + 7));
    server.put("/bucket/p/o%20n%2Be", one.clone());
    server.put("/bucket/two", two.clone());
    let open = |url: &str| RemoteImage::open(url, settings(&server)).unwrap();
    let (first, second) = (open("s3://bucket/p/o n+e"), open("s3://bucket/two"));
    let all = holes(&[(0, &noise(100)), (100, &one[10..]), (31 * MIB, &two[..20 * MIB]), (52 * MIB, b"end")]);
    let copied = |from, start, at, len| Copied { from, start, at, len };
    let copies =
        [copied(&first, 10, 100, 30 * MIB as u64 - 10), copied(&second, 0, 31 * MIB as u64, 20 * MIB as u64)];
    let done = folder.create("a", &all, &copies, &Silent).unwrap().unwrap();
    // The beginnings are sent: parts of less than 5 MiB are refused.
    assert!((41 * MIB as u64 - 200..41 * MIB as u64 + 200).contains(&done), "{done}");
    let mut expected = vec![0; 52 * MIB + 3];
    all.read_exact_at(0, &mut expected).unwrap();
    assert!(server.objects()["/bucket/p/a"] == expected);
    // An object that was replaced after it was opened.
    server.put("/bucket/two", noise(21 * MIB + 8));
    let error = folder.create("b", &all, &copies, &Silent).unwrap_err();
    assert!(error.to_string().contains("changed while it was open"), "{error}");
    assert!(server.unfinished() == 0 && !server.objects().contains_key("/bucket/p/b"));
}

#[test]
fn objects_are_found_by_their_urls() {
    let server = BucketServer::new(|_| None);
    for (url, path) in [("s3://bucket/a", "/bucket/a"), ("s3://bucket/b/c", "/bucket/b/c")] {
        let (folder, name) = S3Folder::of_object(url, settings(&server)).unwrap();
        folder.check_creation(&name).unwrap();
        assert!(create_at(&folder, &name));
        assert!(server.objects().contains_key(path) && server.unfinished() == 0);
        let error = folder.check_creation(&name).unwrap_err();
        assert!(error.to_string().contains(&format!("{url}: an object of this name exists")), "{error}");
    }
    for wrong in ["s3://bucket", "s3://bucket/a/", "http://host/a"] {
        let error = S3Folder::of_object(wrong, settings(&server)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{wrong}");
    }
}

#[test]
fn stores_that_take_nothing_are_told_before() {
    let refused = || Reply::Status(403, vec![], "<Error><Code>AccessDenied</Code></Error>".into());
    let server = BucketServer::new(at("POST", 1, BucketFault::Refused(refused())));
    let error = folder(&server, "s3://bucket/p").check_creation("a").unwrap_err();
    assert!(error.hints()[0].contains("refuses the credentials"), "{error} {:?}", error.hints());
    let server = BucketServer::new(|_| None);
    let error = folder(&server, "s3://none/p").check_creation("a").unwrap_err();
    assert!(error.to_string().contains("no such bucket"), "{error}");
}
