//! A synthetic volume over synthetic bytes: small, and stranger than any format allows.

use packfs_codec::Algorithm;
use packfs_codec::BlockRef;
use packfs_codec::{CodecSettings, Lz4Settings, ZstdSettings, encoder};
use packfs_core::{FileType, Image};
use packfs_format::{DirEntry, Extent, ExtentFrom, InodeId};
use packfs_read::{ReadEngine, ReadOptions, Wanted};
use packfs_testkit::{MadeUpImage, MadeUpNode, MadeUpVolume, Random};
use std::sync::Arc;

/// Files by extents, directories by entries: inode `n` is the `n`th of either.
#[derive(Clone, Default)]
pub struct SyntheticVolume {
    pub dirs: Vec<Vec<DirEntry>>,
    pub files: Vec<Vec<Extent>>,
}

/// The inode of the first file.
pub const FILE: u64 = 1 << 32;

impl SyntheticVolume {
    pub fn volume(&self) -> MadeUpVolume {
        let dirs = (0..).map(InodeId).zip(&self.dirs).map(|(id, dir)| (id, MadeUpNode::dir(id, dir.clone())));
        let files = (FILE..).map(InodeId).zip(&self.files);
        let files = files.map(|(id, extents)| (id, MadeUpNode::file(id, extents.clone())));
        dirs.chain(files).collect()
    }
}

/// A synthetic image of files that mix holes, uncompressed bytes, blocks of their own and parts of
/// shared blocks.
pub struct SyntheticImage {
    pub image: Vec<u8>,
    pub volume: SyntheticVolume,
    pub contents: Vec<Vec<u8>>,
}

pub fn synthetic_image(seed: u64, file_count: usize) -> SyntheticImage {
    let mut random = Random::new(seed);
    let mut image = random.noise(100);
    let mut codecs = [
        (
            Algorithm::Zstd,
            encoder(&CodecSettings::Zstd(ZstdSettings { level: 1, window_log_max: None })).unwrap(),
        ),
        (Algorithm::Lz4, encoder(&CodecSettings::Lz4(Lz4Settings { acceleration: 1 })).unwrap()),
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
        blocks
            .push((BlockRef { decoded_len, algorithm, ..BlockRef::stored(offset, stored_len as u32) }, raw));
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
    SyntheticImage { image, volume: SyntheticVolume { dirs, files }, contents }
}

impl SyntheticImage {
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

    /// Returns an engine and the image that it reads.
    pub fn counted(&self, jobs: usize, cache_bytes: u64) -> (Arc<ReadEngine>, Arc<MadeUpImage>) {
        self.counted_with(ReadOptions { jobs, cache_bytes, ..ReadOptions::default() })
    }

    pub fn engine_with(&self, options: ReadOptions) -> Arc<ReadEngine> {
        self.counted_with(options).0
    }

    fn counted_with(&self, options: ReadOptions) -> (Arc<ReadEngine>, Arc<MadeUpImage>) {
        let image = Arc::new(MadeUpImage::new(self.image.clone()));
        let engine =
            ReadEngine::new(Arc::clone(&image) as Arc<dyn Image>, Arc::new(self.volume.volume()), options);
        (engine, image)
    }
}
