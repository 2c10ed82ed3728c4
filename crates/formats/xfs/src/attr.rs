//! Extended attributes: in the inode, in leaves of a hash tree, and values in blocks of their own.

use crate::acl;
use crate::block::{Block, BlockKind};
use crate::corruption::Corruption;
use crate::disk::{Checksum, be16, be32, be64, byte, part};
use crate::features;
use crate::inode::{DiskInode, Fork, Form};
use crate::mapping::Mapping;
use crate::volume::XfsVolume;
use packfs_core::{ErrorKind, Result, Xattrs, escaped, usize_of};
use packfs_format::{FaultPlace, InodeId};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Flags of an attribute: its value is in the leaf, its namespace, a pointer to a parent directory,
/// a hash of fs-verity, and one that is being written.
const LOCAL: u8 = 1;
const ROOT: u8 = 2;
const SECURE: u8 = 4;
const PARENT: u8 = 8;
const VERITY: u8 = 16;
const INCOMPLETE: u8 = 128;

/// Longest value, in bytes.
const VALUE_LEN_MAX: u64 = 64 << 10;
/// Most bytes of the names and values of an inode.
const TOTAL_MAX: u64 = 64 << 20;
/// Most levels of a tree (`XFS_DA_NODE_MAXDEPTH`).
const LEVELS_MAX: u64 = 5;
/// Bytes of the header of a block of a value, and offsets in it.
const VALUE_HEADER_LEN: u64 = 56;
const VALUE_CHECKSUM_AT: usize = 12;
const VALUE_UUID_AT: usize = 16;
const VALUE_OWNER_AT: usize = 32;
const VALUE_PLACE_AT: usize = 40;
/// `XARM`.
const VALUE_MAGIC: u32 = 0x5841_524d;

/// Attribute as it is stored.
pub(crate) struct RawAttr<'a> {
    flags: u8,
    name: &'a [u8],
    value: RawValue<'a>,
}

/// Bytes of a value, or the first block of the fork that holds them, and their number.
enum RawValue<'a> {
    Here(&'a [u8]),
    Blocks { first: u64, len: u64 },
}

impl RawAttr<'_> {
    /// Returns true if Linux shows it.
    fn is_shown(&self) -> bool {
        self.flags & (PARENT | VERITY | INCOMPLETE) == 0
    }

    /// Returns the bytes that it takes in its leaf, at least.
    fn len(&self) -> usize {
        let len = self.name.len().saturating_add(3);
        match self.value {
            RawValue::Here(value) => len.saturating_add(value.len()),
            RawValue::Blocks { .. } => len,
        }
    }

    /// Returns its full name.
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

/// Takes attributes.
type Visit<'a> = dyn FnMut(RawAttr<'_>) -> Result<ControlFlow<()>> + 'a;

