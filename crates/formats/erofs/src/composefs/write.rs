//! The bytes of an image: header, superblock, inodes breadth first, shared attributes, blocks of
//! directories.

use super::names::ACLS;
use super::overlay;
use super::tree::{Inode, Tree};
use super::{HEADER_VERSION, MAGIC};
use crate::disk::*;
use crate::pack::dirs::file_type as type_number;
use crate::xattr::filter_bit;
use packfs_core::{Error, FileType, Result, Timestamp};
use std::collections::HashMap;
use zerocopy::little_endian::U16;
use zerocopy::{FromZeros, IntoBytes};

const BLOCK_BITS: u32 = 12;
const BLOCK_LEN: u64 = 1 << BLOCK_BITS;
const SLOT_LEN: u64 = 1 << ISLOTBITS;
/// Most shared attributes of one inode.
const SHARED_MAX: usize = 128;
/// Header flag: the image has access control lists.
const HAS_ACLS: u32 = 1;
/// Newest version of images.
const VERSION_MAX: u32 = 1;

/// Versions that an image may have. It gets the lowest, 0, unless the tree has whiteouts, which
/// version 1 stores in a better way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Lowest version.
    pub min: u32,
    /// Highest version; one below `min` means `min`.
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
        Ok(if highest > self.min && overlay::has_whiteouts(tree) { highest } else { self.min })
    }
}

/// Returns the image of a tree.
///
/// Errors: `Usage` for a version that is not known; `Failed` for a tree that no image can hold.
pub fn write(mut tree: Tree, versions: Versions) -> Result<Vec<u8>> {
    let version = versions.of(&tree)?;
    overlay::rewrite(&mut tree, version)?;
    Layout::of(&tree)?.image(version)
}

/// Places of all inodes.
struct Layout<'a> {
    tree: &'a Tree,
    /// Inodes breadth first, as they are stored.
    order: Vec<u32>,
    /// Parent of each directory, by number.
    parents: Vec<u32>,
    /// Place of each inode, by number.
    places: Vec<Place>,
    /// Attributes that several inodes have, with their offsets; and in order.
    shared: HashMap<Xattr<'a>, u64>,
    shared_order: Vec<Xattr<'a>>,
    oldest: Timestamp,
    /// End of the inodes.
    end: u64,
}

type Xattr<'a> = (&'a [u8], &'a [u8]);

/// Place of an inode, and the way it is stored.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u64,
    is_extended: bool,
    /// Blocks outside of the inode.
    blocks: u64,
    /// Bytes behind the inode and its attributes.
    tail_len: u64,
}

/// Attributes of an inode, as they are stored.
struct XattrBody<'a> {
    shared: Vec<u64>,
    own: Vec<Xattr<'a>>,
    len: u64,
}

/// The number of an attribute's prefix, and the rest of its name. Names without a known prefix are
/// stored whole, with the number 0.
fn split(name: &[u8]) -> (u8, &[u8]) {
    let known = XATTR_PREFIXES.iter().filter(|(number, _)| *number != EROFS_XATTR_INDEX_LUSTRE);
    let mut found = known.filter_map(|(number, prefix)| Some((*number, name.strip_prefix(*prefix)?)));
    found.next().unwrap_or((0, name))
}

fn xattr_len((name, value): Xattr<'_>) -> u64 {
    let len = size_of::<XattrEntry>() + split(name).1.len() + value.len();
    (len as u64).next_multiple_of(XATTR_ALIGN)
}

