//! Small files of every version made by hand, byte for byte, and what the reader says of them and
//! of damaged copies.

mod notices;
mod reads;
mod refuses;

use crate::disk::*;
use crate::open::Version;
use crate::volume::CloopVolume;
use packfs_codec::Algorithm;
use packfs_codec::{CodecSpec, DictLens, encoder};
use packfs_format::{InodeId, Volume};
use packfs_testkit::{BytesImage, LabelledImage, read_all, read_range};
use std::ops::{ControlFlow, Range};
use zerocopy::IntoBytes;

const BLOCK_LEN: usize = 512;
/// The one file.
const DISK: InodeId = InodeId(1);

const VERSIONS: [Version; 8] = [
    Version::V0_68,
    Version::V1_0,
    Version::Accelerated,
    Version::V2_0,
    Version::V3_0,
    Version::Alpha3,
    Version::V4Header,
    Version::V4Footer,
];

/// An image under construction.
type Made = LabelledImage<CloopVolume>;

/// Decodes a part of the disk.
fn disk(made: &Made, range: Range<u64>) -> Vec<u8> {
    read_range(&made.open().unwrap(), &BytesImage(made.bytes.clone()), DISK, range).unwrap()
}

/// Returns the contents of the disk: four blocks, the last half empty.
fn wanted() -> Vec<u8> {
    let noise = packfs_testkit::Random::new(1).noise(BLOCK_LEN);
    [vec![b'a'; BLOCK_LEN], noise, vec![b'c'; BLOCK_LEN], vec![b'd'; BLOCK_LEN / 2], vec![0; BLOCK_LEN / 2]]
        .concat()
}

fn encoded(algorithm: Option<Algorithm>, plain: &[u8]) -> Vec<u8> {
    let Some(algorithm) = algorithm else { return plain.to_vec() };
    let spec: CodecSpec = algorithm.name().parse().unwrap();
    let settings = spec.resolve(&[algorithm], DictLens::of_block(4096)).unwrap().unwrap();
    let mut out = vec![0; 4096];
    let len = encoder(&settings).unwrap().compress(plain, &mut out).unwrap().unwrap();
    out.truncate(len);
    out
}

/// The number that a version with several codecs has for one.
fn method(version: Version, algorithm: Option<Algorithm>) -> u64 {
    let (method, flag) = match algorithm {
        None => (METHOD_STORED, FLAG_STORED),
        Some(Algorithm::Xz) => (METHOD_XZ, FLAG_XZ),
        Some(Algorithm::Lz4) => (METHOD_LZ4, FLAG_LZ4),
        Some(Algorithm::Lzo) => (METHOD_LZO, FLAG_LZO),
        Some(_) => (METHOD_ZLIB, FLAG_ZLIB),
    };
    if version == Version::Alpha3 { u64::from(flag) } else { method }
}

/// Algorithms of the blocks of a version.
fn algorithms(version: Version) -> [Option<Algorithm>; 4] {
    use Algorithm::{Lz4, Lzo, Xz, Zlib};
    match version {
        Version::Alpha3 | Version::V4Footer => [Some(Xz), None, Some(Lzo), Some(Zlib)],
        Version::V4Header => [Some(Zlib), None, Some(Lz4), Some(Xz)],
        _ => [Some(Zlib); 4],
    }
}

/// Builds a sound file of a version.
fn made(version: Version) -> Made {
    let plain = wanted();
    let blocks: Vec<Vec<u8>> =
        plain.chunks(BLOCK_LEN).zip(algorithms(version)).map(|(plain, how)| encoded(how, plain)).collect();
    let mut made = LabelledImage::new(CloopVolume::open);
    let number = match version {
        Version::V1_0 | Version::Accelerated => b"1.0",
        Version::V2_0 => b"2.0",
        Version::V3_0 => b"3.0",
        _ => b"4.0",
    };
    let count = if version == Version::V3_0 { BLOCKS_IN_TAIL } else { 4 };
    let mut head = head(number, BLOCK_LEN as u32, count);
    if version == Version::V0_68 {
        head.preamble = [0; PREAMBLE_LEN];
        head.preamble[..25].copy_from_slice(b"#!/bin/sh\ninsmod cloop.o\n");
    }
    let has_head = !matches!(version, Version::Alpha3 | Version::V4Footer);
    if has_head {
        made.put("head", head.as_bytes());
    }
    let row_len = version.row_len() as usize;
    match version {
        Version::Alpha3 | Version::V4Footer => drop(made.put("gap", &[0; 16])),
        Version::V3_0 => {}
        Version::Accelerated => drop(made.put("index", &[0; 16 * 4])),
        _ => drop(made.put("index", &vec![0; row_len * 5])),
    }
    // Accelerated images have the blocks that are used first in front.
    let order = if version == Version::Accelerated { [2, 0, 3, 1] } else { [0, 1, 2, 3] };
    let mut starts = [0; 5];
    for (label, block) in ["block", "second", "third", "fourth"].into_iter().zip(order) {
        starts[block] = made.put(label, &blocks[block]);
    }
    starts[4] = made.end();
    let index = index(version, &blocks, starts);
    match version {
        Version::V3_0 => {
            made.put("index", &index);
            made.put("tail", Tail { index_size: 4.into(), num_blocks: 4.into() }.as_bytes());
        }
        Version::Alpha3 => put_alpha_table(&mut made, &index),
        Version::V4Footer => {
            made.put("index", &index);
            made.put("head", head.as_bytes());
        }
        _ => made = made.patch("index", 0, &index),
    }
    made
}

/// Builds the index of blocks that start and end at `starts`.
fn index(version: Version, blocks: &[Vec<u8>], starts: [u64; 5]) -> Vec<u8> {
    let mut index = Vec::new();
    match version {
        Version::V0_68 => starts.iter().for_each(|at| index.extend((*at as u32).to_be_bytes())),
        Version::V1_0 => starts.iter().for_each(|at| index.extend(at.to_le_bytes())),
        Version::V2_0 | Version::Alpha3 => starts.iter().for_each(|at| index.extend(at.to_be_bytes())),
        Version::V3_0 => blocks.iter().for_each(|block| index.extend((block.len() as u32).to_be_bytes())),
        Version::Accelerated => {
            for (block, stored) in blocks.iter().enumerate() {
                let size = (stored.len() as u32).into();
                let info = BlockInfo { offset: starts[block].into(), size, optidx: 9.into() };
                index.extend_from_slice(info.as_bytes());
            }
        }
        Version::V4Header | Version::V4Footer => {
            for (at, how) in starts[..4].iter().zip(algorithms(version)) {
                index.extend((method(version, how) << METHOD_SHIFT | at).to_be_bytes());
            }
            index.extend(starts[4].to_be_bytes());
        }
    }
    index
}

/// Appends the table of the unreleased version 3, its index and its tail.
fn put_alpha_table(made: &mut Made, index: &[u8]) {
    let table = AlphaTable {
        num_blocks: 4.into(),
        block_size: (BLOCK_LEN as u32).into(),
        original_size: (BLOCK_LEN as u64 * 7 / 2).into(),
    };
    let at = made.put("table", table.as_bytes());
    made.put("index", index);
    let version = Version::Alpha3;
    let flags = algorithms(version).map(|how| (method(version, how) as u32).to_be_bytes());
    made.put("flags", flags.as_bytes());
    let tail =
        AlphaTail { table_offset: at.into(), version: ALPHA_VERSION.into(), signature: ALPHA_SIGNATURE };
    made.put("tail", tail.as_bytes());
}
