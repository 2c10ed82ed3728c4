//! A small image made by hand, byte for byte, and what the reader says of it and of its damaged
//! copies.
//!
//! The image is made from the raw structures alone, so that reader and writer cannot share a
//! misunderstanding here.

mod notices;
mod reads;
mod refuses;

use crate::tests::Metadata;
use crate::v4::disk::*;
use crate::v4::volume::SquashfsVolume;
use crate::{
    SQUASHFS_CHRDEV_TYPE, SQUASHFS_DIR_TYPE, SQUASHFS_INVALID_FRAG, SQUASHFS_REG_TYPE, SQUASHFS_SYMLINK_TYPE,
};
use packfs_format::{DirCursor, Directories, InodeId, InodeKind, Volume};
use packfs_testkit::LabelledImage;
use std::ops::ControlFlow;
use zerocopy::{Immutable, IntoBytes};

/// An image under construction.
type Made = LabelledImage<SquashfsVolume>;

/// Adds a block of metadata and returns its offset.
fn put_block(made: &mut Made, label: &str, metadata: Metadata) -> u64 {
    let header = metadata_header(metadata.bytes.len() as u16, false);
    metadata.put_into(made, label, header.as_bytes())
}

/// Adds a table of one block and its list; returns the offset of the list.
fn put_table(made: &mut Made, block: &str, list: &str, rows: Metadata) -> u64 {
    let at = put_block(made, block, rows);
    made.put(list, &at.to_le_bytes())
}

const BLOCK_LEN: u32 = 4096;
const MTIME: u32 = 1_600_000_000;

fn base(inode_type: u16, number: u32) -> InodeBase {
    InodeBase {
        inode_type: inode_type.into(),
        mode: 0o644.into(),
        uid: 0.into(),
        guid: 1.into(),
        mtime: MTIME.into(),
        inode_number: number.into(),
    }
}

/// Inodes of [`made`] and their offsets in their block.
#[derive(Default)]
struct Inodes {
    metadata: Metadata,
    offsets: Vec<u16>,
}

impl Inodes {
    fn add<T: IntoBytes + Immutable>(&mut self, labels: [&'static str; 2], base: InodeBase, body: &T) {
        self.offsets.push(self.metadata.put(labels[0], base.as_bytes()) as u16);
        self.metadata.put(labels[1], body.as_bytes());
    }
}

/// The sound image:
///
/// ```text
/// /      inode 6, extended, two runs of entries with an index entry each
/// /a     inode 1, 5,000 bytes: one stored block, a tail in fragment 0
/// /b     inode 2, extended, 8,292 bytes: a hole, a stored block, a short one; attribute set 0
/// /c     inode 3, a character device
/// /l     inode 4, a symlink to "a"
/// /sub   inode 5, empty
/// ```
fn made() -> Made {
    let mut made = LabelledImage::new(SquashfsVolume::open);
    made.put("super", SuperBlock::default().as_bytes());
    let data = made.put("data", &[b'd'; 4096]);
    let data_b = made.put("data b", &[b'e'; 4096 + 100]);
    let tails = made.put("tails", &[b't'; 2000]);

    let mut inodes = Inodes::default();
    add_inodes(&mut inodes, data, data_b);
    let mut listing = Metadata::default();
    let second_run = add_listing(&mut listing, &inodes.offsets);
    add_root(&mut inodes, listing.bytes.len(), second_run);
    let offsets = inodes.offsets;
    let inode_table = put_block(&mut made, "inode table", inodes.metadata);
    let directory_table = put_block(&mut made, "directory table", listing);

    let mut rows = Metadata::default();
    let fragment =
        FragmentEntry { start_block: tails.into(), size: block_word(2000, false), unused: 0.into() };
    rows.put("fragment", fragment.as_bytes());
    let fragment_table = put_table(&mut made, "fragment block", "fragment list", rows);
    let mut rows = Metadata::default();
    let references: Vec<u8> = offsets.iter().flat_map(|&offset| u64::from(offset).to_le_bytes()).collect();
    rows.put("export rows", &references);
    let lookup_table = put_table(&mut made, "export block", "export list", rows);
    let mut rows = Metadata::default();
    rows.put("id rows", [0u32.to_le_bytes(), 1000u32.to_le_bytes()].as_bytes());
    let id_table = put_table(&mut made, "id block", "id list", rows);
    let xattr_table = put_xattrs(&mut made);

    let super_block = SuperBlock {
        s_magic: SQUASHFS_MAGIC.into(),
        inodes: 6.into(),
        mkfs_time: MTIME.into(),
        block_size: BLOCK_LEN.into(),
        fragments: 1.into(),
        compression: 1_u16.into(),
        block_log: 12.into(),
        flags: (1 << SQUASHFS_EXPORT).into(),
        no_ids: 2.into(),
        s_major: SQUASHFS_MAJOR.into(),
        s_minor: SQUASHFS_MINOR.into(),
        root_inode: u64::from(offsets[5]).into(),
        bytes_used: made.end().into(),
        id_table_start: id_table.into(),
        xattr_id_table_start: xattr_table.into(),
        inode_table_start: inode_table.into(),
        directory_table_start: directory_table.into(),
        fragment_table_start: fragment_table.into(),
        lookup_table_start: lookup_table.into(),
    };
    let padding = vec![0; made.bytes.len().next_multiple_of(4096) - made.bytes.len()];
    made.put("padding", &padding);
    made.patch("super", 0, super_block.as_bytes())
}

/// Adds all inodes but the root's.
fn add_inodes(inodes: &mut Inodes, data: u64, data_b: u64) {
    let a = RegInode {
        start_block: (data as u32).into(),
        fragment: 0.into(),
        offset: 10.into(),
        file_size: 5000.into(),
    };
    inodes.add(["a", "a body"], base(SQUASHFS_REG_TYPE, 1), &a);
    inodes.metadata.put("a words", block_word(4096, false).as_bytes());
    let b = LRegInode {
        start_block: data_b.into(),
        file_size: 8292.into(),
        sparse: 4096.into(),
        nlink: 1.into(),
        fragment: SQUASHFS_INVALID_FRAG.into(),
        offset: 0.into(),
        xattr: 0.into(),
    };
    inodes.add(["b", "b body"], base(SQUASHFS_REG_TYPE + EXTENDED_TYPES, 2), &b);
    let words = [block_word(0, false), block_word(4096, false), block_word(100, false)];
    inodes.metadata.put("b words", words.as_bytes());
    let c = DevInode { nlink: 1.into(), rdev: 0x103.into() };
    inodes.add(["c", "c body"], base(SQUASHFS_CHRDEV_TYPE, 3), &c);
    let l = SymlinkInode { nlink: 1.into(), symlink_size: 1.into() };
    inodes.add(["l", "l body"], base(SQUASHFS_SYMLINK_TYPE, 4), &l);
    inodes.metadata.put("l target", b"a");
    let sub =
        DirInode { nlink: 2.into(), file_size: 3.into(), parent_inode: 6.into(), ..DirInode::default() };
    inodes.add(["sub", "sub body"], base(SQUASHFS_DIR_TYPE, 5), &sub);
}

/// Adds the two runs of the root's entries; returns the offset of the second.
fn add_listing(listing: &mut Metadata, offsets: &[u16]) -> usize {
    let mut run = |labels: [&'static str; 2], entries: &[(&'static str, u16, u16)]| {
        let header = DirHeader {
            count: (entries.len() as u32 - 1).into(),
            start_block: 0.into(),
            inode_number: 1.into(),
        };
        let at = listing.put(labels[0], header.as_bytes());
        for &(name, r#type, number) in entries {
            let entry = DirEntry {
                offset: offsets[usize::from(number) - 1].into(),
                inode_number: (number as i16 - 1).into(),
                r#type: r#type.into(),
                size: (name.len() as u16 - 1).into(),
            };
            listing.put(if name == "a" { labels[1] } else { "other entry" }, entry.as_bytes());
            listing.put(if name == "a" { "a name" } else { "other name" }, name.as_bytes());
        }
        at
    };
    run(["run", "entry"], &[("a", SQUASHFS_REG_TYPE, 1), ("b", SQUASHFS_REG_TYPE, 2)]);
    let entries =
        [("c", SQUASHFS_CHRDEV_TYPE, 3), ("l", SQUASHFS_SYMLINK_TYPE, 4), ("sub", SQUASHFS_DIR_TYPE, 5)];
    run(["second run", ""], &entries)
}

