//! Archives of other kinds than tar, whole, joined, damaged, and hostile.

mod cpio;
mod holes;
mod zip;

use super::{content, path};
use packfs_core::{ErrorKind, Limits, Progress, Result, Silent};
use packfs_source::{Loaded, Shape, TarInput, load_archive};
use packfs_testkit::{Compare, snapshot_tree};
use std::io::{Cursor, Write};
use std::sync::Mutex;

/// Keeps warnings.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Progress for Warnings {
    fn warn(&self, message: &str) {
        self.0.lock().unwrap().push(message.into());
    }
}

fn stream(bytes: &[u8]) -> TarInput {
    let (reader, spool_dir) = (Box::new(Cursor::new(bytes.to_vec())), std::env::temp_dir());
    TarInput::Stream { reader, name: "test".into(), spool_dir }
}

/// Loads an archive from a stream and from a file, and holds that both tell the same.
fn load_watched(bytes: &[u8], progress: &dyn Progress) -> Result<Loaded> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let load = |input, progress| load_archive(input, &Shape::default(), Limits::default(), progress);
    let in_place = load(TarInput::File(file.path().into()), &Silent).map_err(|error| error.kind());
    let streamed = load(stream(bytes), progress);
    match (&in_place, &streamed) {
        (Ok(a), Ok(b)) => {
            let [a, b] = [a, b].map(|loaded| snapshot_tree(&loaded.tree, &*loaded.contents));
            a.assert_same(&b, Compare::ALL, "a file and a stream");
        }
        (Err(a), Err(b)) => assert_eq!(*a, b.kind()),
        _ => panic!("a file and a stream differ: {:?} {:?}", in_place.is_ok(), streamed.is_ok()),
    }
    streamed
}

fn load(bytes: &[u8]) -> Loaded {
    load_watched(bytes, &Silent).unwrap()
}

#[track_caller]
fn refused(bytes: &[u8], kind: ErrorKind, fault: &str) {
    let error = load_watched(bytes, &Silent).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(fault), "{error}");
}
