//! Shared parts of this crate's tests: images in memory, and the snapshot of a volume.

use packfs_codec::Decoders;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_core::{FileType, Result};
use packfs_format::{DirCursor, ExtentFrom, Format, InodeId, InodeKind, Volume};
use packfs_format_squashfs::Squashfs;
use packfs_testkit::{BytesImage, Row, Snapshot};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Opens bytes.
pub fn open(image: Vec<u8>) -> Result<Box<dyn Volume>> {
    Squashfs.open(Arc::new(BytesImage(image)))
}

/// Opens a file, whole in memory.
pub fn open_file(path: &Path) -> (Vec<u8>, Box<dyn Volume>) {
    let image = std::fs::read(path).unwrap();
    let volume = open(image.clone()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (image, volume)
}

/// Every entry of a directory with the cursor after it.
pub fn entries(volume: &dyn Volume, dir: InodeId, from: DirCursor) -> Vec<(Vec<u8>, InodeId, DirCursor)> {
    let mut entries = Vec::new();
    let visit = &mut |entry: packfs_format::DirEntry, after| {
        entries.push((entry.name, entry.id, after));
        ControlFlow::Continue(())
    };
    volume.read_dir(dir, from, visit).unwrap();
    entries
}

/// A file's bytes, put together from its extents; panics where they leave a gap.
pub fn contents(volume: &dyn Volume, image: &[u8], id: InodeId, range: std::ops::Range<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut decoders = Decoders::new();
    let mut last: Option<(BlockRef, Vec<u8>)> = None;
    let start = range.start;
    volume
        .extents(id, range, &mut |extent| {
            assert_eq!(extent.offset, start + bytes.len() as u64, "extents leave no gap");
            assert!(extent.len > 0);
            let len = extent.len as usize;
            match extent.from {
                ExtentFrom::Hole => bytes.resize(bytes.len() + len, 0),
                ExtentFrom::Stored(at) => bytes.extend_from_slice(&image[at as usize..][..len]),
                ExtentFrom::Block { block, start } => {
                    if last.as_ref().is_none_or(|(held, _)| *held != block) {
                        last = Some((block, decode(&mut decoders, image, block)));
                    }
                    bytes.extend_from_slice(&last.as_ref().unwrap().1[start as usize..][..len]);
                }
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    bytes
}

fn decode(decoders: &mut Decoders, image: &[u8], block: BlockRef) -> Vec<u8> {
    let stored = &image[block.offset as usize..][..block.stored_len as usize];
    let Some(algorithm) = block.algorithm else { return stored.to_vec() };
    let mut decoded = vec![0; block.decoded_len as usize];
    let len = decoders.decompress(algorithm, stored, &mut decoded).unwrap();
    let exact = block.decodes_to == DecodedLen::Exactly;
    assert!(!exact || len == decoded.len(), "{block:?} decodes to {len} bytes");
    decoded.truncate(len);
    decoded
}

/// The snapshot of a volume.
pub fn snapshot_volume(volume: &dyn Volume, image: &[u8]) -> Snapshot {
    let mut rows = BTreeMap::new();
    let mut open = vec![(Vec::new(), volume.root())];
    while let Some((path, id)) = open.pop() {
        let row = row(volume, image, id);
        if row.file_type == FileType::Directory {
            for (name, child, _) in entries(volume, id, DirCursor::default()) {
                let separator = if path.is_empty() { &b""[..] } else { b"/" };
                open.push(([&path, separator, &name].concat(), child));
            }
        }
        rows.insert(path, (id, row));
    }
    let mut first: HashMap<InodeId, Vec<u8>> = HashMap::new();
    let named = rows.into_iter().map(|(path, (id, mut row))| {
        row.first_name = first.entry(id).or_insert_with(|| path.clone()).clone();
        (path, row)
    });
    Snapshot(named.collect())
}

fn row(volume: &dyn Volume, image: &[u8], id: InodeId) -> Row {
    let inode = volume.inode(id).unwrap();
    let (len, content) = match inode.kind {
        InodeKind::File { len } => {
            let bytes = contents(volume, image, id, 0..len);
            assert_eq!(bytes.len() as u64, len, "extents reach the end");
            (len, Sha256::digest(&bytes).to_vec())
        }
        InodeKind::Symlink => {
            let target = volume.read_link(id).unwrap();
            (target.len() as u64, target)
        }
        _ => (0, Vec::new()),
    };
    let device = match inode.kind {
        InodeKind::BlockDevice(number) | InodeKind::CharDevice(number) => Some(number),
        _ => None,
    };
    let xattrs = volume.xattrs(id).unwrap();
    assert_eq!(inode.has_xattrs, !xattrs.is_empty());
    Row {
        file_type: inode.kind.file_type(),
        mode: u32::from(inode.meta.mode),
        owner: (inode.meta.owner.uid, inode.meta.owner.gid),
        mtime: inode.meta.mtime,
        links: u64::from(inode.links),
        len,
        content,
        device,
        xattrs,
        first_name: Vec::new(),
        stored_len: None,
    }
}

thread_local! {
    /// Length of the image under test.
    pub static IMAGE_LEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
