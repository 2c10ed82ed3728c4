//! Extended attributes: in the inode, or in leaves of a hash tree; values in separate blocks.

use crate::acl;
use crate::block::{Block, BlockKind};
use crate::corruption::{Corruption, read};
use crate::disk::*;
use crate::features;
use crate::inode::{DiskInode, Fork, Form};
use crate::mapping::Mapping;
use crate::volume::XfsVolume;
use packfs_core::{ErrorKind, Result, Xattrs, escaped, usize_of};
use packfs_format::{InodeId, structure, structures, units::*};
use std::collections::HashSet;
use std::ops::ControlFlow;
use zerocopy::big_endian::U32;

/// Flags of an attribute: value in the leaf, namespaces, pointer to a parent directory, hash of
/// fs-verity, and incomplete.
const LOCAL: u8 = 1;
const ROOT: u8 = 2;
const SECURE: u8 = 4;
const PARENT: u8 = 8;
const VERITY: u8 = 16;
const INCOMPLETE: u8 = 128;

const ENTRY_LEN: usize = size_of::<AttrLeafEntry>();
const VALUE_LEN_MAX: u64 = 64 << 10;
/// Limit of the names and values of an inode, in bytes.
const TOTAL_MAX: u64 = 64 << 20;
/// Most levels of a tree (`XFS_DA_NODE_MAXDEPTH`).
const LEVELS_MAX: u64 = 5;
/// Name, magic, and its text in the header of a version 5 value block.
const VALUE_HEADER: (&str, u32, &str) = ("attribute value block", XFS_ATTR3_RMT_MAGIC, "XARM");

pub(crate) struct RawAttr<'a> {
    flags: u8,
    name: &'a [u8],
    value: RawValue<'a>,
}

/// A value, or the first block of the fork that contains it, and its length.
enum RawValue<'a> {
    Here(&'a [u8]),
    Blocks { first: u64, len: u64 },
}

impl RawAttr<'_> {
    /// True if Linux lists it.
    fn is_shown(&self) -> bool {
        self.flags & (PARENT | VERITY | INCOMPLETE) == 0
    }

    fn len(&self) -> usize {
        let len = self.name.len().plus(3);
        match self.value {
            RawValue::Here(value) => len.plus(value.len()),
            RawValue::Blocks { .. } => len,
        }
    }

    fn full_name(&self) -> Vec<u8> {
        let prefix: &[u8] = match self.flags & (ROOT | SECURE) {
            ROOT => match self.name {
                b"SGI_ACL_FILE" => return b"system.posix_acl_access".to_vec(),
                b"SGI_ACL_DEFAULT" => return b"system.posix_acl_default".to_vec(),
                _ => b"trusted.",
            },
            SECURE => b"security.",
            _ => b"user.",
        };
        [prefix, self.name].concat()
    }

    fn is_acl(&self) -> bool {
        self.flags & (ROOT | SECURE) == ROOT && matches!(self.name, b"SGI_ACL_FILE" | b"SGI_ACL_DEFAULT")
    }
}

type Visit<'a> = dyn FnMut(RawAttr<'_>) -> Result<ControlFlow<()>> + 'a;

