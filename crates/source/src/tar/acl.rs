//! Access control lists: conversion from text in tar archives to Linux's extended attribute.

use super::ids::Ids;

/// Undefined id, for entries without a name.
const NOBODY: u32 = u32::MAX;
/// Most entries of a list in an extended attribute of 64 KiB.
const ENTRIES_MAX: usize = ((1 << 16) - 4) / 8;

const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// A list valid for Linux: one entry each for owner, group and others, no duplicate users or
/// groups, and a mask if any is named.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AccessList {
    /// Tag, id and permissions, in Linux's order.
    entries: Vec<(u16, u32, u16)>,
}

/// A list that cannot be kept, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dropped {
    /// The reason, as part of a message.
    pub why: String,
    /// Permissions of the file's group within the mask; the mode's group bits are only valid
    /// together with the list.
    pub group: Option<u16>,
}

impl AccessList {
    /// Parses entries such as `user::rwx,user:1000:r-x,group:mail:r--,mask::rwx`, optionally
    /// followed by the numeric id, and with `#` comments.
    pub(super) fn read(text: &[u8], ids: &Ids) -> Result<AccessList, Dropped> {
        let (mut entries, mut unknown) = (Vec::new(), None);
        let text = String::from_utf8_lossy(text);
        let lines = text.split('\n').map(|line| line.split('#').next().unwrap_or_default());
        for entry in lines.flat_map(|line| line.split(',')).map(str::trim).filter(|entry| !entry.is_empty()) {
            if entries.len() == ENTRIES_MAX {
                return Err(dropped(format!("it has more than {ENTRIES_MAX} entries")));
            }
            let fields =
                fields(entry).ok_or_else(|| dropped(format!("{:?} is not a valid entry", short(entry))))?;
            let id = fields.id(ids).unwrap_or_else(|why| {
                unknown.get_or_insert(why);
                NOBODY
            });
            entries.push((fields.tag, id, fields.permissions));
        }
        entries.sort_unstable();
        let list = AccessList { entries };
        match unknown {
            Some(why) => Err(Dropped { why, group: list.group_within_mask() }),
            None => list.checked(),
        }
    }

    fn checked(self) -> Result<AccessList, Dropped> {
        let named = |&(tag, ..): &(u16, u32, u16)| tag == USER || tag == GROUP;
        let problem = if [OWNER, OWNING_GROUP, OTHER].iter().any(|&tag| self.permissions(tag).is_none()) {
            "it has no entry for the owner, the group or others"
        } else if self.entries.windows(2).any(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
            "it has two entries for the same"
        } else if self.entries.iter().any(named) && self.permissions(MASK).is_none() {
            "it has no mask"
        } else {
            return Ok(self);
        };
        Err(Dropped { why: problem.into(), group: self.group_within_mask() })
    }

    fn permissions(&self, tag: u16) -> Option<u16> {
        self.entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.2)
    }

    fn group_within_mask(&self) -> Option<u16> {
        Some(self.permissions(OWNING_GROUP)? & self.permissions(MASK).unwrap_or(7))
    }

    /// Returns the permission bits, which the kernel takes from the list: those of the group are
    /// the mask, if there is one.
    pub(super) fn mode(&self) -> u16 {
        let bits = |tag| self.permissions(tag).unwrap_or(0);
        bits(OWNER) << 6 | self.permissions(MASK).unwrap_or(bits(OWNING_GROUP)) << 3 | bits(OTHER)
    }

    /// Returns true if the list is equivalent to permission bits; Linux does not store such a list.
    pub(super) fn is_plain(&self) -> bool {
        self.entries.len() == 3
    }

    /// Encodes the list as version 2 of Linux's `posix_acl_xattr.h`.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, id, permissions) in &self.entries {
            bytes.extend_from_slice(&tag.to_le_bytes());
            bytes.extend_from_slice(&permissions.to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        bytes
    }
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

fn dropped(why: String) -> Dropped {
    Dropped { why, group: None }
}

struct Fields<'a> {
    tag: u16,
    name: &'a str,
    permissions: u16,
}

