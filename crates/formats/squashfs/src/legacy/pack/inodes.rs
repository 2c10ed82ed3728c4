//! Conversion of nodes to inodes of version 2 or 3: the basic form if possible, else the extended
//! one.

use super::dirs::DirRecords;
use super::losses::stored_device;
use super::owners::Owners;
use crate::legacy::bits::Record;
use crate::legacy::disk::{self, Version};
use crate::pack::{InodeBody, InodeRecords, Listing, ListingRecords, stored_time};
use crate::{
    Endian, InodeRef, SQUASHFS_DIR_TYPE, SQUASHFS_INVALID_FRAG, SQUASHFS_REG_TYPE, number_of_type, size_word,
};
use packfs_core::{DeviceNumber, Error, Node, Result};
use packfs_format::{Blocks, FilePlace, Placed, SharedTail, StoredBlock};

pub(super) struct Inodes<'a> {
    pub listings: DirRecords,
    pub owners: &'a Owners,
}

impl InodeRecords for Inodes<'_> {
    fn listing_records(&self) -> &impl ListingRecords {
        &self.listings
    }

    fn has_links(&self) -> bool {
        self.listings.version.has_numbers()
    }

    fn check_place(&self, place: InodeRef) -> Result<()> {
        let version = self.listings.version;
        let block_bits = if version.has_numbers() { 32 } else { 24 };
        if place.block >> block_bits == 0 { Ok(()) } else { Err(too_much(version, "the inodes")) }
    }

    fn put_inode(&self, out: &mut Vec<u8>, node: &Node, number: u32, body: &InodeBody<'_>) -> Result<()> {
        let DirRecords { version, endian } = self.listings;
        let common = Common { version, endian, node, owners: self.owners, number };
        match *body {
            InodeBody::Dir { listing, parent } => dir(out, &common, listing, parent)?,
            InodeBody::File { len, place, placed } => file(out, &common, len, place, placed)?,
            InodeBody::Symlink(target) => symlink(out, &common, target),
            InodeBody::Device(number) => device(out, &common, number),
            InodeBody::Ipc => ipc(out, &common),
        }
        Ok(())
    }
}

/// Values of every inode other than its node.
struct Common<'a> {
    version: Version,
    endian: Endian,
    node: &'a Node,
    owners: &'a Owners,
    number: u32,
}

impl Common<'_> {
    fn base<'o>(&self, out: &'o mut Vec<u8>, inode_type: u16) -> Record<'o> {
        let meta = &self.node.meta;
        let (user, group) = self.owners.indexes(meta.owner);
        let mut record = Record::new(out, self.endian);
        record.put(4, inode_type).put(12, meta.mode & 0o7777).put(8, user).put(8, group);
        if self.version.has_numbers() {
            record.put(32, stored_time(meta.mtime)).put(32, self.number);
        }
        record
    }

    /// Starts an inode with a link count since 3.0.
    fn linked<'o>(&self, out: &'o mut Vec<u8>, inode_type: u16) -> Record<'o> {
        let mut record = self.base(out, inode_type);
        if self.version.has_numbers() {
            record.put(32, self.node.links);
        }
        record
    }

    fn basic_type(&self) -> u16 {
        number_of_type(self.node.kind.file_type())
    }
}

/// Bits of a directory's size: in the basic and in the extended form.
const SIZE_BITS: u32 = 19;
const LONG_SIZE_BITS: u32 = 27;

/// Errors: `Failed` if the listing is too long or too far into the table for the version.
fn dir(out: &mut Vec<u8>, common: &Common<'_>, listing: &Listing, parent: u32) -> Result<()> {
    let version = common.version;
    let size = listing.len + u64::from(version.dir_size_extra());
    let extended = listing.index_count > 0 || size >> SIZE_BITS != 0;
    let size_bits = if version.is_sorted() { LONG_SIZE_BITS } else { SIZE_BITS };
    let block_bits = if version.has_numbers() { 32 } else { 24 };
    if size >> size_bits != 0 || listing.start.block >> block_bits != 0 {
        return Err(too_much(version, "the directories"));
    }
    let mtime = stored_time(common.node.meta.mtime);
    let inode_type = if extended { disk::SQUASHFS_LDIR_TYPE } else { SQUASHFS_DIR_TYPE };
    let mut record = common.linked(out, inode_type);
    record.put(if extended { LONG_SIZE_BITS } else { SIZE_BITS }, size).put(13, listing.start.offset);
    if !version.has_numbers() {
        record.put(32, mtime);
    }
    record.put(block_bits, listing.start.block);
    if extended {
        record.put(16, listing.index_count);
    }
    if version.has_numbers() {
        record.put(32, parent);
    }
    if extended {
        out.extend_from_slice(&listing.index);
    }
    Ok(())
}

pub(super) fn too_much(version: Version, what: &str) -> Error {
    let error = Error::failed(format!("{what} of this tree are more than squashfs {version} can hold"));
    if version.has_numbers() { error } else { error.hint("version 3.0 and later hold more") }
}

/// Errors: `Failed` for data above the addresses of the version.
fn file(
    out: &mut Vec<u8>,
    common: &Common<'_>,
    len: u64,
    place: &FilePlace<Blocks>,
    placed: &Placed<Blocks>,
) -> Result<()> {
    let (fragment, offset) = match place.tail {
        Some(SharedTail { index, offset }) => (index, offset),
        _ => (SQUASHFS_INVALID_FRAG, 0),
    };
    if !common.version.has_numbers() {
        let mut record = common.base(out, SQUASHFS_REG_TYPE);
        let start = u32::try_from(place.start).map_err(|_| too_much(common.version, "the data"))?;
        record.put(32, stored_time(common.node.meta.mtime)).put(32, start);
        record.put(32, fragment).put(32, offset).put(32, len);
    } else if common.node.links == 1 && len <= u64::from(u32::MAX) {
        let mut record = common.base(out, SQUASHFS_REG_TYPE);
        record.put(64, place.start).put(32, fragment).put(32, offset).put(32, len);
    } else {
        let mut record = common.linked(out, disk::SQUASHFS_LREG_TYPE);
        record.put(64, place.start).put(32, fragment).put(32, offset).put(64, len);
    }
    for &StoredBlock { stored_len, compressed } in placed.blocks_of(place) {
        Record::new(out, common.endian).put(32, size_word(stored_len, compressed));
    }
    Ok(())
}

fn symlink(out: &mut Vec<u8>, common: &Common<'_>, target: &[u8]) {
    common.linked(out, common.basic_type()).put(16, target.len() as u64);
    out.extend_from_slice(target);
}

fn device(out: &mut Vec<u8>, common: &Common<'_>, number: DeviceNumber) {
    common.linked(out, common.basic_type()).put(16, stored_device(number));
}

fn ipc(out: &mut Vec<u8>, common: &Common<'_>) {
    common.linked(out, common.basic_type());
}
