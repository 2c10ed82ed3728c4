//! Extended attributes and ACLs of AAIP (`susp_aaip_2_0.txt` of libisofs).
//!
//! Owns component records, codes of namespaces, and the compact form of ACLs. Private notes of
//! libisofs (`isofs.`) are not attributes of the file.

use crate::corruption::{Corruption, Place};
use crate::inode::RawInode;
use crate::volume::Iso9660Volume;
use packfs_core::{Result, Xattrs};
use packfs_format::InodeId;

/// Longest full name (`XATTR_NAME_MAX` of Linux's `limits.h`).
const NAME_LEN_MAX: usize = 255;
/// Namespaces by their code, the first byte of a name.
const NAMESPACES: [(u8, &[u8]); 5] =
    [(2, b"system."), (3, b"user."), (4, b"isofs."), (5, b"trusted."), (6, b"security.")];
/// Namespace of libisofs's private notes.
const OWN_NAMESPACE: &[u8] = b"isofs.";

const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";
/// `POSIX_ACL_XATTR_VERSION`.
const ACL_VERSION: u32 = 2;

impl Iso9660Volume {
    /// True if [`Iso9660Volume::attributes`] would return anything, including an error.
    pub(crate) fn has_attributes(&self, raw: &RawInode) -> bool {
        decode(&raw.rock_ridge.attributes, raw.record.place()).map_or(true, |xattrs| !xattrs.is_empty())
    }

    pub(crate) fn attributes(&self, id: InodeId) -> Result<Xattrs> {
        let raw = self.raw_inode(id)?;
        Ok(decode(&raw.rock_ridge.attributes, raw.record.place())?)
    }
}

/// Decodes component records: names and values alternate.
pub(crate) fn decode(components: &[u8], place: Place) -> Result<Xattrs, Corruption> {
    let wrong = |fault| Corruption::Attributes { place, fault };
    let mut xattrs = Xattrs::new();
    let mut lists = None;
    let mut rest = components;
    while !rest.is_empty() {
        let name = component(&mut rest).ok_or(wrong("an attribute's name is cut off"))?;
        let value = component(&mut rest).ok_or(wrong("an attribute's value is cut off"))?;
        if name.is_empty() {
            lists = Some(value);
            continue;
        }
        let name = full_name(&name);
        if name.starts_with(OWN_NAMESPACE) {
            continue;
        }
        if name.contains(&0) || name.len() > NAME_LEN_MAX {
            return Err(wrong("an attribute with a name that none may have"));
        }
        xattrs.insert(name, value);
    }
    if let Some(lists) = lists {
        let (access, default) = access_lists(&lists).ok_or(wrong("an access control list is cut off"))?;
        for (name, list) in [(ACL_ACCESS, access), (ACL_DEFAULT, default)] {
            // Without named users or groups, it only repeats the permissions.
            let says_more = list.iter().any(|(tag, ..)| matches!(tag, 0x02 | 0x08 | 0x10));
            if says_more && !xattrs.contains_key(name) {
                xattrs.insert(name.to_vec(), in_linux_form(list));
            }
        }
    }
    Ok(xattrs)
}

/// Reads a component from its records; `None` if they end before it does.
fn component(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let (&[flags, len], behind) = rest.split_first_chunk()?;
        bytes.extend_from_slice(behind.get(..usize::from(len))?);
        *rest = behind.get(usize::from(len)..)?;
        if flags & 1 == 0 {
            return Some(bytes);
        }
    }
}

fn full_name(short: &[u8]) -> Vec<u8> {
    let Some((first, rest)) = short.split_first() else { return Vec::new() };
    match NAMESPACES.iter().find(|(byte, _)| byte == first) {
        Some((_, namespace)) => [namespace, rest].concat(),
        None if *first == 1 => rest.to_vec(),
        None => short.to_vec(),
    }
}

/// Entry of an ACL: tag and permissions of Linux, and the id.
type ListEntry = (u16, u16, u32);
/// Id of an entry without one.
const NO_ID: u32 = u32::MAX;

/// Decodes the access and default ACLs.
fn access_lists(mut compact: &[u8]) -> Option<(Vec<ListEntry>, Vec<ListEntry>)> {
    let (mut access, mut default) = (Vec::new(), Vec::new());
    let mut is_default = false;
    while let Some((&head, rest)) = compact.split_first() {
        compact = rest;
        let mut id = 0;
        let mut goes_on = head & 8 != 0;
        while goes_on {
            let (&len, rest) = compact.split_first()?;
            let bytes = rest.get(..usize::from(len & 0x7f))?;
            compact = rest.get(usize::from(len & 0x7f)..)?;
            id = bytes.iter().fold(id, |id: u32, &byte| id << 8 | u32::from(byte));
            goes_on = len & 0x80 != 0;
        }
        let tag = match head >> 4 {
            1 => 0x01,
            10 => 0x02,
            3 => 0x04,
            12 => 0x08,
            5 => 0x10,
            6 => 0x20,
            8 => {
                is_default = true;
                continue;
            }
            // Names of ids, and unknown entries.
            _ => continue,
        };
        let list = if is_default { &mut default } else { &mut access };
        let id = if matches!(tag, 0x02 | 0x08) { id } else { NO_ID };
        list.push((tag, u16::from(head & 7), id));
    }
    Some((access, default))
}

/// Encodes an ACL as the value of an attribute (`posix_acl_xattr.h`).
fn in_linux_form(mut list: Vec<ListEntry>) -> Vec<u8> {
    list.sort_by_key(|&(tag, _, id)| (tag, id));
    let mut bytes = ACL_VERSION.to_le_bytes().to_vec();
    for (tag, permissions, id) in list {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&permissions.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(components: &[u8]) -> Result<Xattrs, Corruption> {
        decode(components, Place::at("test", 0))
    }

    #[test]
    fn names_and_values_alternate_and_may_continue() {
        let xattrs =
            decoded(b"\0\x04\x03abc\x01\x02va\0\x03lue\0\x04\x04Fi.\0\x01x\0\x03\x01\x03z\0\0").unwrap();
        let wanted = [("user.abc", "value"), ("\u{3}z", "")];
        let wanted = wanted.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        assert_eq!(xattrs, Xattrs::from(wanted));
        for cut in [&b"\0\x04\x03abc"[..], b"\0\x04\x03abc\x01\x02va", b"\0\x09a", b"\0"] {
            assert!(decoded(cut).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn compact_lists_become_those_of_linux() {
        // The first example of the specification: u::rw-,u:123:rw-,g::r--,g:65534:rw-,m::r--,o::r--
        let list = [0x16, 0xae, 1, 123, 0x34, 0xce, 2, 255, 254, 0x54, 0x64];
        let xattrs = decoded(&[&[0, 0, 0, 11][..], &list].concat()).unwrap();
        let mut wanted = vec![2, 0, 0, 0];
        for (tag, permissions, id) in
            [(1, 6, NO_ID), (2, 6, 123), (4, 4, NO_ID), (8, 6, 65_534), (16, 4, NO_ID), (32, 4, NO_ID)]
        {
            wanted.extend_from_slice(&[tag, 0, permissions, 0]);
            wanted.extend_from_slice(&u32::to_le_bytes(id));
        }
        assert_eq!(xattrs, Xattrs::from([(ACL_ACCESS.to_vec(), wanted)]));
    }
}
