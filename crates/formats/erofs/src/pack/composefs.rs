//! The bytes of a composefs image: header, superblock, inodes breadth first, shared attributes, and
//! directory blocks, placed by the fixed rules of mkcomposefs.

use super::dirs::{self, Name};
use super::inodes::{self, COMPACT_LEN, DataWords, EXTENDED_LEN, InodeFacts};
use super::times::Times;
use super::xattrs::{icount, write_entry};
use crate::composefs::{ACLS, HEADER_VERSION, Inode, MAGIC, Tree, has_whiteouts, rewrite};
use crate::disk::*;
use crate::xattr::filter_bit;
use packfs_core::{Error, FileType, Meta, NodeId, Result};
use std::collections::HashMap;
use zerocopy::{FromZeros, IntoBytes};

const BLOCK_BITS: u32 = 12;
const BLOCK_LEN: u64 = 1 << BLOCK_BITS;
const SLOT_LEN: u64 = 1 << ISLOTBITS;
const SHARED_MAX: usize = 128;
/// Header flag: the image has ACLs.
const HAS_ACLS: u32 = 1;
const VERSION_MAX: u32 = 1;

/// Permitted versions of an image. It gets the lowest, 0, unless the tree has whiteouts, which
/// version 1 stores in a better way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Lowest version.
    pub min: u32,
    /// Highest version; a lower value than `min` means `min`.
    pub max: u32,
}

impl Default for Versions {
    fn default() -> Self {
        Versions { min: 0, max: VERSION_MAX }
    }
}

impl Versions {
    fn of(self, tree: &Tree) -> Result<u32> {
        let highest = self.max.max(self.min);
        if highest > VERSION_MAX {
            let fault = format!("composefs version {highest}: versions 0 and 1 are known");
            return Err(Error::usage(fault));
        }
        Ok(if highest > self.min && has_whiteouts(tree) { highest } else { self.min })
    }
}

/// Returns the image of a tree.
///
/// Errors: `Usage` for a version that is not known; `Failed` for a tree that no image can hold.
pub fn write(mut tree: Tree, versions: Versions) -> Result<Vec<u8>> {
    let version = versions.of(&tree)?;
    rewrite(&mut tree, version)?;
    Ok(Layout::of(&tree)?.image(version))
}

struct Layout<'a> {
    tree: &'a Tree,
    order: Vec<u32>,
    parents: Vec<u32>,
    /// By inode number.
    places: Vec<Place>,
    /// Attributes of several inodes, with their offsets; and in order.
    shared: HashMap<Xattr<'a>, u64>,
    shared_order: Vec<Xattr<'a>>,
    /// Compact inodes store no time; theirs is the oldest.
    times: Times,
    end: u64,
}

type Xattr<'a> = (&'a [u8], &'a [u8]);

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u64,
    is_extended: bool,
    blocks: u64,
    tail_len: u64,
}

/// Returns the number of an attribute's prefix, and the rest of its name. Names without a known
/// prefix are stored whole, with number 0.
fn split(name: &[u8]) -> (u8, &[u8]) {
    let known = XATTR_PREFIXES.iter().filter(|(number, _)| *number != EROFS_XATTR_INDEX_LUSTRE);
    let mut found = known.filter_map(|(number, prefix)| Some((*number, name.strip_prefix(*prefix)?)));
    found.next().unwrap_or((0, name))
}

fn write_xattr(out: &mut Vec<u8>, (name, value): Xattr<'_>) {
    let (number, rest) = split(name);
    // Trees cannot contain longer values.
    write_entry(out, number, rest, value).unwrap_or_default();
}

/// Logarithm of a chunk in bytes; as large as the file, if possible.
fn chunk_bits(len: u64) -> u32 {
    let bits = (len - 1).checked_ilog2().map_or(0, |log| log + 1);
    bits.clamp(BLOCK_BITS, BLOCK_BITS + u32::from(EROFS_CHUNK_FORMAT_BLKBITS_MASK))
}

/// Splits a length into blocks and a tail of at most half a block.
fn blocks_and_tail(len: u64) -> (u64, u64) {
    match (len / BLOCK_LEN, len % BLOCK_LEN) {
        (blocks, tail) if tail > BLOCK_LEN / 2 => (blocks + 1, 0),
        split => split,
    }
}

