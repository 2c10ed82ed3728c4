//! Images made by hand, byte for byte, and what the reader says of them and of damaged copies.

mod reads;
mod refuses;

use crate::disk::*;
use crate::volume::QcowVolume;
use packfs_codec::{Algorithm, CodecSpec, DictLens, encoder};
use packfs_core::{Image, MemoryImage, Result};
use packfs_format::{Extent, ExtentFrom, InodeId, InodeKind, Opening, Volume};
use packfs_testkit::{BytesImage, LabelledImage, Random, read_all, read_range};
use std::ops::ControlFlow;
use std::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

const CLUSTER: usize = 512;
/// The one file.
const DISK: InodeId = InodeId(1);

/// An image under construction.
type Made = LabelledImage<QcowVolume>;

fn open(image: Arc<dyn Image>) -> Result<QcowVolume> {
    QcowVolume::open(image, Opening::default())
}

/// Appends a structure and fills its last cluster up.
fn put(made: &mut Made, label: &str, bytes: &[u8]) -> u64 {
    let at = made.put(label, bytes);
    made.bytes.resize(made.bytes.len().next_multiple_of(CLUSTER), 0);
    at
}

fn table(entries: &[u64]) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_be_bytes()).collect();
    bytes.resize(CLUSTER, 0);
    bytes
}

fn deflated(plain: &[u8]) -> Vec<u8> {
    let spec: CodecSpec = "deflate".parse().unwrap();
    let settings = spec.resolve(&[Algorithm::Deflate], DictLens::of_block(4096)).unwrap().unwrap();
    let mut out = vec![0; 4096];
    let len = encoder(&settings).unwrap().compress(plain, &mut out).unwrap().unwrap();
    out.truncate(len);
    out
}

/// The contents of the disk now: stored, compressed, a hole, zeros, and a cluster that is cut.
fn wanted() -> Vec<u8> {
    let noise = Random::new(1).noise(CLUSTER);
    [noise, vec![b'c'; CLUSTER], vec![0; 2 * CLUSTER], vec![b'e'; CLUSTER - 100]].concat()
}

/// Its contents in the snapshot.
fn before() -> Vec<u8> {
    [vec![b's'; CLUSTER], vec![b'c'; CLUSTER]].concat()
}

/// Builds a sound image with a snapshot.
fn made(version: u32) -> Made {
    let mut made = LabelledImage::new(open);
    let header_len = if version == 2 { 72 } else { 112 };
    put(&mut made, "header", &[0; CLUSTER]);
    let disk = wanted();
    let data = put(&mut made, "data", &disk[..CLUSTER]);
    let last = put(&mut made, "last", &[b'e'; CLUSTER]);
    let old = put(&mut made, "old data", &[b's'; CLUSTER]);
    // Within a sector, with other bytes after it.
    let compressed = made.put("compressed", &[0xff; 10]) + 10;
    put(&mut made, "stream", &[deflated(&[b'c'; CLUSTER]), vec![0xaa; 50]].concat());
    let compressed = COMPRESSED | compressed;
    let zero = if version == 2 { 0 } else { ZERO };
    let l2 = put(&mut made, "l2", &table(&[1 << 63 | data, compressed, 0, zero, 1 << 63 | last]));
    let l1 = put(&mut made, "l1", &table(&[1 << 63 | l2]));
    let old_l2 = put(&mut made, "old l2", &table(&[old, compressed]));
    let old_l1 = put(&mut made, "old l1", &table(&[old_l2]));
    let row = SnapshotRow {
        l1_table_offset: old_l1.into(),
        l1_size: 1.into(),
        id_str_size: 1.into(),
        name_size: 6.into(),
        extra_data_size: 16.into(),
        ..SnapshotRow::new_zeroed()
    };
    let extra = SnapshotExtra { vm_state_size_large: 0.into(), disk_size: (2 * CLUSTER as u64).into() };
    let snapshots =
        put(&mut made, "snapshots", &[row.as_bytes(), extra.as_bytes(), b"1before", &[0]].concat());
    // One for each state.
    let counts = put(&mut made, "counts", &[0, 2].repeat(20));
    let refcounts = put(&mut made, "refcounts", &counts.to_be_bytes());
    let header = Header {
        magic: MAGIC,
        version: version.into(),
        cluster_bits: 9.into(),
        size: (disk.len() as u64).into(),
        l1_size: 1.into(),
        l1_table_offset: l1.into(),
        refcount_table_offset: refcounts.into(),
        refcount_table_clusters: 1.into(),
        nb_snapshots: 1.into(),
        snapshots_offset: snapshots.into(),
        ..Header::new_zeroed()
    };
    let v3 =
        HeaderV3 { refcount_order: 4.into(), header_length: header_len.into(), ..HeaderV3::new_zeroed() };
    made.put_at("header", 0, header.as_bytes());
    if version == 3 {
        made.put_at("header 3", 72, v3.as_bytes());
    }
    made.label("extensions", header_len as usize);
    made
}

/// A header extension.
fn extension(kind: u32, data: &[u8]) -> Vec<u8> {
    let head = Extension { kind: kind.into(), length: (data.len() as u32).into() };
    let mut bytes = [head.as_bytes(), data].concat();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// The image with the name of a backing file, and its format.
fn backed(made: Made, format: Option<&str>) -> Made {
    let made = made.patch("header", 8, &400_u64.to_be_bytes()).patch("header", 16, &8_u32.to_be_bytes());
    let made = made.patch("header", 400, b"base\x1bimg");
    match format {
        Some(format) => made.patch("extensions", 0, &extension(EXTENSION_BACKING_FORMAT, format.as_bytes())),
        None => made,
    }
}

fn disk_len(volume: &QcowVolume) -> u64 {
    match volume.inode(DISK).unwrap().kind {
        InodeKind::File { len } => len,
        other => panic!("{other:?}"),
    }
}

/// All of the disk, opened so.
fn whole(made: &Made, opening: Opening) -> Result<Vec<u8>> {
    let image: Arc<dyn Image> = Arc::new(BytesImage(made.bytes.clone()));
    let volume = QcowVolume::open(Arc::clone(&image), opening)?;
    let len = disk_len(&volume);
    read_range(&volume, &*image, DISK, 0..len)
}

fn memory(bytes: Vec<u8>) -> Arc<dyn Image> {
    Arc::new(MemoryImage::new("base", bytes))
}
