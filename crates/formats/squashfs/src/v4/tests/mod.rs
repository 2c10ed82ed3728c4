//! A small image made by hand, byte for byte, and what the reader says of it and of its damaged
//! copies.
//!
//! The image is made from the raw structures alone, so that reader and writer cannot share a
//! misunderstanding here.

mod notices;
mod reads;
mod refuses;

use crate::v4::disk::*;
use crate::v4::volume::SquashfsVolume;
use crate::{
    SQUASHFS_CHRDEV_TYPE, SQUASHFS_DIR_TYPE, SQUASHFS_INVALID_FRAG, SQUASHFS_REG_TYPE, SQUASHFS_SYMLINK_TYPE,
};
use packfs_core::Result;
use packfs_format::{DirCursor, Finding, InodeId, InodeKind, Volume};
use packfs_testkit::{BytesImage, read_all};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use zerocopy::{Immutable, IntoBytes};

/// An image under construction; remembers where each labelled structure starts.
#[derive(Clone, Default)]
struct Made {
    bytes: Vec<u8>,
    labels: HashMap<&'static str, usize>,
}

/// Metadata under construction: one stored block.
#[derive(Default)]
struct Metadata {
    bytes: Vec<u8>,
    labels: Vec<(&'static str, usize)>,
}

impl Metadata {
    /// Adds a structure and returns its offset in the block.
    fn put(&mut self, label: &'static str, structure: &(impl IntoBytes + Immutable + ?Sized)) -> u16 {
        let at = self.bytes.len();
        self.labels.push((label, at));
        self.bytes.extend_from_slice(structure.as_bytes());
        at as u16
    }