fn pad_to(out: &mut Vec<u8>, end: u64) {
    out.resize(end as usize, 0);
}

impl<'a> Layout<'a> {
    fn of(tree: &'a Tree) -> Result<Self> {
        let count = tree.inodes.len();
        let (mut order, mut parents) = (vec![Tree::ROOT], vec![Tree::ROOT; count]);
        let mut next = 0;
        while next < order.len() {
            let dir = order[next];
            for child in tree.inodes[dir as usize].children.values().filter(|child| !child.is_link) {
                parents[child.inode as usize] = dir;
                order.push(child.inode);
            }
            next += 1;
        }
        let oldest = tree.inodes.iter().map(|inode| inode.mtime).min().unwrap_or_default();
        let times = Times { epoch: oldest.seconds, nanos: oldest.nanos, wide: false, kept: true };
        let (places, shared) = (vec![Place::default(); count], HashMap::new());
        let mut layout =
            Layout { tree, order, parents, places, shared, shared_order: Vec::new(), times, end: 0 };
        layout.share_xattrs();
        layout.place()?;
        Ok(layout)
    }

    fn inode(&self, number: u32) -> &'a Inode {
        &self.tree.inodes[number as usize]
    }

    /// Finds attributes with equal names and values of several inodes.
    fn share_xattrs(&mut self) {
        let mut counts: HashMap<Xattr<'a>, u32> = HashMap::new();
        for (name, value) in self.tree.inodes.iter().flat_map(|inode| &inode.xattrs) {
            *counts.entry((name, value)).or_default() += 1;
        }
        let mut shared: Vec<Xattr<'a>> =
            counts.into_iter().filter(|(_, count)| *count > 1).map(|row| row.0).collect();
        shared.sort_unstable_by(|a, b| (b.0, b.1.len(), b.1).cmp(&(a.0, a.1.len(), a.1)));
        let mut written = Vec::new();
        for xattr in &shared {
            self.shared.insert(*xattr, written.len() as u64);
            write_xattr(&mut written, *xattr);
        }
        self.shared_order = shared;
    }

    /// Returns the bytes of attributes after an inode. Ids of shared ones are valid once the end of
    /// the inodes is known.
    fn xattrs(&self, inode: &'a Inode) -> Vec<u8> {
        if inode.xattrs.is_empty() {
            return Vec::new();
        }
        let mut ids = Vec::new();
        let mut own = Vec::new();
        let mut used = 0;
        for (name, value) in &inode.xattrs {
            let (number, rest) = split(name);
            used |= filter_bit(number, rest);
            match self.shared.get(&(name.as_slice(), value.as_slice())) {
                Some(offset) if ids.len() < SHARED_MAX => {
                    ids.push(((self.end % BLOCK_LEN + offset) / XATTR_ALIGN) as u32);
                }
                _ => write_xattr(&mut own, (name, value)),
            }
        }
        let mut head = XattrIbodyHeader::new_zeroed();
        head.h_name_filter = (EROFS_XATTR_FILTER_DEFAULT & !used).into();
        head.h_shared_count = ids.len() as u8;
        let ids = ids.into_iter().flat_map(u32::to_le_bytes).collect();
        [head.as_bytes().to_vec(), ids, own].concat()
    }

    fn names(&self, dir: u32) -> Vec<Name<'a>> {
        let children = &self.inode(dir).children;
        let named = children.iter().map(|(name, child)| (&**name, child.inode));
        let dots = [(&b"."[..], dir), (b"..", self.parents[dir as usize])];
        let mut names: Vec<Name<'a>> =
            named.chain(dots).map(|(name, inode)| Name { name, node: NodeId(inode) }).collect();
        names.sort_unstable_by_key(|entry| entry.name);
        names
    }

    /// Returns the number of blocks and the tail length of an inode's data.
    fn data(&self, number: u32) -> (u64, u64) {
        let inode = self.inode(number);
        match inode.file_type() {
            FileType::Directory => {
                let len = dirs::len(&self.names(number), BLOCK_LEN);
                let (last, tail) = blocks_and_tail(len.last_len);
                (len.full_blocks + last, tail)
            }
            FileType::Symlink => (0, inode.target.len() as u64),
            FileType::File if inode.file.content.is_some() => blocks_and_tail(inode.size),
            FileType::File if inode.size > 0 => {
                (0, inode.size.div_ceil(1 << chunk_bits(inode.size)) * EROFS_BLOCK_MAP_ENTRY_SIZE)
            }
            _ => (0, 0),
        }
    }

    fn place(&mut self) -> Result<()> {
        let mut at = EROFS_SUPER_OFFSET + SUPER_BLOCK_LEN as u64;
        for index in 0..self.order.len() {
            let number = self.order[index];
            let inode = self.inode(number);
            let (blocks, tail_len) = self.data(number);
            let mut place =
                Place { start: at.next_multiple_of(SLOT_LEN), is_extended: false, blocks, tail_len };
            place.is_extended = inodes::is_extended(&self.facts(number, &place), &self.times, 0);
            let head_len = if place.is_extended { EXTENDED_LEN } else { COMPACT_LEN };
            let head_len = head_len + self.xattrs(inode).len() as u64;
            match inode.file_type() {
                FileType::Symlink => place.put_link(head_len),
                _ => place.put_tail(head_len),
            }
            at = place.start + head_len + place.tail_len;
            self.places[number as usize] = place;
        }
        self.end = at.next_multiple_of(SLOT_LEN);
        let blocks = self.end.div_ceil(BLOCK_LEN) + self.places.iter().map(|place| place.blocks).sum::<u64>();
        if blocks < u64::from(u32::MAX) {
            Ok(())
        } else {
            Err(Error::failed("the image has more than 4294967294 blocks"))
        }
    }

    /// Returns the fields of an inode. The link count of a directory is 2 plus its subdirectories;
    /// special files keep their length, which decides the form of the inode.
    fn facts(&self, number: u32, place: &Place) -> InodeFacts {
        let inode = self.inode(number);
        let file_type = inode.file_type();
        let subdirs = inode.children.values().filter(|child| !child.is_link);
        let subdirs = subdirs.filter(|child| self.inode(child.inode).file_type() == FileType::Directory);
        let (links, size) = match file_type {
            FileType::Directory => (subdirs.count() as u32 + 2, place.blocks * BLOCK_LEN + place.tail_len),
            _ => (inode.links, inode.size),
        };
        let meta = Meta { mode: inode.mode, owner: inode.owner, mtime: inode.mtime };
        InodeFacts { file_type, meta, links, size, number: 0, xattr_icount: 0, dot_omitted: false }
    }
}