/// Base-2 logarithm of a chunk of a file, in bytes; as large as the file, if possible.
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
        let mut layout = Layout {
            tree,
            order,
            parents,
            places: vec![Place::default(); count],
            shared: HashMap::new(),
            shared_order: Vec::new(),
            oldest,
            end: 0,
        };
        layout.share_xattrs();
        layout.place()?;
        Ok(layout)
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
        let mut offset = 0;
        for xattr in &shared {
            self.shared.insert(*xattr, offset);
            offset += xattr_len(*xattr);
        }
        self.shared_order = shared;
    }

    fn xattrs(&self, inode: &'a Inode) -> XattrBody<'a> {
        let mut body = XattrBody { shared: Vec::new(), own: Vec::new(), len: 0 };
        let mut own_len = 0;
        for (name, value) in &inode.xattrs {
            let xattr: Xattr<'a> = (name, value);
            match self.shared.get(&xattr) {
                Some(offset) if body.shared.len() < SHARED_MAX => body.shared.push(*offset),
                _ => {
                    own_len += xattr_len(xattr);
                    body.own.push(xattr);
                }
            }
        }
        if !inode.xattrs.is_empty() {
            let shared_len = body.shared.len() * size_of::<u32>();
            body.len = (size_of::<XattrIbodyHeader>() + shared_len) as u64 + own_len;
        }
        body
    }

    /// Returns all entries of a directory with the inodes that they name, `.` and `..` among them.
    fn entries(&self, dir: u32) -> Vec<(&'a [u8], u32)> {
        let children = &self.tree.inodes[dir as usize].children;
        let named = children.iter().map(|(name, child)| (&**name, child.inode));
        let dots = [(&b"."[..], dir), (b"..", self.parents[dir as usize])];
        let mut entries: Vec<_> = named.chain(dots).collect();
        entries.sort_unstable();
        entries
    }

    /// Splits the entries of a directory into blocks; the last one may be a tail.
    fn dir_blocks(&self, dir: u32) -> Vec<Vec<(&'a [u8], u32)>> {
        let mut blocks = vec![Vec::new()];
        let mut len = 0;
        for entry in self.entries(dir) {
            let entry_len = (size_of::<Dirent>() + entry.0.len()) as u64;
            if len + entry_len > BLOCK_LEN {
                blocks.push(Vec::new());
                len = 0;
            }
            len += entry_len;
            if let Some(block) = blocks.last_mut() {
                block.push(entry);
            }
        }
        blocks
    }

    /// Returns blocks and tail of an inode's data.
    fn data(&self, number: u32) -> (u64, u64) {
        let inode = &self.tree.inodes[number as usize];
        match inode.file_type() {
            Some(FileType::Directory) => {
                let blocks = self.dir_blocks(number);
                let last = blocks.last().map_or(&[][..], Vec::as_slice);
                let len = last.iter().map(|entry| size_of::<Dirent>() + entry.0.len()).sum::<usize>();
                let (last, tail) = blocks_and_tail(len as u64);
                (blocks.len() as u64 - 1 + last, tail)
            }
            Some(FileType::Symlink) => (0, inode.target.len() as u64),
            Some(FileType::File) if inode.file.content.is_some() => blocks_and_tail(inode.size),
            Some(FileType::File) if inode.size > 0 => {
                (0, inode.size.div_ceil(1 << chunk_bits(inode.size)) * EROFS_BLOCK_MAP_ENTRY_SIZE)
            }
            _ => (0, 0),
        }
    }

    /// Gives all inodes their places.
    fn place(&mut self) -> Result<()> {
        let mut at = EROFS_SUPER_OFFSET + SUPER_BLOCK_LEN as u64;
        for index in 0..self.order.len() {
            let number = self.order[index];
            let inode = &self.tree.inodes[number as usize];
            let (blocks, tail_len) = self.data(number);
            let mut place =
                Place { start: at.next_multiple_of(SLOT_LEN), is_extended: false, blocks, tail_len };
            place.is_extended = self.is_extended(inode, &place);
            let head_len =
                if place.is_extended { size_of::<InodeExtended>() } else { size_of::<InodeCompact>() };
            let head_len = head_len as u64 + self.xattrs(inode).len;
            match inode.file_type() {
                Some(FileType::Symlink) => place.put_link(head_len),
                _ => place.put_tail(head_len),
            }
            at = place.start + head_len + place.tail_len;
            self.places[number as usize] = place;
        }
        self.end = at.next_multiple_of(SLOT_LEN);
        let blocks = self.end.div_ceil(BLOCK_LEN) + self.places.iter().map(|place| place.blocks).sum::<u64>();
        match blocks < u64::from(u32::MAX) {
            true => Ok(()),
            false => Err(Error::failed("the image has more than 4294967294 blocks")),
        }
    }

    fn is_extended(&self, inode: &Inode, place: &Place) -> bool {
        let size = match inode.is_dir() {
            true => place.blocks * BLOCK_LEN + place.tail_len,
            false => inode.size,
        };
        let is_small = |value: u32| value <= u32::from(u16::MAX);
        !(inode.mtime == self.oldest
            && is_small(self.links(inode))
            && is_small(inode.owner.uid)
            && is_small(inode.owner.gid)
            && u32::try_from(size).is_ok())
    }

    /// Returns the link count; that of a directory is 2 and one for each directory in it.
    fn links(&self, inode: &Inode) -> u32 {
        if !inode.is_dir() {
            return inode.links;
        }
        let is_dir = |inode: u32| self.tree.inodes[inode as usize].is_dir();
        let dirs = inode.children.values().filter(|child| !child.is_link && is_dir(child.inode));
        dirs.count() as u32 + 2
    }
}

impl Place {
    /// Moves an inode so that the inode and the target lie in one block, or the target in a block
    /// of its own.
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