impl XfsVolume {
    /// Returns true if an inode has attributes that Linux shows.
    pub(crate) fn has_attrs(&self, inode: &DiskInode) -> Result<bool> {
        if !inode.has_attr_fork() {
            return Ok(false);
        }
        // Only pointers to parents are hidden in leaves, so that these need not be read.
        if inode.attr_form != Form::Local && !self.super_block.has(features::PARENT) {
            return Ok(true);
        }
        let mut is_any = false;
        let walked = self.each_attr(inode, &mut |attr| {
            is_any = attr.is_shown();
            Ok(if is_any { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        match walked {
            // Damage is for the caller who asks for the attributes.
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(true),
            walked => walked.map(|()| is_any),
        }
    }

    /// Implements [`packfs_format::Volume::xattrs`].
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
            total = total.saturating_add((value.len() as u64).saturating_add(attr.name.len() as u64));
            if total > TOTAL_MAX {
                return Err(Corruption::AttrTotal { ino: inode.ino, max: TOTAL_MAX }.into());
            }
            if attr.is_acl() {
                let (len, count) = (value.len() as u64, be32(&value, 0).into());
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

    /// Calls `visit` for the leaves of the attributes of an inode: the first is found through the
    /// tree, the others are chained.
    fn each_leaf(
        &self,
        inode: &DiskInode,
        visit: &mut dyn FnMut(&Block) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut number = 0;
        let mut block = self.attr_block(inode, number)?;
        let node_at = if self.super_block.is_v5() { 64 } else { 16 };
        let mut levels = 0_u64;
        while matches!(be16(&block.bytes, 8), 0x3ebe | 0xfebe) {
            levels = levels.saturating_add(1);
            if levels > LEVELS_MAX {
                return Err(Corruption::AttrDepth { ino: inode.ino, max: LEVELS_MAX }.into());
            }
            number = be32(&block.bytes, usize::saturating_add(node_at, 4)).into();
            block = self.attr_block(inode, number)?;
        }
        let mut met = HashSet::from([number]);
        loop {
            check_leaf_magic(&block)?;
            if visit(&block)?.is_break() {
                return Ok(());
            }
            number = be32(&block.bytes, 0).into();
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
        let start = mapping.start.saturating_add(number.saturating_sub(mapping.offset));
        self.block(BlockKind::Tree, &[(start, 1)], inode.ino)
    }

    fn each_leaf_attr(&self, leaf: &Block, visit: &mut Visit<'_>) -> Result<ControlFlow<()>> {
        let (bytes, place) = (&leaf.bytes, leaf.place);
        let (count_at, entries_at) = if self.super_block.is_v5() { (56, 80) } else { (12, 32) };
        let count = be16(bytes, count_at);
        let max = bytes.len().saturating_sub(entries_at) / 8;
        if usize::from(count) > max {
            return Err(Corruption::Records { place, found: count.into(), max: max as u64 }.into());
        }
        // Entries do not overlap: the shortest takes 3 bytes beside its name and its value.
        let mut left = bytes.len();
        for index in 0..usize::from(count) {
            let at = usize::saturating_add(entries_at, index.saturating_mul(8));
            let (from, flags) =
                (usize::from(be16(bytes, at.saturating_add(4))), byte(bytes, at.saturating_add(6)));
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

    /// Reads a value that lies in blocks of its own, from block `first` of the fork on.
    fn attr_value(&self, inode: &DiskInode, first: u64, len: u64) -> Result<Vec<u8>> {
        let ino = inode.ino;
        if len > VALUE_LEN_MAX {
            return Err(Corruption::AttrValue { ino, found: len, max: VALUE_LEN_MAX }.into());
        }
        let block_len = self.super_block.block_len;
        let header = if self.super_block.is_v5() { VALUE_HEADER_LEN } else { 0 };
        let wanted = len.div_ceil(block_len.saturating_sub(header));
        let (mut value, mut next) = (Vec::new(), first);
        let end = first.saturating_add(wanted);
        self.each_mapping(inode, Fork::Attr, first, &mut |mapping| {
            if mapping.offset > next {
                return Ok(ControlFlow::Break(()));
            }
            let mut start = mapping.start.saturating_add(next.saturating_sub(mapping.offset));
            while next < end.min(mapping.end()) {
                let bytes = self.read_runs(&[(start, 1)], ino)?;
                let left = usize_of(len).saturating_sub(value.len());
                value.extend_from_slice(self.value_part(inode, &bytes, start, value.len(), left)?);
                (next, start) = (next.saturating_add(1), start.saturating_add(1));
            }
            Ok(if next < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        match value.len() as u64 == len {
            true => Ok(value),
            false => Err(Corruption::AttrLeaf { ino, block: next }.into()),
        }
    }

    /// Verifies a block of a value of which `left` bytes are still wanted, and returns its bytes.
    fn value_part<'a>(
        &self,
        inode: &DiskInode,
        bytes: &'a [u8],
        start: u64,
        done: usize,
        left: usize,
    ) -> Result<&'a [u8]> {
        if !self.super_block.is_v5() {
            return Ok(bytes.get(..left).unwrap_or(bytes));
        }
        let place =
            FaultPlace::at("attribute value block", self.super_block.blocks_at(start, 1).unwrap_or(0));
        let found = be32(bytes, 0);
        if found != VALUE_MAGIC {
            return Err(Corruption::BlockMagic { place, found, wanted: "XARM" }.into());
        }
        let sum = Checksum::of(bytes, VALUE_CHECKSUM_AT);
        if !sum.is_right() {
            return Err(Corruption::Checksum { place, sum }.into());
        }
        self.verify_place(bytes, VALUE_PLACE_AT, VALUE_UUID_AT, place)?;
        let (found, wanted) = (be64(bytes, VALUE_OWNER_AT), inode.ino);
        if found != wanted {
            return Err(Corruption::BlockOwner { place, found, wanted }.into());
        }
        let (offset, len) = (be32(bytes, 4), usize_of(be32(bytes, 8).into()));
        let stored = bytes.get(usize_of(VALUE_HEADER_LEN)..).unwrap_or_default();
        match stored.get(..len).filter(|_| usize_of(offset.into()) == done && len > 0) {
            Some(part) => Ok(part.get(..left).unwrap_or(part)),
            None => Err(Corruption::AttrPart { place, offset: offset.into(), len: len as u64 }.into()),
        }
    }
}

fn check_leaf_magic(block: &Block) -> Result<(), Corruption> {
    let found = be16(&block.bytes, 8);
    match found {
        0x3bee | 0xfbee => Ok(()),
        found => Err(Corruption::BlockMagic {
            place: block.place,
            found: found.into(),
            wanted: "an attribute leaf",
        }),
    }
}

/// Returns the attribute at `at` of a leaf; `None` if it is not all inside.
fn leaf_attr(bytes: &[u8], at: usize, flags: u8) -> Option<RawAttr<'_>> {
    if flags & LOCAL != 0 {
        let (value_len, name_len) = (be16(bytes, at), byte(bytes, at.checked_add(2)?));
        let name_at = at.checked_add(3)?;
        let name = part(bytes, name_at, name_len.into())?;
        let value = part(bytes, name_at.checked_add(name_len.into())?, value_len.into())?;
        return Some(RawAttr { flags, name, value: RawValue::Here(value) });
    }
    let name = part(bytes, at.checked_add(9)?, byte(bytes, at.checked_add(8)?).into())?;
    let value =
        RawValue::Blocks { first: be32(bytes, at).into(), len: be32(bytes, at.checked_add(4)?).into() };
    Some(RawAttr { flags, name, value })
}

/// Calls `visit` for the attributes in an inode.
fn each_short_attr(inode: &DiskInode, visit: &mut Visit<'_>) -> Result<()> {
    let bytes = inode.fork(Fork::Attr);
    let bytes = bytes.get(..usize::from(be16(bytes, 0))).unwrap_or(bytes);
    let mut at = 4_usize;
    for _ in 0..byte(bytes, 2) {
        let fault = Corruption::ShortForm { ino: inode.ino, what: "attributes", at: at as u64 };
        let (name_len, value_len) = (byte(bytes, at), byte(bytes, at.saturating_add(1)));
        let flags = byte(bytes, at.saturating_add(2));
        let name_at = at.saturating_add(3);
        let value_at = name_at.saturating_add(name_len.into());
        if flags & ROOT != 0 && flags & SECURE != 0 {
            return Err(Corruption::ShortFlags { ino: inode.ino, found: flags }.into());
        }
        let name = part(bytes, name_at, name_len.into()).ok_or(fault)?;
        let value = part(bytes, value_at, value_len.into()).ok_or(fault)?;
        if visit(RawAttr { flags, name, value: RawValue::Here(value) })?.is_break() {
            break;
        }
        at = value_at.saturating_add(value_len.into());
    }
    Ok(())
}
