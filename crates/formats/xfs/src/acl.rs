//! ACLs: conversion of the XFS form to the one that Linux shows.

/// Tags of a named user and a named group; only their entries have an id.
const USER: u32 = 0x02;
const GROUP: u32 = 0x08;
/// Every tag: owner, user, group of the file, group, mask, and others.
const TAGS: [u32; 6] = [0x01, USER, 0x04, GROUP, 0x10, 0x20];
const NO_ID: u32 = u32::MAX;
const VERSION: u32 = 2;

/// Turns `trusted.SGI_ACL_FILE` and `trusted.SGI_ACL_DEFAULT` into the value of
/// `system.posix_acl_access` and `system.posix_acl_default`
/// (`include/uapi/linux/posix_acl_xattr.h`); `None` if its length is not that of its entries, or
/// for an unknown tag. An entry has tag, id, and permissions.
pub(crate) fn shown(stored: &[u8]) -> Option<Vec<u8>> {
    let (count, entries) = stored.split_first_chunk::<4>()?;
    let (entries, rest) = entries.as_chunks::<12>();
    let count = usize::try_from(u32::from_be_bytes(*count)).ok()?;
    // Version 4 reserves space for 25 entries.
    if count > entries.len() || !rest.is_empty() {
        return None;
    }
    let mut value = VERSION.to_le_bytes().to_vec();
    for entry in entries.iter().take(count) {
        let [t0, t1, t2, t3, i0, i1, i2, i3, p0, p1, _, _] = *entry;
        let tag = u32::from_be_bytes([t0, t1, t2, t3]);
        let id = u32::from_be_bytes([i0, i1, i2, i3]);
        if !TAGS.contains(&tag) {
            return None;
        }
        value.extend_from_slice(&u16::try_from(tag).ok()?.to_le_bytes());
        value.extend_from_slice(&u16::from_be_bytes([p0, p1]).to_le_bytes());
        value.extend_from_slice(&if matches!(tag, USER | GROUP) { id } else { NO_ID }.to_le_bytes());
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_change_their_order_of_bytes() {
        let mut stored = vec![0, 0, 0, 2];
        stored.extend([0, 0, 0, 1, 0, 0, 0, 9, 0, 6, 0, 0]);
        stored.extend([0, 0, 0, 2, 0, 0, 3, 0xe8, 0, 4, 0, 0]);
        let wanted = [2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 0xe8, 3, 0, 0];
        assert_eq!(shown(&stored).unwrap(), wanted);
        stored[3] = 3;
        assert_eq!(shown(&stored), None);
        assert_eq!(shown(&stored[..3]), None);
        assert_eq!(shown(&stored[..9]), None);
    }
}
