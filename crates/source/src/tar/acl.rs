//! Access control lists: from the text that tars hold to the form that Linux stores as an extended attribute.

/// Undefined id, for entries that name nobody.
const NOBODY: u32 = u32::MAX;

/// Length of a list of owner, group and others alone, encoded.
pub(super) const PLAIN_LEN: usize = 4 + 3 * 8;

/// Turns entries such as `user::rwx,user:1000:r-x,mask::rwx` into version 2 of Linux's `posix_acl_xattr.h`. `None` if the
/// text is no list, or names users in words alone.
pub(super) fn encoded(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut entries = Vec::new();
    for entry in text.split([',', '\n']).map(str::trim).filter(|entry| !entry.is_empty()) {
        let fields: Vec<&str> = entry.split(':').collect();
        let (kind, name, permissions) = match fields[..] {
            [kind, name, permissions] => (kind, name, permissions),
            // A name in words, then its number.
            [kind, _, permissions, number] => (kind, number, permissions),
            [kind, permissions] => (kind, "", permissions),
            _ => return None,
        };
        let tag: u16 = match (kind, name.is_empty()) {
            ("user" | "u", true) => 0x01,
            ("user" | "u", false) => 0x02,
            ("group" | "g", true) => 0x04,
            ("group" | "g", false) => 0x08,
            ("mask" | "m", true) => 0x10,
            ("other" | "o", true) => 0x20,
            _ => return None,
        };
        let id = if name.is_empty() { NOBODY } else { name.parse().ok()? };
        entries.push((tag, id, permission_bits(permissions)?));
    }
    // Linux wants them in this order.
    entries.sort_unstable();
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, id, permissions) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&permissions.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    Some(bytes)
}

fn permission_bits(text: &str) -> Option<u16> {
    text.chars().try_fold(0, |bits, c| match c {
        'r' => Some(bits | 4),
        'w' => Some(bits | 2),
        'x' => Some(bits | 1),
        '-' => Some(bits),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn encodes_as_linux_stores_them() {
        let expected = [
            &[2, 0, 0, 0][..],
            &[1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff],
            &[2, 0, 5, 0, 0xe8, 3, 0, 0],
            &[4, 0, 4, 0, 0xff, 0xff, 0xff, 0xff],
            &[0x10, 0, 5, 0, 0xff, 0xff, 0xff, 0xff],
            &[0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
        ]
        .concat();
        assert_eq!(
            encoded(b"user::rw-,group::r--,user:lisa:r-x:1000,mask::r-x,other::---").unwrap(),
            expected
        );
        assert_eq!(
            encoded(b"user::rw-\nuser:1000:r-x\ngroup::r--\nmask::r-x\nother::---\n").unwrap(),
            expected
        );
        assert_eq!(encoded(b"user:lisa:r-x"), None);
        assert_eq!(encoded(b"user::q"), None);
    }
}