impl Place {
    /// Aligns an inode so that inode and target are in one block, or the target starts a block.
    fn put_link(&mut self, head_len: u64) {
        let len = head_len + self.tail_len;
        let ends_in = (self.start + len - 1) / BLOCK_LEN;
        if len >= BLOCK_LEN {
            (self.blocks, self.tail_len) = (self.blocks + 1, 0);
        }
        if self.start / BLOCK_LEN != ends_in {
            self.start = self.start.next_multiple_of(BLOCK_LEN);
        }
    }

    /// Aligns an inode so that its tail is in one block, or starts one.
    fn put_tail(&mut self, head_len: u64) {
        let room = |start: u64| BLOCK_LEN - (start + head_len) % BLOCK_LEN;
        if room(self.start) >= self.tail_len {
            return;
        }
        let moved = self.start + room(self.start).next_multiple_of(SLOT_LEN);
        if room(moved) >= self.tail_len {
            self.start = moved;
        } else {
            (self.blocks, self.tail_len) = (self.blocks + 1, 0);
            self.start = self.start.next_multiple_of(BLOCK_LEN);
        }
    }
}

impl Layout<'_> {
    fn image(&self, version: u32) -> Vec<u8> {
        let mut shared = Vec::new();
        self.shared_order.iter().for_each(|xattr| write_xattr(&mut shared, *xattr));
        let data_start = (self.end + shared.len() as u64).next_multiple_of(BLOCK_LEN);
        let block_count = self.places.iter().map(|place| place.blocks).sum::<u64>();
        let mut out = self.head(version, data_start / BLOCK_LEN + block_count);
        let mut next_block = data_start / BLOCK_LEN;
        for (index, &number) in self.order.iter().enumerate() {
            let place = &self.places[number as usize];
            pad_to(&mut out, place.start);
            self.write_inode(&mut out, number, index as u32, next_block);
            next_block += place.blocks;
        }
        pad_to(&mut out, self.end);
        out.extend_from_slice(&shared);
        pad_to(&mut out, data_start);
        self.order.iter().for_each(|&number| self.write_blocks(&mut out, number));
        out
    }

    fn head(&self, version: u32, block_count: u64) -> Vec<u8> {
        let has_acl = |inode: &Inode| ACLS.iter().any(|name| inode.xattrs.contains_key(*name));
        let flags = if self.tree.inodes.iter().any(has_acl) { HAS_ACLS } else { 0 };
        let words = [MAGIC, HEADER_VERSION, flags, version].into_iter();
        let mut out: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        pad_to(&mut out, EROFS_SUPER_OFFSET);
        let mut super_block = SuperBlock::new_zeroed();
        super_block.magic = EROFS_SUPER_MAGIC_V1.into();
        super_block.feature_compat = (EROFS_FEATURE_COMPAT_MTIME | EROFS_FEATURE_COMPAT_XATTR_FILTER).into();
        super_block.blkszbits = BLOCK_BITS as u8;
        super_block.rb = ((self.places[0].start / SLOT_LEN) as u16).into();
        super_block.inos = (self.order.len() as u64).into();
        super_block.epoch = (self.times.epoch as u64).into();
        super_block.fixed_nsec = self.times.nanos.into();
        super_block.blocks_lo = (block_count as u32).into();
        super_block.xattr_blkaddr = ((self.end / BLOCK_LEN) as u32).into();
        out.extend_from_slice(&super_block.as_bytes()[..SUPER_BLOCK_LEN]);
        out
    }

    fn write_inode(&self, out: &mut Vec<u8>, number: u32, index: u32, block: u64) {
        let (inode, place) = (self.inode(number), &self.places[number as usize]);
        let xattrs = self.xattrs(inode);
        let is_chunked = inode.is_external();
        let mut facts =
            InodeFacts { number: index, xattr_icount: icount(&xattrs), ..self.facts(number, place) };
        let word = match facts.file_type {
            FileType::CharDevice | FileType::BlockDevice => inode.device.into(),
            _ if is_chunked => {
                let chunks = u64::from(chunk_bits(inode.size) - BLOCK_BITS);
                // Only the lower half of the word contains the length of chunks.
                if place.blocks > 0 { block & 0xffff_0000 | chunks } else { chunks }
            }
            _ if place.blocks > 0 => block,
            _ => 0,
        };
        if !matches!(facts.file_type, FileType::Directory | FileType::File | FileType::Symlink) {
            facts.size = 0;
        }
        let layout = match place.tail_len {
            _ if is_chunked => EROFS_INODE_CHUNK_BASED,
            0 => EROFS_INODE_FLAT_PLAIN,
            _ => EROFS_INODE_FLAT_INLINE,
        };
        inodes::write(out, &facts, &self.times, DataWords { layout, word }, place.is_extended);
        out.extend_from_slice(&xattrs);
        if place.tail_len > 0 {
            let data = self.bytes(number);
            out.extend_from_slice(&data[data.len() - place.tail_len as usize..]);
        }
    }

    fn write_blocks(&self, out: &mut Vec<u8>, number: u32) {
        let place = &self.places[number as usize];
        if place.blocks > 0 {
            let end = out.len() as u64 + place.blocks * BLOCK_LEN;
            let data = self.bytes(number);
            out.extend_from_slice(&data[..data.len() - place.tail_len as usize]);
            pad_to(out, end);
        }
    }

    /// Returns the data of an inode: entries, a target, contents, or the table of its chunks, all
    /// of them holes.
    fn bytes(&self, number: u32) -> Vec<u8> {
        let inode = self.inode(number);
        let mut bytes = Vec::new();
        match (inode.file_type(), &inode.file.content) {
            (FileType::Directory, _) => {
                let entry = |node: NodeId| {
                    let nid = self.places[node.index()].start / SLOT_LEN;
                    (nid, self.inode(node.0).file_type())
                };
                dirs::write(&self.names(number), BLOCK_LEN, entry, |block| bytes.extend_from_slice(block));
            }
            (FileType::Symlink, _) => bytes.extend_from_slice(&inode.target),
            (_, Some(content)) => bytes.extend_from_slice(content),
            (_, None) => {
                // In a separate block, the table fills the block.
                let is_block = self.places[number as usize].blocks > 0;
                bytes.resize(if is_block { BLOCK_LEN } else { self.data(number).1 } as usize, 0xff);
            }
        }
        bytes
    }
}