/// Adds the root's inode with an index entry for each run of its listing.
fn add_root(inodes: &mut Inodes, listing_len: usize, second_run: usize) {
    let root = LDirInode {
        nlink: 3.into(),
        file_size: (listing_len as u32 + DIR_SIZE_EXTRA).into(),
        start_block: 0.into(),
        parent_inode: 7.into(),
        i_count: 2.into(),
        offset: 0.into(),
        xattr: SQUASHFS_INVALID_XATTR.into(),
    };
    inodes.add(["root", "root body"], base(SQUASHFS_DIR_TYPE + EXTENDED_TYPES, 6), &root);
    // The first run needs no index entry, but some tools write one.
    inodes.metadata.put("first index", DirIndex::default().as_bytes());
    inodes.metadata.put("first index name", b"a");
    let index = DirIndex { index: (second_run as u32).into(), start_block: 0.into(), size: 0.into() };
    inodes.metadata.put("index", index.as_bytes());
    inodes.metadata.put("index name", b"c");
}

/// Adds attribute set 0: `user.x`, and `security.s` with the same value by reference. Returns the
/// offset of the table's head.
fn put_xattrs(made: &mut Made) -> u64 {
    let mut pairs = Metadata::default();
    let entry = |r#type: u16, size: u16| XattrEntry { r#type: r#type.into(), size: size.into() };
    pairs.put("xattr", entry(SQUASHFS_XATTR_USER, 1).as_bytes());
    pairs.put("xattr name", b"x");
    let value = pairs.put("xattr value", XattrVal { vsize: 5.into() }.as_bytes());
    pairs.bytes.extend_from_slice(b"value");
    pairs.put("xattr 2", entry(SQUASHFS_XATTR_SECURITY | SQUASHFS_XATTR_VALUE_OOL, 1).as_bytes());
    pairs.put("xattr 2 name", b"s");
    pairs.put("xattr 2 value", XattrVal { vsize: 8.into() }.as_bytes());
    pairs.put("xattr 2 reference", (value as u64).to_le_bytes().as_bytes());
    let pairs = put_block(made, "xattr block", pairs);
    let mut rows = Metadata::default();
    let size = ("user.x".len() + "security.s".len() + 2 + 2 * "value".len()) as u32;
    rows.put("xattr set", XattrId { xattr: 0.into(), count: 2.into(), size: size.into() }.as_bytes());
    let sets = put_block(made, "xattr set block", rows);
    let head = XattrIdTable { xattr_table_start: pairs.into(), xattr_ids: 1.into(), unused: 0.into() };
    let xattr_table = made.put("xattr head", head.as_bytes());
    made.put("xattr list", &sets.to_le_bytes());
    xattr_table
}

/// The entry of a name in the root directory.
fn find(volume: &SquashfsVolume, name: &str) -> InodeId {
    volume.lookup(volume.root(), name.as_bytes()).unwrap().unwrap()
}
