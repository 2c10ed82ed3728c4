//! Conversion of nodes to inodes: the basic form if possible, else the extended one.

use super::dirs::DirRecords;
use super::ids::Ids;
use super::xattrs::XattrTables;
use crate::pack::{InodeBody, InodeRecords, Listing, ListingRecords, stored_time};
use crate::v4::disk;
use crate::{InodeRef, SQUASHFS_INVALID_FRAG, number_of_type};
use packfs_core::{DeviceNumber, Error, Node, Result};
use packfs_format::{Blocks, FilePlace, SharedTail, StoredBlock};
use zerocopy::IntoBytes;

pub(super) struct Inodes<'a> {
    pub ids: &'a Ids,
    pub xattrs: &'a XattrTables,
    pub block_len: u32,
}

impl InodeRecords for Inodes<'_> {
    fn listing_records(&self) -> &impl ListingRecords {
        &DirRecords
    }

    fn has_links(&self) -> bool {
        true
    }

    fn check_place(&self, place: InodeRef) -> Result<()> {
        let told = u32::try_from(place.block);
        told.map(drop).map_err(|_| Error::failed("the inodes of this tree are more than squashfs can hold"))
    }

    fn put_inode(&self, out: &mut Vec<u8>, node: &Node, number: u32, body: &InodeBody<'_>) -> Result<()> {
        let common = Common { node, ids: self.ids, number, xattr: self.xattrs.index(node.xattrs) };
        match *body {
            InodeBody::Dir { listing, parent } => dir(out, &common, listing, parent)?,
            InodeBody::File { len, place, placed } => {
                let hole_len = placed.hole_len(place, self.block_len.into(), len);
                file(out, &common, len, place, (placed.blocks_of(place), hole_len));
            }
            InodeBody::Symlink(target) => symlink(out, &common, target),
            InodeBody::Device(number) => device(out, &common, number),
            InodeBody::Ipc => ipc(out, &common),
        }
        Ok(())
    }
}

/// Values of every inode other than its node.
struct Common<'a> {
    node: &'a Node,
    ids: &'a Ids,
    number: u32,
    /// Row of its set of extended attributes.
    xattr: u32,
}

impl Common<'_> {
    fn has_xattrs(&self) -> bool {
        self.xattr != disk::SQUASHFS_INVALID_XATTR
    }

    fn base(&self, extended: bool) -> disk::InodeBase {
        let meta = &self.node.meta;
        let inode_type =
            number_of_type(self.node.kind.file_type()) + if extended { disk::EXTENDED_TYPES } else { 0 };
        disk::InodeBase {
            inode_type: inode_type.into(),
            mode: (meta.mode & 0o7777).into(),
            uid: self.ids.index(meta.owner.uid).into(),
            guid: self.ids.index(meta.owner.gid).into(),
            mtime: stored_time(meta.mtime).into(),
            inode_number: self.number.into(),
        }
    }

    fn write(&self, out: &mut Vec<u8>, extended: bool, body: &(impl IntoBytes + zerocopy::Immutable)) {
        out.extend_from_slice(self.base(extended).as_bytes());
        out.extend_from_slice(body.as_bytes());
    }
}

/// Errors: `Failed` if the listing is too long or too far into the table for the format.
fn dir(out: &mut Vec<u8>, common: &Common<'_>, listing: &Listing, parent: u32) -> Result<()> {
    let too_long = |_| Error::failed("the directories of this tree are more than squashfs can hold");
    let start_block = u32::try_from(listing.start.block).map_err(too_long)?;
    let size = u32::try_from(listing.len + u64::from(disk::DIR_SIZE_EXTRA)).map_err(too_long)?;
    let (nlink, offset) = (common.node.links.into(), listing.start.offset.into());
    match u16::try_from(size) {
        Ok(size) if !common.has_xattrs() && listing.index_count == 0 => {
            let body = disk::DirInode {
                start_block: start_block.into(),
                nlink,
                file_size: size.into(),
                offset,
                parent_inode: parent.into(),
            };
            common.write(out, false, &body);
        }
        _ => {
            let body = disk::LDirInode {
                nlink,
                file_size: size.into(),
                start_block: start_block.into(),
                parent_inode: parent.into(),
                i_count: listing.index_count.into(),
                offset,
                xattr: common.xattr.into(),
            };
            common.write(out, true, &body);
            out.extend_from_slice(&listing.index);
        }
    }
    Ok(())
}

/// `hole_len` is the number of bytes in holes.
fn file(
    out: &mut Vec<u8>,
    common: &Common<'_>,
    len: u64,
    place: &FilePlace<Blocks>,
    (blocks, hole_len): (&[StoredBlock], u64),
) {
    let (fragment, offset) = match place.tail {
        Some(SharedTail { index, offset }) => (index, offset),
        _ => (SQUASHFS_INVALID_FRAG, 0),
    };
    let basic = (u32::try_from(place.start), u32::try_from(len));
    match basic {
        (Ok(start), Ok(len)) if common.node.links == 1 && hole_len == 0 && !common.has_xattrs() => {
            let body = disk::RegInode {
                start_block: start.into(),
                fragment: fragment.into(),
                offset: offset.into(),
                file_size: len.into(),
            };
            common.write(out, false, &body);
        }
        _ => {
            let body = disk::LRegInode {
                start_block: place.start.into(),
                file_size: len.into(),
                sparse: hole_len.into(),
                nlink: common.node.links.into(),
                fragment: fragment.into(),
                offset: offset.into(),
                xattr: common.xattr.into(),
            };
            common.write(out, true, &body);
        }
    }
    for &StoredBlock { stored_len, compressed } in blocks {
        out.extend_from_slice(disk::block_word(stored_len, compressed).as_bytes());
    }
}

fn symlink(out: &mut Vec<u8>, common: &Common<'_>, target: &[u8]) {
    let body =
        disk::SymlinkInode { nlink: common.node.links.into(), symlink_size: (target.len() as u32).into() };
    common.write(out, common.has_xattrs(), &body);
    out.extend_from_slice(target);
    if common.has_xattrs() {
        out.extend_from_slice(&common.xattr.to_le_bytes());
    }
}

fn device(out: &mut Vec<u8>, common: &Common<'_>, number: DeviceNumber) {
    let (nlink, rdev) = (common.node.links.into(), number.encode().into());
    if common.has_xattrs() {
        common.write(out, true, &disk::LDevInode { nlink, rdev, xattr: common.xattr.into() });
    } else {
        common.write(out, false, &disk::DevInode { nlink, rdev });
    }
}

fn ipc(out: &mut Vec<u8>, common: &Common<'_>) {
    let nlink = common.node.links.into();
    if common.has_xattrs() {
        common.write(out, true, &disk::LIpcInode { nlink, xattr: common.xattr.into() });
    } else {
        common.write(out, false, &disk::IpcInode { nlink });
    }
}