fn fields(entry: &str) -> Option<Fields<'_>> {
    let fields: Vec<&str> = entry.splitn(5, ':').map(str::trim).collect();
    let (kind, name, permissions) = match fields[..] {
        [kind, name, permissions] => (kind, name, permissions),
        // A name, then its number.
        [kind, _, permissions, number] => (kind, number, permissions),
        [kind, permissions] => (kind, "", permissions),
        _ => return None,
    };
    let tag = match (kind, name.is_empty()) {
        ("user" | "u", true) => OWNER,
        ("user" | "u", false) => USER,
        ("group" | "g", true) => OWNING_GROUP,
        ("group" | "g", false) => GROUP,
        ("mask" | "m", true) => MASK,
        ("other" | "o", true) => OTHER,
        _ => return None,
    };
    Some(Fields { tag, name, permissions: permission_bits(permissions)? })
}

impl Fields<'_> {
    fn id(&self, ids: &Ids) -> Result<u32, String> {
        let name = unescaped(self.name);
        match self.tag {
            USER => ids.user(&name).ok_or_else(|| format!("this machine has no user {:?}", short(&name))),
            GROUP => ids.group(&name).ok_or_else(|| format!("this machine has no group {:?}", short(&name))),
            _ => Ok(NOBODY),
        }
    }
}

/// Special characters are `\` and three octal digits.
fn unescaped(name: &str) -> String {
    let (mut plain, mut rest) = (Vec::with_capacity(name.len()), name.as_bytes());
    while let Some((&byte, behind)) = rest.split_first() {
        let (byte, behind) = match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..] => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), behind)
            }
            _ => (byte, behind),
        };
        plain.push(byte);
        rest = behind;
    }
    String::from_utf8_lossy(&plain).into_owned()
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
    use super::*;

    fn read(text: &str) -> Result<AccessList, Dropped> {
        AccessList::read(text.as_bytes(), &Ids::default())
    }

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
        for text in [
            "user::rw-,group::r--,user:lisa:r-x:1000,mask::r-x,other::---",
            "user::rw-\nuser:1000:r-x\ngroup::r--\nmask::r-x\nother::---\n",
            "u::rw-\nu:1000:rx\t\t#effective:r-x\ng::r\nm::r-x\no::\n",
        ] {
            let list = read(text).unwrap();
            assert_eq!((list.encoded(), list.mode()), (expected.clone(), 0o650), "{text:?}");
        }
    }

    #[test]
    fn names_become_ids_of_this_machine() {
        let by_name =
            read("user::rw-\nuser:root:r-x\ngroup::r--\ngroup:\\162oot:rw-\nmask::rwx\nother::---\n");
        let by_number = read("user::rw-\nuser:0:r-x\ngroup::r--\ngroup:0:rw-\nmask::rwx\nother::---\n");
        assert_eq!(by_name.unwrap(), by_number.unwrap());
    }

    #[test]
    fn drops_lists_invalid_in_linux_with_the_reason() {
        for (text, why, group) in [
            ("user::rwx,user:no one:rwx,group::r-x,mask::rw-,other::---", "no user \"no one\"", Some(4)),
            ("user::rwx,group:no one:rwx,group::r-x,mask::rw-,other::---", "no group \"no one\"", Some(4)),
            ("user::rwx,user:1:rwx,group::r-x,other::---", "no mask", Some(5)),
            ("user::rwx,group::r-x", "no entry for", Some(5)),
            ("user::rwx,group::r-x,other::r,other::w", "two entries", Some(5)),
            ("user::q,group::r-x,other::r", "\"user::q\"", None),
            ("user:1:2:3:4:5", "not a valid entry", None),
            ("", "no entry for", None),
        ] {
            let Err(dropped) = read(text) else { panic!("{text:?} is dropped") };
            assert!(dropped.why.contains(why) && dropped.group == group, "{text:?}: {dropped:?}");
        }
        assert!(read(&"user:1:r,".repeat(ENTRIES_MAX + 1)).unwrap_err().why.contains("more than"));
    }
}