    /// Moves an inode so that its tail lies in one block, or in a block of its own.
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
    fn image(&self, version: u32) -> Result<Vec<u8>> {
        let shared_len: u64 = self.shared_order.iter().map(|xattr| xattr_len(*xattr)).sum();
        let data_start = (self.end + shared_len).next_multiple_of(BLOCK_LEN);
        let block_count = self.places.iter().map(|place| place.blocks).sum::<u64>();
        let mut out = Vec::new();
        self.write_head(&mut out, version, data_start / BLOCK_LEN + block_count);
        let mut next_block = data_start / BLOCK_LEN;
        for (index, &number) in self.order.iter().enumerate() {
            let place = &self.places[number as usize];
            pad_to(&mut out, place.start);
            self.write_inode(&mut out, number, index as u32, next_block as u32);
            next_block += place.blocks;
        }
        pad_to(&mut out, self.end);
        self.shared_order.iter().for_each(|xattr| write_xattr(&mut out, *xattr));
        pad_to(&mut out, data_start);
        self.order.iter().for_each(|&number| self.write_blocks(&mut out, number));
        Ok(out)
    }

    fn write_head(&self, out: &mut Vec<u8>, version: u32, block_count: u64) {
        let has_acl = |inode: &Inode| ACLS.iter().any(|name| inode.xattrs.contains_key(*name));
        let flags = if self.tree.inodes.iter().any(has_acl) { HAS_ACLS } else { 0 };
        for word in [MAGIC, HEADER_VERSION, flags, version] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        pad_to(out, EROFS_SUPER_OFFSET);
        let mut super_block = SuperBlock::new_zeroed();
        super_block.magic = EROFS_SUPER_MAGIC_V1.into();
        super_block.feature_compat = (EROFS_FEATURE_COMPAT_MTIME | EROFS_FEATURE_COMPAT_XATTR_FILTER).into();
        super_block.blkszbits = BLOCK_BITS as u8;
        super_block.rb = ((self.places[0].start / SLOT_LEN) as u16).into();
        super_block.inos = (self.order.len() as u64).into();
        super_block.epoch = (self.oldest.seconds as u64).into();
        super_block.fixed_nsec = self.oldest.nanos.into();
        super_block.blocks_lo = (block_count as u32).into();
        super_block.xattr_blkaddr = ((self.end / BLOCK_LEN) as u32).into();
        out.extend_from_slice(&super_block.as_bytes()[..SUPER_BLOCK_LEN]);
    }

    fn write_inode(&self, out: &mut Vec<u8>, number: u32, index: u32, block: u32) {
        let (inode, place) = (&self.tree.inodes[number as usize], &self.places[number as usize]);
        let xattrs = self.xattrs(inode);
        let is_chunked = inode.is_external();
        let chunks = if is_chunked { chunk_bits(inode.size) - BLOCK_BITS } else { 0 };
        let file_type = inode.file_type();
        let word = match file_type {
            Some(FileType::CharDevice | FileType::BlockDevice) => inode.device,
            // Only the lower half states the length of chunks.
            _ if is_chunked && place.blocks > 0 => block & 0xffff_0000 | chunks,
            _ if is_chunked => chunks,
            _ if place.blocks > 0 => block,
            _ => 0,
        };
        let size = match file_type {
            Some(FileType::Directory) => place.blocks * BLOCK_LEN + place.tail_len,
            Some(FileType::File | FileType::Symlink) => inode.size,
            _ => 0,
        };
        let layout = match place.tail_len {
            _ if is_chunked => EROFS_INODE_CHUNK_BASED,
            0 => EROFS_INODE_FLAT_PLAIN,
            _ => EROFS_INODE_FLAT_INLINE,
        };
        let xattr_icount = match xattrs.len {
            0 => 0,
            len => (len - size_of::<XattrIbodyHeader>() as u64) / XATTR_ALIGN + 1,
        } as u16;
        let format = |version: u16| -> U16 {
            (layout << EROFS_I_DATALAYOUT_BIT | version << EROFS_I_VERSION_BIT).into()
        };
        if place.is_extended {
            let mut head = InodeExtended::new_zeroed();
            head.i_format = format(EROFS_INODE_LAYOUT_EXTENDED);
            head.i_xattr_icount = xattr_icount.into();
            head.i_mode = inode.mode.into();
            head.i_size = size.into();
            head.i_u = word.into();
            head.i_ino = index.into();
            head.i_uid = inode.owner.uid.into();
            head.i_gid = inode.owner.gid.into();
            head.i_mtime = (inode.mtime.seconds as u64).into();
            head.i_mtime_nsec = inode.mtime.nanos.into();
            head.i_nlink = self.links(inode).into();
            out.extend_from_slice(head.as_bytes());
        } else {
            let mut head = InodeCompact::new_zeroed();
            head.i_format = format(EROFS_INODE_LAYOUT_COMPACT);
            head.i_xattr_icount = xattr_icount.into();
            head.i_mode = inode.mode.into();
            head.i_nb = (self.links(inode) as u16).into();
            head.i_size = (size as u32).into();
            head.i_u = word.into();
            head.i_ino = index.into();
            head.i_uid = (inode.owner.uid as u16).into();
            head.i_gid = (inode.owner.gid as u16).into();
            out.extend_from_slice(head.as_bytes());
        }
        self.write_xattrs(out, inode, &xattrs);
        self.write_tail(out, number);
    }

