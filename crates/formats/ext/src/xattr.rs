//! Extended attributes: in the inode, in a block, and values in separate inodes.

use crate::corruption::Corruption;
use crate::disk::{XattrEntry, XattrHeader};
use crate::inode::{RawInode, XATTR_VALUE};
use crate::reader::{Node, NodeKind, Reader};
use crate::sums::Mismatch;
use packfs_core::{Error, Result, Xattrs, usize_of};
use packfs_format::{crc32c, structure, units::*};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use zerocopy::little_endian::U32;

const MAGIC: u32 = 0xea02_0000;
const BLOCK_HEAD_LEN: usize = size_of::<XattrHeader>();
const ENTRY_LEN: usize = size_of::<XattrEntry>();
/// Longest value that Linux returns.
const VALUE_LEN_MAX: u32 = 1 << 16;
/// Limit of all values of an inode; a separate inode may store many of them.
const VALUES_LEN_MAX: usize = 80 << 20;
/// Index of the prefix `system.`, used for inline data.
const SYSTEM: u8 = 7;
const ACL_ACCESS: u8 = 2;
const ACL_DEFAULT: u8 = 3;

fn prefix(index: u8) -> Option<&'static str> {
    Some(match index {
        1 => "user.",
        ACL_ACCESS => "system.posix_acl_access",
        ACL_DEFAULT => "system.posix_acl_default",
        4 => "trusted.",
        6 => "security.",
        10 => "gnu.",
        _ => return None,
    })
}

struct Entry<'a> {
    name: &'a [u8],
    index: u8,
    value: Range<usize>,
    /// Inode that contains the value; 0 if it is in the same area.
    holder: u32,
    len: u32,
}

/// Attributes stored together; values have offsets from `bytes`: the first entry of an inode, the
/// start of a block.
struct Area<'a> {
    inode: u32,
    bytes: &'a [u8],
    start: usize,
}

impl<'a> Area<'a> {
    fn fault(&self, fault: &'static str) -> Error {
        Corruption::Xattr { inode: self.inode, fault }.into()
    }

    fn entries(&self) -> Result<Vec<Entry<'a>>> {
        let mut found = Vec::new();
        let mut at = self.start;
        loop {
            let first: U32 = structure(self.bytes, at).ok_or_else(|| self.fault("entries without an end"))?;
            if first.get() == 0 {
                break;
            }
            let beyond = || self.fault("a name that reaches beyond their space");
            let raw: XattrEntry = structure(self.bytes, at).ok_or_else(beyond)?;
            let name_end = ENTRY_LEN.plus(raw.e_name_len.into());
            let name = part(self.bytes, at.plus(ENTRY_LEN), raw.e_name_len.into()).ok_or_else(beyond)?;
            if name.contains(&0) {
                return Err(self.fault("a name with a NUL byte"));
            }
            let (holder, len) = (raw.e_value_inum.get(), raw.e_value_size.get());
            // As Linux, which ignores where an empty value would be.
            let start = if len == 0 { 0 } else { usize::from(raw.e_value_offs.get()) };
            let value = start..start.plus(usize_of(u64::from(len)));
            found.push(Entry { name, index: raw.e_name_index, value, holder, len });
            at = at.plus(name_end.next_multiple_of(4));
        }
        for entry in &found {
            let is_stored = entry.holder == 0 && entry.len != 0;
            let end = at.plus(4);
            if is_stored && (entry.value.start < end || self.value(entry).is_none()) {
                return Err(self.fault("a value that is not after the entries"));
            }
        }
        Ok(found)
    }

    fn value(&self, entry: &Entry<'_>) -> Option<&'a [u8]> {
        self.bytes.get(entry.value.clone())
    }
}

