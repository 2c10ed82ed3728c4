//! Small images made by hand, byte for byte, and what the reader says of them and of their damaged
//! copies.
//!
//! The images are made from the raw structures alone, so that reader and writer cannot share a
//! misunderstanding here.

mod reads;
mod refuses;

use crate::disk::*;
use crate::reader::Reader;
use crate::volume::ErofsVolume;
use packfs_format::{DirCursor, Directories, InodeId, InodeKind, Volume};
use packfs_testkit::{BytesImage, LabelledImage};
use std::ops::ControlFlow;
use std::sync::Arc;
use zerocopy::{Immutable, IntoBytes};

/// An image under construction: inodes from block 1 on, one slot of 512 bytes each; data from block
/// 8 on.
type Made = LabelledImage<ErofsVolume>;

/// Blocks of the images.
const BLOCK_LEN: usize = 4096;
/// Slots of 32 bytes that each inode of the images takes.
const NID_STEP: u64 = 16;
const DIR: u16 = 0o040_755;
const FILE: u16 = 0o100_644;

trait PutStructure {
    /// Puts a structure and returns where it ends.
    fn put_structure(
        &mut self,
        label: &str,
        at: usize,
        structure: &(impl IntoBytes + Immutable + ?Sized),
    ) -> usize;
}

impl PutStructure for Made {
    fn put_structure(
        &mut self,
        label: &str,
        at: usize,
        structure: &(impl IntoBytes + Immutable + ?Sized),
    ) -> usize {
        self.put_at(label, at, structure.as_bytes());
        at + structure.as_bytes().len()
    }
}

fn inode(layout: u16, mode: u16, size: u32, i_u: u32) -> InodeCompact {
    InodeCompact {
        i_format: i_format(EROFS_INODE_LAYOUT_COMPACT, layout, false),
        i_mode: mode.into(),
        i_nb: if mode == DIR { 2.into() } else { 1.into() },
        i_size: size.into(),
        i_u: i_u.into(),
        ..InodeCompact::default()
    }
}

/// A block of a directory with these entries.
fn listing(entries: &[(&str, u64, u8)]) -> Vec<u8> {
    let mut heads = Vec::new();
    let mut names = Vec::new();
    for (name, nid, file_type) in entries {
        let nameoff = (entries.len() * 12 + names.len()) as u16;
        let head = Dirent { nid: (*nid).into(), nameoff: nameoff.into(), file_type: *file_type, reserved: 0 };
        heads.extend_from_slice(head.as_bytes());
        names.extend_from_slice(name.as_bytes());
    }
    [heads, names].concat()
}

/// The nid of the image's inode of that number.
fn nid(number: u64) -> u64 {
    number * NID_STEP
}

fn at(number: u64) -> usize {
    BLOCK_LEN + (nid(number) * 32) as usize
}

/// The sound image: a root with a file of each layout, an attribute and a link.
fn made() -> Made {
    let mut made = LabelledImage::new(|image| ErofsVolume::open(image, Vec::new()));
    made.bytes = vec![0; 32 * BLOCK_LEN];
    let super_block = SuperBlock {
        magic: EROFS_SUPER_MAGIC_V1.into(),
        blkszbits: 12,
        sb_extslots: 1,
        rb: (nid(1) as u16).into(),
        inos: 9.into(),
        epoch: 1_000_000_000.into(),
        blocks_lo: 32.into(),
        meta_blkaddr: 1.into(),
        feature_incompat: (EROFS_FEATURE_INCOMPAT_LZ4_0PADDING
            | EROFS_FEATURE_INCOMPAT_COMPR_CFGS
            | EROFS_FEATURE_INCOMPAT_CHUNKED_FILE
            | EROFS_FEATURE_INCOMPAT_FRAGMENTS
            | EROFS_FEATURE_INCOMPAT_48BIT)
            .into(),
        u1: 1.into(),
        packed_nid: nid(8).into(),
        ..SuperBlock::default()
    };
    let end = made.put_structure("super", EROFS_SUPER_OFFSET as usize, &super_block);
    let end = made.put_structure("cfg length", end, &CfgLength { size: 14.into() });
    made.put_structure(
        "lz4",
        end,
        &Lz4Cfgs { max_distance: 65_535.into(), max_pclusterblks: 16.into(), ..Lz4Cfgs::default() },
    );
    let root = listing(&[
        (".", nid(1), EROFS_FT_DIR),
        ("..", nid(1), EROFS_FT_DIR),
        ("chunks", nid(4), EROFS_FT_REG_FILE),
        ("compact", nid(6), EROFS_FT_REG_FILE),
        ("encoded", nid(7), EROFS_FT_REG_FILE),
        ("full", nid(5), EROFS_FT_REG_FILE),
        ("inline", nid(3), EROFS_FT_REG_FILE),
        ("link", nid(9), EROFS_FT_SYMLINK),
        ("plain", nid(2), EROFS_FT_REG_FILE),
    ]);
    let end = made.put_structure("root", at(1), &inode(EROFS_INODE_FLAT_INLINE, DIR, root.len() as u32, 0));
    made.put_structure("listing", end, &*root);
    made.put_structure("plain", at(2), &inode(EROFS_INODE_FLAT_PLAIN, FILE, 5000, 8));
    let mut inline = inode(EROFS_INODE_FLAT_INLINE, FILE, 4100, 10);
    inline.i_xattr_icount = 4.into();
    let end = made.put_structure("inline", at(3), &inline);
    let end = made.put_structure("xattr head", end, &XattrIbodyHeader::default());
    let entry = XattrEntry { e_name_len: 1, e_name_index: EROFS_XATTR_INDEX_USER, e_value_size: 5.into() };
    let end = made.put_structure("xattr", end, &entry);
    made.put_structure("xattr name", end, b"xvalue");
    made.put_structure("tail", at(3) + 32 + 24, b"tail");
    let chunks = inode(EROFS_INODE_CHUNK_BASED, FILE, 10_000, u32::from(EROFS_CHUNK_FORMAT_INDEXES));
    let end = made.put_structure("chunks", at(4), &chunks);
    let rows = [(0, 11), (u16::MAX, u32::MAX), (0, 12)].map(|(hi, lo)| ChunkIndex {
        startblk_hi: hi.into(),
        startblk_lo: lo.into(),
        ..ChunkIndex::default()
    });
    made.put_structure("rows", end, &rows);
    full(&mut made);
    compact(&mut made);
    encoded(&mut made);
    made.put_structure("packed", at(8), &inode(EROFS_INODE_FLAT_PLAIN, FILE, 4096, 20));
    let end = made.put_structure("link", at(9), &inode(EROFS_INODE_FLAT_INLINE, 0o120_777, 6, 0));
    made.put_structure("target", end, b"target");
    made
}