    /// Adds bytes that go with the structure before.
    fn more(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

impl Made {
    fn at(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn put(&mut self, label: &'static str, bytes: &[u8]) -> u64 {
        let at = self.at();
        self.labels.insert(label, at as usize);
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Adds a metadata block; its header gets the label, what is in it keeps its own.
    fn block(&mut self, label: &'static str, metadata: Metadata) -> u64 {
        let at = self.put(label, metadata_header(metadata.bytes.len() as u16, false).as_bytes());
        for (label, within) in metadata.labels {
            self.labels.insert(label, at as usize + METADATA_HEADER_LEN + within);
        }
        self.bytes.extend_from_slice(&metadata.bytes);
        at
    }

    /// Adds a table of one block and its list; returns where the list is.
    fn table(&mut self, block: &'static str, list: &'static str, rows: Metadata) -> u64 {
        let at = self.block(block, rows);
        self.put(list, &at.to_le_bytes())
    }

    /// Overwrites bytes `within` bytes behind a label.
    fn patch(mut self, label: &str, within: usize, bytes: &[u8]) -> Self {
        let at = self.labels.get(label).unwrap_or_else(|| panic!("no {label}")) + within;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn open(&self) -> Result<SquashfsVolume> {
        SquashfsVolume::open(Arc::new(BytesImage(self.bytes.clone())))
    }

    /// Opens and reads everything but file data.
    fn read_all(&self) -> Result<()> {
        read_all(&self.open()?, 100)
    }

    /// What the check finds.
    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.open().unwrap().check(&mut |finding| findings.push(finding)).unwrap();
        findings
    }
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

/// Where the inodes of [`made`] are in their block.
struct Inodes {
    metadata: Metadata,
    offsets: Vec<u16>,
}

impl Inodes {
    fn add<T: IntoBytes + Immutable>(&mut self, labels: [&'static str; 2], base: InodeBase, body: &T) {
        self.offsets.push(self.metadata.put(labels[0], &base));
        self.metadata.put(labels[1], body);
    }
}

/// The true image:
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
    let mut made = Made::default();
    made.put("super", SuperBlock::default().as_bytes());
    let data = made.put("data", &[b'd'; 4096]);
    let data_b = made.put("data b", &[b'e'; 4096 + 100]);
    let tails = made.put("tails", &[b't'; 2000]);

    let mut inodes = Inodes { metadata: Metadata::default(), offsets: Vec::new() };
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

    let mut listing = Metadata::default();
    let offsets = inodes.offsets.clone();
    let mut run = |labels: [&'static str; 2], entries: &[(&'static str, u16, u16)]| {
        let header = DirHeader {
            count: (entries.len() as u32 - 1).into(),
            start_block: 0.into(),
            inode_number: 1.into(),
        };
        let at = listing.put(labels[0], &header);
        for &(name, r#type, number) in entries {
            let entry = DirEntry {
                offset: offsets[usize::from(number) - 1].into(),
                inode_number: (number as i16 - 1).into(),
                r#type: r#type.into(),
                size: (name.len() as u16 - 1).into(),
            };
            listing.put(if name == "a" { labels[1] } else { "other entry" }, &entry);
            listing.put(if name == "a" { "a name" } else { "other name" }, name.as_bytes());
        }
        at
    };
    run(["run", "entry"], &[("a", SQUASHFS_REG_TYPE, 1), ("b", SQUASHFS_REG_TYPE, 2)]);
    let entries =
        [("c", SQUASHFS_CHRDEV_TYPE, 3), ("l", SQUASHFS_SYMLINK_TYPE, 4), ("sub", SQUASHFS_DIR_TYPE, 5)];
    let second = run(["second run", ""], &entries);

    let root = LDirInode {
        nlink: 3.into(),
        file_size: (listing.bytes.len() as u32 + DIR_SIZE_EXTRA).into(),
        start_block: 0.into(),
        parent_inode: 7.into(),
        i_count: 2.into(),
        offset: 0.into(),
        xattr: SQUASHFS_INVALID_XATTR.into(),
    };
    inodes.add(["root", "root body"], base(SQUASHFS_DIR_TYPE + EXTENDED_TYPES, 6), &root);
    // The first run needs no index entry, but some tools write one.
    inodes.metadata.put("first index", &DirIndex::default());
    inodes.metadata.put("first index name", b"a");
    let index = DirIndex { index: u32::from(second).into(), start_block: 0.into(), size: 0.into() };
    inodes.metadata.put("index", &index);
    inodes.metadata.put("index name", b"c");

    let offsets = inodes.offsets;
    let inode_table = made.block("inode table", inodes.metadata);
    let directory_table = made.block("directory table", listing);

    let mut rows = Metadata::default();
    let fragment =
        FragmentEntry { start_block: tails.into(), size: block_word(2000, false), unused: 0.into() };
    rows.put("fragment", &fragment);
    let fragment_table = made.table("fragment block", "fragment list", rows);
    let mut rows = Metadata::default();
    rows.put("export rows", &[0u8; 0]);
    for offset in &offsets {
        rows.more(&u64::from(*offset).to_le_bytes());
    }
    let lookup_table = made.table("export block", "export list", rows);
    let mut rows = Metadata::default();
    rows.put("id rows", &[0u32.to_le_bytes(), 1000u32.to_le_bytes()]);
    let id_table = made.table("id block", "id list", rows);

    let mut pairs = Metadata::default();
    let entry = |r#type: u16, size: u16| XattrEntry { r#type: r#type.into(), size: size.into() };
    pairs.put("xattr", &entry(SQUASHFS_XATTR_USER, 1));
    pairs.put("xattr name", b"x");
    let value = pairs.put("xattr value", &XattrVal { vsize: 5.into() });
    pairs.more(b"value");
    pairs.put("xattr 2", &entry(SQUASHFS_XATTR_SECURITY | SQUASHFS_XATTR_VALUE_OOL, 1));
    pairs.put("xattr 2 name", b"s");
    pairs.put("xattr 2 value", &XattrVal { vsize: 8.into() });
    pairs.put("xattr 2 reference", &u64::from(value).to_le_bytes());
    let pairs = made.block("xattr block", pairs);
    let mut rows = Metadata::default();
    let size = ("user.x".len() + "security.s".len() + 2 + 2 * "value".len()) as u32;
    rows.put("xattr set", &XattrId { xattr: 0.into(), count: 2.into(), size: size.into() });
    let sets = made.block("xattr set block", rows);
    let head = XattrIdTable { xattr_table_start: pairs.into(), xattr_ids: 1.into(), unused: 0.into() };
    let xattr_table = made.put("xattr head", head.as_bytes());
    made.put("xattr list", &sets.to_le_bytes());

    let super_block = SuperBlock {
        s_magic: SQUASHFS_MAGIC.into(),
        inodes: 6.into(),
        mkfs_time: MTIME.into(),
        block_size: BLOCK_LEN.into(),
        fragments: 1.into(),
        compression: ZLIB_COMPRESSION.into(),
        block_log: 12.into(),
        flags: (1 << SQUASHFS_EXPORT).into(),
        no_ids: 2.into(),
        s_major: SQUASHFS_MAJOR.into(),
        s_minor: SQUASHFS_MINOR.into(),
        root_inode: u64::from(offsets[5]).into(),
        bytes_used: made.at().into(),
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

/// The entry of a name in the root directory.
fn find(volume: &SquashfsVolume, name: &str) -> InodeId {
    volume.lookup(volume.root(), name.as_bytes()).unwrap().unwrap()
}