impl XfsVolume {
    pub(crate) fn has_attrs(&self, inode: &DiskInode) -> Result<bool> {
        if !inode.has_attr_fork() {
            return Ok(false);
        }
        // Leaves hide nothing but pointers to parents, so they need not be read.
        if inode.attr_form != Form::Local && !self.super_block.has(features::PARENT) {
            return Ok(true);
        }
        let mut is_any = false;
        let walked = self.each_attr(inode, &mut |attr| {
            is_any = attr.is_shown();
            Ok(if is_any { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        match walked {
            // `attrs` reports the damage.
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(true),
            walked => walked.map(|()| is_any),
        }
    }

    pub(crate) fn attrs(&self, id: InodeId) -> Result<Xattrs> {
        let inode = self.disk_inode(id.0)?;
        let (mut xattrs, mut total) = (Xattrs::new(), 0_u64);
        self.each_attr(&inode, &mut |attr| {
            if !attr.is_shown() {
                return Ok(ControlFlow::Continue(()));
            }
            if attr.name.is_empty() || attr.name.contains(&0) {
                return Err(Corruption::AttrName { ino: inode.ino }.into());
            }
            let mut value = match attr.value {
                RawValue::Here(value) => value.to_vec(),
                RawValue::Blocks { first, len } => self
                    .attr_value(&inode, first, len)
                    .map_err(|error| error.at(format_args!("\"{}\"", escaped(&attr.full_name()))))?,
            };
            total = total.plus((value.len() as u64).plus(attr.name.len() as u64));
            if total > TOTAL_MAX {
                return Err(Corruption::AttrTotal { ino: inode.ino, max: TOTAL_MAX }.into());
            }
            if attr.is_acl() {
                let (len, count) =
                    (value.len() as u64, structure::<U32>(&value, 0).map_or(0, U32::get).into());
                value = acl::shown(&value).ok_or(Corruption::Acl { ino: inode.ino, len, count })?;
            }
            xattrs.insert(attr.full_name(), value);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(xattrs)
    }

    fn each_attr(&self, inode: &DiskInode, visit: &mut Visit<'_>) -> Result<()> {
        match inode.attr_form {
            _ if !inode.has_attr_fork() => Ok(()),
            Form::Local => each_short_attr(inode, visit),
            _ => self.each_leaf(inode, &mut |leaf| self.each_leaf_attr(leaf, visit)),
        }
    }

    /// Calls `visit` for the attribute leaves of an inode: finds the first through the tree, and
    /// follows the chain.
    fn each_leaf(
        &self,
        inode: &DiskInode,
        visit: &mut dyn FnMut(&Block) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut number = 0;
        let mut block = self.attr_block(inode, number)?;
        let mut levels = 0_u64;
        while block.is_node()? {
            levels = levels.plus(1);
            if levels > LEVELS_MAX {
                return Err(Corruption::AttrDepth { ino: inode.ino, max: LEVELS_MAX }.into());
            }
            let first: DaNodeEntry = read(&block.bytes, self.node_header_len(), block.place)?;
            number = first.before.get().into();
            block = self.attr_block(inode, number)?;
        }
        let mut met = HashSet::from([number]);
        loop {
            check_leaf_magic(&block)?;
            if visit(&block)?.is_break() {
                return Ok(());
            }
            number = read::<DaBlkinfo>(&block.bytes, 0, block.place)?.forw.get().into();
            if number == 0 {
                return Ok(());
            }
            if !met.insert(number) {
                return Err(Corruption::AttrLeaf { ino: inode.ino, block: number }.into());
            }
            block = self.attr_block(inode, number)?;
        }
    }

    fn attr_block(&self, inode: &DiskInode, number: u64) -> Result<Block> {
        let mut found: Option<Mapping> = None;
        self.each_mapping(inode, Fork::Attr, number, &mut |mapping| {
            found = Some(mapping).filter(|mapping| mapping.offset <= number);
            Ok(ControlFlow::Break(()))
        })?;
        let mapping = found.ok_or(Corruption::AttrLeaf { ino: inode.ino, block: number })?;
        let start = mapping.start.plus(number.minus(mapping.offset));
        self.block(BlockKind::Tree, &[(start, 1)], inode.ino)
    }

    fn each_leaf_attr(&self, leaf: &Block, visit: &mut Visit<'_>) -> Result<ControlFlow<()>> {
        let (bytes, place) = (&leaf.bytes, leaf.place);
        let (count, entries_at) = if self.super_block.is_v5() {
            (read::<Attr3LeafHdr>(bytes, 0, place)?.count, size_of::<Attr3LeafHdr>())
        } else {
            (read::<AttrLeafHdr>(bytes, 0, place)?.count, size_of::<AttrLeafHdr>())
        };
        let count = count.get();
        let entries = bytes.within(entries_at..);
        let max = entries.len() / ENTRY_LEN;
        if usize::from(count) > max {
            return Err(Corruption::Records { place, found: count.into(), max: max as u64 }.into());
        }
        // Entries do not overlap: the shortest takes 3 bytes in addition to its name and value.
        let mut left = bytes.len();
        for (index, entry) in structures::<AttrLeafEntry>(entries).take(count.into()).enumerate() {
            let (from, flags) = (usize::from(entry.nameidx.get()), entry.flags);
            if flags & ROOT != 0 && flags & SECURE != 0 {
                return Err(Corruption::AttrFlags { place, index: index as u64, found: flags }.into());
            }
            let attr = leaf_attr(bytes, from, flags);
            let attr = attr.and_then(|attr| {
                left = left.checked_sub(attr.len())?;
                Some(attr)
            });
            let attr = attr.ok_or(Corruption::AttrEntry { place, index: index as u64 })?;
            if visit(attr)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads a value from separate blocks, beginning with block `first` of the fork.
    fn attr_value(&self, inode: &DiskInode, first: u64, len: u64) -> Result<Vec<u8>> {
        let ino = inode.ino;
        if len > VALUE_LEN_MAX {
            return Err(Corruption::AttrValue { ino, found: len, max: VALUE_LEN_MAX }.into());
        }
        let block_len = self.super_block.block_len;
        let header = if self.super_block.is_v5() { size_of::<RmtHdr>() as u64 } else { 0 };
        let wanted = len.div_ceil(block_len.minus(header));
        let (mut value, mut next) = (Vec::new(), first);
        let end = first.plus(wanted);
        self.each_mapping(inode, Fork::Attr, first, &mut |mapping| {
            if mapping.offset > next {
                return Ok(ControlFlow::Break(()));
            }
            let mut start = mapping.start.plus(next.minus(mapping.offset));
            while next < end.min(mapping.end()) {
                let bytes = self.read_runs(&[(start, 1)], ino)?;
                let found = if self.super_block.is_v5() {
                    self.remote_part(VALUE_HEADER, ino, (&bytes, start), value.len())?
                } else {
                    &bytes
                };
                let left = usize_of(len).minus(value.len());
                value.extend_from_slice(found.get(..left).unwrap_or(found));
                (next, start) = (next.plus(1), start.plus(1));
            }
            Ok(if next < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if value.len() as u64 == len {
            Ok(value)
        } else {
            Err(Corruption::AttrLeaf { ino, block: next }.into())
        }
    }
}

fn check_leaf_magic(block: &Block) -> Result<(), Corruption> {
    match block.tree_magic()? {
        XFS_ATTR_LEAF_MAGIC | XFS_ATTR3_LEAF_MAGIC => Ok(()),
        found => {
            let (place, found) = (block.place, found.into());
            Err(Corruption::BlockMagic { place, found, wanted: "an attribute leaf" })
        }
    }
}

/// Returns the attribute at `at` of a leaf; `None` if it exceeds the leaf.
fn leaf_attr(bytes: &[u8], at: usize, flags: u8) -> Option<RawAttr<'_>> {
    if flags & LOCAL != 0 {
        let head: AttrLeafNameLocal = structure(bytes, at)?;
        let name_at = at.checked_add(size_of::<AttrLeafNameLocal>())?;
        let name = part(bytes, name_at, head.namelen.into())?;
        let value = part(bytes, name_at.checked_add(name.len())?, head.valuelen.get().into())?;
        return Some(RawAttr { flags, name, value: RawValue::Here(value) });
    }
    let head: AttrLeafNameRemote = structure(bytes, at)?;
    let name = part(bytes, at.checked_add(size_of::<AttrLeafNameRemote>())?, head.namelen.into())?;
    let (first, len) = (head.valueblk.get().into(), head.valuelen.get().into());
    Some(RawAttr { flags, name, value: RawValue::Blocks { first, len } })
}

fn each_short_attr(inode: &DiskInode, visit: &mut Visit<'_>) -> Result<()> {
    let (ino, bytes) = (inode.ino, inode.fork(Fork::Attr));
    let fault = |at: usize| Corruption::ShortForm { ino, what: "attributes", at: at as u64 };
    let head: AttrSfHdr = structure(bytes, 0).ok_or(fault(0))?;
    let bytes = bytes.get(..head.totsize.get().into()).ok_or(fault(bytes.len()))?;
    let mut at = size_of::<AttrSfHdr>();
    for _ in 0..head.count {
        let entry: AttrSfEntry = structure(bytes, at).ok_or(fault(at))?;
        let flags = entry.flags;
        if flags & ROOT != 0 && flags & SECURE != 0 {
            return Err(Corruption::ShortFlags { ino, found: flags }.into());
        }
        let name_at = at.plus(size_of::<AttrSfEntry>());
        let name = part(bytes, name_at, entry.namelen.into()).ok_or(fault(at))?;
        let value_at = name_at.plus(name.len());
        let value = part(bytes, value_at, entry.valuelen.into()).ok_or(fault(at))?;
        if visit(RawAttr { flags, name, value: RawValue::Here(value) })?.is_break() {
            break;
        }
        at = value_at.plus(value.len());
    }
    Ok(())
}