/// Two clusters, the second one partial, with a full index.
fn full(made: &mut Made) {
    let end = made.put_structure("full", at(5), &inode(EROFS_INODE_COMPRESSED_FULL, FILE, 20_000, 2));
    let end = made.put_structure("full map", end, &MapHeader::default());
    let head = |advise: u16, offset: u16, block: u32| LclusterIndex {
        di_advise: advise.into(),
        di_clusterofs: offset.into(),
        di_u: block.into(),
    };
    let head1 = u16::from(Z_EROFS_LCLUSTER_TYPE_HEAD1);
    let later = |back: u32, next: u32| head(u16::from(Z_EROFS_LCLUSTER_TYPE_NONHEAD), 0, back | next << 16);
    let index = [
        head(head1, 0, 13),
        later(1, 1),
        head(head1 | Z_EROFS_LI_PARTIAL_REF, 100, 14),
        later(1, 2),
        later(2, 1),
    ];
    made.put_structure("full index", end + 8, &index);
}

/// Three clusters: compressed, plain, and one in the packed inode, with a compact index of 4-byte
/// entries.
fn compact(made: &mut Made) {
    let end = made.put_structure("compact", at(6), &inode(EROFS_INODE_COMPRESSED_COMPACT, FILE, 16_000, 2));
    let header = MapHeader {
        h_u: 96.into(),
        h_advise: Z_EROFS_ADVISE_FRAGMENT_PCLUSTER.into(),
        ..MapHeader::default()
    };
    let end = made.put_structure("compact map", end, &header);
    let entry = |kind: u8, lo: u16| (u16::from(kind) << 12 | lo).to_le_bytes();
    let pack = |one: [u8; 2], other: [u8; 2], base: u32| [&one[..], &other, &base.to_le_bytes()].concat();
    let first = pack(entry(Z_EROFS_LCLUSTER_TYPE_HEAD1, 0), entry(Z_EROFS_LCLUSTER_TYPE_NONHEAD, 1), 15);
    let second = pack(entry(Z_EROFS_LCLUSTER_TYPE_PLAIN, 0), entry(Z_EROFS_LCLUSTER_TYPE_HEAD1, 0), 16);
    made.put_structure("compact index", end, &*[first, second].concat());
}

/// A hole, a plain extent and an LZ4 one, in records of 16 bytes.
fn encoded(made: &mut Made) {
    let end = made.put_structure("encoded", at(7), &inode(EROFS_INODE_COMPRESSED_FULL, FILE, 300_000, 3));
    let advise = Z_EROFS_ADVISE_EXTENTS | 2 << Z_EROFS_ADVISE_EXTRECSZ_BIT;
    let end = made.put_structure(
        "encoded map",
        end,
        &MapHeader { h_u: 3.into(), h_advise: advise.into(), ..MapHeader::default() },
    );
    let record = |plen: u32, start: u32, offset: u32| {
        [plen, start, 0, offset].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()
    };
    let start = end.next_multiple_of(16);
    let lz4 = (u32::from(Z_EROFS_COMPRESSION_LZ4) + 1) << Z_EROFS_EXTENT_PLEN_FMT_BIT;
    let records = [record(0, 0, 0), record(2000, 70_000, 200_000), record(3000 | lz4, 75_001, 201_500)];
    made.put_structure("records", start, &*records.concat());
}

fn find(volume: &ErofsVolume, name: &str) -> InodeId {
    volume.lookup(volume.root(), name.as_bytes()).unwrap().unwrap_or_else(|| panic!("no {name}"))
}

/// The image's own reader, to look at figures that volumes do not tell.
fn reader(made: &Made) -> Reader {
    Reader::open(Arc::new(BytesImage(made.bytes.clone())), Vec::new()).unwrap()
}
