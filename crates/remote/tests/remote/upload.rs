//! Uploads to S3: parts, their repetition, and what is left after a failure.

use crate::{KIB, MIB, noise, options_with};
use packfs_core::{Error, ErrorKind, MemoryImage, Progress, Recipient, Silent};
use packfs_remote::{RemoteOptions, Upload};
use packfs_testkit::{FakeS3, Fault, Reply, Step};
use std::sync::atomic::{AtomicU32, Ordering};

const URL: &str = "s3://bucket/dir/root.erofs";

fn options(store: &FakeS3) -> RemoteOptions {
    let endpoint = store.url();
    options_with(&[
        ("AWS_ENDPOINT_URL", &endpoint),
        ("AWS_ACCESS_KEY_ID", "KEY"),
        ("AWS_SECRET_ACCESS_KEY", "SECRET"),
    ])
}

fn begin(store: &FakeS3) -> Result<Upload, Error> {
    Upload::begin(URL, options(store))
}

fn upload(store: &FakeS3, bytes: &[u8], progress: &dyn Progress) -> Result<(), Error> {
    begin(store)?.take(&MemoryImage::from(bytes.to_vec()), progress)
}

/// Fails the first `count` requests of a step.
fn failing(of: Step, count: u32, fault: Fault) -> FakeS3 {
    let failed = AtomicU32::new(0);
    FakeS3::with(move |step, _| {
        let fails = step == of && failed.fetch_add(1, Ordering::Relaxed) < count;
        fails.then(|| fault.clone())
    })
}

fn status(status: u16) -> Reply {
    Reply::Status(status, vec![], String::new())
}

#[test]
fn an_image_appears_once_all_its_parts_are_there() {
    for len in [1, 8 * MIB, 20 * MIB + 5 * KIB] {
        let bytes = noise(len);
        let store = FakeS3::new();
        upload(&store, &bytes, &Silent).unwrap();
        assert!(store.object().unwrap() == bytes, "{len}");
        assert!(!store.holds_parts());
        let requests = store.requests();
        let parts = requests.iter().filter(|(step, _)| matches!(step, Step::Part(_))).count();
        assert_eq!(parts, len.div_ceil(8 * MIB));
        let (last, request) = requests.last().unwrap();
        assert_eq!((*last, request.header("if-none-match")), (Step::Complete, Some("*")));
        let is_signed =
            |path: &str| path.contains("X-Amz-Signature=") && path.starts_with("/bucket/dir/root.erofs?");
        assert!(requests.iter().all(|(_, request)| is_signed(&request.path)));
        let body = String::from_utf8(request.body.clone()).unwrap();
        assert!(body.contains(&format!("<PartNumber>{parts}</PartNumber>")), "{body}");
    }
}

#[test]
fn requests_that_fail_for_a_time_are_repeated() {
    let bytes = noise(17 * MIB);
    for step in [Step::Head, Step::Create, Step::Part(2), Step::Complete] {
        for reply in [status(500), status(503), Reply::Drop] {
            let store = failing(step, 2, Fault::Instead(reply));
            upload(&store, &bytes, &Silent).unwrap();
            assert!(store.object().unwrap() == bytes, "{step:?}");
        }
    }
    // Status 200 with an error in its body.
    let store = failing(Step::Complete, 1, Fault::Instead(status(200)));
    upload(&store, &bytes, &Silent).unwrap();
    assert!(store.object().unwrap() == bytes);
}

#[test]
fn an_end_whose_answer_is_lost_is_an_end() {
    let store = failing(Step::Complete, 1, Fault::After(Reply::Drop));
    upload(&store, &noise(MIB), &Silent).unwrap();
    assert!(store.object().unwrap() == noise(MIB));
}

#[test]
fn nothing_is_left_of_an_upload_that_fails() {
    for step in [Step::Part(1), Step::Part(3), Step::Complete] {
        let store = failing(step, u32::MAX, Fault::Instead(status(403)));
        let error = upload(&store, &noise(17 * MIB), &Silent).unwrap_err();
        assert!(error.to_string().contains("status 403"), "{error}");
        assert!(store.object().is_none() && !store.holds_parts(), "{step:?}");
    }
    // An image that is never finished.
    let store = FakeS3::new();
    let begun = begin(&store).unwrap();
    assert!(store.holds_parts());
    drop(begun);
    assert!(!store.holds_parts());
}

#[test]
fn an_object_is_never_replaced() {
    let store = FakeS3::new();
    store.put(b"other");
    let error = begin(&store).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Failed && error.to_string().contains("an object of this name"),
        "{error}"
    );
    assert_eq!(store.requests().len(), 1);
    // One that came in the meantime.
    let store = FakeS3::new();
    let upload = begin(&store).unwrap();
    store.put(b"other");
    let error = upload.take(&MemoryImage::from(noise(MIB)), &Silent).unwrap_err();
    assert!(error.to_string().contains("an object of this name"), "{error}");
    assert_eq!(store.object().as_deref(), Some(&b"other"[..]));
    assert!(!store.holds_parts());
}

/// Is cancelled after some bytes.
struct Stopping(AtomicU32);

impl Progress for Stopping {
    fn cancelled(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) > 20
    }
}

#[test]
fn a_cancelled_upload_is_removed() {
    let store = FakeS3::new();
    let error = upload(&store, &noise(40 * MIB), &Stopping(AtomicU32::new(0))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(store.object().is_none() && !store.holds_parts());
}

#[test]
fn stores_that_take_nothing_are_told_before_the_image_is_packed() {
    let store = failing(Step::Create, u32::MAX, Fault::Instead(status(404)));
    let error = begin(&store).unwrap_err();
    assert!(error.to_string().contains("no such bucket"), "{error}");
    let store = failing(Step::Create, u32::MAX, Fault::Instead(status(403)));
    let error = begin(&store).unwrap_err();
    assert!(error.hints()[0].contains("refuses the credentials"), "{error} {:?}", error.hints());
    for wrong in ["http://host/a", "s3://bucket"] {
        assert_eq!(Upload::begin(wrong, options(&store)).unwrap_err().kind(), ErrorKind::Usage, "{wrong}");
    }
}