impl Reader {
    /// Returns the attributes in an inode, if it has any, and the offset of their area.
    fn area_in<'a>(&self, raw: &'a RawInode) -> Option<(Area<'a>, usize)> {
        let end = raw.fields_end();
        let start = end.plus(4);
        let bytes = raw.bytes().get(start..).filter(|bytes| bytes.len() >= 4)?;
        let is_there = structure(raw.bytes(), end).map(U32::get) == Some(MAGIC);
        is_there.then_some((Area { inode: raw.number, bytes, start: 0 }, start))
    }

    /// Returns the range in the inode of inline data after the first 60 bytes.
    pub(crate) fn inline_value(&self, raw: &RawInode) -> Result<Option<Range<usize>>> {
        let Some((area, start)) = self.area_in(raw) else { return Ok(None) };
        let entries = area.entries()?;
        let data = entries.iter().find(|entry| entry.index == SYSTEM && entry.name == b"data");
        let Some(data) = data.filter(|entry| entry.holder == 0) else { return Ok(None) };
        let place = |at: usize| at.plus(start);
        Ok(Some(place(data.value.start)..place(data.value.end)))
    }

    fn xattr_block(&self, raw: &RawInode) -> Result<Option<Arc<Node>>> {
        let (inode, block) = (raw.number, raw.xattr_block(&self.super_block));
        if block == 0 {
            return Ok(None);
        }
        let node = self.node(inode, block, NodeKind::Xattrs, |bytes| {
            let head: Option<XattrHeader> = structure(bytes, 0);
            if head.is_none_or(|head| head.h_magic.get() != MAGIC || head.h_blocks.get() != 1) {
                return Err(Corruption::Xattr { inode, fault: "a block without their magic number" }.into());
            }
            match self.sums.xattr_block(block, bytes) {
                Some(Mismatch { found, wanted }) => {
                    Err(Corruption::XattrSum { inode, block, found, wanted }.into())
                }
                None => Ok(()),
            }
        })?;
        Ok(Some(node))
    }

    pub(crate) fn xattr_references(&self, raw: &RawInode) -> Option<u32> {
        let node = self.xattr_block(raw).ok().flatten()?;
        structure(&node.bytes, 0).map(|head: XattrHeader| head.h_refcount.get())
    }

    pub(crate) fn has_long_value(&self, raw: &RawInode) -> bool {
        let is_long = |area: &Area<'_>| {
            let is_long = |entry: &Entry<'_>| entry.holder != 0 && entry.len > VALUE_LEN_MAX;
            area.entries().is_ok_and(|entries| entries.iter().any(is_long))
        };
        let block = self.xattr_block(raw).ok().flatten();
        self.area_in(raw).is_some_and(|(area, _)| is_long(&area))
            || block.is_some_and(|node| {
                is_long(&Area { inode: raw.number, bytes: &node.bytes, start: BLOCK_HEAD_LEN })
            })
    }

    pub(crate) fn has_xattrs(&self, raw: &RawInode) -> bool {
        if raw.xattr_block(&self.super_block) != 0 {
            return true;
        }
        let Some((area, _)) = self.area_in(raw) else { return false };
        // `all_xattrs` reports the damage.
        area.entries().map_or(true, |entries| entries.iter().any(|entry| prefix(entry.index).is_some()))
    }

    pub(crate) fn all_xattrs(&self, raw: &RawInode) -> Result<Xattrs> {
        let mut found = Xattrs::new();
        let mut left = VALUES_LEN_MAX;
        if let Some((area, _)) = self.area_in(raw) {
            self.add_xattrs(raw, &area, &mut found, &mut left)?;
        }
        if let Some(node) = self.xattr_block(raw)? {
            let area = Area { inode: raw.number, bytes: &node.bytes, start: BLOCK_HEAD_LEN };
            self.add_xattrs(raw, &area, &mut found, &mut left)?;
        }
        Ok(found)
    }

    fn add_xattrs(
        &self,
        raw: &RawInode,
        area: &Area<'_>,
        found: &mut Xattrs,
        left: &mut usize,
    ) -> Result<()> {
        for entry in area.entries()? {
            let Some(prefix) = prefix(entry.index) else { continue };
            let value = match entry.holder {
                0 => {
                    let value = area.value(&entry);
                    value.ok_or_else(|| area.fault("a value outside of its area"))?.to_vec()
                }
                // Linux refuses to read only this value.
                _ if entry.len > VALUE_LEN_MAX => continue,
                holder => self.value_of(raw, holder, entry.len)?,
            };
            *left = left.checked_sub(value.len()).ok_or_else(|| area.fault("more than 80 MiB of values"))?;
            let value = match entry.index {
                ACL_ACCESS | ACL_DEFAULT => acl(&value).ok_or_else(|| area.fault("a damaged ACL"))?,
                _ => value,
            };
            found.entry([prefix.as_bytes(), entry.name].concat()).or_insert(value);
        }
        Ok(())
    }

    fn value_of(&self, raw: &RawInode, holder: u32, len: u32) -> Result<Vec<u8>> {
        let inode = raw.number;
        let fault = |fault: &'static str| Error::from(Corruption::XattrValue { inode, holder, fault });
        if holder == inode {
            return Err(fault("the inode itself"));
        }
        let value = self.used_inode(u64::from(holder))?;
        if !value.has(XATTR_VALUE) {
            return Err(fault("an inode for something else"));
        }
        let found = value.len(&self.super_block);
        if found != u64::from(len) {
            return Err(Corruption::XattrLength { inode, holder, found, wanted: len }.into());
        }
        let mut bytes = Vec::new();
        let block_len = self.super_block.block_len;
        let end = u64::from(len).div_ceil(block_len);
        let mut read = Ok(());
        self.runs(&value, 0..end, &mut |run| {
            for (number, block) in crate::dir::blocks_within(run, 0, end) {
                match self.block(block) {
                    Ok(data) if number.times(block_len) == bytes.len() as u64 => {
                        bytes.extend_from_slice(&data);
                    }
                    Ok(_) => return ControlFlow::Break(()),
                    Err(error) => {
                        read = Err(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        read?;
        let len = usize_of(u64::from(len));
        if bytes.len() < len {
            return Err(fault("a value with holes"));
        }
        bytes.truncate(len);
        // Lustre stores a time instead of the hash, and the inode as the parent.
        let is_lustre = value.value_parent() == inode && value.generation() == raw.generation();
        if !is_lustre && value.value_hash() != crc32c(self.sums.seed, &bytes) {
            return Err(fault("a value with a wrong checksum"));
        }
        Ok(bytes)
    }
}

/// Converts an ACL to the form of Linux's system calls; `None` if it is damaged.
fn acl(stored: &[u8]) -> Option<Vec<u8>> {
    const USER: u16 = 2;
    const GROUP: u16 = 8;
    const WITHOUT_ID: [u16; 4] = [1, 4, 0x10, 0x20];
    let (version, mut rest) = stored.split_first_chunk()?;
    if u32::from_le_bytes(*version) != 1 {
        return None;
    }
    let mut found = 2_u32.to_le_bytes().to_vec();
    while !rest.is_empty() {
        let (head, behind) = rest.split_first_chunk::<4>()?;
        found.extend_from_slice(head);
        rest = behind;
        let [low, high, ..] = *head;
        let tag = u16::from_le_bytes([low, high]);
        if matches!(tag, USER | GROUP) {
            let (id, behind) = rest.split_first_chunk::<4>()?;
            found.extend_from_slice(id);
            rest = behind;
        } else if WITHOUT_ID.contains(&tag) {
            found.extend_from_slice(&[0xff; 4]);
        } else {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn access_control_lists_are_shown_as_by_linux() {
        let stored = [1, 0, 0, 0, 1, 0, 6, 0, 2, 0, 7, 0, 0xe8, 3, 0, 0, 4, 0, 4, 0];
        let shown = [
            &[2, 0, 0, 0][..],
            &[1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff],
            &[2, 0, 7, 0, 0xe8, 3, 0, 0],
            &[4, 0, 4, 0, 0xff, 0xff, 0xff, 0xff],
        ];
        assert_eq!(acl(&stored).unwrap(), shown.concat());
        assert_eq!(acl(&stored[..11]), None);
        assert_eq!(acl(&[2, 0, 0, 0]), None);
        assert_eq!(acl(&[1, 0, 0, 0, 3, 0, 7, 0]), None);
    }

    #[test]
    fn an_empty_value_is_valid_at_any_offset() {
        let entry =
            XattrEntry { e_name_len: 1, e_name_index: 1, e_value_offs: 0xffff.into(), ..Default::default() };
        let bytes = [entry.as_bytes(), b"a\0\0\0", &[0; 4]].concat();
        let area = Area { inode: 12, bytes: &bytes, start: 0 };
        let entries = area.entries().unwrap();
        assert_eq!(entries.iter().map(|entry| area.value(entry)).collect::<Vec<_>>(), [Some(&[][..])]);
    }
}