    fn write_xattrs(&self, out: &mut Vec<u8>, inode: &Inode, xattrs: &XattrBody<'_>) {
        if xattrs.len == 0 {
            return;
        }
        let bits = inode.xattrs.keys().map(|name| {
            let (index, rest) = split(name);
            filter_bit(index, rest)
        });
        let filter = EROFS_XATTR_FILTER_DEFAULT & !bits.fold(0, |all, bit| all | bit);
        let mut head = XattrIbodyHeader::new_zeroed();
        head.h_name_filter = filter.into();
        head.h_shared_count = xattrs.shared.len() as u8;
        out.extend_from_slice(head.as_bytes());
        for offset in &xattrs.shared {
            let id = (self.end % BLOCK_LEN + offset) / XATTR_ALIGN;
            out.extend_from_slice(&(id as u32).to_le_bytes());
        }
        xattrs.own.iter().for_each(|xattr| write_xattr(out, *xattr));
    }

    /// Writes the data behind an inode.
    fn write_tail(&self, out: &mut Vec<u8>, number: u32) {
        let (inode, place) = (&self.tree.inodes[number as usize], &self.places[number as usize]);
        let tail_len = place.tail_len as usize;
        match (inode.file_type(), &inode.file.content) {
            _ if tail_len == 0 => {}
            (Some(FileType::Directory), _) => {
                if let Some(tail) = self.dir_blocks(number).last() {
                    self.write_entries(out, tail);
                }
            }
            (Some(FileType::Symlink), _) => out.extend_from_slice(&inode.target),
            (_, Some(content)) => out.extend_from_slice(&content[content.len() - tail_len..]),
            (_, None) => out.resize(out.len() + tail_len, 0xff),
        }
    }

    /// Writes the blocks of an inode.
    fn write_blocks(&self, out: &mut Vec<u8>, number: u32) {
        let (inode, place) = (&self.tree.inodes[number as usize], &self.places[number as usize]);
        if place.blocks == 0 {
            return;
        }
        let end = out.len() as u64 + place.blocks * BLOCK_LEN;
        match (inode.file_type(), &inode.file.content) {
            (Some(FileType::Directory), _) => {
                for block in self.dir_blocks(number).iter().take(place.blocks as usize) {
                    self.write_entries(out, block);
                    pad_to(out, (out.len() as u64).next_multiple_of(BLOCK_LEN));
                }
            }
            (Some(FileType::Symlink), _) => out.extend_from_slice(&inode.target),
            (_, Some(content)) => {
                let len = content.len() - place.tail_len as usize;
                out.extend_from_slice(&content[..len]);
            }
            // The chunks of a file that did not fit behind its inode.
            (_, None) => out.resize(end as usize, 0xff),
        }
        pad_to(out, end);
    }

    fn write_entries(&self, out: &mut Vec<u8>, entries: &[(&[u8], u32)]) {
        let mut name_at = entries.len() * size_of::<Dirent>();
        for (name, number) in entries {
            let mut entry = Dirent::new_zeroed();
            entry.nid = (self.places[*number as usize].start / SLOT_LEN).into();
            entry.nameoff = (name_at as u16).into();
            let named = self.tree.inodes[*number as usize].file_type();
            entry.file_type = named.map_or(EROFS_FT_UNKNOWN, type_number);
            name_at += name.len();
            out.extend_from_slice(entry.as_bytes());
        }
        entries.iter().for_each(|(name, _)| out.extend_from_slice(name));
    }
}

fn write_xattr(out: &mut Vec<u8>, (name, value): Xattr<'_>) {
    let (index, rest) = split(name);
    let mut head = XattrEntry::new_zeroed();
    head.e_name_len = rest.len() as u8;
    head.e_name_index = index;
    head.e_value_size = (value.len() as u16).into();
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(rest);
    out.extend_from_slice(value);
    pad_to(out, (out.len() as u64).next_multiple_of(XATTR_ALIGN));
}

fn pad_to(out: &mut Vec<u8>, end: u64) {
    out.resize(end as usize, 0);
}
