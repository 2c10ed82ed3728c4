//! Reads that fail at every call, one run for each: what cannot be read is said, and nothing wrong
//! is made of the rest.

mod packing;
mod reading;

use crate::common::engine;
use packfs_core::{Image, Result};
use packfs_read::{ReadEngine, ReadOptions};
use std::sync::Arc;

const FORMATS: [(&str, &str); 2] = [("squashfs", "zstd:1"), ("erofs", "lz4")];

/// One thread, so that calls come in one order.
fn open(image: Arc<dyn Image>) -> Result<Arc<ReadEngine>> {
    engine(image, ReadOptions { jobs: 1, ..ReadOptions::default() })
}

/// A few files: small ones beside each other, one of several blocks, one with a hole, two that are
/// the same.
fn tree() -> (packfs_core::Tree, packfs_core::Held) {
    use packfs_core::{Held, ImagePath, Meta, NodeKind, TreeBuilder, Xattrs};
    let mut random = packfs_testkit::Random::new(11);
    let (mut builder, mut held) = (TreeBuilder::new(Meta::default()), Held::default());
    let large = random.text(400_000);
    let sparse = [&large[..70_000], &vec![0; 300_000], &large[..5000]].concat();
    let small = (0..6).map(|index| (format!("dir/small-{index}"), random.text(500 + index * 900)));
    let files: Vec<(String, Vec<u8>)> = small.collect();
    let more =
        [("large", large.clone()), ("same", large), ("sparse", sparse), ("noise", random.noise(50_000))];
    for (name, bytes) in files.into_iter().chain(more.map(|(name, bytes)| (name.to_owned(), bytes))) {
        let kind = NodeKind::File { len: bytes.len() as u64, content: held.push(bytes) };
        let path = ImagePath::parse(name.as_bytes()).unwrap();
        let xattrs = Xattrs::from([(b"user.name".to_vec(), name.into_bytes())]);
        builder.add(&path, kind, Meta { mode: 0o644, ..Meta::default() }, xattrs).unwrap();
    }
    (builder.finish().unwrap(), held)
}
