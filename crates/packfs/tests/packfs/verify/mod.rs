//! Packing verified: no wrong image gets its name, and no file that changed meanwhile gets into
//! one.

mod changes;
mod flips;
mod liars;
mod options;

use crate::common::engine;
use packfs_core::{Contents, MemoryImage, Progress, Result, Silent, Tree};
use packfs_format::{PackFormat, PackSettings};
use packfs_pack::{PackOptions, Verify, Written, pack};
use packfs_read::{ReadEngine, ReadOptions};
use packfs_testkit::{Snapshot, snapshot_tree};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Work of a test on an image before it is renamed into place.
type Judge = dyn Fn(&Written<'_>, Vec<u8>) -> Result<()> + Send + Sync;

/// Hands the image to a test.
struct Hands(Box<Judge>);

impl std::fmt::Debug for Hands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hands")
    }
}

impl Verify for Hands {
    fn verify(&self, written: &Written<'_>, _: &dyn Progress) -> Result<()> {
        let mut bytes = vec![0; written.image.len as usize];
        let file: &File = written.image.file;
        file.read_exact_at(&mut bytes, written.image.start).unwrap();
        (self.0)(written, bytes)
    }
}

fn packer(format: &str, codec: &str) -> Box<dyn PackFormat> {
    let settings = PackSettings { codec: Some(codec.into()), ..PackSettings::default() };
    packfs_formats::by_name(format).unwrap().packer(&settings).unwrap()
}

fn pack_judged(
    tree: &Tree,
    contents: &dyn Contents,
    packer: &dyn PackFormat,
    output: &Path,
    judge: Box<Judge>,
) -> Result<()> {
    let verify: Arc<dyn Verify> = Arc::new(Hands(judge));
    let options = PackOptions { jobs: 2, sync: false, verify: Some(verify), ..PackOptions::default() };
    pack(tree, contents, packer, output, &options, &Silent).map(|_| ())
}

fn open(bytes: Vec<u8>) -> Result<Arc<ReadEngine>> {
    engine(Arc::new(MemoryImage::new("image", bytes)), ReadOptions { jobs: 2, ..ReadOptions::default() })
}

fn verified(written: &Written<'_>, bytes: Vec<u8>) -> Result<()> {
    let Written { format, tree, failed, contents, .. } = *written;
    packfs_check::written(&open(bytes)?, &packfs_check::Expected { format, tree, failed, contents }, &Silent)
}

/// Reads everything by another way than the one that verifies; panics where it cannot be read.
fn read_all(bytes: Vec<u8>) -> Snapshot {
    let engine = open(bytes).unwrap();
    let loaded = engine.load_tree(&Silent).unwrap();
    snapshot_tree(&loaded.tree, &*engine)
}

#[test]
fn an_image_that_is_not_accepted_gets_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("image");
    let (tree, contents) = packfs_testkit::plain_tree();
    for format in ["squashfs", "erofs"] {
        std::fs::write(&output, "old").unwrap();
        let seen = Arc::new(Mutex::new(0));
        let count = Arc::clone(&seen);
        let judge = move |written: &Written<'_>, bytes: Vec<u8>| {
            *count.lock().unwrap() += 1;
            verified(written, bytes)?;
            Err(packfs_core::Error::failed("refused"))
        };
        let packer = packer(format, "zstd:1");
        let error = pack_judged(&tree, &contents, &*packer, &output, Box::new(judge)).unwrap_err();
        assert_eq!(error.to_string(), "refused");
        assert_eq!(*seen.lock().unwrap(), 1);
        assert_eq!(std::fs::read(&output).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
