//! A made-up volume over made-up bytes: small, and stranger than any format allows.

use packfs_codec::{CodecSettings, encoder};
use packfs_core::codec::Algorithm;
use packfs_core::{
    BlockRef, DirCursor, DirEntry, Error, Extent, ExtentFrom, Facts, FileType, Finding, Image, Inode,
    InodeId, InodeKind, Meta, Result, SpaceOwner, Volume, Xattrs,
};
use packfs_read::{Limits, ReadEngine, ReadOptions, Wanted};
use packfs_testkit::Random;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An image in memory that counts what is read of it.
#[derive(Default)]
pub struct Bytes {
    pub bytes: Vec<u8>,
    pub read_len: AtomicU64,
    /// Whether the next read fails.
    pub fails_once: AtomicBool,
}

impl Image for Bytes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if self.fails_once.swap(false, Ordering::Relaxed) {
            return Err(Error::io("cannot read", std::io::Error::other("bad sector")));
        }
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        self.read_len.fetch_add(len as u64, Ordering::Relaxed);
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn name(&self) -> String {
        "made-up image".into()
    }
}

/// Files by extents, directories by entries: inode `n` is the `n`th of either.
#[derive(Clone, Default)]
pub struct MadeUp {
    pub dirs: Vec<Vec<DirEntry>>,
    pub files: Vec<Vec<Extent>>,
}

/// The inode of the first file.
pub const FILE: u64 = 1 << 32;

impl MadeUp {
    fn len(&self, id: InodeId) -> u64 {
        self.files[(id.0 - FILE) as usize].iter().map(|extent| extent.len).sum()
    }
}

impl Volume for MadeUp {
    fn format_name(&self) -> &'static str {
        "made-up"
    }

    fn root(&self) -> InodeId {
        InodeId(0)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let kind = if id.0 < FILE { InodeKind::Directory } else { InodeKind::File { len: self.len(id) } };
        Ok(Inode { kind, meta: Meta::default(), links: 1, number: id.0, has_xattrs: false })
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        Ok(self.dirs[dir.0 as usize].iter().find(|entry| entry.name == name).map(|entry| entry.id))
    }

    fn read_dir(
        &self,
        dir: InodeId,
        _: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        for entry in &self.dirs[dir.0 as usize] {
            if visit(entry.clone(), DirCursor(0)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn read_link(&self, _: InodeId) -> Result<Vec<u8>> {
        Err(Error::failed("no links here"))
    }

    fn xattrs(&self, _: InodeId) -> Result<Xattrs> {
        Ok(Xattrs::new())
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let extents = self.files.get((id.0 - FILE) as usize);
        for extent in extents.ok_or_else(|| Error::corrupt("made-up image", "no such file"))? {
            let (start, end) = (extent.offset.max(range.start), (extent.offset + extent.len).min(range.end));
            if start >= end {
                continue;
            }
            let skipped = start - extent.offset;
            let from = match extent.from {
                ExtentFrom::Hole => ExtentFrom::Hole,
                ExtentFrom::Stored(at) => ExtentFrom::Stored(at + skipped),
                ExtentFrom::Block { block, start } => {
                    ExtentFrom::Block { block, start: start + skipped as u32 }
                }
            };
            if visit(Extent { offset: start, len: end - start, from }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn inode_count_hint(&self) -> u64 {
        0
    }

    fn made_at(&self) -> Option<i64> {
        None
    }

    fn facts(&self) -> Result<Facts> {
        Ok(Facts::default())
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        Ok(Vec::new())
    }

    fn check(&self, _: &mut dyn FnMut(Finding)) -> Result<()> {
        Ok(())
    }
}

/// A made-up image of files that mix holes, stored bytes, blocks of their own and parts of shared blocks.
pub struct Made {
    pub image: Vec<u8>,
    pub volume: MadeUp,
    pub contents: Vec<Vec<u8>>,
}

pub fn made(seed: u64, file_count: usize) -> Made {
    let mut random = Random::new(seed);
    let mut image = random.noise(100);
    let mut codecs = [
        (Algorithm::Zstd, encoder(&CodecSettings::Zstd { level: 1 }).unwrap()),
        (Algorithm::Lz4, encoder(&CodecSettings::Lz4 { acceleration: 1 }).unwrap()),
    ];
    let mut blocks: Vec<(BlockRef, Vec<u8>)> = Vec::new();
    for _ in 0..file_count {
        let len = 1 + random.below(40_000) as usize;
        let raw = random.text(len);
        let (algorithm, encoder) = &mut codecs[random.below(2) as usize];
        let mut stored = vec![0; len + 1000];
        let stored_len = encoder.compress(&raw, &mut stored).unwrap().unwrap();
        let algorithm = Some(*algorithm);
        let (offset, decoded_len) = (image.len() as u64, len as u32);
        blocks.push((
            BlockRef { offset, stored_len: stored_len as u32, decoded_len, exact: true, algorithm },
            raw,
        ));
        image.extend_from_slice(&stored[..stored_len]);
        let gap = random.below(50) as usize;
        image.extend(random.noise(gap));
    }
    let (mut files, mut contents) = (Vec::new(), Vec::new());
    for _ in 0..file_count {
        let (mut extents, mut bytes) = (Vec::new(), Vec::new());
        for _ in 0..random.below(8) {
            let offset = bytes.len() as u64;
            let (len, from) = match random.below(4) {
                0 => {
                    let len = 1 + random.below(100_000);
                    bytes.resize(bytes.len() + len as usize, 0);
                    (len, ExtentFrom::Hole)
                }
                1 => {
                    let at = random.below(image.len() as u64 - 1);
                    let len = 1 + random.below((image.len() as u64 - at).min(300_000));
                    bytes.extend_from_slice(&image[at as usize..(at + len) as usize]);
                    (len, ExtentFrom::Stored(at))
                }
                _ => {
                    let (block, raw) = &blocks[random.below(blocks.len() as u64) as usize];
                    let start = random.below(raw.len() as u64);
                    let len = 1 + random.below(raw.len() as u64 - start);
                    bytes.extend_from_slice(&raw[start as usize..(start + len) as usize]);
                    (len, ExtentFrom::Block { block: *block, start: start as u32 })
                }
            };
            extents.push(Extent { offset, len, from });
        }
        files.push(extents);
        contents.push(bytes);
    }
    let entry = |index: usize| DirEntry {
        name: format!("{index}").into_bytes(),
        id: InodeId(FILE + index as u64),
        file_type: FileType::File,
    };
    let dirs = vec![(0..file_count).map(entry).collect()];
    Made { image, volume: MadeUp { dirs, files }, contents }
}

impl Made {
    pub fn wanted(&self) -> Vec<Wanted> {
        let row = |(index, bytes): (usize, &Vec<u8>)| Wanted {
            id: InodeId(FILE + index as u64),
            len: bytes.len() as u64,
        };
        self.contents.iter().enumerate().map(row).collect()
    }

    pub fn engine(&self, jobs: usize, cache_bytes: u64) -> Arc<ReadEngine> {
        self.counted(jobs, cache_bytes).0
    }

    /// The engine and the image that it reads.
    pub fn counted(&self, jobs: usize, cache_bytes: u64) -> (Arc<ReadEngine>, Arc<Bytes>) {
        let options = ReadOptions { jobs, cache_bytes, limits: Limits::default() };
        let image = Arc::new(Bytes { bytes: self.image.clone(), ..Bytes::default() });
        let engine =
            ReadEngine::new(Arc::clone(&image) as Arc<dyn Image>, Arc::new(self.volume.clone()), options);
        (engine, image)
    }
}
