//! A small image made by hand, byte for byte, and what the reader says of it and of its damaged
//! copies.
//!
//! The image is made from the raw structures alone, so that reader and writer cannot share a
//! misunderstanding here.

mod notices;
mod reads;
mod refuses;

use crate::check::sum_of;
use crate::disk::*;
use crate::volume::CramfsVolume;
use packfs_core::Result;
use packfs_format::{Check, DirCursor, Directories, Finding, InodeId, InodeKind, Volume};
use packfs_testkit::{BytesImage, read_all};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// An image under construction; remembers where each labelled structure starts.
#[derive(Clone)]
struct Made {
    order: ByteOrder,
    bytes: Vec<u8>,
    labels: HashMap<&'static str, usize>,
}

impl Made {
    fn put(&mut self, label: &'static str, bytes: &[u8]) -> u32 {
        let at = self.bytes.len();
        self.labels.insert(label, at);
        self.bytes.extend_from_slice(bytes);
        at as u32
    }

    /// Fills up to a multiple of this many bytes.
    fn align(&mut self, unit: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(unit), 0);
    }

    /// Overwrites bytes `within` bytes after a label.
    fn patch(mut self, label: &str, within: usize, bytes: &[u8]) -> Self {
        let at = self.labels.get(label).unwrap_or_else(|| panic!("no {label}")) + within;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Overwrites a word in the image's byte order.
    fn word(self, label: &str, within: usize, word: u32) -> Self {
        let bytes = self.order.word_bytes(word);
        self.patch(label, within, &bytes)
    }

    /// Changes an inode.
    fn inode(self, label: &str, change: impl FnOnce(&mut CramfsInode)) -> Self {
        let at = self.labels[label];
        let mut raw = [0; INODE_LEN as usize];
        raw.copy_from_slice(&self.bytes[at..at + INODE_LEN as usize]);
        let mut inode = CramfsInode::parse(self.order, &raw);
        change(&mut inode);
        let bytes = inode.to_bytes(self.order);
        self.patch(label, 0, &bytes)
    }

    /// Puts the checksum right.
    fn summed(self) -> Self {
        let sum = sum_of(0, self.bytes.len() as u64, &mut |at, part| {
            part.copy_from_slice(&self.bytes[at as usize..][..part.len()]);
            Ok(())
        });
        self.word("super", CRC_AT as usize, sum.unwrap())
    }

    fn open(&self) -> Result<CramfsVolume> {
        CramfsVolume::open(Arc::new(BytesImage(self.bytes.clone())))
    }

    /// Opens and reads everything but file data.
    fn read_all(&self) -> Result<usize> {
        read_all(&self.open()?, 100)
    }

    /// Returns the findings of the check.
    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.open().unwrap().check(&mut |finding| findings.push(finding)).unwrap();
        findings
    }
}

const FLAGS: u32 =
    CRAMFS_FLAG_FSID_VERSION_2 | CRAMFS_FLAG_SORTED_DIRS | CRAMFS_FLAG_HOLES | CRAMFS_FLAG_EXT_BLOCK_POINTERS;

const ROOT_ENTRIES: [(&str, &str, u16); 6] = [
    ("a", "a name", 0o100_644),
    ("b", "b name", 0o100_755),
    ("c", "c name", 0o020_600),
    ("d", "d name", 0o100_600),
    ("link", "link name", 0o120_777),
    ("sub", "sub name", 0o040_755),
];

/// The sound image, little-endian:
///
/// ```text
/// /a      5,000 bytes: two stored blocks, one after the other
/// /b      12,388 bytes: a hole, a stored block pointed to directly, the next, a short one
/// /c      a character device
/// /d      100 bytes: a compressed block that is pointed to directly
/// /link   a symlink to "a"
/// /sub    a directory with a fifo "x"
/// ```
fn made() -> Made {
    made_in(ByteOrder::Little)
}

fn made_in(order: ByteOrder) -> Made {
    let mut made = Made { order, bytes: Vec::new(), labels: HashMap::new() };
    made.put("super", &[0; SUPER_LEN as usize]);
    made.labels.insert("root", ROOT_AT as usize);
    let root_start = made.bytes.len() as u32;
    for (name, name_label, mode) in ROOT_ENTRIES {
        let name_len = name.len().next_multiple_of(4) as u32;
        let inode = CramfsInode { mode, uid: 1000, gid: 100, name_len, ..CramfsInode::default() };
        made.put(name, &inode.to_bytes(order));
        made.put(name_label, name.as_bytes());
        made.align(4);
    }
    let root_len = made.bytes.len() as u32 - root_start;
    let fifo = CramfsInode { mode: 0o010_600, name_len: 4, ..CramfsInode::default() };
    let sub_start = made.put("x", &fifo.to_bytes(order));
    made.put("x name", b"x\0\0\0");

    let word = |word: u32| order.word_bytes(word);
    let (stored, direct) = (CRAMFS_BLK_FLAG_UNCOMPRESSED, CRAMFS_BLK_FLAG_DIRECT_PTR);
    let a = made.put("a pointers", &[0; 8]);
    let at = made.put("a data", &[b'd'; 5000]);
    let pointers = [word(stored | (at + 4096)), word(stored | (at + 5000))].concat();
    made = made.patch("a pointers", 0, &pointers);

    let b = made.put("b pointers", &[0; 16]);
    let at = made.put("b data", &[b'e'; 4096]);
    made.put("b next", &[b'f'; 4096]);
    let pointers =
        [word(b + 16), word(stored | direct | at >> 2), word(stored | (at + 8192)), word(at + 8192 + 40)];
    made = made.patch("b pointers", 0, &pointers.concat());
    made.put("b last", &[b'g'; 40]);

    let d = made.put("d pointers", &[0; 4]);
    let at = made.put("d header", &[]);
    let half = match order {
        ByteOrder::Little => 30_u16.to_le_bytes(),
        ByteOrder::Big => 30_u16.to_be_bytes(),
    };
    made.put("d len", &half);
    made.put("d data", &[b'h'; 30]);
    made = made.patch("d pointers", 0, &word(direct | at >> 2));

    let link = made.put("link pointers", &[0; 4]);
    made.put("link target", b"a");
    made = made.patch("link pointers", 0, &word(stored | (link + 5)));
    made.align(4096);

    let contents = [("a", a, 5000), ("b", b, 12_388), ("c", 0, 0x103), ("d", d, 100), ("link", link, 1)];
    for (name, offset, size) in contents.into_iter().chain([("sub", sub_start, 16)]) {
        made = made.inode(name, |inode| (inode.offset, inode.size) = (offset, size));
    }
    let root = CramfsInode { mode: 0o040_755, size: root_len, offset: root_start, ..CramfsInode::default() };
    let super_block = CramfsSuper {
        size: made.bytes.len() as u32,
        flags: FLAGS,
        signature: *CRAMFS_SIGNATURE,
        edition: 9,
        blocks: 8,
        files: 8,
        name: *b"made by hand\0\0\0\0",
        root,
        ..CramfsSuper::default()
    };
    made.patch("super", 0, &super_block.to_bytes(order)).summed()
}

/// The entry of a name in the root directory.
fn find(volume: &CramfsVolume, name: &str) -> InodeId {
    volume.lookup(volume.root(), name.as_bytes()).unwrap().unwrap()
}
